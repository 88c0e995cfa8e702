"""`evaluate pivot` and `evaluate bag_unpack`: columns that are named by values.

Kusto's pages "pivot plugin" and "bag_unpack plugin". Which columns there are is in the data, so the names are asked for
first (`Place.discover`) and the query is translated again with them. New columns come in the order of their names.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from duckdb_kql import ir, lower  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate.functions import FunctionSpec  # noqa: TID253

from sentinel_rag.workspace.kql.errors import KqlError, not_supported
from sentinel_rag.workspace.kql.extension import NO_COLUMN, Place, PlacedOperator
from sentinel_rag.workspace.kql.spelling import spelling_of

MAX_NAMED_COLUMNS = 500

_CONDITIONAL = {
    "count": "countif",
    "sum": "sumif",
    "avg": "avgif",
    "min": "minif",
    "max": "maxif",
    "dcount": "dcountif",
    "make_set": "make_set_if",
    "make_list": "make_list_if",
    "any": "take_anyif",
    "take_any": "take_anyif",
}
_CONVERSIONS = {
    "string": "tostring",
    "long": "tolong",
    "int": "toint",
    "real": "toreal",
    "double": "toreal",
    "bool": "tobool",
    "boolean": "tobool",
    "datetime": "todatetime",
    "timespan": "totimespan",
    "guid": "toguid",
    "decimal": "todecimal",
}


@dataclasses.dataclass(frozen=True)
class Pivot(PlacedOperator):
    """A column for each value of `column`, with `aggregate` of the rows that have it, by the columns that are left."""

    column: ir.Expr
    aggregate: ir.FunctionCall
    by: tuple[ir.Expr, ...]
    kind = "evaluate pivot"

    def resolve(self, place: Place) -> list[ir.Operator]:
        if not isinstance(self.column, ir.ColumnRef) or not all(isinstance(key, ir.ColumnRef) for key in self.by):
            raise not_supported(self.kind, hint="give it columns; compute them before with extend")
        conditional = _CONDITIONAL.get(self.aggregate.name.lower())
        if conditional is None:
            raise not_supported(f"{self.kind} with {self.aggregate.name}")
        value = ir.FunctionCall("tostring", (self.column,))
        values = sorted(row[0] for row in place.discover([ir.Distinct((ir.NamedExpr(value, "value"),))]))
        _refuse_too_many(values, self.kind)
        if "" in values:
            raise not_supported(self.kind, hint=f"{self.column.name} has rows without a value; filter them out before")
        used = {self.column.name, *(arg.name for arg in self.aggregate.args if isinstance(arg, ir.ColumnRef))}
        named = [key.name for key in self.by if isinstance(key, ir.ColumnRef)]
        kept = named or [name for name in place.frame if name not in used]
        clash = [one for one in values if one in kept]
        if clash:
            raise not_supported(self.kind, hint=f"the value {clash[0]} is also the name of a column")
        spelling = spelling_of([*kept, *values])
        columns = tuple(
            ir.NamedExpr(
                ir.FunctionCall(
                    conditional, (*self.aggregate.args, ir.BinaryOp("==", value, ir.Literal(one, "string")))
                ),
                spelling.get(one, one),
            )
            for one in values
        )
        by = tuple(ir.NamedExpr(ir.ColumnRef(name)) for name in kept)
        if not columns and not by:
            return [ir.Where(ir.Literal(False, "bool")), ir.Project((ir.NamedExpr(ir.Literal(0, "long"), NO_COLUMN),))]
        if not columns:
            return [ir.Distinct(by)]
        return [ir.Summarize(columns, by)]


@dataclasses.dataclass(frozen=True)
class BagUnpack(PlacedOperator):
    """A column for each key of `bag`. `declared` names and types the columns of the result, if the query says them."""

    bag: ir.Expr
    prefix: str = ""
    conflict: str = "error"
    ignored: tuple[str, ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    kind = "evaluate bag_unpack"

    def resolve(self, place: Place) -> list[ir.Operator]:
        if not isinstance(self.bag, ir.ColumnRef):
            raise not_supported(self.kind, hint="give it a column; compute it before with extend")
        kept = [name for name in place.frame if name != self.bag.name]
        if self.declared:
            return [self._declared(kept)]
        keys = self._keys(place)
        _refuse_too_many(list(keys), self.kind)
        names = {self.prefix + key: key for key in sorted(keys)}
        clash = [name for name in names if name in kept]
        if clash and self.conflict == "error":
            raise KqlError(
                f"evaluate bag_unpack: the bag has a key named as the column '{clash[0]}'.",
                kql_code="SEM0100",
                token=clash[0],
                next_step="Give a prefix: bag_unpack(column, 'prefix_').",
            )
        if self.conflict == "keep_source":
            names = {name: key for name, key in names.items() if name not in clash}
        elif clash:
            kept = [name for name in kept if name not in clash]
        spelling = spelling_of([*kept, *names])
        inner = {name: spelling.get(name, name) for name in names}
        passed = [ir.NamedExpr(ir.ColumnRef(name)) for name in kept]
        if not names:
            return [ir.Project(tuple(passed or [ir.NamedExpr(ir.Literal(0, "long"), NO_COLUMN)]))]
        taken = [ir.NamedExpr(_value_of(self.bag, key), inner[name]) for name, key in names.items()]
        typed = [
            ir.NamedExpr(_converted(ir.ColumnRef(inner[name]), keys[key]), inner[name]) for name, key in names.items()
        ]
        return [ir.Project((*passed, *taken)), ir.Project((*passed, *typed))]

    def _keys(self, place: Place) -> dict[str, str]:
        """Key -> type of its values, dynamic where they differ."""
        pair = "pair of bag"
        expanded: list[ir.Operator] = [
            ir.Project((ir.NamedExpr(ir.FunctionCall(PAIRS, (self.bag,)), pair),)),
            ir.MvExpand((ir.MvExpandTarget(pair),)),
            ir.Distinct(
                (
                    ir.NamedExpr(ir.FunctionCall("tostring", (_at(pair, 0),)), "key"),
                    ir.NamedExpr(ir.FunctionCall("tostring", (_at(pair, 1),)), "type"),
                )
            ),
        ]
        kinds: dict[str, set[str]] = {}
        for key, kind in place.discover(expanded):
            if key and key not in self.ignored:
                kinds.setdefault(key, set()).update({_COLUMN_TYPES.get(kind, "dynamic")} - {""})
        return {key: next(iter(found)) if len(found) == 1 else "dynamic" for key, found in kinds.items()}

    def _declared(self, kept: list[str]) -> ir.Operator:
        columns = [
            ir.NamedExpr(ir.ColumnRef(name))
            if name in kept
            else ir.NamedExpr(_converted(_value_of(self.bag, name.removeprefix(self.prefix)), kind), name)
            for name, kind in self.declared
        ]
        return ir.Project(tuple(columns))


PAIRS, VALUE = "pairs of bag", "value of key"
_POINTER = "'/' || replace(replace({key}, '~', '~0'), '/', '~1')"
SPECS = (
    FunctionSpec(
        PAIRS,
        "template",
        "to_json(CASE WHEN json_type({0}) = 'OBJECT' THEN list_transform(json_keys({0}), "
        f"lambda key: [key, json_type({{0}}, {_POINTER.format(key='key')})]) ELSE [] END)",
        (1,),
    ),
    FunctionSpec(VALUE, "template", f"json_extract({{0}}, {_POINTER.format(key='{1}')})", (2,)),
)
"""Keys are looked up by JSON pointer, which can name any; no query can call these, since their names have spaces."""


def _value_of(bag: ir.Expr, key: str) -> ir.Expr:
    return ir.FunctionCall(VALUE, (bag, ir.Literal(key, "string")))


def _converted(value: ir.Expr, kind: str) -> ir.Expr:
    conversion = _CONVERSIONS.get(kind)
    return ir.FunctionCall(conversion, (value,)) if conversion else value


_COLUMN_TYPES = {"NULL": "", "VARCHAR": "string", "BIGINT": "long", "UBIGINT": "long", "DOUBLE": "real"}
_COLUMN_TYPES |= {"BOOLEAN": "bool"}


def _at(column: str, index: int) -> ir.Expr:
    return ir.PathAccess(ir.ColumnRef(column), (ir.PathStep(index=ir.Literal(index, "long")),))


def _refuse_too_many(names: list[str], kind: str) -> None:
    if len(names) > MAX_NAMED_COLUMNS:
        raise not_supported(kind, hint=f"it would make {len(names):,} columns; {MAX_NAMED_COLUMNS} are allowed")


def lower_evaluate(node: Any) -> PlacedOperator:
    """`evaluate pivot(...)` or `evaluate bag_unpack(...)`. Any other plugin is refused by name."""
    children = lower._rule_children(node)
    call = next((child for child in children if lower._cls(lower._collapse(child)) in _CALLS), None)
    function = lower._lower_expr(call) if call is not None else None
    if not isinstance(function, ir.FunctionCall):
        raise KqlUnsupportedError("evaluate", span=lower._span(node))
    name, arguments = function.name.lower(), function.args
    if name == "pivot" and len(arguments) >= 1 and not _schema(node):
        aggregate = arguments[1] if len(arguments) > 1 else ir.FunctionCall("count")
        if isinstance(aggregate, ir.FunctionCall):
            return Pivot(arguments[0], aggregate, arguments[2:])
    if name == "bag_unpack" and 1 <= len(arguments) <= 4:
        options = [_constant(argument) for argument in arguments[1:]]
        defaults: list[Any] = ["", "error", ()]
        prefix, conflict, ignored = options + defaults[len(options) :]
        if conflict in ("error", "keep_source", "replace_source"):
            return BagUnpack(arguments[0], str(prefix), str(conflict), tuple(ignored), _schema(node))
    raise KqlUnsupportedError(f"evaluate {function.name}", span=lower._span(node))


_CALLS = ("NamedFunctionCallExpression", "FunctionCallExpression")


def _constant(argument: ir.Expr) -> Any:
    if isinstance(argument, ir.Literal) and argument.kind == "string":
        return argument.value
    if isinstance(argument, ir.Literal) and argument.kind == "dynamic":
        import msgspec

        found = msgspec.json.decode(str(argument.value))
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return found
    raise KqlUnsupportedError("evaluate bag_unpack", hint="its options must be constants")


def _schema(node: Any) -> tuple[tuple[str, str], ...]:
    """The columns of `: (name:type, ...)` after a plugin."""
    declared = []
    for column in lower._find_all(node, "RowSchemaColumnDeclaration"):
        name, kind = lower._rule_children(column)
        declared.append((lower._find_names(name)[0], kind.getText().lower()))
    return tuple(declared)
