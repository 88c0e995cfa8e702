"""Arithmetic, comparison, logic and membership, with Kusto's types and nulls.

Source: the Kusto pages "Numerical operators", "Datetime / timespan arithmetic", "in operator" and "Null values".
Equality is total: a null equals no value and differs from every one, and only two nulls leave it null. Types that Kusto
brings together are converted here, constants before anything else, so that no row can fail a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import (
    BOOL,
    DATETIME,
    DECIMAL,
    DYNAMIC,
    GUID,
    INT,
    LONG,
    REAL,
    STRING,
    TIMESPAN,
    convert,
    nullable_text,
    to_string,
)
from kql_duckdb.functions.definitions import BoundCall, Builder, ScalarFunction, fill
from kql_duckdb.types import INTEGERS, NUMBERS, KustoType, common_type


def _mismatch(call: BoundCall, left: Typed, right: Typed) -> KqlError:
    shown = call.name.removeprefix("operator:")
    if DYNAMIC in (left.type, right.type):
        return KqlError(
            f"Operator '{shown}' with a dynamic value is not supported here: convert it first with tolong(), "
            "todouble(), todatetime() or tostring().",
            "KDB0001",
        )
    return KqlError(f"Operator '{shown}' cannot be used between {left.type} and {right.type}.", "SEM0064")


def _arithmetic(call: BoundCall) -> Typed:
    left, right = call.arguments
    operator = call.name.removeprefix("operator:")
    if left.type is BOOL:
        left = convert(left, LONG)
    if right.type is BOOL:
        right = convert(right, LONG)
    if left.type in NUMBERS and right.type in NUMBERS:
        return _of_numbers(operator, left, right)
    if TIMESPAN in (left.type, right.type) or (left.type is DATETIME and right.type is DATETIME):
        made = _of_times(operator, left, right)
        if made is not None:
            return made
    raise _mismatch(call, left, right)


def _of_numbers(operator: str, left: Typed, right: Typed) -> Typed:
    kinds = {left.type, right.type}
    kind = DECIMAL if DECIMAL in kinds else REAL if REAL in kinds else LONG
    if kinds == {INT}:
        # Kusto computes an int as a long; `int(2147483647) + 1` is no error.
        kind = LONG
    left, right = convert(left, kind), convert(right, kind)
    if operator in "+-*":
        if kind is DECIMAL and operator == "*":
            return fill(f"CAST({{0}} * {{1}} AS {DECIMAL.held})", DECIMAL, left, right)
        return fill(f"{{0}} {operator} {{1}}", kind, left, right)
    if operator == "/":
        if kind is REAL:
            return fill("{0} / {1}", REAL, left, right)
        if kind is DECIMAL:
            quotient = "CAST(CAST({0} AS DOUBLE) / nullif(CAST({1} AS DOUBLE), 0) AS DECIMAL(38,10))"
            return fill(quotient, DECIMAL, left, right)
        return fill("{0} // nullif({1}, 0)", LONG, left, right)
    if _positive(right):
        return fill("({0} % {1} + {1}) % {1}", kind, left, right)
    return fill("({0} % nullif({1}, 0) + abs({1})) % nullif(abs({1}), 0)", kind, left, right)


def _positive(value: Typed) -> bool:
    return value.is_constant and value.type in NUMBERS and value.constant is not None and value.constant > 0


_SPAN = "to_microseconds({0})"


def _of_times(operator: str, left: Typed, right: Typed) -> Typed | None:
    pair = left.type, right.type
    if operator in "+-":
        if pair == (TIMESPAN, TIMESPAN):
            return fill(_span(f"epoch_us({{0}}) {operator} epoch_us({{1}})"), TIMESPAN, left, right)
        if pair == (DATETIME, TIMESPAN):
            return fill(f"{{0}} {operator} {{1}}", DATETIME, left, right)
        if pair == (TIMESPAN, DATETIME) and operator == "+":
            return fill("{1} + {0}", DATETIME, left, right)
        if pair == (DATETIME, DATETIME) and operator == "-":
            return fill(_span("epoch_us({0}) - epoch_us({1})"), TIMESPAN, left, right)
        return None
    if operator == "*" and TIMESPAN in pair and (pair[0] in NUMBERS or pair[1] in NUMBERS):
        span, number = (left, right) if left.type is TIMESPAN else (right, left)
        return _scaled("*", span, number)
    if left.type is not TIMESPAN:
        return None
    if right.type is TIMESPAN:
        if operator == "/":
            return fill("CAST(epoch_us({0}) AS DOUBLE) / epoch_us({1})", REAL, left, right)
        return fill(_span(_remainder("epoch_us({0})", "epoch_us({1})")), TIMESPAN, left, right)
    if right.type not in NUMBERS:
        return None
    if operator == "/":
        return _scaled("/", left, right)
    return fill(_span(_remainder("epoch_us({0})", "({1} // 10)")), TIMESPAN, left, convert(right, LONG))


def _span(microseconds: str) -> str:
    return _SPAN.replace("{0}", microseconds)


def _remainder(value: str, width: str) -> str:
    return f"(({value} % nullif({width}, 0)) + abs({width})) % nullif(abs({width}), 0)"


def _scaled(operator: str, span: Typed, number: Typed) -> Typed:
    if number.type in INTEGERS:
        whole = "epoch_us({0}) * {1}" if operator == "*" else "epoch_us({0}) // nullif({1}, 0)"
        return fill(_span(whole), TIMESPAN, span, number)
    divisor = "{1}" if operator == "*" else "nullif({1}, 0)"
    real = f"CAST(trunc(epoch_us({{0}}) {operator} {divisor}) AS BIGINT)"
    return fill(_span(real), TIMESPAN, span, convert(number, REAL))


def _sign(call: BoundCall) -> Typed:
    value = call.arguments[0]
    if call.name == "operator:unary+" and (value.type in NUMBERS or value.type is TIMESPAN):
        return value
    if value.is_constant and value.constant is not None and (value.type in NUMBERS or value.type is TIMESPAN):
        return literal(-value.constant, value.type)
    if value.type in NUMBERS:
        return fill("-{0}", value.type, value)
    if value.type is TIMESPAN:
        return fill("to_microseconds(-epoch_us({0}))", TIMESPAN, value)
    raise _mismatch(call, value, value)


def _logic(call: BoundCall) -> Typed:
    """Three-valued, as SQL's."""
    operator = call.name.removeprefix("operator:").upper()
    sides = [condition(call, argument) for argument in call.arguments]
    return fill(f" {operator} ".join(f"{{{place}}}" for place in range(len(sides))), BOOL, *sides)


def _not(call: BoundCall) -> Typed:
    return fill("NOT {0}", BOOL, condition(call, call.arguments[0]))


def condition(call: BoundCall, value: Typed) -> Typed:
    """Return `value` as a bool, which a dynamic or a number may stand for."""
    if value.type is BOOL:
        return value
    if value.type is DYNAMIC or value.type in NUMBERS:
        return convert(value, BOOL)
    raise call.invalid(f"a condition must be a bool, not {value.type}.", "SEM0034")


def comparable(call: BoundCall, left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Return both sides of an equality as values of one type."""
    kinds = left.type, right.type
    if kinds[0] is kinds[1]:
        if kinds[0] is DYNAMIC:
            return nullable_text(left), nullable_text(right)
        return _present(left), _present(right)
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


def _present(value: Typed) -> Typed:
    return to_string(value) if value.type is STRING else value


def _with_dynamic(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """The dynamic as what the other side is; a whole number is compared without rounding."""
    other = right.type if left.type is DYNAMIC else left.type
    if other is GUID:
        return nullable_text(left), nullable_text(right)
    kind = DECIMAL if other in INTEGERS else other

    def converted(side: Typed) -> Typed:
        if side.type is not DYNAMIC:
            return _present(side)
        return to_string(side) if kind is STRING else convert(side, kind)

    return converted(left), converted(right)


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
    if kind in INTEGERS:
        plain = text.removeprefix("-")
        if plain.isdigit() and plain.isascii() and len(plain) < 19 and (plain == "0" or plain[0] != "0"):
            return literal(int(text), LONG)
        return None
    if kind in (REAL, DECIMAL):
        return None
    return convert(literal(text, STRING), kind)


def equal(call: BoundCall, left: Typed, right: Typed, *, negated: bool = False) -> Typed:
    """Return `left == right` as Kusto has it, or its negation."""
    left, right = comparable(call, left, right)
    return _total("{0} <> {1}" if negated else "{0} = {1}", negated, left, right)


def _total(template: str, negated: bool, left: Typed, right: Typed) -> Typed:
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


def _equality(call: BoundCall) -> Typed:
    return equal(call, *call.arguments, negated=call.name != "operator:==")


def _equality_of_texts(call: BoundCall) -> Typed:
    negated = call.name == "operator:!~"
    left, right = (_lower(to_string(side)) for side in call.arguments)
    return fill("{0} <> {1}" if negated else "{0} = {1}", BOOL, left, right, nullable=False)


def _lower(text: Typed) -> Typed:
    if text.is_constant:
        return literal(str(text.constant).lower(), STRING)
    return fill("lower({0})", STRING, text)


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
    return fill(f"{{0}} {operator} {{1}}", BOOL, _present(left), _present(right))


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
    found = tests[0]
    if len(tests) > 1:
        found = fill(" OR ".join(f"{{{place}}}" for place in range(len(tests))), BOOL, *tests, nullable=False)
    return fill("NOT {0}", BOOL, found, nullable=False) if negated else found


def _element(held: Any) -> Typed | None:
    """An element of a constant array as a literal of its own type."""
    if held is None:
        return None
    kinds = ((bool, BOOL), (int, LONG), (float, REAL), (str, STRING))
    for python, kind in kinds:
        if isinstance(held, python):
            return literal(held, kind)
    return literal(json_text(held), STRING)


def _in_list(call: BoundCall, value: Typed, items: Sequence[Typed], folded: bool) -> Typed:
    if folded:
        return _any_of(_lower(to_string(value)), [_lower(to_string(item)) for item in items])
    groups: dict[str, tuple[Typed, list[Typed]]] = {}
    for item in items:
        side, member = comparable(call, value, item)
        groups.setdefault(side.sql, (side, []))[1].append(member)
    tests = [_any_of(side, members) for side, members in groups.values()]
    if len(tests) == 1:
        return tests[0]
    return fill(" OR ".join(f"{{{place}}}" for place in range(len(tests))), BOOL, *tests, nullable=False)


def _any_of(value: Typed, members: Sequence[Typed]) -> Typed:
    listed = ", ".join(f"{{{place + 1}}}" for place in range(len(members)))
    test = f"{{0}} IN ({listed})"
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


def _defined(names: str, builder: Builder, least: int = 2, most: int | None = 2) -> list[ScalarFunction]:
    status, note = ("partly", _OVERFLOW) if builder is _arithmetic else ("exact", "")
    return [ScalarFunction(f"operator:{one}", builder, least, most, status=status, note=note) for one in names.split()]


_OVERFLOW = "a long or decimal that overflows ends the query; Kusto goes on with other digits"


_SPECS: tuple[tuple[str, Builder, int, int | None], ...] = (
    ("+ - * / %", _arithmetic, 2, 2),
    ("unary- unary+", _sign, 1, 1),
    ("and or", _logic, 2, None),
    ("not", _not, 1, 1),
    ("== != <>", _equality, 2, 2),
    ("=~ !~", _equality_of_texts, 2, 2),
    ("< <= > >=", _order, 2, 2),
    ("between !between", _between, 3, 3),
    ("in !in in~ !in~", _membership, 1, None),
    ("like likecs notlike notlikecs", _like, 2, 2),
)

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(one for names, builder, least, most in _SPECS for one in _defined(names, builder, least, most)),
    ScalarFunction("not", _not, 1, 1),
)
