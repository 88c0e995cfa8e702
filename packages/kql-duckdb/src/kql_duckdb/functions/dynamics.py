"""Dynamic values: members, arrays, property bags and sets.

Source: the Kusto pages named like the functions. A dynamic is JSON text. What hunting asks of each row is SQL; the rest
is Python over the decoded value. What is no array or bag where one is needed gives null. Sets keep the order in which
elements first stand, which Kusto leaves open.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import convert, json_value, to_string
from kql_duckdb.functions.definitions import BoundCall, Output, fill, listed, operators, python, pythons, scalar
from kql_duckdb.time_texts import moment_text, timespan_text
from kql_duckdb.types import BOOL, DYNAMIC, INTEGERS, LONG, NUMBERS, STRING

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


@operators("member index", "value: any, key: any")
def _member(call: BoundCall) -> Typed:
    value, key = call.arguments
    if value.type is not DYNAMIC:
        raise call.invalid(f"a value of type {value.type} has no members.", "SEM0260")
    if key.is_constant and key.type in (STRING, *INTEGERS):
        return member_of(value, key.constant if key.type in INTEGERS else str(key.constant))
    if key.type in NUMBERS:
        return fill(_PRESENT.replace("{0}", "json_extract({0}, {1})"), DYNAMIC, value, convert(key, LONG))
    return fill(_PRESENT.replace("{0}", f"json_extract({{0}}, {_POINTER})"), DYNAMIC, value, to_string(key))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


pythons({
    "array_concat(array: dynamic...): dynamic": lambda arrays: _chained(arrays, list),
    "array_reverse(value: array): dynamic": lambda array: array[::-1],
    "array_rotate_left(array: array, rotate_count: long): dynamic": lambda array, count: (
        array[count % len(array) :] + array[: count % len(array)] if array else []
    ),
    "array_slice(array: array, start: long, end: long): dynamic": lambda array, start, end: (
        array[max(start + len(array) * (start < 0), 0) : max(end + len(array) * (end < 0) + 1, 0)]
    ),
    "array_sum(array: array): real": lambda array: float(sum(array)) if all(map(_is_number, array)) else None,
    "repeat(value: json, count: long): dynamic": lambda value, count: (
        [value] * min(count, MAX_ARRAY) if count >= 0 and value is not None else None
    ),
    "strcat_array|array_strcat(array: dynamic, delimiter: text): string": lambda array, delimiter: (
        delimiter.join(map(text_of, array if isinstance(array, list) else [array]))
    ),
    "zip(first: array, second: array...): dynamic": lambda first, others: (
        [list(row) for row in itertools.zip_longest(first, *others)]
    ),
})  # fmt: skip


def _chained(values: list[Any], kind: type[Iterable[Any]]) -> list[Any] | None:
    """The elements of all that are of a kind; null if none is."""
    fitting = [value for value in values if isinstance(value, kind)]
    return list(itertools.chain.from_iterable(fitting)) if fitting else None


def text_of(value: Any) -> str:
    """Return what `tostring` makes of a Python value of a dynamic."""
    return "" if value is None else value if isinstance(value, str) else json_text(value)


@python("array_index_of(array: array, value: json, start: long = 0, length: long = -1, occurrence: long = 1): long")
def _index_of(array: list[Any], value: Any, start: int, length: int, occurrence: int) -> int | None:
    if occurrence < 1 or length < -1:
        return None
    begin = max(start + len(array), 0) if start < 0 else start
    end = len(array) if length == -1 else min(begin + length, len(array))
    places = (place for place in range(begin, end) if json_text(array[place]) == json_text(value))
    return next(itertools.islice(places, occurrence - 1, None), -1)


@python("array_shift_left(array: array, shift_count: long, default_value: json = null): dynamic")
def _shift(array: list[Any], count: int, default: Any) -> list[Any]:
    """To the left by a positive count. What is shifted in is null, or the empty text in an array of texts."""
    if default is None and array and all(isinstance(element, str) for element in array):
        default = ""
    filler = [default] * min(abs(count), len(array))
    return array[len(filler) :] + filler if count >= 0 else filler + array[: len(array) - len(filler)]


@python("array_split(array: array, index: json): dynamic")
def _split(array: list[Any], indices: Any) -> list[Any] | None:
    """At one index or at each of an array of them; a negative index counts from the end."""
    listed = indices if isinstance(indices, list) else [indices]
    if not all(isinstance(index, int) for index in listed):
        return None
    places = [min(max(index + len(array) * (index < 0), 0), len(array)) for index in listed]
    return [array[start:end] for start, end in itertools.pairwise([0, *places, len(array)])]


@python("array_iff(condition_array: array, when_true: json, when_false: json): dynamic")
def _array_iff(conditions: list[Any], chosen: Any, other: Any) -> list[Any]:
    """Element by element; a value that is no array stands for each place."""

    values = zip(conditions, *(spread(side, len(conditions)) for side in (chosen, other)), strict=True)
    return [(then if test else rest) if isinstance(test, (bool, int, float)) else None for test, then, rest in values]


def spread(value: Any, size: int) -> list[Any]:
    """Return an array of a size: an array with null behind it, or any other value at each place."""
    return (value + [None] * (size - len(value)))[:size] if isinstance(value, list) else [value] * size


def _order(array: list[Any], descending: bool, nulls_last: bool) -> list[int]:
    """The places of the elements: numbers, texts, then everything else, which keeps its order as equal ones do."""
    groups: list[list[int]] = [[], [], [], []]
    for place, element in enumerate(array):
        groups[0 if _is_number(element) else 1 if isinstance(element, str) else 3 if element is None else 2].append(
            place
        )
    for group in groups[:2]:
        group.sort(key=lambda place: array[place], reverse=descending)
    return list(itertools.chain(*(groups if nulls_last else [groups[3], *groups[:3]])))


@python("kql_array_sort(arrays: json[], descending: bool, nulls_last?: bool): dynamic")
def _sort(arrays: list[Any], descending: bool, nulls_last: bool | None) -> list[Any] | None:
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
    together = f"kql_array_sort([{listed(arrays)}], {descending}, {{{len(arrays)}}})"
    return fill(together, DYNAMIC, *arrays, nulls_last), len(arrays)


def _array_sort_columns(call: BoundCall) -> Output:
    together, count = _sorted(call)
    return tuple((f"{call.arguments[place].name}_sorted", member_of(together, place)) for place in range(count))


@scalar("array_sort_asc|array_sort_desc(arrays: any...)", columns=_array_sort_columns)
def _array_sort(call: BoundCall) -> Typed:
    """One array; several are several columns, and where one value stands the array of them."""
    together, count = _sorted(call)
    return member_of(together, 0) if count == 1 else together


@python("kql_range_long(start: long, stop: long, step: long): dynamic")
def _range_long(start: int, stop: int, step: int) -> list[int] | None:
    return list(itertools.islice(range(start, stop + (1 if step > 0 else -1), step), MAX_ARRAY)) if step else None


@python("kql_range_real(start: real, stop: real, step: real): dynamic")
def _range_real(start: float, stop: float, step: float) -> list[float] | None:
    if not step:
        return None
    count = min(max(int((stop - start) / step + 1e-9) + 1, 0), MAX_ARRAY) if (stop - start) / step >= 0 else 0
    return [start + place * step for place in range(count)]


@python("kql_range_time(start: long, stop: long, step: long, spans: bool): dynamic")
def _range_time(start: int, stop: int, step: int, spans: bool) -> list[str | None] | None:
    values = _range_long(start, stop, step)
    return values and [timespan_text(value * 10) if spans else moment_text(value) for value in values]


@scalar("bag_pack(key: any...)")
def _bag_pack(call: BoundCall) -> Typed:
    if len(call.arguments) % 2:
        raise call.invalid("expects pairs of a key and a value.", "SEM0219")
    return _packed(zip(map(to_string, call.arguments[::2]), call.arguments[1::2], strict=True))


def _packed(pairs: Iterable[tuple[Typed, Typed]]) -> Typed:
    parts = [part for key, value in pairs for part in (key, json_value(value))]
    return fill(f"json_object({listed(parts)})", DYNAMIC, *parts, nullable=False)


@scalar("bag_pack_columns(value: any...)")
def _bag_pack_columns(call: BoundCall) -> Typed:
    if not all(argument.name for argument in call.arguments):
        raise call.invalid("expects columns.", "SEM0201")
    return _packed((literal(argument.name, STRING), argument) for argument in call.arguments)


@scalar("pack_all(ignore_null_empty: bool = false)")
def _pack_all(call: BoundCall) -> Typed:
    ignored = call.arguments[0]
    if not ignored.is_constant:
        raise call.invalid("argument #1 must be a constant.", "SEM0207")
    packed = _packed((literal(name, STRING), value) for name, value in call.context.columns.items())
    return fill("kql_without_empty({0})", DYNAMIC, packed) if ignored.constant else packed


def merged(bags: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Of several values for one key the first stays."""
    found: dict[str, Any] = {}
    for bag in bags:
        for key, value in bag.items():
            found.setdefault(key, value)
    return found


_STEP = re.compile(r"""\.([A-Za-z_][\w-]*)|\[(-?\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")


def json_path(text: str) -> list[str | int] | None:
    """Return the steps of a JSON path such as `$.a[0]['b c']`; None if it is no such path."""
    place, steps = 1 if text.startswith("$") else 0, []
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            return None
        name, index, single, double = step.groups()
        steps.append(int(index) if index is not None else name or single or double or "")
        place = step.end()
    return steps


def _steps(key: str) -> list[str | int]:
    return (json_path(key) if key.startswith("$") else None) or [key]


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


@python("bag_remove_keys(bag: bag, keys: nullable): dynamic")
def _bag_remove_keys(bag: dict[str, Any], keys: Any) -> dict[str, Any]:
    for key in keys if isinstance(keys, list) else []:
        *way, last = _steps(str(key))
        found, holder = _at(bag, way)
        if found and isinstance(holder, dict):
            holder.pop(str(last), None)
    return bag


@python("bag_set_key(bag: bag, key: string, value: json): dynamic")
def _bag_set_key(bag: dict[str, Any], key: str, value: Any) -> dict[str, Any] | None:
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


def _paths(held: Any, path: str = "") -> Iterator[str]:
    below = held.items() if isinstance(held, dict) else [(0, held[0])] if isinstance(held, list) and held else ()
    for step, inner in below:
        here = f"{path}['{step}']" if isinstance(step, str) else f"{path}[{step}]"
        yield here
        yield from _paths(inner, here)


def _distinct(values: Iterable[Any]) -> dict[str, Any]:
    """Each value by its text, so that 1, 1.0 and true stay apart."""
    return merged({json_text(value): value} for value in values)


def _of_first(sets: list[list[Any]], test: Callable[[Iterable[bool]], bool]) -> list[Any]:
    """The elements of the first set for whose being in the others the test holds."""
    first, *others = map(_distinct, sets)
    return [value for key, value in first.items() if test(key in other for other in others)]


def _jaccard(first: set[str], second: set[str]) -> float:
    return len(first & second) / len(first | second) if first | second else float("nan")


pythons({
    "kql_without_empty(bag: dynamic): dynamic": lambda bag: {
        key: value for key, value in bag.items() if value is not None and value != ""
    },
    "bag_merge(bag: dynamic...): dynamic": lambda bags: (
        merged(bag for bag in bags if isinstance(bag, dict)) if any(isinstance(bag, dict) for bag in bags) else None
    ),
    "bag_has_key(bag: bag, key: string): bool": lambda bag, key: _at(bag, _steps(key))[0],
    "bag_zip(keys: array, values: nullable): dynamic": lambda keys, values: {
        key: value
        for key, value in itertools.zip_longest(keys, (values if isinstance(values, list) else [])[: len(keys)])
        if isinstance(key, str)
    },
    "treepath(object: dynamic): dynamic": lambda value: (
        list(_paths(value)) if isinstance(value, (dict, list)) else None
    ),
    "dynamic_to_json(value: json): string": lambda value: (
        "" if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    ),
    "set_union(set: array...): dynamic": lambda sets: list(_distinct(itertools.chain(*sets)).values()),
    "set_intersect(set: array...): dynamic": lambda sets: _of_first(sets, all),
    "set_difference(set: array...): dynamic": lambda sets: _of_first(sets, lambda held: not any(held)),
    "set_equals(set1: array, set2: array): bool": lambda left, right: set(_distinct(left)) == set(_distinct(right)),
    "jaccard_index(set1: array, set2: array): real": lambda left, right: (
        _jaccard(set(_distinct(left)), set(_distinct(right)))
    ),
})  # fmt: skip


@scalar("extract_json|extractjson(json_path: string, json_text: any, type?: type)")
def _extract_json(call: BoundCall) -> Typed:
    path = call.constant_text(0)
    steps = json_path(path) if path is not None else None
    if steps is None:
        raise not_supported(call.name, f"the path '{path}' must be a constant of plain steps" if path else "")
    found = convert(call.arguments[1], DYNAMIC)
    for step in steps:
        found = member_of(found, step)
    return convert(to_string(found), call.arguments[2].type if len(call.arguments) > 2 else STRING)
