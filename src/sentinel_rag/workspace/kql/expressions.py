"""The expressions of one operator at its place: columns get their types, equality gets operands of one type.

Between `scope`, which knows the place and restricts nested queries, and the modules that know types (`column_types`)
and what may be compared (`comparisons`). A name that is no column here is refused with its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form

from sentinel_rag.workspace.kql.column_types import expression_type
from sentinel_rag.workspace.kql.comparisons import comparable, of_one_type
from sentinel_rag.workspace.kql.errors import not_supported, unresolved
from sentinel_rag.workspace.kql.extension import Column, Frame
from sentinel_rag.workspace.kql.spelling import unmarked


class Expressions:
    """Rewrites the expressions of one operator over `frame`; `restrict` is asked for each nested query.

    A node that is reached twice stays one node, because the library computes a shared expression once.
    """

    def __init__(
        self, frame: Frame | None, tables: Callable[[], dict[str, Frame]], restrict: Callable[[ir.Query], ir.Query]
    ) -> None:
        self._frame = frame
        self._find_tables = tables
        self._restrict = restrict
        self._done: dict[int, Any] = {}
        self._tables: dict[str, Frame] | None = None

    def rewritten(self, node: Any) -> Any:
        """`node` again, with everything below it. Raises KqlError for a name that is no column here."""
        if isinstance(node, (str, int, float, bool, type(None))):
            return node
        key = id(node)
        if key not in self._done:
            self._done[key] = (self._once(node), node)  # the node is kept, so that its id stays its own
        return self._done[key][0]

    def _once(self, node: Any) -> Any:
        if isinstance(node, ir.Query):
            return self._restrict(node)
        if isinstance(node, ir.ColumnRef):
            return self._column(node)
        if isinstance(node, ir.LetRef) and self._frame is not None:
            return self._column(ir.ColumnRef(node.name)) if node.name in self._frame else self.rewritten(node.value)
        if isinstance(node, (ir.InList, ir.HasList)) and node.subquery is None:
            node = self._of_table(node)
        if isinstance(node, ir.FunctionCall) and node.name.lower() in ("column_ifexists", "columnifexists"):
            return self._column_if_exists(node)
        if isinstance(node, ir.FunctionCall) and node.name == "pack_all" and not node.args and self._frame:
            pairs = ((ir.Literal(unmarked(name), "string"), self._column(ir.ColumnRef(name))) for name in self._frame)
            return ir.FunctionCall("bag_pack", tuple(part for pair in pairs for part in pair))
        if isinstance(node, (list, tuple)):
            items = [self.rewritten(item) for item in node]
            return tuple(items) if isinstance(node, tuple) else items
        if dataclasses.is_dataclass(node) and not isinstance(node, type):
            changes = {}
            for field in dataclasses.fields(node):
                value = getattr(node, field.name)
                changed = self.rewritten(value)
                if changed is not value:
                    changes[field.name] = changed
            return self._compared(dataclasses.replace(node, **changes) if changes else node)
        return node

    def _of_table(self, node: Any) -> Any:
        """`x in (T)`, where T is no column but a table or a binding, tests the first column of T."""
        item = node.items[0] if len(node.items) == 1 else None
        if self._frame is None or not isinstance(item, ir.ColumnRef) or item.name in self._frame:
            return node
        if item.name not in self._find_tables():
            return node
        return dataclasses.replace(node, items=(), subquery=ir.Query(ir.TableRef(item.name)))

    def _column(self, node: ir.ColumnRef) -> ir.Expr:
        if self._frame is None:
            return node
        line, position = getattr(node, "line", None), getattr(node, "position", None)
        if node.name not in self._frame:
            raise unresolved("column or scalar", node.name, self._frame, line=line, position=position)
        return Column(node.name, self._frame[node.name], line, position)

    def _compared(self, node: Any) -> Any:
        if self._frame is None or not isinstance(node, (ir.BinaryOp, ir.InList, ir.FunctionCall)):
            return node
        if self._tables is None:
            self._tables = self._find_tables()
        tables, frame = self._tables, self._frame
        if isinstance(node, ir.FunctionCall):
            return of_one_type(node, lambda part: expression_type(part, frame, tables))
        return comparable(node, lambda part: expression_type(part, frame, tables))

    def _column_if_exists(self, call: ir.FunctionCall) -> ir.Expr:
        if len(call.args) != 2 or not isinstance(call.args[0], ir.Literal) or call.args[0].kind != "string":
            raise not_supported(call.name, hint="the column must be a string literal")
        name = str(call.args[0].value)
        default: ir.Expr = self.rewritten(call.args[1])
        if self._frame is None:
            return ir.LetRef(name, default)
        return self._column(ir.ColumnRef(name)) if name in self._frame else default
