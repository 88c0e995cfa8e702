"""Objects in code blocks (JSON or "key: value" lines) that state values of an incident that they number.

A block of code is no prose, but a reader takes its values the same way; a block with a wrong one is left out whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded

_PAIR = re.compile(
    r"[\"']?(?P<key>[A-Za-z_][\w ]{1,30}?)[\"']?\s*[:=]\s*(?:[\"'](?P<text>[^\"'\n]{0,200})[\"']|"
    r"(?P<bare>[^\s,;{}\[\]\"'][^,;{}\[\]\n]{0,80}))"
)
_NUMBER_KEYS = frozenset({"incident", "number", "incidentnumber", "incidentid", "id"})
_FIELDS = {
    "severity": "severity", "status": "status", "owner": "owner", "assignee": "owner", "assignedto": "owner",
    "title": "title", "classification": "classification",
}  # fmt: skip
_NOTHING = frozenset({"null", "none", "unassigned", "nobody", "", "-"})


def wrong_pairs(text: str, index: EvidenceIndex) -> Iterator[tuple[int, int]]:
    """The places of the values that the results tell otherwise for the incident that the object before them numbers."""
    number = ""
    pending: list[tuple[str, str, int, int]] = []
    for match in _PAIR.finditer(text):
        key = re.sub(r"[\W_]", "", match["key"]).lower()
        group = "text" if match["text"] is not None else "bare"
        value, place = match[group].strip(), match.span(group)
        if text[: match.start()].rstrip().endswith(("{", "\n-")):
            # A new object: what it says before its number waits for it.
            number, pending = "", []
        if key in _NUMBER_KEYS and value.lstrip("#").isdigit():
            number = value.lstrip("#")
            yield from (span[2:] for span in pending if not _right(number, span[0], span[1], index))
            pending = []
        elif key in _FIELDS and number:
            if not _right(number, _FIELDS[key], value, index):
                yield place
        elif key in _FIELDS:
            pending.append((_FIELDS[key], value, *place))


def _right(number: str, field: str, value: str, index: EvidenceIndex) -> bool:
    """True if the newest result with that field of the incident has the value, or none has the field."""
    for record in index.incidents(number):
        leaf = record.first(field)
        if leaf is not None:
            told, written = folded(str(leaf.value or "")).replace(" ", ""), folded(value).replace(" ", "")
            both_empty = told in _NOTHING and written in _NOTHING
            return told == written or both_empty or (field == "title" and written in told)
    return True
