"""The `$filter` and `$orderby` of an incident list, compiled to SQL over the newest rows.

A small part of OData, bounded in length, depth and number of comparisons; what is outside it is refused with its
position, never ignored. Values become parameters of the statement, names are looked up in a fixed table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MAX_CHARACTERS = 4_000
MAX_COMPARISONS = 50
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class _Property:
    sql: str
    kind: str  # text, choice, number, time


def _owner(key: str) -> _Property:
    return _Property(f"coalesce(json_extract_string(Owner, '$.{key}'), '')", "text")


PROPERTIES: Mapping[str, _Property] = {
    "name": _Property("IncidentName", "text"),
    "properties/title": _Property("Title", "text"),
    "properties/description": _Property("Description", "text"),
    "properties/severity": _Property("Severity", "choice"),
    "properties/status": _Property("Status", "choice"),
    "properties/classification": _Property("Classification", "choice"),
    "properties/classificationReason": _Property("ClassificationReason", "choice"),
    "properties/providerName": _Property("ProviderName", "text"),
    "properties/providerIncidentId": _Property("ProviderIncidentId", "text"),
    "properties/incidentNumber": _Property("IncidentNumber", "number"),
    "properties/createdTimeUtc": _Property("CreatedTime", "time"),
    "properties/lastModifiedTimeUtc": _Property("coalesce(LastModifiedTime, TimeGenerated)", "time"),
    "properties/firstActivityTimeUtc": _Property("FirstActivityTime", "time"),
    "properties/lastActivityTimeUtc": _Property("LastActivityTime", "time"),
    "properties/owner/objectId": _owner("objectId"),
    "properties/owner/email": _owner("email"),
    "properties/owner/assignedTo": _owner("assignedTo"),
    "properties/owner/userPrincipalName": _owner("userPrincipalName"),
}
_SPELLINGS = {name.lower(): name for name in PROPERTIES}
_OPERATORS = {"eq": "=", "ne": "<>", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_VALUES = {
    "text": "a text in quotes",
    "choice": "a text in quotes",
    "number": "a whole number",
    "time": "a time such as 2026-11-01T00:00:00Z",
}
_FUNCTIONS = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with"}
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
    parser = _Parser(_tokens(text), len(text))
    sql = parser.alternatives(0)
    parser.end()
    return SqlCondition(sql, tuple(parser.parameters))


def compile_order(text: str) -> str:
    """ORDER BY of `$orderby`, newest first without one; the GUID breaks ties. Raises ODataError."""
    parts: list[str] = []
    position = 0
    for part in text.split(",") if text.strip() else ():
        words = part.split()
        name = _SPELLINGS.get(words[0].lower()) if words else None
        if name is None or len(words) > 2 or (len(words) == 2 and words[1].lower() not in ("asc", "desc")):
            raise ODataError(f"expected a known property with asc or desc, found {part.strip()[:60]!r}", position)
        if len(parts) >= len(PROPERTIES):
            raise ODataError("there are more properties than an incident has", position)
        direction = words[1].upper() if len(words) == 2 else "ASC"
        parts.append(f"{PROPERTIES[name].sql} {direction} NULLS LAST")
        position += len(part) + 1
    return ", ".join([*(parts or ["CreatedTime DESC NULLS LAST"]), "lower(IncidentName) ASC"])


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ODataError(f"unexpected {text[start : start + 20]!r}", start)
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent: `or` of `and` of (not, brackets, function, comparison). Collects the parameters."""

    def __init__(self, tokens: list[_Token], length: int) -> None:
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
        if known.kind not in ("text", "choice"):
            raise ODataError(f"{name} takes a text property, not {token.text}", token.position)
        self._sign(",")
        value = self._take("text")
        self._sign(")")
        self.parameters.append(_unquoted(value.text).lower())
        return f"{_FUNCTIONS[name]}(lower({known.sql}), ?)"

    def _comparison(self) -> str:
        token = self._peek()
        known = self._property()
        sign = self._take("word", "an operator (eq, ne, gt, ge, lt, le)")
        operator = _OPERATORS.get(sign.text.lower())
        if operator is None:
            raise ODataError(f"expected eq, ne, gt, ge, lt or le, found {sign.text[:40]!r}", sign.position)
        if known.kind in ("text", "choice") and operator not in ("=", "<>"):
            raise ODataError(f"{token.text} is compared with eq and ne only", sign.position)
        return self._against(known, operator, self._peek())

    def _against(self, known: _Property, operator: str, value: _Token) -> str:
        self._next += 1
        if value.kind == "word" and value.text.lower() == "null" and operator in ("=", "<>"):
            empty = f"coalesce(CAST({known.sql} AS VARCHAR), '') = ''"
            return f"({empty})" if operator == "=" else f"(NOT {empty})"
        parameter: Any
        match known.kind, value.kind:
            case (("text" | "choice"), "text"):
                parameter = _unquoted(value.text)
            case "number", "number":
                parameter = int(value.text)
            case "time", "time" | "text":
                parameter = _moment(value)
            case _:
                found = repr(value.text[:40]) if value.kind != "end" else "the end"
                raise ODataError(f"expected {_VALUES[known.kind]}, found {found}", value.position)
        self.parameters.append(parameter)
        if operator == "<>":
            return f"({known.sql} IS DISTINCT FROM ?)"
        return f"coalesce({known.sql} {operator} ?, false)"

    def _property(self) -> _Property:
        token = self._take("word", "a property")
        name = _SPELLINGS.get(token.text.lower())
        if name is None:
            raise ODataError(f"{token.text[:60]!r} is no property that can be filtered by", token.position)
        return PROPERTIES[name]

    def _peek(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else _Token("end", "", self._length)

    def _word(self, word: str) -> bool:
        token = self._peek()
        if token.kind == "word" and token.text.lower() == word:
            self._next += 1
            return True
        return False

    def _take(self, kind: str, meaning: str = "") -> _Token:
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


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _moment(token: _Token) -> datetime:
    """A time in UTC without zone, as the store keeps it; a seventh fraction digit is cut."""
    text = _unquoted(token.text) if token.kind == "text" else token.text
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ODataError("a time needs a zone: write Z", token.position)
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ODataError(f"{text[:40]!r} is not a time such as 2026-11-01T00:00:00Z", token.position) from None
