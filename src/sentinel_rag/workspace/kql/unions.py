"""`union` as Kusto answers it: columns of one name and two types, `withsource` labels, tables that do not exist.

Kusto's page "union operator". Where branches give one name to several types, each type has a column of its own, named
`Name_type`; the library would merge them. Resolved by `scope`, which knows every branch's frame; what is left is the
library's union over branches whose columns agree.
"""

from __future__ import annotations

import dataclasses

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form

from sentinel_rag.workspace.kql.empty_texts import filled
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


def united(
    branches: list[Branch], *, kind: str, with_source: str | None, needed: frozenset[str] | None = None
) -> tuple[list[ir.Query], list[ir.Operator]]:
    """The branches with columns that agree, and the operators after their plain union.

    With `needed`, columns that nobody reads are left out.
    """
    frames = [branch.frame for branch in branches]
    names = list(dict.fromkeys(name for frame in frames for name in frame))
    if kind == "inner":
        names = [name for name in names if all(name in frame for frame in frames)]
    split = {name: kinds for name in names if len(kinds := _kinds(name, frames)) > 1}
    if needed is not None:
        names = [name for name in names if needed & {name, *(f"{name}_{kind}" for kind in split.get(name, ()))}]
        split = {name: kinds for name, kinds in split.items() if name in names}
    variants = {f"{name}_{kind}" for name, kinds in split.items() for kind in kinds}
    taken = variants & set(names) | ({with_source} if with_source in names else set())
    if taken:
        raise not_supported("union", hint=f"it would give the name {sorted(taken)[0]} to two columns")
    if kind == "inner" and split:
        raise not_supported("union kind=inner", hint=f"the type of {sorted(split)[0]} differs between its inputs")
    order = [f"{name}_{kind}" if name in split else name for name in names for kind in split.get(name, [""])]
    if with_source:
        order.insert(0, with_source)
    agreeing = [_agreeing(branch, split, with_source) for branch in branches]
    if needed is not None:
        order = order or [_ROW]
        agreeing = [
            _narrowed(query, [name for name in order if name in _names_of(branch, split, with_source)])
            for query, branch in zip(agreeing, branches, strict=True)
        ]
    changed = bool(split or with_source or kind == "inner" or needed is not None)
    after: list[ir.Operator] = [_project(order)] if changed else []
    texts = [name for name in order if _is_text(name, split, frames)]
    lacking = [[name for name in texts if name not in _names_of(branch, split, with_source)] for branch in branches]
    if sum(map(len, lacking)) > _WRITTEN_TEXTS:
        return agreeing, [*after, *filled(sorted(set().union(*lacking)))]
    return [_with_empty(query, names) for query, names in zip(agreeing, lacking, strict=True)], after


_WRITTEN_TEXTS = 1_000
"""Up to so many empty texts are constants of their inputs, which leaves the columns of the others as they are stored;
beyond, each column is filled once behind the union, which is slower and much shorter."""

_ROW = "row of union"
"""The column of a branch that none of the needed columns is in; SQL has no rows without a column."""


def _project(names: list[str]) -> ir.Project:
    return ir.Project(tuple(ir.NamedExpr(ir.ColumnRef(name)) for name in names))


def _narrowed(query: ir.Query, names: list[str]) -> ir.Query:
    if names:
        return _with(query, _project(names))
    return _with(query, ir.Project((ir.NamedExpr(ir.Literal(1, "long"), _ROW),)))


def _with(query: ir.Query, operator: ir.Operator) -> ir.Query:
    return ir.Query(query.source, [*query.operators, operator], list(query.lets), list(query.parameters))


def _with_empty(query: ir.Query, names: list[str]) -> ir.Query:
    empty = tuple(ir.NamedExpr(ir.Literal("", "string"), name) for name in names)
    return _with(query, ir.Extend(empty)) if empty else query


def _names_of(branch: Branch, split: dict[str, list[str]], with_source: str | None) -> set[str]:
    names = {f"{name}_{kind}" if name in split else name for name, kind in branch.frame.items()}
    return names | ({with_source} if with_source else set())


def _is_text(name: str, split: dict[str, list[str]], frames: list[Frame]) -> bool:
    if any(name == f"{one}_string" and "string" in kinds for one, kinds in split.items()):
        return True
    return {frame[name] for frame in frames if name in frame} == {"string"}


def _kinds(name: str, frames: list[Frame]) -> list[str]:
    """The types that the frames give to `name`, in order. A type that is not known differs from none."""
    return list(dict.fromkeys(kind for frame in frames if (kind := frame.get(name))))


def _agreeing(branch: Branch, split: dict[str, list[str]], with_source: str | None) -> ir.Query:
    renames = tuple((name, f"{name}_{kind}") for name, kind in branch.frame.items() if name in split)
    unknown = [name for name, kind in branch.frame.items() if name in split and not kind]
    if unknown:
        raise not_supported("union", hint=f"the type of {unknown[0]} differs between its inputs")
    query = branch.query
    if renames:
        query = _with(query, ir.ProjectRename(renames))
    if with_source:
        query = _with(query, ir.Extend((ir.NamedExpr(ir.Literal(branch.label, "string"), with_source),)))
    return query
