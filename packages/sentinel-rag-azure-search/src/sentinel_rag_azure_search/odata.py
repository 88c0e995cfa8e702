"""Filters in the service's OData, from values that anybody may have written.

A value is always a quoted literal, and never part of the syntax. A list of values is one `search.in` with a delimiter
that none of them holds; what fits in none (a value that is empty, or has every delimiter) is compared by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sentinel_rag.knowledge.documents import EVERYONE
from sentinel_rag.knowledge.stores.port import Wanted
from sentinel_rag_azure_search.plain_text import plain

_DELIMITERS = "|,;~^"


def literal(value: str) -> str:
    """A string literal of the value as the index holds it: quotes are doubled, and nothing else is special inside."""
    return "'" + plain(value).replace("'", "''") + "'"


def one_of(field: str, values: Iterable[str]) -> str:
    """True where `field` has one of the values; of no value it is never true."""
    parts = list(_comparisons(field, sorted(set(values))))
    if not parts:
        return "false"
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def any_one_of(field: str, values: Iterable[str]) -> str:
    """The same for a field that holds several values."""
    condition = one_of("v", values)
    return "false" if condition == "false" else f"{field}/any(v: {condition})"


def all_of(conditions: Iterable[str]) -> str:
    """Conditions that all hold."""
    return " and ".join(conditions)


def conditions(wanted: Wanted) -> Iterator[str]:
    """What a chunk must be to be found; permission is always part. The fields are those of `records`."""
    yield any_one_of("readers", {EVERYONE, *wanted.readers})
    yield one_of("collection", wanted.collections)
    for field, chosen in (
        ("severity", wanted.severities),
        ("status", wanted.statuses),
        ("classification", wanted.classifications),
    ):
        if chosen:
            yield one_of(field, {value.casefold() for value in chosen})
    if wanted.techniques:
        yield any_one_of("techniques", {value.upper() for value in wanted.techniques})
    if wanted.tactics:
        yield any_one_of("tactics", wanted.tactics)
    if wanted.since is not None:
        yield f"time ge {microseconds(wanted.since.timestamp())}"
    if wanted.until is not None:
        yield f"time le {microseconds(wanted.until.timestamp())}"


def microseconds(seconds: float) -> int:
    """A time as the index holds it."""
    return round(seconds * 1_000_000)


def _comparisons(field: str, values: list[str]) -> Iterator[str]:
    listed = [value for value in values if value and value == value.strip()]
    delimiter = next((each for each in _DELIMITERS if not any(each in value for value in listed)), None)
    if delimiter is None or len(listed) == 1:
        listed = []
    if listed:
        yield f"search.in({field}, {literal((delimiter or '').join(listed))}, {literal(delimiter or '')})"
    taken = set(listed)
    for value in values:
        if value not in taken:
            yield f"{field} eq {literal(value)}"
