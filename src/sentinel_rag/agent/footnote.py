"""The footnote: one line for each tool call, with arguments, rows seen of total, window, data age and audit id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, tzinfo

from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.times import show_age, show_time, show_window
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import Coverage, QueryResult, TimeWindow
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Failed, Succeeded

FREEFORM_TOOL = "run_freeform_kql"


def footnote(runs: Sequence[ToolRun], *, now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """One line for each run, in their order."""
    return tuple(_line(run, now, zone) for run in runs)


def _line(run: ToolRun, now: datetime, zone: tzinfo) -> str:
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in run.call.arguments.items()
    )
    parts = [plain(f"{run.call.tool_name}({arguments})", limit=500)]
    match run.outcome:
        case Succeeded(result=DocumentResult()):
            pass  # no rows and no window: the call and its record say all
        case Succeeded(result=QueryResult() as result):
            parts += _coverage(result.coverage, now, zone, own_text=run.call.tool_name == FREEFORM_TOOL)
        case Denied(detail=detail, rule_id=rule_id):
            parts.append(f"denied: {plain(detail)}" + ("" if rule_id is None else f" (rule {plain(rule_id)})"))
        case Failed(error=error):
            parts.append(f"failed, {error.code.value}: {plain(error.message)}")
    if run.outcome.audit_id:
        parts.append(f"audit {plain(run.outcome.audit_id)}")
    return " · ".join(parts)


def _coverage(coverage: Coverage, now: datetime, zone: tzinfo, *, own_text: bool) -> list[str]:
    """`own_text` tells of a query whose text may bound its time by itself."""
    total = "an unknown total" if coverage.rows_total is None else str(coverage.rows_total)
    parts = [f"{coverage.rows_returned} of {total} rows"]
    window = f"window {show_window(coverage.window, zone)}"
    if own_text and coverage.window == TimeWindow():
        window = "window as the query itself says"
    elif coverage.time_column:
        window += f" by {plain(coverage.time_column)}"
    parts.append(window)
    if coverage.table_newest is not None:
        age = now - coverage.table_newest
        parts.append(f"newest row {show_time(coverage.table_newest, zone)}, {show_age(age)} old")
    elif coverage.table_rows == 0:
        parts.append("the table holds no rows")
    if coverage.partial:
        parts.append(f"PARTIAL: {plain(coverage.partial_reason) or 'the service cut the result'}")
    if coverage.workspace:
        parts.append(f"workspace {plain(coverage.workspace)}")
    return parts
