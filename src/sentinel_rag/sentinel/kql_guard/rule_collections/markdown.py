"""Queries in Markdown: fenced blocks that say KQL, and fences that say nothing or another language but hold KQL.

Collections label their fences KQL, kusto, C# (for its colours) or not at all, in lists and quotes too, so a block
counts as KQL by its label or by a line that starts with a pipe and an operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.sentinel.kql_guard.rule_collections.found_query import FoundQuery

_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^`\r\n]*?)[ \t]*\r?$")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*\r?$")
_KQL_LABELS = ("kql", "kusto", "csl")
_PIPED = re.compile(
    r"^\s*\|\s*(where|filter|extend|project|summarize|join|take|limit|top|sort|order|count|distinct|union|mv-expand"
    r"|mvexpand|parse|evaluate|lookup|make-series|render|invoke|search)\b",
    re.IGNORECASE | re.MULTILINE,
)


def looks_like_kql(text: str) -> bool:
    """Whether a text without a label is KQL: some line pipes into an operator."""
    return _PIPED.search(text) is not None


def queries_in_markdown(text: str) -> Iterator[FoundQuery]:
    """Every query block, titled by the heading above it. A fence that is never closed runs to the end."""
    heading, index = "", 0
    opened: tuple[str, str, str] | None = None
    lines: list[tuple[str, int]] = []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\n")
        if opened is None:
            fence = _FENCE.match(bare)
            named = _HEADING.match(bare)
            if fence is not None:
                opened, lines = (fence["indent"], fence["fence"], fence["label"]), []
            elif named is not None:
                heading = named[1]
        elif _closes(bare, opened[1]):
            yield from _block(heading, opened[2], lines)
            opened = None
        else:
            cut = _indent_of(bare, opened[0])
            lines.append((bare[cut:], index + cut))
        index += len(line)
    if opened is not None:
        yield from _block(heading, opened[2], lines)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t>\r")
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _indent_of(line: str, indent: str) -> int:
    cut = 0
    while cut < min(len(indent), len(line)) and line[cut] in " \t>":
        cut += 1
    return cut


def _block(heading: str, label: str, lines: list[tuple[str, int]]) -> Iterator[FoundQuery]:
    kql = "\n".join(line for line, _ in lines)
    named = label.lower().lstrip("{. ").startswith(_KQL_LABELS)
    if not kql.strip() or not (named or looks_like_kql(kql)):
        return
    segments, start = [], 0
    for line, place in lines:
        segments.append((start, place))
        start += len(line) + 1
    yield FoundQuery(heading, kql, tuple(segments))
