"""A node reached by SSH, over one kept connection."""

import time
from contextlib import suppress

from orchestrator import errors
from orchestrator.deadlines import ANSWER_S, SHELL_S
from orchestrator.model.node import Node
from orchestrator.transports import Completed, Stream, Transport
from orchestrator.transports._connect import connect, fetch_host_key, find_jump_host
from orchestrator.transports._session import Session
from orchestrator.transports._shell import READ_ALL, Marks
from orchestrator.transports.cached import Cached
from orchestrator.transports.failures import make_error
from orchestrator.words import limit

__all__ = ["SshTransport", "fetch_host_key", "find_jump_host"]


class SshTransport(Transport):
    """A node that is reached by SSH: connected at the first call, and again after a loss.

    At most six commands and streams run at once; further ones queue. Limits of time begin once the
    node is connected, which has limits of its own. A login shell that starts no command is
    SSH-SHELL.
    """

    unfit = errors.UnfitError

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self._session = Cached(lambda: connect(node), lambda it: it.is_alive, Session.close)

    def _start(self, argv: tuple[str, ...]) -> Stream:
        marks = Marks()
        return self._session.get().execute(marks, marks.format_open(argv), SHELL_S)

    def close(self) -> None:
        self._session.drop()

    def _execute(
        self, argv: tuple[str, ...], timeout_s: float, doing: str, content: bytes | None = None
    ) -> Completed:
        session, marks = self._session.get(), Marks()
        deadline = time.monotonic() + timeout_s
        is_fed = content is not None
        text = marks.format_run(argv, is_fed=is_fed)
        stream = session.resume(marks, text) if is_fed else None
        stream = stream or session.execute(marks, text, timeout_s)
        answer = None
        try:
            with session.translate_errors(doing):
                try:
                    with suppress(BrokenPipeError):  # its answer says why
                        stream.settimeout(timeout_s)
                        stream.sendall(content or b"")
                    answer = stream.finish(marks, deadline, doing, ANSWER_S if is_fed else 0)
                except TimeoutError as error:
                    stream.close()
                    session.probe()
                    cause = f"{doing} gave no answer in {limit(timeout_s)}"
                    raise make_error("TIMEOUT", cause, node=self.node) from error
        finally:
            if answer and is_fed and answer[0] in READ_ALL:
                session.keep(stream)
            else:
                stream.close()
        if answer is None and session.is_alive:
            cause = f"the shell that ran {doing} was killed; {doing} may still be running"
            raise make_error("SSH-KILLED", cause, node=self.node)
        if answer is None:
            raise session.explain_loss(doing)
        return Completed(*answer)
