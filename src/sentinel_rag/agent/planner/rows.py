"""The kinds of questions, as data in `rows.toml`: what a frame must hold, which call answers it, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from sentinel_rag.agent.planner.decisions import Unclear
from sentinel_rag.agent.planner.plan import View
from sentinel_rag.language.text import toml_beside


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One kind of question. `needs` all hold, `never` none; `stored` looks among the stored queries."""

    kind: str
    needs: tuple[tuple[str, ...], ...]
    score: float
    never: tuple[str, ...] = ()
    tool: str = ""
    fixed: Mapping[str, Any] | None = None
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


def _row(told: Mapping[str, Any]) -> DecisionRow:
    needs = tuple(tuple(one.split("|")) for one in told.get("needs", ()))
    exact = sum(1 for one in needs if all(":" in each for each in one))
    score = 10 * len(needs) + 3 * exact + told.get("weight", 0)
    return msgspec.convert({**told, "needs": needs, "score": score, "reason": told.get("ask")}, DecisionRow)
