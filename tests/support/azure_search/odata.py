"""Filters: the part of the service's OData that the store writes, parsed and checked as strictly as documented.

Fields must exist and be filterable, literals must have the field's type, a collection is asked through `any` only, and
inside one only alternatives of `eq` and `search.in` may stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.azure_search.definitions import Field
from tests.support.azure_search.faults import ServiceFaultError, invalid, unknown_here

Document = Mapping[str, Any]
Condition = Callable[[Document], bool]
MOST_CLAUSES = 500
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?![\w.]))|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>[()/:,]))"
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: bool(a == b),
    "ne": lambda a, b: bool(a != b),
    "gt": lambda a, b: a is not None and b is not None and bool(a > b),
    "ge": lambda a, b: a is not None and b is not None and bool(a >= b),
    "lt": lambda a, b: a is not None and b is not None and bool(a < b),
    "le": lambda a, b: a is not None and b is not None and bool(a <= b),
}
_RANGE = "range variable"


def parsed(text: str, fields: Mapping[str, Field]) -> Condition:
    """A filter as a function of documents. Raises ServiceFaultError for one that the service would refuse."""
    return _Parser(text, fields).whole()


class _Parser:
    def __init__(self, text: str, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._variable = ""
        self._clauses = 0
        self._tokens = _tokens(text)
        self._place = 0

    def whole(self) -> Condition:
        condition = self._or()
        if self._place < len(self._tokens):
            raise _syntax(f"'{self._tokens[self._place][1]}' is not expected")
        if self._clauses > MOST_CLAUSES:
            raise invalid("Invalid expression: The filter has too many clauses.", "$filter")
        return condition

    def _or(self) -> Condition:
        parts = [self._and()]
        while self._next_is("or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else lambda document: any(part(document) for part in parts)

    def _and(self) -> Condition:
        parts = [self._not()]
        while self._next_is("and"):
            if self._variable:
                raise invalid("Invalid expression: 'and' is not supported in 'any' of a string collection.", "$filter")
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda document: all(part(document) for part in parts)

    def _not(self) -> Condition:
        if self._next_is("not"):
            if self._variable:
                raise invalid("Invalid expression: 'not' is not supported in 'any' of a string collection.", "$filter")
            inner = self._not()
            return lambda document: not inner(document)
        if self._next_is("("):
            inner = self._or()
            self._need(")")
            return inner
        return self._clause()

    def _clause(self) -> Condition:
        self._clauses += 1
        kind, word = self._take()
        if kind != "name":
            raise _syntax(f"'{word}' is not expected")
        if word in ("true", "false"):
            value = word == "true"
            return lambda _: value
        if word == "search.in":
            return self._search_in()
        if self._next_is("/"):
            return self._any(word)
        read, field = self._operand(word)
        return self._comparison(read, field)

    def _operand(self, word: str) -> tuple[Callable[[Document], Any], Field | None]:
        """How a value is read, and its field; None for the variable of an `any`, which is a string."""
        if self._variable:
            if word != self._variable:
                raise invalid(f"Invalid expression: '{word}' is not the range variable.", "$filter")
            return (lambda document: document[_RANGE]), None
        field = self._field(word)
        if field.type.startswith("Collection"):
            raise invalid(f"Invalid expression: '{word}' is a collection; use any().", "$filter")
        return (lambda document: document.get(word)), field

    def _field(self, word: str) -> Field:
        field = self._fields.get(word)
        if field is None:
            raise invalid(
                f"Invalid expression: Could not find a property named '{word}' on type 'search.document'.", "$filter"
            )
        if not field.filterable:
            raise invalid(
                f"Invalid expression: '{word}' is not a filterable field. Only filterable fields can be used in filter "
                "expressions.",
                "$filter",
            )
        return field

    def _comparison(self, read: Callable[[Document], Any], field: Field | None) -> Condition:
        kind, word = self._take()
        if kind != "name" or word not in _COMPARISONS:
            raise _syntax(f"'{word}' is no comparison")
        if self._variable and word != "eq":
            raise invalid(f"Invalid expression: '{word}' is not supported in 'any' of a string collection.", "$filter")
        compare = _COMPARISONS[word]
        literal_kind, literal = self._take()
        is_text = field is None or field.type == "Edm.String"
        value: str | int | None
        if literal_kind == "text" and is_text:
            value = literal[1:-1].replace("''", "'")
        elif literal_kind == "number" and not is_text:
            value = int(literal)
        elif literal == "null" and literal_kind == "name" and word in ("eq", "ne") and field is not None:
            value = None
        else:
            raise invalid(f"Invalid expression: {literal} cannot be compared with this field.", "$filter")
        return lambda document: compare(read(document), value)

    def _any(self, word: str) -> Condition:
        field = self._field(word)
        if field.type != "Collection(Edm.String)":
            raise invalid(f"Invalid expression: '{word}' is no collection of strings.", "$filter")
        operator = self._take()[1]
        if operator != "any" or self._variable:
            raise unknown_here(f"{operator!r} of a collection here")
        self._need("(")
        self._variable = self._take()[1]
        self._need(":")
        inner = self._or()
        self._need(")")
        self._variable = ""
        return lambda document: any(inner({_RANGE: value}) for value in document.get(word) or ())

    def _search_in(self) -> Condition:
        self._need("(")
        read, field = self._operand(self._take()[1])
        if field is not None and field.type != "Edm.String":
            raise invalid("Invalid expression: search.in takes strings.", "$filter")
        texts = []
        for _ in range(2):
            self._need(",")
            kind, literal = self._take()
            if kind != "text":
                raise _syntax("search.in takes string literals, and here its delimiters too")
            texts.append(literal[1:-1].replace("''", "'"))
        self._need(")")
        listed, delimiters = texts
        if not delimiters:
            raise _syntax("search.in has no delimiters")
        values = frozenset(filter(None, re.split(f"[{re.escape(delimiters)}]", listed)))
        return lambda document: read(document) in values

    def _next_is(self, word: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place][1] == word:
            self._place += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._next_is(word):
            raise _syntax(f"'{word}' is missing")

    def _take(self) -> tuple[str, str]:
        if self._place >= len(self._tokens):
            raise _syntax("the expression ends too early")
        self._place += 1
        return self._tokens[self._place - 1]


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise _syntax(f"there is an error at position {place}")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


def _syntax(what: str) -> ServiceFaultError:
    return invalid(f"Invalid expression: Syntax error: {what}.", "$filter")
