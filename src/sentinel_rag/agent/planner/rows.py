"""The kinds of questions, as data in `rows.toml`: what a frame must hold, which call answers it, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sentinel_rag.agent.planner.decisions import Unclear
from sentinel_rag.agent.planner.plan import View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.text import toml_beside


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One kind of question. `needs` all hold, `never` none; `stored` looks among the stored queries."""

    kind: str
    needs: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]
    score: float
    tool: str = ""
    fixed: Mapping[str, JsonValue] | None = None
    reason: Unclear | None = None
    stored: bool = False
    compute: str = ""
    """The calculation of `computing` that answers it."""
    view: View | None = None
    """How the answer is told where it is not told as the tool's answers are."""

    def fits(self, told: frozenset[str]) -> bool:
        """True if features, each as type and as type:value, are of this kind of question."""
        return all(not told.isdisjoint(one) for one in self.needs) and told.isdisjoint(self.never)


def _data() -> Mapping[str, Any]:
    return toml_beside(__package__, "rows.toml")


@cache
def told_of(table: str) -> Mapping[str, Sequence[str]]:
    """A table of `rows.toml`: what each tool `takes`, what it `carries` beside that (`every` for all), `parameters`."""
    return {name: tuple(values) for name, values in _data()[table].items()}


@cache
def rows() -> tuple[DecisionRow, ...]:
    """All rows, the best first."""
    told = _data()["row"]
    return tuple(sorted(map(_row, told), key=lambda row: -row.score))


def _row(told: Mapping[str, object]) -> DecisionRow:
    needs = tuple(tuple(one.split("|")) for one in _list(told, "needs"))
    weight = told.get("weight", 0)
    exact = sum(1 for one in needs if all(":" in each for each in one))
    assert isinstance(weight, int | float)
    fixed = told.get("fixed")
    return DecisionRow(
        kind=str(told["kind"]),
        needs=needs,
        never=tuple(_list(told, "never")),
        score=10 * len(needs) + 3 * exact + weight,
        tool=str(told.get("tool", "")),
        fixed=fixed if isinstance(fixed, dict) else None,
        reason=Unclear(str(told["ask"])) if "ask" in told else None,
        stored=bool(told.get("stored")),
        compute=str(told.get("compute", "")),
        view=View(str(told["view"])) if "view" in told else None,
    )


def _list(told: Mapping[str, object], key: str) -> list[str]:
    value = told.get(key, [])
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
