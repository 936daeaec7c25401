"""Messages of YAML parsers about broken syntax, made helpful."""

import re

_SIGN = "a text that begins with a sign of YAML's; needed quotes around it"
# What libyaml and PyYAML say, what it means, and whether the problem lies where its context began.
_SYNTAX = (
    (r"expected ',' or '\]'", "a list that begins here; needed ',' between items and ']'", True),
    (r"expected ',' or '}'", "a mapping that begins here; needed ',' between keys and '}'", True),
    (r"unexpected (end|doc)", "a quote that is never closed; needed its other end", True),
    (r"expected ':'", "a line that is neither `key: value` nor `- item`", True),
    (r"mapping values are not", "a colon that ends no key; needed quotes around ': '", False),
    (r"sequence entries are not", "a list on its key's line; needed it below, or [ ]", False),
    (r"expected (the )?node content", "no value; needed one, or a bracket's other end", False),
    (r"block collection", "no item of the list that it is in; needed '- '", False),
    (r"block mapping", "no key of the mapping that it is in; needed the same indent", False),
    (r"escape", r"an escape that YAML does not know; needed \\ or single quotes", False),
    (r"an alias|an anchor|a tag|tag handle|block scalar", _SIGN, True),
    (r"document start", "text after the document's end; needed one document", False),
)


def explained(problem: str) -> tuple[str, bool]:
    """Return what a parser's message means, and whether to point at the start of its context."""
    for pattern, meaning, at_start in _SYNTAX:
        if re.search(pattern, problem):
            return meaning, at_start
    return f"not YAML: {problem.removeprefix('; ')}", False
