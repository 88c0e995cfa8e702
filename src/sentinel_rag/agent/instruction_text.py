"""Recognises text of rows that addresses an assistant or commands whoever reads it, so that an answer can say so.

It only ever adds a sentence to an answer: no plan, no argument and no fact depends on it, and text that it misses is
data all the same. It looks for phrases, not for intent; benign titles and command lines hold next to none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.row_text import read_plainly
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.text import phrases, says

_LONGEST = 6_000
_MARKUP = re.compile(
    r"</(?:data|context|tool_result|untrusted|documents?|system|user)>|<\|?(?:im_start|system|assistant)\|?>|\[/?inst\]",
    re.IGNORECASE,
)
"""Tags with which models mark who speaks."""
_ROLE_OR_LINK = re.compile(
    r"(?:^|[\n\"'`“‘(<\[]|[.;:]\s)\s*(?:assistant|system|user|developer|human|tool|analyst)\s*:|\[\s*\d{1,4}\s*\]|\]\(",
    re.IGNORECASE,
)
"""What the value of a row can pass itself off as: the beginning of somebody's turn, a citation, a link."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A text that reads like an instruction, and where it stands."""

    run: ToolRun
    pointer: str
    text: str


def reads_like_instruction(text: str) -> bool:
    """True if one phrase that hardly occurs otherwise is found, or two of the weaker kind."""
    whole, flat = _forms(text)
    strong = _MARKUP.search(whole) or any(says(form, "commands", "strong") for form in (whole, flat))
    return bool(strong) or sum(bool(weak.search(flat)) for weak in phrases("commands", "weak")) >= 2


def may_instruct(text: str, *, value: bool = False) -> bool:
    """True at the first phrase that could steer a reader, the weak ones included: for texts that are kept for later and
    are better lost than obeyed. `value` for a text of a row, False for a sentence about rows."""
    forms = _forms(text)
    names = ("strong", "weak", "in_a_value") if value else ("strong", "weak")
    marked = _MARKUP.search(forms[0]) or (value and any(map(_ROLE_OR_LINK.search, forms)))
    return bool(marked) or any(says(form, "commands", name) for form in forms for name in names)


def _forms(text: str) -> tuple[str, str]:
    """The text as it stands, and with the words of names apart."""
    whole = read_plainly(text, limit=_LONGEST)
    return whole, whole.replace("_", " ")


def suspicions(runs: Sequence[ToolRun], *, most: int = 4) -> list[Suspicion]:
    """Texts of the rows that read like instructions, each text once, in the order of the rows."""
    found: dict[str, Suspicion] = {}
    for run in runs:
        for place, row in enumerate(run.rows):
            for pointer, text in _texts(row, f"/rows/{place}"):
                known = read_plainly(text, limit=_LONGEST)
                if len(found) < most and known not in found and reads_like_instruction(text):
                    found[known] = Suspicion(run, pointer, text)
    return list(found.values())


def _texts(value: JsonValue, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if len(value) >= 12:
            yield pointer, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _texts(part, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _texts(part, f"{pointer}/{place}")
