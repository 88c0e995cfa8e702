"""Expressions, from `or` down to literals. What a query in brackets is, the parser above this one knows."""

from __future__ import annotations

import json
from typing import Any

from kql_duckdb.syntax import ast
from kql_duckdb.syntax.lexer import string_value
from kql_duckdb.syntax.literals import datetime_value, span_ticks, typed_value
from kql_duckdb.syntax.stream import Stream
from kql_duckdb.types import type_named

_WORDS = """has has_cs hasprefix hasprefix_cs hassuffix hassuffix_cs contains contains_cs containscs startswith
    startswith_cs endswith endswith_cs like likecs notlike notlikecs notcontains notcontains_cs
    notcontainscs"""
TEXT_OPERATORS = frozenset(_WORDS.split())
LIST_OPERATORS = frozenset(("in", "in~", "!in", "!in~", "has_any", "has_all", "!has_any", "!has_all"))
OTHER_PLACES = frozenset(("cluster", "database", "workspace", "app", "adx", "arg", "resource", "entity_group"))
"""Functions that name a place of tables, after which `.name` is a table and no member of a value."""

_RELATIONS = frozenset(("<", ">", "<=", ">="))
_EQUALITIES = frozenset(("==", "!=", "<>"))


class ExpressionParser(Stream):
    """Reads one expression at the cursor."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.searching = False

    def pipe_expression(self) -> ast.Expression:
        """An expression or a query. The query parser overrides this."""
        raise NotImplementedError

    def expression(self) -> ast.Expression:
        return self._logical("or")

    def _logical(self, operator: str) -> ast.Expression:
        at = self.token.start
        first = self._logical("and") if operator == "or" else self._equality()
        if not self.is_word(operator):
            return first
        operands = [first]
        while self.take_word(operator):
            operands.append(self._logical("and") if operator == "or" else self._equality())
        return ast.Logical(operator, tuple(operands), at=at)

    def _equality(self) -> ast.Expression:
        at = self.token.start
        left = self._relation()
        token = self.token
        if token.kind == "mark" and token.text in _EQUALITIES:
            self.advance()
            return ast.Binary("!=" if token.text == "<>" else token.text, left, self._relation(), at=at)
        if token.kind in ("mark", "name"):
            if token.text in LIST_OPERATORS:
                self.advance()
                return self._in_list(token.text, left, at)
            if token.text in ("between", "!between"):
                self.advance()
                self.need_mark("(")
                low = self.expression()
                self.need_mark("..")
                high = self.expression()
                self.need_mark(")")
                return ast.Between(token.text, left, low, high, at=at)
        return left

    def _in_list(self, operator: str, left: ast.Expression, at: int) -> ast.Expression:
        self.need_mark("(")
        items: list[ast.Expression] = []
        while not self.is_mark(")"):
            items.append(self.pipe_expression())
            if not self.take_mark(","):
                break
        self.need_mark(")")
        return ast.InList(operator, left, tuple(items), at=at)

    def _relation(self) -> ast.Expression:
        at = self.token.start
        left = self.additive()
        if self.token.kind == "mark" and self.token.text in _RELATIONS:
            operator = self.advance().text
            return ast.Binary(operator, left, self.additive(), at=at)
        return left

    def additive(self) -> ast.Expression:
        at = self.token.start
        left = self._multiplicative()
        while self.token.kind == "mark" and self.token.text in ("+", "-"):
            operator = self.advance().text
            left = ast.Binary(operator, left, self._multiplicative(), at=at)
        return left

    def _multiplicative(self) -> ast.Expression:
        at = self.token.start
        left = self._text_comparison()
        while self.token.kind == "mark" and self.token.text in ("*", "/", "%"):
            operator = self.advance().text
            left = ast.Binary(operator, left, self._text_comparison(), at=at)
        return left

    def _text_comparison(self) -> ast.Expression:
        at = self.token.start
        left = self.unary()
        while operator := self._text_operator():
            left = ast.Binary(operator, left, self.unary(), at=at)
        return left

    def _text_operator(self) -> str:
        token = self.token
        if token.kind == "name":
            if token.text in TEXT_OPERATORS:
                return self.advance().text
            if token.text == "matches" and self.peek().text == "regex":
                self.advance()
                self.advance()
                return "matches regex"
        elif token.kind == "mark":
            if token.text in ("=~", "!~") or (token.text == ":" and self.searching):
                return self.advance().text
            if token.text[0] == "!" and token.text[1:] in TEXT_OPERATORS:
                return self.advance().text
        return ""

    def unary(self) -> ast.Expression:
        token = self.token
        if token.kind == "mark" and token.text in ("-", "+"):
            self.advance()
            return ast.Unary(token.text, self.unary(), at=token.start)
        return self.postfix()

    def postfix(self) -> ast.Expression:
        at = self.token.start
        value = self._primary()
        while self.token.kind == "mark":
            if self.is_mark("["):
                self.advance()
                index = self.expression()
                self.need_mark("]")
                value = ast.Index(value, index, at=at)
            elif self.is_mark("."):
                self.advance()
                value = self._member(value, at)
            else:
                break
        return value

    def _member(self, value: ast.Expression, at: int) -> ast.Expression:
        place = isinstance(value, ast.Qualified) or (isinstance(value, ast.Call) and value.name in OTHER_PLACES)
        if self.is_mark("[") and not self.is_name():
            self.advance()
            index = self.expression()
            self.need_mark("]")
            return ast.Index(value, index, at=at)
        name_at = self.token.start
        if place and (self.is_mark("*") or self.peek().text == "*"):
            return ast.Qualified(value, self.name_or_pattern(), at=at)
        name = self.name("the name of a member")
        if self.is_mark("("):
            return ast.Qualified(value, self._call(name, name_at), at=at)
        if place:
            return ast.Qualified(value, ast.Name(name, at=name_at), at=at)
        return ast.Member(value, name, at=at)

    def name_or_pattern(self) -> ast.Expression:
        """A name, or words and stars without blanks between them."""
        token = self.token
        if token.kind == "mark" and token.text == "[":
            return ast.Name(self.name(), at=token.start)
        start = self.position
        while self.token.kind in ("name", "long") or self.is_mark("*"):
            if self.position > start and self.token.start != self.tokens[self.position - 1].end:
                break
            self.advance()
        if self.position == start:
            raise self.unexpected("a name")
        text = self.text_since(start)
        return ast.Pattern(text, at=token.start) if "*" in text else ast.Name(text, at=token.start)

    def _primary(self) -> ast.Expression:
        token = self.token
        if token.kind == "name":
            return self._word()
        if token.kind in ("string", "typed", "span", "real", "long"):
            return self.literal()
        if self.take_mark("("):
            inside = self.searching
            self.searching = self.searching and not self._is_query_ahead()
            value = self.pipe_expression()
            self.searching = inside
            self.need_mark(")")
            return value
        if self.take_mark("*"):
            return ast.Pattern("*", at=token.start)
        if self.is_name():
            return ast.Name(self.name(), at=token.start)
        raise self.unexpected("an expression")

    def _is_query_ahead(self) -> bool:
        return False

    def _word(self) -> ast.Expression:
        token = self.advance()
        if token.text in ("true", "false", "True", "False") and not self.is_mark("("):
            return ast.Literal("bool", token.text.lower() == "true", at=token.start)
        if not self.is_mark("("):
            return ast.Name(token.text, at=token.start)
        if token.text == "dynamic":
            return self._dynamic(token.start)
        if token.text == "typeof":
            self.advance()
            types = [self._type_word()]
            while self.take_mark(","):
                types.append(self._type_word())
            self.need_mark(")")
            return ast.TypeOf(tuple(types), at=token.start)
        return self._call(token.text, token.start)

    def _type_word(self) -> str:
        """`long`, or `name:long` in a list of columns, of which the type counts; a star stays a star."""
        if self.take_mark("*"):
            return "*"
        word = self.name("a type")
        return self.type_name() if self.take_mark(":") else self.known_type(word)

    def type_name(self) -> str:
        return self.known_type(self.name("a type"))

    def known_type(self, word: str) -> str:
        kind = type_named(word)
        if kind is None:
            raise self.fault(f"'{word}' is not a type.", self.tokens[self.position - 1].start)
        return kind.value

    def _call(self, name: str, at: int) -> ast.Call:
        return ast.Call(name, self.arguments(), at=at)

    def arguments(self) -> tuple[ast.Argument, ...]:
        """`(A, NAME = B)`."""
        self.need_mark("(")
        found: list[ast.Argument] = []
        searching, self.searching = self.searching, False
        while not self.is_mark(")"):
            found.append(self.argument())
            if not self.take_mark(","):
                break
        self.searching = searching
        self.need_mark(")")
        return tuple(found)

    def argument(self) -> ast.Argument:
        at = self.token.start
        name = None
        if self.token.kind == "name" and self.is_mark("=", 1):
            name = self.advance().text
            self.advance()
        return ast.Argument(self.pipe_expression(), name, at=at)

    def literal(self) -> ast.Literal:
        """A literal of any kind but dynamic; texts that follow each other are one."""
        token = self.advance()
        at = token.start
        if token.kind == "string":
            text = string_value(token.text)
            while self.token.kind == "string":
                text += string_value(self.advance().text)
            return ast.Literal("string", text, at=at)
        if token.kind == "span":
            return ast.Literal("timespan", span_ticks(token.text), at=at)
        if token.kind == "real":
            return ast.Literal("real", float(token.text), at=at)
        if token.kind == "long":
            value = int(token.text, 16) if token.text[:2] in ("0x", "0X") else int(token.text)
            if value >= 2**63:
                raise self.fault(f"{token.text} is too large for a long.", at, "SYN0003")
            return ast.Literal("long", value, at=at)
        return self._typed(token.text, at)

    def _typed(self, text: str, at: int) -> ast.Literal:
        word, _, rest = text.partition("(")
        kind = type_named(word.strip())
        assert kind is not None
        try:
            return ast.Literal(kind.value, typed_value(kind.value, rest[:-1]), at=at)
        except (ValueError, OverflowError):
            raise self.fault(f"{text} is not a {kind.value} literal.", at, "SYN0003") from None

    def _dynamic(self, at: int) -> ast.Literal:
        self.need_mark("(")
        value = self._json()
        self.need_mark(")")
        text = None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return ast.Literal("dynamic", text, at=at)

    def _json(self) -> Any:
        token = self.token
        if token.kind == "string":
            self.advance()
            return string_value(token.text)
        if token.kind in ("span", "real", "long", "typed"):
            return _as_json(self.literal())
        if self.take_mark("-"):
            value = _as_json(self.literal())
            if not isinstance(value, (int, float)):
                raise self.fault("A minus stands before something that is not a number.", token.start)
            return -value
        if token.kind == "name":
            return self._json_word()
        if self.take_mark("["):
            items = []
            while not self.is_mark("]"):
                items.append(self._json())
                if not self.take_mark(","):
                    break
            self.need_mark("]")
            return items
        if self.take_mark("{"):
            return self._json_object()
        raise self.unexpected("a JSON value")

    def _json_word(self) -> Any:
        token = self.advance()
        words = {"true": True, "false": False, "null": None}
        if token.text.lower() in words and not self.is_mark("("):
            return words[token.text.lower()]
        if token.text == "dynamic" and self.take_mark("("):
            value = self._json()
            self.need_mark(")")
            return value
        raise self.fault(f"'{token.text}' cannot stand in a dynamic literal, which holds only constants.", token.start)

    def _json_object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.is_mark("}"):
            key = string_value(self.advance().text) if self.token.kind == "string" else self.name("a key")
            self.need_mark(":")
            found[key] = self._json()
            if not self.take_mark(","):
                break
        self.need_mark("}")
        return found


def _as_json(literal: ast.Literal) -> Any:
    value = literal.value
    if literal.kind == "timespan" and isinstance(value, int):
        return timespan_text(value)
    if literal.kind == "datetime" and isinstance(value, str):
        moment = datetime_value(value)
        assert moment is not None
        return f"{moment.isoformat(timespec='microseconds')}0Z"
    if literal.kind == "decimal" and isinstance(value, str):
        return float(value)
    return value


def timespan_text(ticks: int) -> str:
    """`[-][d.]hh:mm:ss[.fffffff]`, Kusto's own form."""
    sign, ticks = ("-", -ticks) if ticks < 0 else ("", ticks)
    seconds, fraction = divmod(ticks, 10_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    after = f".{fraction:07d}" if fraction else ""
    return f"{sign}{f'{days}.' if days else ''}{hours:02d}:{minutes:02d}:{seconds:02d}{after}"
