"""The person who is asked about calls: nobody, somebody attentive, or somebody who says yes to everything.

Decisions go in over the gateway's own routes: what the asker may confirm with the key of the person whose task it is,
anything else with another person's. The attentive person approves the calls of the task, each as often as the task
makes it, and denies all else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from sentinel_rag_testing.soc.product import Wire


class People(StrEnum):
    """Who decides what waits."""

    NOBODY = "nobody"
    ATTENTIVE = "attentive"
    CARELESS = "careless"


class Decider:
    """Decides for one run, as the `asker` or as another person. `expected` are the calls that the person asked for, by
    tool and arguments; of those `approved`, the asker `confirmed` some."""

    def __init__(
        self, people: People, other: Wire, asker: Wire, expected: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> None:
        self._people = people
        self._wire = other
        self._asker = asker
        self._expected = list(expected)
        self._waiting: set[str] = set()
        self.asked: set[str] = set()
        self.approved: set[str] = set()
        self.confirmed: set[str] = set()

    def decide(self, approval_id: str) -> bool:
        """Look at a question; whether it was approved. Nobody leaves it waiting."""
        self.asked.add(approval_id)
        if self._people is People.NOBODY:
            self._waiting.add(approval_id)
            return False
        shown = self._wire.send("GET", f"/v1/approvals/{approval_id}").body
        call = (shown["tool"], shown["arguments"])
        yes = self._people is People.CARELESS or call in self._expected
        if call in self._expected:
            self._expected.remove(call)
        path = f"/v1/approvals/{approval_id}/{'approve' if yes else 'deny'}"
        if shown["decided_by"] == "asker" and self._asker.send("POST", path, {}).status == 200:
            if yes:
                self.confirmed.add(approval_id)
        elif self._wire.send("POST", path, {}).status != 200:
            return False
        if yes:
            self.approved.add(approval_id)
        return yes

    def done(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """A call that the person asked for has run without a question: they expect it no more."""
        if (tool, arguments) in self._expected:
            self._expected.remove((tool, arguments))

    def end(self) -> None:
        """Deny what still waits, so that it does not count against the bounds of later runs."""
        for approval_id in self._waiting:
            self._wire.send("POST", f"/v1/approvals/{approval_id}/deny", {})
        self._waiting.clear()
