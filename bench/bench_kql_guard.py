"""How long the KQL guard takes by the size of the schema: cold, warm, and the fallback, beside the translation to SQL.

Every shipped template's query is judged. Warm calls alternate with the translation of the same query to SQL, which the
embedded workspace does next, so the ratio says what the guard adds to a question.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from bench.harness import timings, write
from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser
from sentinel_rag.sentinel.kql_guard.official_parser import parser_state
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag.workspace.queries import TimeRange, translate
from sentinel_rag.workspace.table_schemas import known_tables

SIZES = (30, 53, 900)
CLAIM = (
    "A warm verdict takes at most 1.5 times as long as the translation of the query to SQL (ratio of medians) with 30 "
    "or 53 tables, at most twice as long with 900. Cold times hold the start of node, at the machine's load."
)

Schema = Mapping[str, Mapping[str, str]]


def schema_of(size: int, needed: set[str]) -> Schema:
    """`size` tables: those that the queries read, then others; beyond the known ones, copies under other names."""
    known = known_tables()
    ordered = [*sorted(needed), *(name for name in known if name not in needed)]
    tables = {name: known[name] for name in ordered[: max(size, len(needed))]}
    for number in range(size - len(tables)):
        tables[f"Copy{number}_CL"] = known[ordered[number % len(ordered)]]
    return tables


async def cold(schema: Schema, kql: str, runs: int) -> dict[str, float]:
    """From nothing to the first verdict."""
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        guard = KqlGuard(installed_parser())
        report = await guard.check(kql, schema, time_bounded=True, row_cap=100)
        taken.append(time.perf_counter() - start)
        assert report.allowed, report.problems
        await guard.close()
    return timings(taken)


async def warm(guard: KqlGuard, schema: Schema, queries: list[str], rounds: int) -> dict[str, Any]:
    """Every query `rounds` times, in turn with its translation."""
    guarded: list[float] = []
    translated: list[float] = []
    window = TimeRange()
    for kql in queries * (rounds + 1):
        start = time.perf_counter()
        report = await guard.check(kql, schema, time_bounded=True, row_cap=100)
        middle = time.perf_counter()
        translate(kql, schema, window)
        translated.append(time.perf_counter() - middle)
        guarded.append(middle - start)
        assert report.parser != "microsoft" or report.allowed, report.problems
    guarded, translated = guarded[len(queries) :], translated[len(queries) :]
    return {
        "guard_p50_ms": round(statistics.median(guarded) * 1e3, 2),
        "guard_p95_ms": round(statistics.quantiles(guarded, n=20)[-1] * 1e3, 2),
        "translation_p50_ms": round(statistics.median(translated) * 1e3, 2),
        "translation_p95_ms": round(statistics.quantiles(translated, n=20)[-1] * 1e3, 2),
        "ratio_of_medians": round(statistics.median(guarded) / statistics.median(translated), 3),
        "verdicts": len(guarded),
    }


async def measure() -> dict[str, Any]:
    templates = load_templates().values()
    queries = [template.sample_query() for template in templates]
    needed = {table for template in templates for table in template.tables}
    state = parser_state()
    node = "" if state.node is None else ".".join(str(part) for part in state.node.version)
    measured: dict[str, Any] = {"parser": state.version, "node": node, "queries": len(queries)}
    for size in SIZES:
        schema = schema_of(size, needed)
        guard = KqlGuard(installed_parser())
        measured[f"tables_{len(schema)}"] = {
            "cold": await cold(schema, queries[0], runs=5),
            "warm": await warm(guard, schema, queries, rounds=3),
        }
        await guard.close()
    measured["fallback_53_tables"] = await warm(KqlGuard(None), schema_of(53, needed), queries, rounds=1)
    measured["memory_mib"] = memory_of_parser(schema_of(900, needed), queries)
    return measured


def memory_of_parser(schema: Schema, queries: list[str]) -> float | None:
    """Resident memory of the node process after every query with the largest schema; None where it cannot be read."""
    parser = installed_parser()
    assert parser is not None
    try:
        for kql in queries:
            parser.analyze_now(kql, schema)
        process = parser._process._running_one[0]
        status = Path(f"/proc/{process.pid}/status")
        if not status.exists():
            return None
        line = next(each for each in status.read_text().splitlines() if each.startswith("VmRSS:"))
        return round(int(line.split()[1]) / 1024, 1)
    finally:
        parser.close_now()


if __name__ == "__main__":
    write("kql_guard", anyio.run(measure), claim=CLAIM)
