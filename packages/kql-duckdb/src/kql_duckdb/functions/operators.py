"""Arithmetic, comparison, logic, membership, choices and questions about emptiness, with Kusto's types and nulls.

Source: the Kusto pages "Numerical operators", "Datetime / timespan arithmetic", "in operator", "Null values" and those
of the functions. Equality is total: a null equals no value and differs from every one, and only two nulls leave it
null. A string is never null. Types that Kusto brings together are converted here, constants before anything else, so
that no row can fail a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import condition, convert, nullable_text, present, to_string
from kql_duckdb.functions.definitions import BoundCall, fill, joined, listed, operators, scalar
from kql_duckdb.types import (
    BOOL,
    DATETIME,
    DECIMAL,
    DYNAMIC,
    GUID,
    INTEGERS,
    LONG,
    NUMBERS,
    REAL,
    STRING,
    TIMESPAN,
    KustoType,
    common_type,
)  # fmt: skip


def _mismatch(call: BoundCall, left: Typed, right: Typed) -> KqlError:
    shown = call.name.removeprefix("operator:")
    if DYNAMIC in (left.type, right.type):
        return KqlError(
            f"Operator '{shown}' with a dynamic value is not supported here: convert it first with tolong(), "
            "todouble(), todatetime() or tostring().",
            "KDB0001",
        )
    return KqlError(f"Operator '{shown}' cannot be used between {left.type} and {right.type}.", "SEM0064")


@operators("+ - * / %", "left: any, right: any")
def _no_arithmetic(call: BoundCall) -> Typed:
    raise _mismatch(call, *call.arguments)


@operators("unary- unary+", "value: any")
def _sign(call: BoundCall) -> Typed:
    value = call.arguments[0]
    if value.type not in (*NUMBERS, TIMESPAN):
        raise _mismatch(call, value, value)
    if call.name == "operator:unary+":
        return value
    if value.is_constant and value.constant is not None:
        return literal(-value.constant, value.type)
    return fill("to_microseconds(-epoch_us({0}))" if value.type is TIMESPAN else "-{0}", value.type, value)


@operators("and or", "first: any, second: any...")
def _logic(call: BoundCall) -> Typed:
    """Three-valued, as SQL's."""
    sides = [condition(call, argument) for argument in call.arguments]
    return joined(call.name.removeprefix("operator:").upper(), sides, nullable=True)


def comparable(call: BoundCall, left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Return both sides of an equality as values of one type."""
    kinds = left.type, right.type
    if kinds[0] is kinds[1]:
        if kinds[0] is DYNAMIC:
            return nullable_text(left), nullable_text(right)
        return present(left), present(right)
    if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
        return left, right
    if DYNAMIC in kinds:
        return _with_dynamic(left, right)
    if right.is_constant:
        return _with_constant(left, right)
    if left.is_constant:
        swapped = _with_constant(right, left)
        return swapped[1], swapped[0]
    if STRING in kinds:
        return to_string(left), to_string(right)
    if BOOL in kinds and (kinds[0] in NUMBERS or kinds[1] in NUMBERS):
        return convert(left, LONG), convert(right, LONG)
    raise _mismatch(call, left, right)


def _with_dynamic(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """The dynamic as what the other side is; a whole number is compared without rounding."""
    other = right.type if left.type is DYNAMIC else left.type
    if other is GUID:
        return nullable_text(left), nullable_text(right)
    kind = DECIMAL if other in INTEGERS else other
    left, right = (convert(side, kind) if side.type is DYNAMIC else present(side) for side in (left, right))
    return left, right


def _with_constant(value: Typed, constant: Typed) -> tuple[Typed, Typed]:
    """A constant of another type becomes one of the value's, or both are compared as text."""
    if value.type is STRING:
        return to_string(value), to_string(constant)
    if constant.type is STRING:
        found = _constant_as(str(constant.constant), value.type)
        return (value, found) if found is not None else (to_string(value), constant)
    if constant.type in NUMBERS and value.type is BOOL:
        return convert(value, LONG), constant
    if constant.type is BOOL and value.type in NUMBERS:
        return convert(value, BOOL), constant
    return to_string(value), to_string(constant)


def _constant_as(text: str, kind: KustoType) -> Typed | None:
    """The value of a number's or another type's text; None for a number whose text is another's."""
    if kind in NUMBERS:
        whole = kind in INTEGERS and re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text)
        return literal(int(text), LONG) if whole else None
    return convert(literal(text, STRING), kind)


@operators("== != <>", "left: any, right: any")
def _equality(call: BoundCall) -> Typed:
    negated = call.name != "operator:=="
    left, right = comparable(call, *call.arguments)
    template = "{0} <> {1}" if negated else "{0} = {1}"
    other = "TRUE" if negated else "FALSE"
    if not (left.nullable or right.nullable):
        return fill(template, BOOL, left, right, nullable=False)
    if not (left.nullable and right.nullable):
        place, maybe = (0, left) if left.nullable else (1, right)
        if maybe.simple:
            # Of this DuckDB skips the parts of a table that cannot hold the value; of coalesce it does not.
            known = f"OR {{{place}}} IS NULL" if negated else f"AND {{{place}}} IS NOT NULL"
            return fill(f"{template} {known}", BOOL, left, right, nullable=False)
        return fill(f"coalesce({template}, {other})", BOOL, left, right, nullable=False)
    both = f"coalesce({template}, CASE WHEN {{0}} IS NULL AND {{1}} IS NULL THEN NULL ELSE {other} END)"
    return fill(both, BOOL, left, right)


def _lower(text: Typed) -> Typed:
    if text.is_constant:
        return literal(str(text.constant).lower(), STRING)
    return fill("lower({0})", STRING, text)


@operators("< <= > >=", "left: any, right: any")
def _order(call: BoundCall) -> Typed:
    left, right = call.arguments
    operator = call.name.removeprefix("operator:")
    if left.type is not right.type and DYNAMIC in (left.type, right.type):
        left, right = _with_dynamic(left, right)
    kind = common_type((left.type, right.type))
    if {left.type, right.type} <= NUMBERS | {BOOL} and kind is None:
        left, right = convert(left, LONG), convert(right, LONG)
    elif kind is None or kind is DYNAMIC:
        raise _mismatch(call, left, right)
    return fill(f"{{0}} {operator} {{1}}", BOOL, present(left), present(right))


@operators("between !between", "value: any, low: any, high: any")
def _between(call: BoundCall) -> Typed:
    value, low, high = call.arguments
    word = "NOT BETWEEN" if call.name == "operator:!between" else "BETWEEN"
    if value.type is DYNAMIC:
        value = convert(value, DECIMAL if low.type in INTEGERS else low.type)
    low, high = (convert(end, value.type) if end.type is DYNAMIC else end for end in (low, high))
    if value.type in (STRING, GUID, DYNAMIC):
        raise call.invalid(f"argument #1 is {value.type}, which has no range.", "SEM0208")
    if high.type is TIMESPAN and low.type is DATETIME and value.type is DATETIME:
        # The span is counted from the lower bound.
        if low.is_constant and high.is_constant and low.constant is not None and high.constant is not None:
            high = literal(low.constant + high.constant, DATETIME)
        else:
            return fill(f"{{0}} {word} {{1}} AND {{1}} + {{2}}", BOOL, value, low, high)
    for end in (low, high):
        if common_type((value.type, end.type)) is None:
            raise _mismatch(call, value, end)
    return fill(f"{{0}} {word} {{1}} AND {{2}}", BOOL, value, low, high)


@operators("in !in in~ !in~", "value: any, items?: any...")
def _membership(call: BoundCall) -> Typed:
    """`in`: an item that is an array stands for its elements, a relation for the values of its column."""
    value, *items = call.arguments
    folded = call.name.endswith("~")
    negated = call.name.startswith("operator:!")
    tests = [_in_relation(value, item, folded) for item in items if item.relation]
    constants: list[Typed] = []
    for item in items:
        if item.relation:
            continue
        if item.type is DYNAMIC and item.is_constant:
            held = item.constant if isinstance(item.constant, list) else [item.constant]
            constants += [element for one in held if (element := _element(one)) is not None]
        elif item.type is DYNAMIC:
            tests.append(_in_array(value, item, folded))
        else:
            constants.append(item)
    if constants:
        tests.append(_in_list(call, value, constants, folded))
    if not tests:
        return literal(negated, BOOL)
    found = joined("OR", tests)
    return fill("NOT {0}", BOOL, found, nullable=False) if negated else found


def _element(held: Any) -> Typed | None:
    """An element of a constant array as a literal of its own type."""
    if held is None:
        return None
    kind = {bool: BOOL, int: LONG, float: REAL, str: STRING}.get(type(held))
    return literal(json_text(held), STRING) if kind is None else literal(held, kind)


def _in_list(call: BoundCall, value: Typed, items: Sequence[Typed], folded: bool) -> Typed:
    if folded:
        return _any_of(_lower(to_string(value)), [_lower(to_string(item)) for item in items])
    groups: dict[str, tuple[Typed, list[Typed]]] = {}
    for item in items:
        side, member = comparable(call, value, item)
        groups.setdefault(side.sql, (side, []))[1].append(member)
    return joined("OR", [_any_of(side, members) for side, members in groups.values()])


def _any_of(value: Typed, members: Sequence[Typed]) -> Typed:
    test = f"{{0}} IN ({listed(members, 1)})"
    if any(member.nullable for member in members) or (value.nullable and not value.simple):
        test = f"coalesce({test}, FALSE)"
    elif value.nullable:
        test += " AND {0} IS NOT NULL"
    return fill(test, BOOL, value, *members, nullable=False)


def _in_array(value: Typed, array: Typed, folded: bool) -> Typed:
    """Compared as text; a dynamic that is no array is one element."""
    texts = (
        "coalesce(list_transform(TRY_CAST({1} AS JSON[]), lambda _e: {lower}(_e ->> '$')), [{lower}({1} ->> '$')])"
    ).replace("{lower}", "lower" if folded else "")
    needle = nullable_text(value)
    if folded:
        needle = fill("lower({0})", STRING, needle, nullable=True)
    return fill(f"coalesce(list_contains({texts}, {{0}}), FALSE)", BOOL, needle, array, nullable=False)


def _in_relation(value: Typed, relation: Typed, folded: bool) -> Typed:
    member = "_kql_in._kql_v"
    held = Typed(member, relation.type, simple=True)
    if folded:
        value, held = _lower(to_string(value)), fill("lower({0})", STRING, to_string(held))
    elif value.type is not relation.type and not {value.type, relation.type} <= NUMBERS:
        value, held = to_string(value), to_string(held)
    elif value.type is DYNAMIC:
        value, held = nullable_text(value), nullable_text(held)
    rows = Typed(f"SELECT {held.sql} FROM ({relation.sql}) AS _kql_in(_kql_v)", held.type, simple=True)
    return fill("coalesce({0} IN ({1}), FALSE)", BOOL, value, rows, nullable=False)


@operators("like likecs notlike notlikecs", "text: any, pattern: any")
def _like(call: BoundCall) -> Typed:
    """`*` stands for any run of characters; only in old queries."""
    text, pattern = (to_string(side) for side in call.arguments)
    negated, sensitive = "notlike" in call.name, call.name.endswith("cs")
    if not pattern.is_constant:
        raise call.invalid("the pattern must be a constant.", "SEM0207")
    escaped = str(pattern.constant).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    word = "LIKE" if sensitive else "ILIKE"
    test = f"{{0}} {'NOT ' if negated else ''}{word} {{1}} ESCAPE '\\'"
    return fill(test, BOOL, text, literal(escaped, STRING), nullable=False)


def one_type(call: BoundCall, values: Sequence[Typed]) -> tuple[KustoType, list[Typed]]:
    """Return values of several types as values of the one that they have together. Raises KqlError if there is none."""
    kind = common_type(value.type for value in values)
    if kind is None:
        shown = ", ".join(dict.fromkeys(value.type.value for value in values))
        raise call.invalid(f"all values must have the same type, not {shown}.", "SEM0525")
    return kind, [convert(value, kind) for value in values]


@scalar("iff|iif(if: any, then: any, else: any)", "case(predicate: any, then: any, else: any...)")
def _choice(call: BoundCall) -> Typed:
    *pairs, last = call.arguments
    if len(pairs) % 2:
        raise call.invalid("expects pairs of a condition and a value, and a value for the rest.", "SEM0219")
    conditions = [condition(call, each) for each in pairs[::2]]
    kind, values = one_type(call, [*pairs[1::2], last])
    count = len(conditions)
    branches = " ".join(f"WHEN {{{place}}} THEN {{{count + place}}}" for place in range(count))
    nullable = any(value.nullable for value in values)
    return fill(f"CASE {branches} ELSE {{{2 * count}}} END", kind, *conditions, *values, nullable=nullable)


@scalar("coalesce(first: any, second: any...)")
def _first_present(call: BoundCall) -> Typed:
    kind, values = one_type(call, call.arguments)
    if kind not in (STRING, DYNAMIC):
        return fill(f"coalesce({listed(values)})", kind, *values, nullable=all(value.nullable for value in values))
    empty = "''" if kind is STRING else "CAST('null' AS JSON)"
    parts = ", ".join(f"nullif({{{place}}}, {empty})" for place in range(len(values)))
    return fill(f"coalesce({parts}{', ' + empty if kind is STRING else ''})", kind, *values)


@scalar("max_of|min_of(value: any...)")
def _extreme(call: BoundCall) -> Typed:
    """Nulls are left out."""
    kind, values = one_type(call, call.arguments)
    if kind is DYNAMIC:
        raise not_supported(call.name, "a dynamic has no order; convert it with tolong(), todatetime() or tostring()")
    return fill(f"{'greatest' if call.name == 'max_of' else 'least'}({listed(values)})", kind, *values)


@scalar("column_ifexists|columnifexists(column_name: any, default_value: any)", "iscolumnexists(column_name: any)")
def _column_if_exists(call: BoundCall) -> Typed:
    name = call.constant_text(0)
    if name is None:
        raise call.invalid("argument #1 must be a string literal.", "SEM0207")
    found = call.context.columns.get(name)
    return literal(found is not None, BOOL) if len(call.arguments) < 2 else found or call.arguments[1]


@scalar("assert(condition: bool, message: string)")
def _assert(call: BoundCall) -> Typed:
    """A condition that is a constant; one that holds is true, any other ends the query with the message."""
    message = call.constant_text(1) or ""
    value = call.arguments[0]
    if not value.is_constant:
        return fill("CASE WHEN {0} THEN TRUE ELSE error({1}) END", BOOL, value, literal(f"kql: {message}", STRING))
    if not value.constant:
        raise KqlError(f"assert() has failed with message: '{message}'", "SEM0001")
    return literal(True, BOOL)


@scalar("now(offset?: timespan)", "ago(timespan: timespan)")
def _now(call: BoundCall) -> Typed:
    now, sign = call.context.now, "-" if call.name == "ago" else "+"
    if not call.arguments:
        return now
    span = call.arguments[0]
    if span.is_constant and now.is_constant and span.constant is not None:
        return literal(now.constant - span.constant if sign == "-" else now.constant + span.constant, DATETIME)
    return fill(f"{{0}} {sign} {{1}}", DATETIME, now, span)


@scalar("ingestion_time()", note="the column that the table names for it; null where there is none")
def _ingestion_time(call: BoundCall) -> Typed:
    return call.context.ingestion_time or literal(None, DATETIME)


@scalar(
    "current_database|current_cluster_endpoint|current_principal()",
    note="what the engine is told; refused where it is told nothing",
)
def _told_name(call: BoundCall) -> Typed:
    found = call.context.names.get(call.name)
    if found is None:
        raise not_supported(call.name, "there is no cluster here to ask")
    return literal(found, STRING)
