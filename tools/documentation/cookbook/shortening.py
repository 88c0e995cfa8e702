"""An answer as a page shows it: what varies and what a reader skips is `...`, which stands for anything.

What is left is compared word by word, so a cut never hides a figure of the answer itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ANYTHING = "..."
TABLE_LINES = 12
"""Lines of a table that are shown: its head, the line below it, and rows."""

LIKENED_LINES = 4
"""The same of past incidents: the likest. In which order the others come, their age decides too."""

_FOOTNOTE = re.compile(r"^(?P<call>\w+\(.*?\)) · (?P<rows>[\d,]+ of (?:[\d,]+|\?) rows)?.*")
_FOOTNOTE_START = re.compile(r"^\w+\([^)]*=|^\w+\(\) · ")
_RANDOM_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{48}\b")
"""Ids of records, approvals and sessions; those of the estate are of version 5 and always the same."""

_AGE = re.compile(r"\b\d+\s+(?:day|hour|minute|second|min|s)s?\s+(?:old|ago|left)\b")
"""Also where a narrow terminal breaks it."""

_VARYING = re.compile(
    r"(?<=_By root, )[\d: -]+UTC|(?<=incidents as of )[\d:. -]+UTC(?=\.)"
    r"|(?<=\(until )[\d: -]+UTC|^  [\d: -]+UTC(?=  \w+ raised it)"
)
"""The times of what happened while the question was asked."""

_ANOTHER_EACH_TIME = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\b[0-9a-f]{64}\b|\b\d+(?= records \()|(?<=\(1 to )\d+(?=\) hold)"
    r"|(?<=up to record )\d+|(?<=Exported by\*\*: ).*"
)

_PARSER_NOTE = "Note: Microsoft's parser is not installed"
"""Stands in an answer where the parser is not installed, and nowhere else."""


def shortened(output: str) -> str:
    """`output` without suggestions, addresses of portals, rows beyond the first of a table, and what follows the row
    count of a footnote."""
    lines: list[str] = []
    for line in _cut(_AGE.sub(ANYTHING, output.rstrip("\n")).split("\n")):
        if line == ANYTHING and lines and lines[-1] == ANYTHING:
            continue
        if line == "" and lines and lines[-1] in ("", ANYTHING):
            lines[-1] = ANYTHING if lines[-1] == ANYTHING else ""
            continue
        lines.append(line)
    return "\n".join(lines) + "\n"


def shortened_output(output: str) -> str:
    """What a shell printed, without what is another one each time: moments, hashes, counts of records, a name."""
    return _ANOTHER_EACH_TIME.sub(ANYTHING, shortened(output))


def _cut(lines: list[str]) -> Iterator[str]:
    in_table, in_suggestions, in_footnote, after_page = 0, False, False, False
    title = ""
    for line in lines:
        text = _VARYING.sub(ANYTHING, _RANDOM_ID.sub(ANYTHING, line.rstrip()))
        if text.startswith(_PARSER_NOTE):
            yield ANYTHING
            continue
        if after_page and text.startswith(("`https://", "Microsoft.")):
            continue
        after_page = False
        if _FOOTNOTE_START.match(text):
            in_footnote = True
            yield from _footnote(text)
        elif in_footnote or (in_suggestions and text):
            yield ANYTHING
        elif text.startswith("You could ask:"):
            in_suggestions = text == "You could ask:"
            yield ANYTHING
        elif text.startswith(("Page:", "Page in the Defender portal:")):
            after_page = True
            yield ANYTHING
        elif "┃" in text or (in_table and text):
            in_table += 1
            yield text if in_table <= (LIKENED_LINES if title == "Past incidents" else TABLE_LINES) else ANYTHING
            continue
        else:
            in_suggestions = False
            yield text
        in_table, title = 0, text


def _footnote(text: str) -> Iterator[str]:
    found = _FOOTNOTE.match(text)
    if found and found["call"].startswith("list_kql_templates("):
        yield ANYTHING
        return
    if found and found["rows"]:
        yield f"{found['call']} · {found['rows']}{ANYTHING}"
    elif found:
        yield f"{found['call']} · {ANYTHING}"
    else:
        yield f"{text[:100]}{ANYTHING}"
    yield ANYTHING
