"""The stretch of time that an answer told of, so that "that day" can mean it afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import format_time, parse_time

_BUCKETS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}
_SUMMER_TIME = timedelta(hours=1)


def told_moment(plan: Plan, runs: Sequence[ToolRun]) -> dict[str, str]:
    """The bucket that a trend told of, as a window; empty for other answers."""
    if plan.view is not View.TREND or len(runs) != 1:
        return {}
    run = runs[0]
    rows = list(run.rows)
    place = next((at for at, row in enumerate(rows) if row.get("time") == run.at("/summary/peak_time")), None)
    if plan.frame.has("calm") and rows:
        place = min(range(len(rows)), key=lambda each: _count(rows[each]))
    length = _BUCKETS.get(str(run.at("/summary/interval") or ""))
    if place is None or length is None:
        return {}
    begin = str(rows[place]["time"])
    end = parse_time(begin) + length
    following = parse_time(str(rows[place + 1]["time"])) if place + 1 < len(rows) else end
    # Where the clocks change, the next bucket says how long this one is; a bucket without rows may be left out.
    end = following if abs(following - end) <= _SUMMER_TIME < length else end
    return {"start_time": begin, "end_time": format_time(end)}


def _count(row: Mapping[str, object]) -> int:
    return int(str(row.get("count") or 0))
