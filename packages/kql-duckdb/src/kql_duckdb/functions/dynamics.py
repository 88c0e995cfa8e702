"""Dynamic values: members, arrays, property bags and sets.

Source: the Kusto pages named like the functions. A dynamic is JSON text. What hunting asks of each row is SQL; the rest
is Python over the decoded value. What is no array or bag where one is needed gives null. Sets keep the order in which
elements first stand, which Kusto leaves open.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import (
    BOOL,
    DATETIME,
    DYNAMIC,
    LONG,
    REAL,
    STRING,
    TIMESPAN,
    convert,
    json_value,
    parse_json,
    to_string,
)
from kql_duckdb.functions.definitions import BoundCall, Output, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function
from kql_duckdb.time_texts import moment_text, span_text
from kql_duckdb.types import INTEGERS, NUMBERS

MAX_ARRAY = 1_048_576
"""The most elements that Kusto puts into an array (2^20); longer ones are cut there."""

_POINTER = "'/' || replace(replace({1}, '~', '~0'), '/', '~1')"
_PRESENT = "nullif({0}, CAST('null' AS JSON))"


def member_of(value: Typed, step: str | int) -> Typed:
    """Return the member of a dynamic by a key or an index that is known; null if there is none."""
    if value.texts is not None and isinstance(step, int):
        element = fill(f"{{0}}[{step + 1 if step >= 0 else step}]", STRING, value.texts, nullable=True)
        return replace(fill("to_json({0})", DYNAMIC, element), text=element)
    if isinstance(step, str) and ('"' in step or "\\" in step):
        pointer = "/" + step.replace("~", "~0").replace("/", "~1")
        found = _PRESENT.replace("{0}", "json_extract({0}, {1})")
        return fill(found, DYNAMIC, value, literal(pointer, STRING))
    base, path = value.json_path or (value, "$")
    path += f'."{step}"' if isinstance(step, str) else f"[{step}]" if step >= 0 else f"[#{step}]"
    made = fill(_PRESENT.replace("{0}", "json_extract({0}, {1})"), DYNAMIC, base, literal(path, STRING))
    return replace(made, json_path=(base, path))


def _member(call: BoundCall) -> Typed:
    value, key = call.arguments
    if value.type is not DYNAMIC:
        raise call.invalid(f"a value of type {value.type} has no members.", "SEM0260")
    if key.is_constant and key.type in (STRING, *INTEGERS):
        return member_of(value, key.constant if key.type in INTEGERS else str(key.constant))
    if key.type in NUMBERS:
        return fill(_PRESENT.replace("{0}", "json_extract({0}, {1})"), DYNAMIC, value, convert(key, LONG))
    return fill(_PRESENT.replace("{0}", f"json_extract({{0}}, {_POINTER})"), DYNAMIC, value, to_string(key))


# Arrays


def _listed(arguments: Iterable[Any]) -> str:
    return ", ".join(f"{{{place}}}" for place, _ in enumerate(arguments))


def _pack_array(call: BoundCall) -> Typed:
    values = [json_value(argument) for argument in call.arguments]
    return fill(f"json_array({_listed(values)})", DYNAMIC, *values, nullable=False)


def _over_all(python: str) -> Callable[[BoundCall], Typed]:
    """A function of Python that takes all the arguments as one list."""

    def build(call: BoundCall) -> Typed:
        return fill(f"{python}([{_listed(call.arguments)}])", DYNAMIC, *call.arguments)

    return build


@dynamic_function("kql_array_concat", ("JSON[]",))
def _concat(arrays: list[Any]) -> list[Any] | None:
    if not any(isinstance(array, list) for array in arrays):
        return None
    return list(itertools.chain.from_iterable(array for array in arrays if isinstance(array, list)))


@dynamic_function("kql_array_slice", ("JSON", "BIGINT", "BIGINT"))
def _slice(array: Any, start: int | None, end: int | None) -> list[Any] | None:
    if not isinstance(array, list) or start is None or end is None:
        return None
    first = max(start + len(array) if start < 0 else start, 0)
    last = end + len(array) if end < 0 else end
    return array[first : max(last + 1, 0)]


@dynamic_function("kql_array_index_of", ("JSON", "JSON", "BIGINT", "BIGINT", "BIGINT"), "BIGINT")
def _index_of(array: Any, value: Any, start: int | None, length: int | None, occurrence: int | None) -> int | None:
    if not isinstance(array, list) or start is None or length is None or occurrence is None:
        return None
    if occurrence < 1 or length < -1:
        return None
    begin = max(start + len(array), 0) if start < 0 else start
    end = len(array) if length == -1 else min(begin + length, len(array))
    looked_for = json_text(value)
    places = (place for place in range(begin, end) if json_text(array[place]) == looked_for)
    return next(itertools.islice(places, occurrence - 1, None), -1)


def _array_index_of(call: BoundCall) -> Typed:
    array, value, *rest = call.arguments
    numbers = [convert(each, LONG) for each in rest]
    numbers += [literal(default, LONG) for default in (0, -1, 1)[len(numbers) :]]
    return fill("kql_array_index_of({0}, {1}, {2}, {3}, {4})", LONG, array, json_value(value), *numbers)


@dynamic_function("kql_array_reverse", ("JSON",))
def _reverse(array: Any) -> list[Any] | None:
    return array[::-1] if isinstance(array, list) else None


@dynamic_function("kql_array_rotate", ("JSON", "BIGINT"))
def _rotate(array: Any, count: int | None) -> list[Any] | None:
    if not isinstance(array, list) or count is None:
        return None
    turn = count % len(array) if array else 0
    return array[turn:] + array[:turn]


@dynamic_function("kql_array_shift", ("JSON", "BIGINT", "JSON"))
def _shift(array: Any, count: int | None, default: Any) -> list[Any] | None:
    """To the left by a positive count. What is shifted in is null, or the empty text in an array of texts."""
    if not isinstance(array, list) or count is None:
        return None
    if default is None and array and all(isinstance(element, str) for element in array):
        default = ""
    filler = [default] * min(abs(count), len(array))
    return array[len(filler) :] + filler if count >= 0 else filler + array[: len(array) - len(filler)]


def _array_shift(call: BoundCall) -> Typed:
    array, count, *default = call.arguments
    filler = json_value(default[0]) if default else literal(None, DYNAMIC)
    shift = "0 - greatest({1}, -9223372036854775807)" if call.name.endswith("right") else "{1}"
    return fill(f"kql_array_shift({{0}}, {shift}, {{2}})", DYNAMIC, array, convert(count, LONG), filler)


@dynamic_function("kql_array_split", ("JSON", "JSON"))
def _split(array: Any, indices: Any) -> list[Any] | None:
    """At one index or at each of an array of them; a negative index counts from the end."""
    listed = indices if isinstance(indices, list) else [indices]
    if not isinstance(array, list) or not all(isinstance(index, int) for index in listed):
        return None
    places = [0]
    for index in listed:
        place = index + len(array) if index < 0 else index
        places.append(min(max(place, 0), len(array)))
    return [array[start:end] for start, end in itertools.pairwise([*places, len(array)])]


@dynamic_function("kql_array_iff", ("JSON", "JSON", "JSON"))
def _array_iff(conditions: Any, chosen: Any, other: Any) -> list[Any] | None:
    """Element by element; a value that is no array stands for each place."""
    if not isinstance(conditions, list):
        return None

    def at(values: Any, place: int) -> Any:
        if not isinstance(values, list):
            return values
        return values[place] if place < len(values) else None

    def choose(place: int, test: Any) -> Any:
        if isinstance(test, (bool, int, float)):
            return at(chosen if test else other, place)
        return None

    return [choose(place, test) for place, test in enumerate(conditions)]


@dynamic_function("kql_repeat", ("JSON", "BIGINT"))
def _repeat(value: Any, count: int | None) -> list[Any] | None:
    return [value] * min(count, MAX_ARRAY) if count is not None and count >= 0 else None


@dynamic_function("kql_array_sum", ("JSON",), "DOUBLE")
def _array_sum(array: Any) -> float | None:
    if not isinstance(array, list) or not all(_is_number(element) for element in array):
        return None
    return float(sum(array))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _sort_key(element: Any) -> tuple[int, Any]:
    """Numbers, then texts, then everything else, which keeps its order."""
    if _is_number(element):
        return 0, element
    return (1, element) if isinstance(element, str) else (2, 0)


def _order(array: list[Any], descending: bool, nulls_last: bool) -> list[int]:
    """The places of the elements in order; equal ones keep their order."""
    present = [place for place, element in enumerate(array) if element is not None]
    nulls = [place for place, element in enumerate(array) if element is None]
    groups: list[int] = []
    for rank in range(3):
        group = [place for place in present if _sort_key(array[place])[0] == rank]
        groups += sorted(group, key=lambda place: _sort_key(array[place])[1], reverse=descending)
    return groups + nulls if nulls_last else nulls + groups


@dynamic_function("kql_array_sort", ("JSON[]", "BOOLEAN", "BOOLEAN"))
def _sort(arrays: list[Any], descending: bool, nulls_last: bool) -> list[Any] | None:
    """The first array sorted and the others in its order; one of another length is null."""
    first = arrays[0]
    if not isinstance(first, list):
        return [None] * len(arrays)
    places = _order(first, descending, nulls_last is not False)
    return [
        [array[place] for place in places] if isinstance(array, list) and len(array) == len(first) else None
        for array in arrays
    ]


def _sorted(call: BoundCall) -> tuple[Typed, int]:
    arrays = list(call.arguments)
    nulls_last = arrays.pop() if arrays[-1].type is BOOL else literal(True, BOOL)
    if not arrays or any(array.type is not DYNAMIC for array in arrays):
        raise call.invalid("expects arrays.", "SEM0201")
    descending = "TRUE" if call.name.endswith("desc") else "FALSE"
    together = f"kql_array_sort([{_listed(arrays)}], {descending}, {{{len(arrays)}}})"
    return fill(together, DYNAMIC, *arrays, nulls_last), len(arrays)


def _array_sort(call: BoundCall) -> Typed:
    """One array; several are several columns, and where one value stands the array of them."""
    together, count = _sorted(call)
    return member_of(together, 0) if count == 1 else together


def _array_sort_columns(call: BoundCall) -> Output:
    together, count = _sorted(call)
    return tuple((f"{call.arguments[place].name}_sorted", member_of(together, place)) for place in range(count))


@python_function("kql_range_long", ("BIGINT", "BIGINT", "BIGINT"), "JSON")
def _range_long(start: int | None, stop: int | None, step: int | None) -> str | None:
    if start is None or stop is None or not step:
        return None
    return json_text(list(itertools.islice(range(start, stop + (1 if step > 0 else -1), step), MAX_ARRAY)))


@python_function("kql_range_real", ("DOUBLE", "DOUBLE", "DOUBLE"), "JSON")
def _range_real(start: float | None, stop: float | None, step: float | None) -> str | None:
    if start is None or stop is None or not step:
        return None
    count = min(max(int((stop - start) / step + 1e-9) + 1, 0), MAX_ARRAY) if (stop - start) / step >= 0 else 0
    return json_text([start + place * step for place in range(count)])


@python_function("kql_range_time", ("BIGINT", "BIGINT", "BIGINT", "BOOLEAN"), "JSON")
def _range_time(start: int | None, stop: int | None, step: int | None, spans: bool) -> str | None:
    if start is None or stop is None or not step:
        return None
    values = itertools.islice(range(start, stop + (1 if step > 0 else -1), step), MAX_ARRAY)
    return json_text([span_text(value) if spans else moment_text(value) for value in values])


def _range(call: BoundCall) -> Typed:
    """The step is 1, or an hour for times and spans, unless it is given."""
    start, stop, *given = call.arguments
    if start.type in (DATETIME, TIMESPAN):
        step = given[0] if given else literal(timedelta(hours=1), TIMESPAN)
        spans = "TRUE" if start.type is TIMESPAN else "FALSE"
        template = f"kql_range_time(epoch_us({{0}}), epoch_us({{1}}), epoch_us({{2}}), {spans})"
        return fill(template, DYNAMIC, start, stop, convert(step, TIMESPAN))
    values = [start, stop, given[0] if given else literal(1, LONG)]
    if all(value.type in INTEGERS for value in values):
        return fill("kql_range_long({0}, {1}, {2})", DYNAMIC, *values)
    return fill("kql_range_real({0}, {1}, {2})", DYNAMIC, *(convert(value, REAL) for value in values))


@dynamic_function("kql_strcat_array", ("JSON", "VARCHAR"), "VARCHAR")
def _strcat_array(array: Any, delimiter: str) -> str:
    return delimiter.join(map(text_of, array)) if isinstance(array, list) else text_of(array)


def text_of(value: Any) -> str:
    """Return what `tostring` makes of a Python value of a dynamic."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


@dynamic_function("kql_zip", ("JSON[]",))
def _zip(arrays: list[Any]) -> list[Any] | None:
    if not all(isinstance(array, list) for array in arrays):
        return None
    return [list(row) for row in itertools.zip_longest(*arrays)]


# Property bags


def _bag_pack(call: BoundCall) -> Typed:
    if len(call.arguments) % 2:
        raise call.invalid("expects pairs of a key and a value.", "SEM0219")
    pairs = zip(call.arguments[::2], call.arguments[1::2], strict=True)
    parts = [part for key, value in pairs for part in (to_string(key), json_value(value))]
    return fill(f"json_object({_listed(parts)})", DYNAMIC, *parts, nullable=False)


def _packed_columns(call: BoundCall, columns: Iterable[tuple[str, Typed]]) -> Typed:
    parts = [part for name, value in columns for part in (literal(name, STRING), json_value(value))]
    return fill(f"json_object({_listed(parts)})", DYNAMIC, *parts, nullable=False)


def _bag_pack_columns(call: BoundCall) -> Typed:
    if not all(argument.name for argument in call.arguments):
        raise call.invalid("expects columns.", "SEM0201")
    return _packed_columns(call, ((argument.name, argument) for argument in call.arguments))


def _pack_all(call: BoundCall) -> Typed:
    ignored = call.arguments[0] if call.arguments else literal(False, BOOL)
    if not ignored.is_constant:
        raise call.invalid("argument #1 must be a constant.", "SEM0207")
    packed = _packed_columns(call, call.context.columns.items())
    return fill("kql_without_empty({0})", DYNAMIC, packed) if ignored.constant else packed


@dynamic_function("kql_without_empty", ("JSON",))
def _without_empty(bag: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in bag.items() if value is not None and value != ""}


@dynamic_function("kql_bag_merge", ("JSON[]",))
def _bag_merge(bags: list[Any]) -> dict[str, Any] | None:
    """Of several values for one key the first stays."""
    if not any(isinstance(bag, dict) for bag in bags):
        return None
    merged: dict[str, Any] = {}
    for bag in bags:
        if isinstance(bag, dict):
            merged = {**bag, **merged} if not merged else merged | {k: v for k, v in bag.items() if k not in merged}
    return merged


_STEP = re.compile(r"""\.([A-Za-z_][\w-]*)|\[(-?\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")


def json_path(text: str) -> list[str | int] | None:
    """Return the steps of a JSON path such as `$.a[0]['b c']`; None if it is no such path."""
    place, steps = 1 if text.startswith("$") else 0, []
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            return None
        name, index, single, double = step.groups()
        steps.append(
            int(index) if index is not None else next(part for part in (name, single, double) if part is not None)
        )
        place = step.end()
    return steps


def _steps(key: str) -> list[str | int]:
    steps = json_path(key) if key.startswith("$") else None
    return [key] if steps is None else steps


def _at(value: Any, steps: list[str | int]) -> tuple[bool, Any]:
    """Whether there is something at the end of the steps, and what."""
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return False, None
            value = value[step]
        elif isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return False, None
    return True, value


@dynamic_function("kql_bag_has_key", ("JSON", "VARCHAR"), "BOOLEAN")
def _bag_has_key(bag: Any, key: str | None) -> bool | None:
    return _at(bag, _steps(key or ""))[0] if isinstance(bag, dict) else None


@dynamic_function("kql_bag_remove_keys", ("JSON", "JSON"))
def _bag_remove_keys(bag: Any, keys: Any) -> dict[str, Any] | None:
    if not isinstance(bag, dict):
        return None
    for key in keys if isinstance(keys, list) else []:
        *way, last = _steps(str(key))
        found, holder = _at(bag, way)
        if found and isinstance(holder, dict):
            holder.pop(str(last), None)
    return bag


@dynamic_function("kql_bag_set_key", ("JSON", "VARCHAR", "JSON"))
def _bag_set_key(bag: Any, key: str | None, value: Any) -> dict[str, Any] | None:
    if not isinstance(bag, dict) or key is None:
        return None
    *way, last = _steps(key)
    holder: Any = bag
    for step in way:
        if not isinstance(step, str) or not isinstance(holder, dict):
            return None
        holder = holder.setdefault(step, {})
    if not isinstance(holder, dict) or not isinstance(last, str):
        return None
    holder[last] = value
    return bag


@dynamic_function("kql_bag_zip", ("JSON", "JSON"))
def _bag_zip(keys: Any, values: Any) -> dict[str, Any] | None:
    if not isinstance(keys, list):
        return None
    listed = values if isinstance(values, list) else []
    pairs = zip(keys, itertools.chain(listed, itertools.repeat(None)), strict=False)
    return {key: value for key, value in pairs if isinstance(key, str)}


@dynamic_function("kql_treepath", ("JSON",))
def _treepath(value: Any) -> list[str] | None:
    found: list[str] = []

    def walk(held: Any, path: str) -> None:
        if isinstance(held, dict):
            for key, below in held.items():
                found.append(f"{path}['{key}']")
                walk(below, found[-1])
        elif isinstance(held, list) and held:
            found.append(f"{path}[0]")
            walk(held[0], found[-1])

    if not isinstance(value, (dict, list)):
        return None
    walk(value, "")
    return found


@dynamic_function("kql_dynamic_to_json", ("JSON",), "VARCHAR")
def _dynamic_to_json(value: Any) -> str:
    """Keys in order, at every level."""

    def ordered(held: Any) -> Any:
        if isinstance(held, dict):
            return {key: ordered(held[key]) for key in sorted(held)}
        return [ordered(each) for each in held] if isinstance(held, list) else held

    return json_text(ordered(value))


# Sets


def _distinct(values: Iterable[Any]) -> dict[str, Any]:
    """Each value by its text, so that 1, 1.0 and true stay apart."""
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(json_text(value), value)
    return found


@dynamic_function("kql_set_union", ("JSON[]",))
def _set_union(sets: list[Any]) -> list[Any] | None:
    if not all(isinstance(each, list) for each in sets):
        return None
    return list(_distinct(itertools.chain.from_iterable(sets)).values())


@dynamic_function("kql_set_intersect", ("JSON[]",))
def _set_intersect(sets: list[Any]) -> list[Any] | None:
    if not all(isinstance(each, list) for each in sets):
        return None
    first, *others = (_distinct(each) for each in sets)
    return [value for key, value in first.items() if all(key in other for other in others)]


@dynamic_function("kql_set_difference", ("JSON[]",))
def _set_difference(sets: list[Any]) -> list[Any] | None:
    if not all(isinstance(each, list) for each in sets):
        return None
    first, *others = (_distinct(each) for each in sets)
    return [value for key, value in first.items() if not any(key in other for other in others)]


@dynamic_function("kql_set_equals", ("JSON", "JSON"), "BOOLEAN")
def _set_equals(left: Any, right: Any) -> bool | None:
    if not isinstance(left, list) or not isinstance(right, list):
        return None
    return set(_distinct(left)) == set(_distinct(right))


@dynamic_function("kql_jaccard_index", ("JSON", "JSON"), "DOUBLE")
def _jaccard(left: Any, right: Any) -> float | None:
    if not isinstance(left, list) or not isinstance(right, list):
        return None
    first, second = set(_distinct(left)), set(_distinct(right))
    return len(first & second) / len(first | second) if first | second else float("nan")


def _extract_json(call: BoundCall) -> Typed:
    path = call.constant_text(0)
    steps = json_path(path) if path is not None else None
    if steps is None:
        raise not_supported(call.name, f"the path '{path}' must be a constant of plain steps" if path else "")
    found = parse_json(call.arguments[1])
    for step in steps:
        found = member_of(found, step)
    text = to_string(found)
    if len(call.arguments) < 3:
        return text
    return convert(text, call.arguments[2].type)


_SIZE = "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_array_length({0}) AS BIGINT) END"
_SKETCH = "of what hll makes here: the different values by their hashes"

ALIASES = {"array_iif": "array_iff", "arraylength": "array_length", "pack": "bag_pack", "pack_dictionary": "bag_pack"}

FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction("operator:member", _member, 2, 2),
    ScalarFunction("operator:index", _member, 2, 2),
    function("array_length(array: dynamic): long", _SIZE),
    function("pack_array(value: any...)", _pack_array),
    function("array_concat(array: dynamic...)", _over_all("kql_array_concat")),
    function("array_slice(array: dynamic, start: long, end: long): dynamic", "kql_array_slice({0}, {1}, {2})"),
    function(
        "array_index_of(array: dynamic, value: any, start?: long, length?: long, occurrence?: long)", _array_index_of
    ),
    function("array_reverse(value: dynamic): dynamic", "kql_array_reverse({0})"),
    function("array_rotate_left(array: dynamic, rotate_count: long): dynamic", "kql_array_rotate({0}, {1})"),
    function(
        "array_rotate_right(array: dynamic, rotate_count: long): dynamic",
        "kql_array_rotate({0}, 0 - greatest({1}, -9223372036854775807))",
    ),
    function("array_shift_left(array: dynamic, shift_count: long, default_value?: any)", _array_shift),
    function("array_shift_right(array: dynamic, shift_count: long, default_value?: any)", _array_shift),
    function("array_split(array: dynamic, index: json): dynamic", "kql_array_split({0}, {1})"),
    function(
        "array_iff(condition_array: dynamic, when_true: json, when_false: json): dynamic",
        "kql_array_iff({0}, {1}, {2})",
    ),
    function("array_sort_asc(arrays: any...)", _array_sort, columns=_array_sort_columns),
    function("array_sort_desc(arrays: any...)", _array_sort, columns=_array_sort_columns),
    function("array_sum(array: dynamic): real", "kql_array_sum({0})"),
    function("repeat(value: json, count: long): dynamic", "kql_repeat({0}, {1})"),
    function("range(start: any, stop: any, step?: any)", _range),
    function("zip(first: dynamic, second: dynamic...)", _over_all("kql_zip")),
    *(
        function(f"{name}(array: dynamic, delimiter: text): string", "coalesce(kql_strcat_array({0}, {1}), '')")
        for name in ("strcat_array", "array_strcat")
    ),
    function("bag_pack(key: any...)", _bag_pack),
    function("bag_pack_columns(value: any...)", _bag_pack_columns),
    function("pack_all(ignore_null_empty?: bool)", _pack_all),
    function(
        "bag_keys(object: dynamic): dynamic",
        "CASE WHEN json_type({0}) = 'OBJECT' THEN to_json(json_keys({0})) END",
    ),
    function("bag_has_key(bag: dynamic, key: string): bool", "kql_bag_has_key({0}, {1})"),
    function("bag_merge(bag: dynamic...)", _over_all("kql_bag_merge")),
    function("bag_remove_keys(bag: dynamic, keys: dynamic): dynamic", "kql_bag_remove_keys({0}, {1})"),
    function("bag_set_key(bag: dynamic, key: string, value: json): dynamic", "kql_bag_set_key({0}, {1}, {2})"),
    function("bag_zip(keys: dynamic, values: dynamic): dynamic", "kql_bag_zip({0}, {1})"),
    function("treepath(object: dynamic): dynamic", "kql_treepath({0})"),
    function("dynamic_to_json(value: json): string", "coalesce(kql_dynamic_to_json({0}), '')"),
    function("set_union(set: dynamic...)", _over_all("kql_set_union")),
    function("set_intersect(set: dynamic...)", _over_all("kql_set_intersect")),
    function("set_difference(set: dynamic...)", _over_all("kql_set_difference")),
    function("set_equals(set1: dynamic, set2: dynamic): bool", "kql_set_equals({0}, {1})"),
    function("set_has_element(set: dynamic, value: json): bool", "list_contains(TRY_CAST({0} AS JSON[]), {1})"),
    # The sketches of `hll` are sets of hashes here (`aggregates`).
    function("dcount_hll(hll: dynamic): long", _SIZE, status="partly", note=_SKETCH),
    function("hll_merge(hll: dynamic...)", _over_all("kql_set_union"), status="partly", note=_SKETCH),
    function("jaccard_index(set1: dynamic, set2: dynamic): real", "kql_jaccard_index({0}, {1})"),
    *(
        function(f"{name}(json_path: string, json_text: any, type?: type)", _extract_json)
        for name in ("extract_json", "extractjson")
    ),
)
