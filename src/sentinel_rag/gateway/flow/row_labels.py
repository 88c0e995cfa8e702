"""The labels of a result's rows, as a server of this product tells them beside it (TAINT-6).

They add to what the policy gives the result and never take from it. Where a policy expects them and what was told is
not one label for each row, nobody knows what the rows carry, so every part of the result carries the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.labels import BOTTOM, TOP, Label, join_all
from sentinel_rag.gateway.policy.fields import Path
from sentinel_rag.gateway.upstream.tool_result import OTHER_CONTENT


@dataclass(frozen=True, slots=True)
class RowLabels:
    """`labels` are those of the rows in the list at `at`, in their order; None where none can be believed. `at` is None
    for a result whose rows have no labels of their own."""

    at: Path | None
    labels: tuple[Label, ...] | None

    def label_at(self, path: Sequence[str]) -> Label:
        """What the rows add to the value at `path`: the label of the row that holds it, or the join of all rows that
        it holds."""
        if self.at is None:
            return BOTTOM
        if self.labels is None:
            return TOP
        depth = len(self.at)
        if any(part != own for part, own in zip(path, self.at, strict=False)):
            return BOTTOM
        return self.labels[int(path[depth])] if len(path) > depth else join_all(self.labels)


NO_ROWS = RowLabels(None, ())


def row_labels_of(at: Path | None, value: Any, told: tuple[Label, ...] | None) -> RowLabels:
    """The labels of the rows of `value`, whose server told `told` (None: nothing, or nothing that is labels). `at` is
    where the policy says that the rows are; None if it speaks of none."""
    if at is None:
        return NO_ROWS
    rows = _value_at(value, at)
    # What stands beside the structured part belongs to no row.
    beside = isinstance(value, dict) and OTHER_CONTENT in value
    if told is None or beside or not isinstance(rows, list) or len(rows) != len(told):
        return RowLabels(at, None)
    return RowLabels(at, told)


def _value_at(value: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
