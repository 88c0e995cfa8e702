"""`union` as Kusto answers it: columns of one name and two types, `withsource` labels, tables that do not exist.

Kusto's page "union operator". Where branches give one name to several types, each type has a column of its own, named
`Name_type`; the library would merge them. Resolved by `scope`, which knows every branch's frame; what is left is the
library's union over branches whose columns agree.
"""

from __future__ import annotations

import dataclasses

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form

from sentinel_rag.workspace.kql.errors import not_supported
from sentinel_rag.workspace.kql.extension import AddedSource, Frame


@dataclasses.dataclass(frozen=True)
class UnionSource(AddedSource):
    """A `union` that a pipeline starts with. `scope` resolves it; it has no columns and no SQL of its own."""

    column_fields = ("with_source",)
    branches: tuple[ir.Query, ...]
    kind: str = "outer"
    with_source: str | None = None
    isfuzzy: bool = False

    def columns(self) -> list[str]:
        raise not_supported("union", hint="its inputs are not known here")

    def sql(self) -> str:
        raise not_supported("union", hint="its inputs are not known here")


@dataclasses.dataclass(frozen=True)
class Branch:
    """One input of a union: its query, its columns and its label for `withsource`."""

    query: ir.Query
    frame: Frame
    label: str


def united(branches: list[Branch], *, kind: str, with_source: str | None) -> tuple[list[ir.Query], list[ir.Operator]]:
    """The branches with columns that agree, and the operators after their plain union."""
    frames = [branch.frame for branch in branches]
    names = list(dict.fromkeys(name for frame in frames for name in frame))
    if kind == "inner":
        names = [name for name in names if all(name in frame for frame in frames)]
    split = {name: kinds for name in names if len(kinds := _kinds(name, frames)) > 1}
    variants = {f"{name}_{kind}" for name, kinds in split.items() for kind in kinds}
    taken = variants & set(names) | ({with_source} if with_source in names else set())
    if taken:
        raise not_supported("union", hint=f"it would give the name {sorted(taken)[0]} to two columns")
    order = [f"{name}_{kind}" if name in split else name for name in names for kind in split.get(name, [""])]
    if with_source:
        order.insert(0, with_source)
    agreeing = [_agreeing(branch, split, with_source) for branch in branches]
    changed = bool(split or with_source or kind == "inner")
    project = ir.Project(tuple(ir.NamedExpr(ir.ColumnRef(name)) for name in order))
    if kind == "inner" and split:
        raise not_supported("union kind=inner", hint=f"the type of {sorted(split)[0]} differs between its inputs")
    return agreeing, [project] if changed else []


def _kinds(name: str, frames: list[Frame]) -> list[str]:
    """The types that the frames give to `name`, in order. A type that is not known differs from none."""
    return list(dict.fromkeys(kind for frame in frames if (kind := frame.get(name))))


def _agreeing(branch: Branch, split: dict[str, list[str]], with_source: str | None) -> ir.Query:
    operators = list(branch.query.operators)
    renames = tuple((name, f"{name}_{kind}") for name, kind in branch.frame.items() if name in split)
    unknown = [name for name, kind in branch.frame.items() if name in split and not kind]
    if unknown:
        raise not_supported("union", hint=f"the type of {unknown[0]} differs between its inputs")
    if renames:
        operators.append(ir.ProjectRename(renames))
    if with_source:
        operators.append(ir.Extend((ir.NamedExpr(ir.Literal(branch.label, "string"), with_source),)))
    return ir.Query(branch.query.source, operators, list(branch.query.lets), list(branch.query.parameters))
