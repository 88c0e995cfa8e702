"""`$filter` of the incident list: read into tokens, checked, and turned into SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<time>\d{4}-\d{2}-\d{2}T[0-9:.]+(?:Z|[+-]\d{2}:\d{2}))"
    r"|(?P<number>-?\d{1,18}(?![\w.]))|(?P<word>[A-Za-z_][\w/]*)|(?P<sign>[(),]))"
)


class ODataError(Exception):
    """The expression is not one that is understood; `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class ODataToken:
    """A word; `kind` is text, time, number, word, sign, or end behind the last one."""

    kind: str
    text: str
    position: int


def tokens_of(text: str) -> list[ODataToken]:
    """The words of `text`. Raises ODataError for what is none."""
    tokens: list[ODataToken] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ODataError(f"unexpected {text[start : start + 20]!r}", start)
        tokens.append(ODataToken(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    return tokens


def unquoted(text: str) -> str:
    """The value of a text in quotes; a quote in it is written twice."""
    return text[1:-1].replace("''", "'")


def moment_of(token: ODataToken) -> datetime:
    """A time in UTC without zone, as the store keeps it; a seventh fraction digit is cut."""
    text = unquoted(token.text) if token.kind == "text" else token.text
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ODataError("a time needs a zone: write Z", token.position)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ODataError(f"{text[:40]!r} is not a time such as 2026-11-01T00:00:00Z", token.position) from None


# A small part of OData, bounded in length, depth and number of comparisons; what is outside it is refused with its
# position, never ignored. Values become parameters of the statement, names are looked up in a fixed table.
MAX_CHARACTERS = 4_000
MAX_COMPARISONS = 50
MAX_DEPTH = 20
_OPERATORS = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_VALUES = {"text": "a text in quotes", "number": "a whole number", "time": "a time such as 2026-11-01T00:00:00Z"}
_FUNCTIONS = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with"}


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """A WHERE expression with `?` for each of `parameters`."""

    sql: str = "true"
    parameters: tuple[Any, ...] = ()


def compile_filter(text: str) -> SqlCondition:
    """The condition of a `$filter`; an empty one always holds. Raises ODataError."""
    if not text.strip():
        return SqlCondition()
    if len(text) > MAX_CHARACTERS:
        raise ODataError(f"the expression is longer than {MAX_CHARACTERS} characters", MAX_CHARACTERS)
    parser = _Parser(tokens_of(text), len(text))
    sql = parser.alternatives(0)
    parser.end()
    return SqlCondition(sql, tuple(parser.parameters))


def compile_order(text: str) -> str:
    """ORDER BY of `$orderby`, newest first without one; the GUID breaks ties. Raises ODataError."""
    parts: list[str] = []
    position = 0
    for part in text.split(",") if text.strip() else ():
        words = part.split()
        known = property_named(words[0]) if words else None
        if known is None or len(words) > 2 or (len(words) == 2 and words[1].lower() not in ("asc", "desc")):
            raise ODataError(f"expected a known property with asc or desc, found {part.strip()[:60]!r}", position)
        if len(parts) >= len(PROPERTIES):
            raise ODataError("there are more properties than an incident has", position)
        direction = words[1].upper() if len(words) == 2 else "ASC"
        parts.append(f"{known.sql} {direction} NULLS LAST")
        position += len(part) + 1
    return ", ".join([*(parts or ["CreatedTime DESC NULLS LAST"]), "lower(IncidentName) ASC"])


class _Parser:
    """Recursive descent: `or` of `and` of (not, brackets, function, comparison). Collects the parameters."""

    def __init__(self, tokens: list[ODataToken], length: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._length = length
        self._comparisons = 0
        self.parameters: list[Any] = []

    def end(self) -> None:
        token = self._peek()
        if token.kind != "end":
            raise ODataError(f"expected and, or, or the end, found {token.text[:40]!r}", token.position)

    def alternatives(self, depth: int) -> str:
        parts = [self._conjunction(depth)]
        while self._word("or"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"

    def _conjunction(self, depth: int) -> str:
        parts = [self._term(depth)]
        while self._word("and"):
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else "(" + " AND ".join(parts) + ")"

    def _term(self, depth: int) -> str:
        token = self._peek()
        if depth > MAX_DEPTH:
            raise ODataError(f"the expression is nested deeper than {MAX_DEPTH}", token.position)
        if self._word("not"):
            return f"(NOT {self._term(depth + 1)})"
        if token.text == "(" and token.kind == "sign":
            self._next += 1
            inner = self.alternatives(depth + 1)
            self._sign(")")
            return f"({inner})"
        if self._comparisons >= MAX_COMPARISONS:
            raise ODataError(f"there are more than {MAX_COMPARISONS} comparisons", token.position)
        self._comparisons += 1
        if token.kind == "word" and token.text.lower() in _FUNCTIONS:
            return self._function()
        return self._comparison()

    def _function(self) -> str:
        name = self._take("word").text.lower()
        self._sign("(")
        token = self._peek()
        known = self._property()
        if known.kind != "text":
            raise ODataError(f"{name} takes a text property, not {token.text}", token.position)
        self._sign(",")
        value = self._take("text")
        self._sign(")")
        self.parameters.append(unquoted(value.text).lower())
        return f"{_FUNCTIONS[name]}(lower({known.sql}), ?)"

    def _comparison(self) -> str:
        token = self._peek()
        known = self._property()
        sign = self._take("word", "an operator (eq, ne, gt, ge, lt, le)")
        operator = _OPERATORS.get(sign.text.lower())
        if operator is None:
            raise ODataError(f"expected eq, ne, gt, ge, lt or le, found {sign.text[:40]!r}", sign.position)
        if known.kind == "text" and operator not in ("=", "<>"):
            raise ODataError(f"{token.text} is compared with eq and ne only", sign.position)
        return self._against(known, operator, self._peek())

    def _against(self, known: FilterableProperty, operator: str, value: ODataToken) -> str:
        self._next += 1
        if value.kind == "word" and value.text.lower() == "null" and operator in ("=", "<>"):
            empty = f"coalesce(CAST({known.sql} AS VARCHAR), '') = ''"
            return f"({empty})" if operator == "=" else f"(NOT {empty})"
        parameter: Any
        match known.kind, value.kind:
            case (("text" | "choice"), "text"):
                parameter = unquoted(value.text)
            case "number", "number":
                parameter = int(value.text)
            case "time", "time" | "text":
                parameter = moment_of(value)
            case _:
                found = repr(value.text[:40]) if value.kind != "end" else "the end"
                raise ODataError(f"expected {_VALUES[known.kind]}, found {found}", value.position)
        self.parameters.append(parameter)
        if operator == "<>":
            return f"({known.sql} IS DISTINCT FROM ?)"
        return f"coalesce({known.sql} {operator} ?, false)"

    def _property(self) -> FilterableProperty:
        token = self._take("word", "a property")
        known = property_named(token.text)
        if known is None:
            raise ODataError(f"{token.text[:60]!r} is no property that can be filtered by", token.position)
        return known

    def _peek(self) -> ODataToken:
        return self._tokens[self._next] if self._next < len(self._tokens) else ODataToken("end", "", self._length)

    def _word(self, word: str) -> bool:
        token = self._peek()
        if token.kind == "word" and token.text.lower() == word:
            self._next += 1
            return True
        return False

    def _take(self, kind: str, meaning: str = "") -> ODataToken:
        token = self._peek()
        if token.kind != kind:
            expected = meaning or {"text": "a text in quotes", "word": "a name"}[kind]
            found = repr(token.text[:40]) if token.kind != "end" else "the end"
            raise ODataError(f"expected {expected}, found {found}", token.position)
        self._next += 1
        return token

    def _sign(self, sign: str) -> None:
        token = self._peek()
        if token.kind != "sign" or token.text != sign:
            found = repr(token.text[:40]) if token.kind != "end" else "the end"
            raise ODataError(f"expected {sign!r}, found {found}", token.position)
        self._next += 1


# Which properties of an incident a list can be filtered and ordered by, and the SQL over its newest row for each.


@dataclass(frozen=True, slots=True)
class FilterableProperty:
    """An expression over a row of SecurityIncident and the kind of value that it is compared with."""

    sql: str
    kind: Literal["text", "number", "time"]


def _owner(key: str) -> FilterableProperty:
    return FilterableProperty(f"coalesce(json_extract_string(Owner, '$.{key}'), '')", "text")


PROPERTIES: Mapping[str, FilterableProperty] = {
    "name": FilterableProperty("IncidentName", "text"),
    "properties/title": FilterableProperty("Title", "text"),
    "properties/description": FilterableProperty("Description", "text"),
    "properties/severity": FilterableProperty("Severity", "text"),
    "properties/status": FilterableProperty("Status", "text"),
    "properties/classification": FilterableProperty("Classification", "text"),
    "properties/classificationReason": FilterableProperty("ClassificationReason", "text"),
    "properties/providerName": FilterableProperty("ProviderName", "text"),
    "properties/providerIncidentId": FilterableProperty("ProviderIncidentId", "text"),
    "properties/incidentNumber": FilterableProperty("IncidentNumber", "number"),
    "properties/createdTimeUtc": FilterableProperty("CreatedTime", "time"),
    "properties/lastModifiedTimeUtc": FilterableProperty("coalesce(LastModifiedTime, TimeGenerated)", "time"),
    "properties/firstActivityTimeUtc": FilterableProperty("FirstActivityTime", "time"),
    "properties/lastActivityTimeUtc": FilterableProperty("LastActivityTime", "time"),
    "properties/owner/objectId": _owner("objectId"),
    "properties/owner/email": _owner("email"),
    "properties/owner/assignedTo": _owner("assignedTo"),
    "properties/owner/userPrincipalName": _owner("userPrincipalName"),
}

_SPELLINGS = {name.lower(): known for name, known in PROPERTIES.items()}


def property_named(name: str) -> FilterableProperty | None:
    """The property by its path, in any case of letters."""
    return _SPELLINGS.get(name.lower())
