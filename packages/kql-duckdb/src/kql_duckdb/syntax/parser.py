"""KQL text to its tree: expressions by the levels of their operators, everything with words of its own by the grammar.

`parse` gives a tree or raises the first fault; `parse_all` goes on behind each fault, at the next bar or semicolon, and
gives all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from kql_duckdb.errors import KqlError
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.grammar import OPERATORS, OTHERS, UNREAD, Part
from kql_duckdb.syntax.lexer import Source, Token, string_value, typed_value
from kql_duckdb.time_texts import span_ticks, timespan_text
from kql_duckdb.types import type_named

_WORDS = """has has_cs hasprefix hasprefix_cs hassuffix hassuffix_cs contains contains_cs containscs startswith
    startswith_cs endswith endswith_cs like likecs notlike notlikecs notcontains notcontains_cs
    notcontainscs""".split()  # noqa: SIM905 - a word list reads better
LIST_OPERATORS = frozenset(("in", "in~", "!in", "!in~", "has_any", "has_all", "!has_any", "!has_all"))
OTHER_PLACES = frozenset(("cluster", "database", "workspace", "app", "adx", "arg", "resource", "entity_group"))
"""Functions that name a place of tables, after which `.name` is a table and no member of a value."""

_BETWEEN = ("between", "!between")
_LEVELS = (
    ("or",),
    ("and",),
    ("==", "!=", "<>", *LIST_OPERATORS, *_BETWEEN),
    ("<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/", "%"),
    (*_WORDS, *(f"!{word}" for word in _WORDS), "=~", "!~", ":", "matches"),
)
"""Operators from the loosest to the tightest."""
_LEVEL = {word: level for level, words in enumerate(_LEVELS) for word in words}
_LOGICAL, _SINGLE, _ADDITIVE = (0, 1), (2, 3), 4
"""Levels of which a row is one node, of which only one stands in a row, and of what an option holds."""
_LITERALS = ("string", "long", "real", "span", "typed")
_STOPS = frozenset(("|", ";", ")", "}", ""))
_SOURCE_OPERATORS = frozenset(("union", "search", "find", "evaluate"))
_DATA_SOURCES = {"datatable": ("(", "["), "externaldata": ("(",), "external_data": ("(",)}
_UNREAD_STATEMENTS = frozenset((("alias", "database"), ("restrict", "access")))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_Item = TypeVar("_Item")


def parse(text: str) -> ast.Script:
    """The tree of `text`. Raises KqlError for the first fault."""
    script, errors = parse_all(text)
    if errors:
        raise errors[0]
    return script


def parse_all(text: str) -> tuple[ast.Script, list[KqlError]]:
    """The tree of what could be read of `text`, and every fault in the order of the text."""
    parser = Parser(text)
    try:
        script = parser.script()
    except RecursionError:
        return ast.Script(()), [
            *parser.errors,
            parser.fault("The query is nested too deeply here.", code="SYN0004"),
        ]
    return script, parser.errors


class _Stream:
    """Tokens with a position. Words and marks are told by their text, which no other token has."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.tokens = self.source.tokens
        self.position = 0
        self.errors: list[KqlError] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def start(self) -> int:
        return self.tokens[self.position].start

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.position + distance, len(self.tokens) - 1)]

    def is_at(self, text: str, distance: int = 0) -> bool:
        return self.peek(distance).text == text

    def fault(self, message: str, at: int | None = None, code: str = "SYN0002") -> KqlError:
        return KqlError(message, code, *self.source.place(self.start if at is None else at))

    def unexpected(self, wanted: str) -> KqlError:
        token = self.token
        found = "the end of the query" if token.kind == "end" else f"'{token.text[:40]}'"
        if token.kind == "bad" and token.text in "\"'`":
            return self.fault("A text is not closed: its quotation mark has no partner on this line.")
        return self.fault(f"Expected {wanted} and found {found}.")

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def take(self, *texts: str) -> str:
        """Move past a word or mark if it is here, and give it."""
        return self.advance().text if self.token.text in texts else ""

    def need(self, text: str) -> None:
        if not self.take(text):
            raise self.unexpected(f"'{text}'")

    def separated(self, read: Callable[[], _Item], closing: str = "", mark: str = ",") -> tuple[_Item, ...]:
        """Items with a mark between them; before `closing` there may be none, and a mark behind the last."""
        found: list[_Item] = []
        while not (closing and self.is_at(closing)):
            found.append(read())
            if not self.take(mark):
                break
        return tuple(found)

    def listed(self, brackets: str, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        self.need(brackets[0])
        found = self.separated(read, brackets[1])
        self.need(brackets[1])
        return found

    def is_name(self) -> bool:
        return self.token.kind == "name" or (self.is_at("[") and self.peek().kind == "string" and self.is_at("]", 2))

    def name(self, wanted: str = "a name") -> str:
        """A name as such, or a text in square brackets."""
        if not self.is_name():
            raise self.unexpected(wanted)
        if self.token.kind == "name":
            return self.advance().text
        self.position += 3
        return string_value(self.tokens[self.position - 2].text)

    def is_closed_before(self, mark: str) -> bool:
        """Whether a bracket is here and `mark` stands behind its partner."""
        depth = 0
        for place in range(self.position, len(self.tokens) - 1):
            depth += (self.tokens[place].text in _OPENING) - (self.tokens[place].text in _CLOSING)
            if depth == 0:
                return place > self.position and self.tokens[place + 1].text == mark
        return False

    def skip(self, *stops: str) -> None:
        """Move to the next mark of `stops` outside brackets opened from here, or to a bracket that closes an outer."""
        depth = 0
        while self.token.kind != "end" and (depth or self.token.text not in (*stops, *_CLOSING)):
            depth += (self.token.text in _OPENING) - (self.token.text in _CLOSING)
            self.position += 1

    def text_since(self, start: int) -> str:
        """What was read since the token at index `start`, without the blanks around it."""
        if start >= self.position:
            return ""
        return self.source.text[self.tokens[start].start : self.tokens[self.position - 1].end]


class Parser(_Stream):
    """Reads what stands at the cursor; the kinds of the grammar's fields are its methods."""

    searching = False
    """Whether this is the predicate of `search`, where `:` is an operator."""

    # expressions

    def expression(self, least: int = 0) -> ast.Expression:
        """Operators of the level `least` and of those that bind more tightly."""
        at, left, most = self.start, self.unary(), len(_LEVELS)
        while least <= (level := self._level()) <= most:
            operator = self.advance().text
            if operator in LIST_OPERATORS:
                left = ast.Operation(operator, (left, *self.listed("()", self.pipe_expression)), at=at)
            elif operator in _BETWEEN:
                self.need("(")
                low = self.expression()
                self.need("..")
                left = ast.Operation(operator, (left, low, self.expression()), at=at)
                self.need(")")
            elif level in _LOGICAL:
                operands = [left, self.expression(level + 1)]
                while self.take(operator):
                    operands.append(self.expression(level + 1))
                left = ast.Operation(operator, tuple(operands), at=at)
            else:
                if operator == "matches":
                    operator += f" {self.advance().text}"
                left = ast.Binary("!=" if operator == "<>" else operator, left, self.expression(level + 1), at=at)
            most = level - 1 if level in _SINGLE else level
        return left

    def _level(self) -> int:
        """The level of the operator that is here; -1 if it is none."""
        word = self.token.text
        if (word == ":" and not self.searching) or (word == "matches" and not self.is_at("regex", 1)):
            return -1
        return _LEVEL.get(word, -1)

    def unary(self) -> ast.Expression:
        at = self.start
        if sign := self.take("-", "+"):
            return ast.Operation(f"unary{sign}", (self.unary(),), at=at)
        return self.postfix()

    def postfix(self) -> ast.Expression:
        at = self.start
        value = self._primary()
        while self.is_at("[") or self.is_at("."):
            value = self._member(value, at) if self.take(".") else self._index(value, at)
        return value

    def _index(self, value: ast.Expression, at: int) -> ast.Index:
        self.need("[")
        index = self.expression()
        self.need("]")
        return ast.Index(value, index, at=at)

    def _member(self, value: ast.Expression, at: int) -> ast.Expression:
        place = isinstance(value, ast.Qualified) or (isinstance(value, ast.Call) and value.name in OTHER_PLACES)
        if self.is_at("[") and not self.is_name():
            return self._index(value, at)
        name_at = self.start
        if place and (self.is_at("*") or self.is_at("*", 1)):
            return ast.Qualified(value, self.name_or_pattern(), at=at)
        name = self.name("the name of a member")
        if self.is_at("("):
            return ast.Qualified(value, ast.Call(name, self.arguments(), at=name_at), at=at)
        return ast.Qualified(value, ast.Name(name, at=name_at), at=at) if place else ast.Member(value, name, at=at)

    def name_or_pattern(self) -> ast.Expression:
        """A name, or words and stars without blanks between them."""
        at, start = self.start, self.position
        if self.is_at("["):
            return ast.Name(self.name(), at=at)
        while self.token.kind in ("name", "long") or self.is_at("*"):
            if self.position > start and self.start != self.tokens[self.position - 1].end:
                break
            self.position += 1
        if self.position == start:
            raise self.unexpected("a name")
        text = self.text_since(start)
        return ast.Pattern(text, at=at) if "*" in text else ast.Name(text, at=at)

    def _primary(self) -> ast.Expression:
        token = self.token
        if token.kind == "name":
            return self._word()
        if token.kind in _LITERALS:
            return self.literal()
        if self.take("("):
            outer = self.searching
            self.searching = outer and self.token.text not in _SOURCE_OPERATORS
            value = self.pipe_expression()
            self.searching = outer
            self.need(")")
            return value
        if self.take("*"):
            return ast.Pattern("*", at=token.start)
        if self.is_name():
            return ast.Name(self.name(), at=token.start)
        raise self.unexpected("an expression")

    def _word(self) -> ast.Expression:
        token = self.advance()
        if not self.is_at("("):
            if token.text in ("true", "false", "True", "False"):
                return ast.Literal("bool", token.text.lower() == "true", at=token.start)
            return ast.Name(token.text, at=token.start)
        if token.text == "dynamic":
            return self._dynamic(token.start)
        if token.text == "typeof":
            self.need("(")
            types = self.separated(self._type_word)
            self.need(")")
            return ast.TypeOf(types, at=token.start)
        return ast.Call(token.text, self.arguments(), at=token.start)

    def _type_word(self) -> str:
        """`long`, or `name:long` in a list of columns, of which the type counts; a star stays a star."""
        if self.take("*"):
            return "*"
        if self.is_name() and self.is_at(":", 1 if self.token.kind == "name" else 3):
            self.name()
            self.need(":")
        return self.type_name()

    def type_name(self) -> str:
        at, word = self.start, self.name("a type")
        kind = type_named(word)
        if kind is None:
            raise self.fault(f"'{word}' is not a type.", at)
        return kind.value

    def arguments(self) -> tuple[ast.Argument, ...]:
        """`(A, NAME = B)`."""
        outer, self.searching = self.searching, False
        found = self.listed("()", lambda: self._argument(self.pipe_expression))
        self.searching = outer
        return found

    def _argument(self, read: Callable[[], ast.Expression]) -> ast.Argument:
        at, name = self.start, None
        if self.token.kind == "name" and self.is_at("=", 1):
            name = self.token.text
            self.position += 2
        return ast.Argument(read(), name, at=at)

    def literal(self) -> ast.Literal:
        """A literal of any kind but dynamic; texts that follow each other are one."""
        token = self.advance()
        kind, text, at = token.kind, token.text, token.start
        if kind == "string":
            value = string_value(text)
            while self.token.kind == "string":
                value += string_value(self.advance().text)
            return ast.Literal("string", value, at=at)
        if kind == "span":
            return ast.Literal("timespan", span_ticks(text), at=at)
        if kind == "real":
            return ast.Literal("real", float(text), at=at)
        if kind == "long":
            number = int(text, 16) if text[:2] in ("0x", "0X") else int(text)
            if number >= 2**63:
                raise self.fault(f"{text} is too large for a long.", at, "SYN0003")
            return ast.Literal("long", number, at=at)
        word, _, rest = text.partition("(")
        known = type_named(word.strip())
        assert known is not None
        try:
            return ast.Literal(known.value, typed_value(known.value, rest[:-1]), at=at)
        except (ValueError, OverflowError):
            raise self.fault(f"{text} is not a {known} literal.", at, "SYN0003") from None

    def _dynamic(self, at: int) -> ast.Literal:
        self.need("(")
        value = self._json()
        self.need(")")
        return ast.Literal("dynamic", value, at=at)

    def _json(self) -> Any:
        token = self.token
        if token.kind == "string":
            return string_value(self.advance().text)
        if token.kind in _LITERALS:
            return _as_json(self.literal())
        if self.take("-"):
            value = _as_json(self.literal())
            if not isinstance(value, (int, float)):
                raise self.fault("A minus stands before something that is not a number.", token.start)
            return -value
        if self.is_at("["):
            return [*self.listed("[]", self._json)]
        if self.is_at("{"):
            return dict(self.listed("{}", self._json_pair))
        if token.kind != "name":
            raise self.unexpected("a JSON value")
        self.advance()
        words = {"true": True, "false": False, "null": None}
        if token.text.lower() in words and not self.is_at("("):
            return words[token.text.lower()]
        if token.text == "dynamic" and self.take("("):
            value = self._json()
            self.need(")")
            return value
        raise self.fault(f"'{token.text}' cannot stand in a dynamic literal, which holds only constants.", token.start)

    def _json_pair(self) -> tuple[str, Any]:
        key = string_value(self.advance().text) if self.token.kind == "string" else self.name("a key")
        self.need(":")
        return key, self._json()

    # statements and what the grammar describes

    def script(self) -> ast.Script:
        found: list[ast.Query | ast.Construct] = []
        while self.token.kind != "end":
            if self.take(";"):
                continue
            try:
                found.append(self.statement())
                if self.token.kind != "end" and not self.is_at(";"):
                    raise self.unexpected("'|' or ';'")
            except KqlError as fault:
                self.errors.append(fault)
                before = self.position
                self.skip(";")
                if self.position == before and not self.is_at(";"):
                    self.advance()
        if not found and not self.errors:
            self.errors.append(self.fault("The query is empty.", code="SYN0001"))
        return ast.Script(tuple(found))

    def statement(self) -> ast.Query | ast.Construct:
        word, following, at = self.token.text, self.peek(), self.start
        if word == ".":
            command = f".{following.text}"
            raise self.fault(f"'{command}' is a control command; only queries are read here.", at, "KDB0001")
        if word == "let" and following.text != "|":
            return self.construct("let")
        if word.lower() == "set" and following.kind == "name":
            self.advance()
            return self.construct("set", at=at, skip=1)
        if word == "declare" and following.text == "query_parameters":
            return self.construct("declare")
        if word == "declare" or (word, following.text) in _UNREAD_STATEMENTS:
            return self._unread(f"{word} {following.text}", ";")
        return ast.Query(self.pipe_expression(), at=at)

    def construct(self, word: str, at: int | None = None, skip: int = 0) -> ast.Construct:
        """A node by its row of the grammar, without the first `skip` parts of it."""
        rule = OPERATORS.get(word) or OTHERS[word]
        found: dict[str, Any] = {}
        at = self.start if at is None else at
        self._read(rule.parts[skip:], found, rule.parameters if word in OPERATORS else None)
        missing = next((name for name in rule.needed if name not in found), None)
        if missing is not None:
            raise self.unexpected(f"'{missing}'")
        return ast.construct(word, at, **found)

    def _read(self, parts: Sequence[Part], found: dict[str, Any], parameters: Sequence[str] | None = None) -> None:
        """The fields of `parts`; `parameters` may stand behind the first word."""
        for place, part in enumerate(parts):
            if part.parts:
                known = any(one.field in found for one in part.parts)
                if not known and self._is_ahead(part.parts, parts[place + 1 :]):
                    self._read(part.parts, found)
            elif part.words:
                if not self.take(*part.words):
                    raise self.unexpected(" or ".join(f"'{word}'" for word in part.words))
                if part.field:
                    found[part.field] = True
                if place == 0 and parameters is not None:
                    found["parameters"] = self._parameters(parameters)
            elif part.kind == "parameters":
                found["parameters"] += self._parameters(parameters or ())
            else:
                read = partial(self.construct, part.kind) if part.kind in OTHERS else getattr(self, part.kind)
                found[part.field] = self.separated(read, part.closing) if part.several else read()

    def _is_ahead(self, parts: Sequence[Part], following: Sequence[Part]) -> bool:
        """Whether a part that may be missing is here: its leading words, or no word of what may stand behind it."""
        if parts[0].words:
            leading = itertools.takewhile(lambda part: part.words, parts)
            return all(self.peek(distance).text in part.words for distance, part in enumerate(leading))
        if len(parts) > 1 and parts[1].words:
            return self.token.kind == "name" and self.peek().text in parts[1].words
        words = {word for part in following for word in (part.parts or (part,))[0].words}
        return self.token.text not in _STOPS | words

    def _unread(self, words: str, *stops: str) -> ast.Construct:
        """What is known by its first words and read no further."""
        at = self.start
        self.position += len(words.split())
        start = self.position
        self.skip(*stops)
        return ast.Construct(words, {"text": self.text_since(start), "parameters": ()}, at=at)

    def operator(self) -> ast.Construct:
        word = self.token.text
        if word in UNREAD:
            return self._unread(word, "|", ";")
        if word not in OPERATORS:
            raise self.unexpected("an operator such as where, summarize or project")
        return self.construct(word)

    def operators(self) -> tuple[ast.Construct, ...]:
        """`OPERATOR | OPERATOR ...` without a source, as in the brackets of `mv-apply`."""
        return self.separated(self.operator, mark="|")

    def _parameters(self, words: Sequence[str]) -> tuple[ast.Argument, ...]:
        """`hint.x = y` and `WORD = VALUE` for the given words."""
        found: list[ast.Argument] = []
        while True:
            at, name = self.start, self.token.text
            if name in ("hint", "hints") and self.is_at(".", 1) and self.is_at("=", 3):
                name = f"hint.{self.peek(2).text}"
                self.position += 4
            elif name in words and self.is_at("=", 1):
                self.position += 2
            else:
                return tuple(found)
            found.append(ast.Argument(self._parameter_value(), name, at=at))

    def _parameter_value(self) -> ast.Expression:
        if self.token.kind in _LITERALS:
            return self.literal()
        at = self.start
        name = self.name("a value")
        return ast.Literal("bool", name == "true", at=at) if name in ("true", "false") else ast.Name(name, at=at)

    def named(self, read: Callable[[], ast.Expression] | None = None) -> ast.Named:
        at, names, several = self.start, tuple[str, ...](), False
        if self.is_at("(") and self.is_closed_before("="):
            self.advance()
            names, several = self.separated(lambda: self.name("the name of a column")), True
            self.need(")")
            self.need("=")
        elif self.is_name() and self.is_at("=", 1 if self.token.kind == "name" else 3):
            names = (self.name(),)
            self.advance()
        return ast.Named((read or self.expression)(), names, several, at=at)

    def axis(self) -> ast.Named:
        return self.named(partial(self.expression, _ADDITIVE))

    def ordered(self, read: Callable[[], ast.Named] | None = None) -> ast.Named:
        named = (read or self.named)()
        direction, nulls = self.take("asc", "desc"), ""
        if self.is_at("granny") and self.is_at("-", 1):
            self.position += 2
            direction = f"granny-{self.advance().text}"
        if self.take("nulls"):
            nulls = self.take("first", "last")
            if not nulls:
                raise self.unexpected("first or last")
        return replace(named, direction=direction, nulls=nulls)

    def choice(self) -> ast.Named:
        at = self.start
        return self.ordered(lambda: ast.Named(self.name_or_pattern(), at=at))

    def column_type(self) -> ast.Column:
        at = self.start
        name = str(self.literal().value) if self.token.kind == "string" else self.name("the name of a column")
        self.need(":")
        return ast.Column(name, self.type_name(), at=at)

    def schema(self) -> ast.Schema:
        at = self.start
        found = self.listed("()", lambda: None if self.take("*") else self.column_type())
        return ast.Schema(tuple(one for one in found if one is not None), None in found, at=at)

    def options(self) -> tuple[ast.Argument, ...]:
        """`NAME = VALUE` and bare words, with or without commas between them."""
        found: list[ast.Argument] = []
        while self.is_name() or self.token.kind in _LITERALS:
            found.append(self._argument(partial(self.expression, _ADDITIVE)))
            self.take(",")
        return tuple(found)

    def input(self) -> ast.Expression:
        """One table of a union: a name with stars, a call, or a query in brackets."""
        touches = self.is_at("*", 1) and self.peek().start == self.token.end
        if self.is_at("*") or (self.token.kind in ("name", "long") and touches):
            return self.name_or_pattern()
        return self.postfix()

    def search_predicate(self) -> ast.Expression:
        outer, self.searching = self.searching, True
        try:
            return self.expression()
        finally:
            self.searching = outer

    def find_column(self) -> ast.Column:
        """A column, or `pack(*)` as a star."""
        at = self.start
        if self.is_at("pack") and self.is_at("(", 1):
            self.position += 2
            self.need("*")
            self.need(")")
            return ast.Column("*", at=at)
        name = self.name("the name of a column")
        return ast.Column(name, self.type_name() if self.take(":") else "", at=at)

    def key_path(self) -> ast.Expression:
        """A column or a member of one; what follows in brackets is no call."""
        at = self.start
        value: ast.Expression = ast.Name(self.name("the name of a column"), at=at)
        while self.take("."):
            value = ast.Member(value, self.name(), at=at)
        return value

    def parse_pattern(self) -> tuple[ast.Literal | ast.Column, ...]:
        found: list[ast.Literal | ast.Column] = []
        while True:
            at = self.start
            if self.token.kind == "string":
                found.append(self.literal())
            elif self.take("*"):
                found.append(ast.Column("*", at=at))
            elif self.is_name():
                found.append(self.find_column())
            elif found:
                return tuple(found)
            else:
                raise self.unexpected("a pattern")

    def plugin_call(self) -> ast.Call:
        at = self.start
        return ast.Call(self.name("the name of a function"), self.arguments(), at=at)

    def let_value(self) -> ast.Expression:
        at = self.start
        view = self.is_at("view") and self.is_at("(", 1)
        if view:
            self.advance()
        if not (self.is_at("(") and self.is_closed_before("{")):
            return self.pipe_expression()
        parameters = self.listed("()", self.function_parameter)
        self.need("{")
        statements: list[ast.Construct] = []
        body: ast.Expression | None = None
        while not self.take("}"):
            if self.take(";"):
                continue
            if self.token.kind == "end" or body is not None:
                raise self.unexpected("'}'")
            statement = self.statement()
            if isinstance(statement, ast.Query):
                body = statement.expression
            else:
                statements.append(statement)
                self.need(";")
        return ast.Function(parameters, tuple(statements), body, view, at=at)

    def function_parameter(self) -> ast.FunctionParameter:
        at = self.start
        name = self.name("the name of a parameter")
        self.need(":")
        if self.is_at("("):
            return ast.FunctionParameter(name, schema=self.schema(), at=at)
        kind = self.type_name()
        return ast.FunctionParameter(name, kind, default=self.expression() if self.take("=") else None, at=at)

    def option_value(self) -> ast.Expression:
        nothing = self.is_at(";") or self.token.kind == "end"
        return ast.Literal("string", "", at=self.start) if nothing else self.expression()

    def pipe_expression(self) -> ast.Expression:
        at = self.start
        source = self._source() or self.expression()
        if not self.is_at("|"):
            return source
        operators: list[ast.Construct] = []
        while self.take("|"):
            try:
                operators.append(self.operator())
            except KqlError as fault:
                self.errors.append(fault)
                self.skip("|", ";")
        return ast.Pipeline(source, tuple(operators), at=at)

    def _source(self) -> ast.Expression | None:
        """A source that begins with a word of its own, if one stands here and is not the name of a column."""
        word, following = self.token.text, self.peek()
        if word in _SOURCE_OPERATORS:
            begins = following.kind in ("name", "string", "long") or following.text in ("(", "*", "[")
        elif word == "print":
            begins = following.kind in ("name", *_LITERALS) or following.text in ("(", "-", "+", "[")
        elif word == "range":
            begins = following.kind == "name" and self.is_at("from", 2)
        else:
            begins = word in _DATA_SOURCES and following.text in _DATA_SOURCES[word]
        return self.construct(word) if begins else None


def _as_json(literal: ast.Literal) -> Any:
    value = literal.value
    if value is None:
        return None
    if literal.kind == "timespan":
        return timespan_text(value)
    if literal.kind == "datetime":
        return f"{value.isoformat(timespec='microseconds')}0Z"
    return float(value) if literal.kind == "decimal" else str(value) if literal.kind == "guid" else value
