"""Laws of `compute`: what holds of its results whatever the rows are."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.agent.answers.compute import COMPUTE, compute
from sentinel_rag.agent.answers.results import Result, Results, Row
from sentinel_rag.agent.answers.selection import ComputeError

NOW = datetime(2026, 11, 29, tzinfo=UTC)
TEXTS = st.sampled_from(["High", "Low", "high", "New", "12", "2026-11-28", "anna@x.example", "Å", "⟦r1#/rows/0/a⟧"])
CELLS = st.one_of(TEXTS, st.integers(-5, 50), st.lists(TEXTS, max_size=3).map(tuple))
ROWS = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 9)},
        optional={
            "word": TEXTS.filter(lambda text: "⟦" not in text),
            "cell": CELLS,
            "size": st.integers(-1000, 1000) | st.floats(-1e6, 1e6),
            "time": st.datetimes(datetime(2026, 1, 1), datetime(2026, 3, 1)).map(lambda at: f"{at.isoformat()}Z"),
        },
    ),
    max_size=12,
)
WORDS = st.sampled_from(["word = High", "word != High", "word is empty", "word contains h", "id > 4", "id in (1, 2)"])


def results_of(*lists: list[dict[str, Any]], complete: bool = True) -> Results:
    results = Results()
    for place, rows in enumerate(lists, 1):
        ref = f"c{place}"
        made = tuple(Row(f"{ref}.{n}", "row", f"/rows/{n - 1}", cells) for n, cells in enumerate(rows, 1))
        results.add(Result(ref=ref, tool=f"tool_{place}", arguments={}, rows=made, complete=complete))
    return results


def run(results: Results, **arguments: Any) -> Result | str:
    """The result, or the words of the refusal."""
    try:
        return compute("c9", arguments, results, now=NOW)
    except ComputeError as error:
        return str(error)


def values(made: Result | str, column: str) -> list[Any]:
    assert isinstance(made, Result), made
    return [row.cells[column] for row in made.rows]


@settings(max_examples=examples(500, 40))
@given(ROWS.filter(lambda rows: any("word" in row for row in rows)), WORDS)
def test_a_condition_and_its_groups_and_its_opposite_count_every_row(rows: list[dict[str, Any]], where: str) -> None:
    results = results_of(rows)
    (count,) = values(run(results, op="count", of="c1", where=where), "count")
    groups = values(run(results, op="group", of="c1", by="word", where=where), "count")
    assert sum(groups) == count
    (held,) = values(run(results, op="none", of="c1", that=where), "holds")
    assert held is (count == 0)
    assert values(run(results, op="all", of="c1", that=where), "holds") == [count == len(rows)]
    assert values(run(results, op="any", of="c1", that=where), "holds") == [count > 0]


@settings(max_examples=examples(500, 40))
@given(ROWS.filter(bool), st.sampled_from(["id", "size", "time", "word"]))
def test_an_order_is_a_permutation_and_its_ends_are_the_extremes(rows: list[dict[str, Any]], column: str) -> None:
    results = results_of(rows)
    made = run(results, op="order", of="c1", column=column)
    if isinstance(made, str):
        return
    have = sorted(f"c1.{n}" for n, row in enumerate(rows, 1) if column in row)
    assert sorted(values(made, "row")) == have
    assert values(made, "place") == sorted(values(made, "place"))
    if made.rows:
        for op, end in (("min", made.rows[0]), ("max", made.rows[-1])):
            assert end.cells["row"] in values(run(results, op=op, of="c1", column=column), "row")


@settings(max_examples=examples(500, 40))
@given(ROWS.filter(lambda rows: any("size" in row for row in rows)))
def test_a_sum_is_the_sum_of_its_groups_and_an_average_lies_between_the_extremes(rows: list[dict[str, Any]]) -> None:
    results = results_of(rows)
    (total,) = values(run(results, op="sum", of="c1", column="size"), "sum")
    parts = values(run(results, op="sum", of="c1", column="size", by="id"), "sum")
    assert math.isclose(sum(parts), total, abs_tol=1e-4)
    sizes = [row["size"] for row in rows if "size" in row]
    (mean,) = values(run(results, op="average", of="c1", column="size"), "average")
    assert min(sizes) - 0.001 <= mean <= max(sizes) + 0.001


@settings(max_examples=examples(500, 40))
@given(
    ROWS.filter(lambda rows: any(row.get("cell") for row in rows)),
    ROWS.filter(lambda rows: any(row.get("cell") for row in rows)),
)
def test_sets_obey_their_laws(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> None:
    results = results_of(a, b)

    def members(op: str, left: str = "c1", right: str = "c2") -> set[str]:
        return {str(value).casefold() for value in values(run(results, op=op, a=left, b=right, column="cell"), "cell")}

    both, either = members("intersection"), members("union")
    assert members("minus") | both | members("minus", "c2", "c1") == either
    assert not members("minus") & both
    assert members("intersection", "c2", "c1") == both
    assert members("union", "c2", "c1") == either
    assert members("minus", "c1", "c1") == set()
    assert members("union", "c1", "c1") == members("intersection", "c1", "c1")


ARGUMENTS = st.fixed_dictionaries(
    {"op": st.sampled_from([*COMPUTE.parameter_schemas()["op"]["enum"], "what"])},
    optional={
        "of": st.sampled_from(["c1", "c2", "c1,c2", ["c1.1", "c2.1-2"], "c7", "", None]),
        "kind": st.sampled_from(["row", "alerts", None]),
        "where": st.one_of(WORDS, st.text(max_size=30), st.just({"word": "High"})),
        "that": st.one_of(WORDS, st.text(max_size=30)),
        "column": st.sampled_from(["word", "cell", "size", "time", "id", "cell,word", "none"]),
        "by": st.sampled_from(["word", "cell", "day", "hour", "week of time", "id"]),
        "a": st.sampled_from(["c1", "c1.1", "c1.1.size", "c1.2.time", "now", "5", 5.5, "c1.total", "2026-01-01", "x"]),
        "b": st.sampled_from(["c2", "c2.1", "c2.1.size", "c2.2.time", "now", 0, "c2.count.x", "2026-01-01T10:00:00Z"]),
    },
)  # fmt: skip


@settings(max_examples=examples(2000, 100))
@given(ROWS, ROWS, ARGUMENTS, st.booleans())
def test_a_call_is_answered_or_refused_the_same_each_time(
    a: list[dict[str, Any]], b: list[dict[str, Any]], arguments: dict[str, Any], complete: bool
) -> None:
    """Nothing but ComputeError comes of a call, an incomplete input never makes a complete list, and every row that is
    told as an operand is there."""
    results = results_of(a, b, complete=complete)
    made = run(results, **arguments)
    assert made == run(results, **arguments)
    if isinstance(made, Result):
        assert [row.ref for row in made.rows] == [f"c9.{n}" for n in range(1, len(made.rows) + 1)]
        assert all(value is not None for row in made.rows for value in row.cells.values())
        if not complete and arguments["op"] in ("all", "none", "any", "distinct", "minus", "group"):
            assert not made.complete
        for ref in made.operands:
            assert results.get(ref.partition(".")[0]) is not None
