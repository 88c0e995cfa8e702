"""What became of the queries of one server, for the operator: how many run, wait, and how the others ended."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.workspace.serving.query_slots import SlotCounts


@dataclass(slots=True)
class QueryCounts:
    """Counts since the start, over the places that `slots` counts. Written on the event loop only."""

    slots: SlotCounts
    answered: int = 0
    rejected: int = 0
    timed_out: int = 0
    failed: int = 0

    def ended(self, status: int) -> None:
        """A query that ran ended with this HTTP status."""
        if status < 400:
            self.answered += 1
        elif status == 504:
            self.timed_out += 1
        elif status < 499:
            self.rejected += 1
        else:
            self.failed += 1

    def to_dict(self) -> dict[str, int]:
        """`cancelled` are the queries whose client went away, `throttled` those without a place."""
        return {
            "running": self.slots.running,
            "waiting": self.slots.waiting,
            "answered": self.answered,
            "rejected": self.rejected,
            "timed_out": self.timed_out,
            "cancelled": self.slots.abandoned,
            "throttled": self.slots.refused,
            "failed": self.failed,
        }
