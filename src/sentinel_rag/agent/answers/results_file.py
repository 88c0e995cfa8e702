"""Calls with their results in a file: what a conversation keeps, `sentinel export` writes, and the check reads again.

    {"format": "sentinel-results", "version": 1, "timezone": "UTC", "said": ["is incident 124 open?"], "results": [
      {"call_id": "c1", "tool": "query_incidents", "arguments": {"limit": 50}, "read_at": "2026-11-29T08:00:00Z",
       "status": "ok", "detail": "", "writes": false, "quoted": ["/rows/0/title"], "result": {...}}]}

`result` is the document that the tool returned, hidden values as placeholders; `quoted` points (RFC 6901) at texts of
outsiders in it. A call of `compute` has no result: it is computed again. All but `tool` and `result` may be missing, so
that results of other agents can be written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sentinel_rag.agent.answers.compute import NAME, ComputeError, compute
from sentinel_rag.agent.answers.results import Result, Results, numbered
from sentinel_rag.agent.row_text import zone_named
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import QueryResult, format_time, parse_time
from sentinel_rag.contracts.tool_calls import DocumentResult, Succeeded, ToolCall

FORMAT = "sentinel-results"
VERSION = 1
MOST_READ = 10_000
"""Results of one file."""
_NO_COVERAGE: JsonObject = {
    "workspace": "", "tables": [], "window": {"start": None, "end": None}, "time_column": "", "rows_total": None,
    "query": "", "duration_ms": 0, "partial": False, "partial_reason": "", "table_rows": None, "table_oldest": None,
    "table_newest": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResultsFile:
    """What a file holds: the results, the person's zone and words, which an answer may repeat."""

    results: Results
    zone: ZoneInfo
    said: tuple[str, ...] = ()


def kept_form(run: ToolRun, *, writes: bool, read_at: datetime) -> JsonObject:
    """A call with its result, as an entry of the file."""
    trace = run.trace()
    entry: dict[str, JsonValue] = {
        "call_id": trace.call_id,
        "tool": trace.name,
        "arguments": dict(trace.arguments),
        "read_at": format_time(read_at),
        "status": trace.status,
        "detail": trace.detail,
        "writes": writes,
    }
    if isinstance(run.outcome, Succeeded) and trace.name != NAME:
        entry["quoted"] = list(run.outcome.quoted)
        entry["result"] = run.document
    return entry


def results_document(entries: Iterable[Mapping[str, Any]], *, timezone: str, said: Sequence[str]) -> JsonObject:
    """The whole file."""
    head: JsonObject = {"format": FORMAT, "version": VERSION, "timezone": timezone, "said": list(said)}
    return {**head, "results": [dict(entry) for entry in entries]}


def read_results(document: Any) -> ResultsFile:
    """The results of a file, computed ones computed again. Raises UsageError that names the entry which is wrong."""
    told = document if isinstance(document, Mapping) else {"results": document}
    entries = told.get("results")
    if isinstance(entries, Mapping):  # {"c1": {...}}
        entries = [{"call_id": ref, **entry} for ref, entry in entries.items() if isinstance(entry, Mapping)]
    if not isinstance(entries, list):
        raise _wrong("It has no list `results`.")
    if told.get("format", FORMAT) != FORMAT or told.get("version", VERSION) != VERSION:
        raise _wrong(f"It is of another form than {FORMAT}, version {VERSION}.")
    if len(entries) > MOST_READ:
        raise _wrong(f"It holds more than {MOST_READ} results.")
    results = Results(most=MOST_READ)
    for place, entry in enumerate(entries, 1):
        try:
            results.add(read_entry(entry, results, default_ref=f"c{place}"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _wrong(f"Entry {place} of `results`: {type(error).__name__}: {error}") from None
    said = tuple(str(each) for each in told.get("said") or () if each is not None)
    return ResultsFile(results, zone_named(str(told.get("timezone") or "UTC")), said)


def read_entry(entry: Mapping[str, Any], results: Results, *, default_ref: str) -> Result:
    """One entry as a numbered result. Raises KeyError, TypeError and their like for one without the agreed shape."""
    ref, tool = str(entry.get("call_id") or default_ref), str(entry["tool"])
    if "." in ref or not ref.strip():
        raise ValueError(f"call_id {ref!r} cannot be cited: it needs the form c1")
    arguments = dict(entry.get("arguments") or {})
    read_at = parse_time(entry["read_at"]) if entry.get("read_at") else None
    problem = "" if (status := entry.get("status", "ok")) == "ok" else str(entry.get("detail") or status)
    if tool == NAME and not problem:
        try:
            return compute(ref, arguments, results, now=read_at or utc_now())
        except ComputeError as error:
            problem = str(error)
    if problem:
        return Result(ref=ref, tool=tool, arguments=arguments, read_at=read_at, problem=problem, complete=False)
    call = ToolCall(ref, "", tool, arguments)
    quoted = tuple(str(each) for each in entry.get("quoted") or ())
    outcome = Succeeded(call, _typed(entry["result"]), quoted=quoted)
    return numbered(ToolRun(call, outcome), writes=bool(entry.get("writes")), read_at=read_at)


def _typed(result: Any) -> QueryResult | DocumentResult:
    """A document with rows as a query's result, what it lacks of one filled in."""
    if not isinstance(result, Mapping) or not isinstance(result.get("rows"), list):
        return DocumentResult(result)
    rows = result["rows"]
    coverage = {**_NO_COVERAGE, "rows_returned": len(rows), **(result.get("coverage") or {})}
    coverage["window"] = {"start": None, "end": None, **(coverage["window"] or {})}
    others: JsonObject = {
        name: result.get(name) or empty for name, empty in (("columns", []), ("summary", {}), ("notes", []))
    }
    return QueryResult.from_dict({**others, "rows": rows, "coverage": coverage})


def _wrong(message: str) -> UsageError:
    return UsageError(
        f"The file of results cannot be used. {message}",
        next_step="sentinel export --format results writes one; docs/answers.md tells its fields.",
    )
