"""What a lying model has read: runs of the tools over one set of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from sentinel_rag.agent.tool_runs import ToolRun


@dataclass(frozen=True, slots=True)
class Estate:
    """Runs of the tools over one set of rows, by what they are for; `zone` is the session's."""

    name: str
    zone: tzinfo
    incidents: ToolRun
    details: Sequence[ToolRun]
    alerts: ToolRun
    accounts: ToolRun
    trend: ToolRun
    rows: ToolRun | None = None

    @property
    def runs(self) -> list[ToolRun]:
        """All of them, in the order in which a conversation would make them."""
        found = [self.incidents, self.alerts, self.accounts, self.trend, *self.details]
        return found if self.rows is None else [*found, self.rows]


def rows_of(run: ToolRun) -> list[dict[str, Any]]:
    """The rows of a result as plain dictionaries."""
    return [dict(row) for row in run.rows]


def summary_of(run: ToolRun) -> dict[str, Any]:
    """The summary of a result that there is."""
    assert run.result is not None, f"{run.call.tool_name} did not work"
    return dict(run.result.summary)


def total_of(run: ToolRun) -> int:
    """How many rows matched, shown or not."""
    assert run.result is not None, f"{run.call.tool_name} did not work"
    return int(run.result.coverage.rows_total or 0)
