"""What a person is told of their own session from the journal: what was changed or sent, what was refused, and how
people decided about it. For a report of a conversation to those who do not read the audit.

Arguments, labels and rules stay in the journal: a record may hold what the policy hides from this person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sentinel_rag.audit import Journal, JournalEntry, RecordFilter
from sentinel_rag.contracts.json_values import JsonValue

MOST_RECORDS = 1_000
MOST_PAGES = 10
"""Pages of `Journal.back`, each of at most 20 000 records that are looked at."""

READ = "read"
ASKED = "approval_asked"
TOLD = frozenset({"intent", "refusal", ASKED, "approval_decided", "approval_lapsed"})
FIELDS = (
    *("seq", "kind", "audit_id", "at", "key_id", "tool", "requested_tool", "effect", "reason"),
    *("approval_id", "why", "decision", "actor", "comment", "state"),
)


@dataclass(frozen=True, slots=True)
class Story:
    """Records in the form of the audit with `FIELDS` alone, oldest first. `whole` is False where there were more than
    was looked at; `head` is number and hash of the newest record of all."""

    records: tuple[dict[str, Any], ...]
    whole: bool
    head: dict[str, JsonValue]

    def to_dict(self) -> dict[str, Any]:
        return {"records": list(self.records), "whole": self.whole, "head": self.head}


async def story_of(journal: Journal, session_id: str) -> Story:
    """What became of the calls of the session, back to its opening."""
    head = await journal.head()
    found: dict[int, JournalEntry] = {}
    before, opened = None, False
    for _ in range(MOST_PAGES):
        page = await journal.back(RecordFilter(session_id=session_id), before, MOST_RECORDS)
        found |= {entry.seq: entry for entry in page.entries}
        opened = any(entry.record.get("change") == "opened" for entry in page.entries)
        before = page.next_before
        if opened or before is None or len(found) >= MOST_RECORDS:
            break
    for asked in [entry.audit_id for entry in found.values() if entry.kind == ASKED]:
        found |= {entry.seq: entry for entry in await journal.find(asked)}  # a decision is in no session
    return Story(
        tuple(_told(found[seq] for seq in sorted(found))),
        opened or before is None,
        {"seq": head.seq, "hash": head.digest.hex()},
    )


def _told(entries: Iterable[JournalEntry]) -> Iterable[dict[str, Any]]:
    for entry in entries:
        if entry.kind in TOLD and not (entry.kind == "intent" and entry.record.get("effect") == READ):
            shown = {name: entry.record[name] for name in FIELDS if name in entry.record}
            yield {"record": shown, "outcome": None if entry.outcome is None else entry.outcome.value}
