"""`docs/sizing.md`: the text of `sizing.md` with its figures, and a table that is reckoned from them.

Beside `page`, which shows every result; here some are put together. What is assumed stands in the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from bench.report.page import RESULTS, ROOT, with_figures
from bench.report.results import Result

TEXT = Path(__file__).parent / "sizing.md"
SIZING = ROOT / "docs" / "sizing.md"

ZONES = ("web", "agent", "interceptor", "tools")
PEOPLE = (50, 150, 500)
QUESTIONS_AN_HOUR = 20
BUSIEST = 3
"""The busiest minute over the mean of its hour."""
CALLS_OF_A_MODEL = 5
HOURS_A_MONTH = 160
"""Of busy hours, each person's."""
QUERIES_AT_ONCE = 5
"""That Log Analytics runs for one identity."""
SECONDS_A_QUERY = 2.0


def sizing(results: Path = RESULTS) -> str:
    """The whole page for the result files in a folder."""
    found = {path.stem: Result.read(path) for path in sorted(results.glob("*.json"))}
    text = TEXT.read_text().replace("«table»", _table(found))
    return with_figures(text, found, page="benchmarks.md")


def _table(found: Mapping[str, Result]) -> str:
    measured, record = found["deployment"], found["journal"].figure("history_of_1000000/bytes_per_record")
    cost = {zone: measured.figure(f"zones/{zone}/cpu_ms_a_question") for zone in ZONES}
    calls = measured.figure("records_a_question") / 2
    more = CALLS_OF_A_MODEL / calls
    with_model = cost["web"] + cost["agent"] + (cost["interceptor"] + cost["tools"]) * more
    lines = [
        "| people | questions a second | cores, measured | cores, with a model | journal a month | Azure identities |",
        "|---|---|---|---|---|---|",
    ]
    for people in PEOPLE:
        rate = people * QUESTIONS_AN_HOUR * BUSIEST / 3_600
        gib = people * QUESTIONS_AN_HOUR * HOURS_A_MONTH * CALLS_OF_A_MODEL * 2 * record / 2**30
        cores = [rate * each / 1_000 for each in (sum(cost.values()), with_model)]
        identities = math.ceil(rate * CALLS_OF_A_MODEL * SECONDS_A_QUERY / QUERIES_AT_ONCE)
        lines.append(f"| {people} | {rate:.1f} | {cores[0]:.2f} | {cores[1]:.2f} | {gib:,.1f} GiB | {identities} |")
    return "\n".join(lines)
