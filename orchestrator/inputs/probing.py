"""Runs probes on nodes and parses their answers."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from orchestrator import errors, words
from orchestrator.fleet import Answer
from orchestrator.model.site import DataState
from orchestrator.probes import Probe, data, sections
from orchestrator.probes.sections import Output, Section
from orchestrator.transports import Completed, Transport

T = TypeVar("T")
Ask = Callable[[Mapping[str, tuple[str, ...]], float], list[Answer[Completed]]]
"""Runs a command on each node, by name, within a timeout in seconds."""


def ask(transport: Transport, probe: Probe[T], timeout_s: float) -> T:
    """Run a probe on a node; return the fact in its answer."""
    return parse_output(probe, transport.run(probe.argv, timeout_s=timeout_s), transport.node)


def outputs(transport: Transport, name: str, asked: Sequence[Section]) -> Mapping[str, Output]:
    """Run commands on a node at once, in one round trip; return their outputs by name."""
    if not asked:
        return {}
    nonce = secrets.token_hex(8)
    probe = sections.probe(name, asked, lambda answers: answers.outputs, nonce=nonce)
    return ask(transport, probe, sections.timeout_s(asked))


def ask_nodes(ask: Ask, probes: Mapping[str, Probe[T]], timeout_s: float) -> list[Answer[T]]:
    """Run a probe on each node, by name, at once; return the fact in each answer, or the error."""
    facts: list[Answer[T]] = []
    for answer in ask({name: probe.argv for name, probe in probes.items()}, timeout_s):
        fact, error = None, answer.error
        if answer.value is not None:
            try:
                fact = parse_output(probes[answer.node], answer.value, answer.node)
            except errors.DlperfError as unread:
                error = unread
        facts.append(Answer(answer.node, fact, error, answer.at_s))
    return facts


def parse_output(probe: Probe[T], done: Completed, node: str) -> T:
    """Parse the fact in a finished probe's output.

    Raises:
        UnfitError: the output cannot be parsed; the message has the command's standard error.
    """
    try:
        return probe.parse(done.stdout.decode(errors="replace"))
    except errors.LogError as error:
        detail = done.stderr.decode(errors="replace").strip()
        if not detail:  # such as nologin's "This account is currently not available."
            printed = done.stdout.decode(errors="replace").strip()
            detail = f"exit status {done.exit_code}, printed {words.shown(printed or None)}"
        raise errors.UnfitError(
            f"{error.cause} ({detail})", code=error.code, node=node, phase=probe.name, fix=error.fix
        ) from error


def data_states(
    transport: Transport, paths: Mapping[str, str], *, contained: bool = False
) -> dict[str, DataState]:
    """Look at paths of a node by their names; ``contained`` as in ``data.section``."""
    asked = [data.section(name, path, contained=contained) for name, path in paths.items()]
    found = outputs(transport, "first look", asked)
    return {name: data.state(output) for name, output in found.items()}
