"""KQL text to its tree: statements, sources and pipelines over the parsers of operators and expressions.

`parse` gives a tree or raises the first fault; `parse_all` goes on behind each fault, at the next bar or semicolon, and
gives all of them.
"""

from __future__ import annotations

from kql_duckdb.errors import KqlError
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.operator_parser import OperatorParser
from kql_duckdb.syntax.stream import Fault

_SOURCE_OPERATORS = frozenset(("union", "search", "find", "evaluate"))


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
        place = parser.source.place(parser.token.start)
        error = KqlError("The query is nested too deeply here.", "SYN0004", place.line, place.column)
        return ast.Script(()), [*parser.errors, error]
    return script, parser.errors


class Parser(OperatorParser):
    """Reads a whole text."""

    def script(self) -> ast.Script:
        found: list[ast.Statement] = []
        while self.token.kind != "end":
            if self.take_mark(";"):
                continue
            try:
                found.append(self.statement())
                if self.token.kind != "end" and not self.is_mark(";"):
                    raise self.unexpected("'|' or ';'")
            except Fault as fault:
                self.errors.append(fault.error)
                before = self.position
                self.skip(";")
                if self.position == before and not self.is_mark(";"):
                    self.advance()
        if not found and not self.errors:
            place = self.source.place(self.token.start)
            self.errors.append(KqlError("The query is empty.", "SYN0001", place.line, place.column))
        return ast.Script(tuple(found))

    def statement(self) -> ast.Statement:
        token = self.token
        if token.kind == "mark" and token.text == ".":
            command = f".{self.peek().text}"
            raise self.fault(f"'{command}' is a control command; only queries are read here.", token.start, "KDB0001")
        if token.kind == "name":
            following = self.peek()
            if token.text == "let" and following.text != "|":
                return self._let()
            if token.text.lower() == "set" and following.kind == "name":
                return self._set()
            if token.text == "declare":
                return self._declare()
            if (token.text == "alias" and following.text == "database") or (
                token.text == "restrict" and following.text == "access"
            ):
                return self._unread_statement()
        return ast.Query(self.pipe_expression(), at=token.start)

    def _let(self) -> ast.Let:
        at = self.advance().start
        name = self.name("the name of a let")
        self.need_mark("=")
        return ast.Let(name, self._let_value(), at=at)

    def _let_value(self) -> ast.Expression:
        start = self.token
        view = self.is_word("view") and self.is_mark("(", 1)
        if view:
            self.advance()
        if self.is_mark("(") and self.is_mark("{", self.matching() + 1):
            return self._function(start.start, view)
        return self.pipe_expression()

    def _function(self, at: int, view: bool) -> ast.Function:
        parameters = self.function_parameters()
        self.need_mark("{")
        statements: list[ast.Statement] = []
        body: ast.Expression | None = None
        while not self.is_mark("}"):
            if self.take_mark(";"):
                continue
            if self.token.kind == "end" or body is not None:
                raise self.unexpected("'}'")
            statement = self.statement()
            if isinstance(statement, ast.Query):
                body = statement.expression
            else:
                statements.append(statement)
                self.need_mark(";")
        self.need_mark("}")
        return ast.Function(parameters, tuple(statements), body, view, at=at)

    def function_parameters(self) -> tuple[ast.FunctionParameter, ...]:
        self.need_mark("(")
        found: list[ast.FunctionParameter] = []
        while not self.is_mark(")"):
            at = self.token.start
            name = self.name("the name of a parameter")
            self.need_mark(":")
            if self.is_mark("("):
                found.append(ast.FunctionParameter(name, schema=self.schema(), at=at))
            else:
                kind = self.type_name()
                default = self.expression() if self.take_mark("=") else None
                found.append(ast.FunctionParameter(name, kind, default=default, at=at))
            if not self.take_mark(","):
                break
        self.need_mark(")")
        return tuple(found)

    def _set(self) -> ast.Set:
        at = self.advance().start
        name = self.name("the name of an option")
        value: ast.Expression | None = None
        if self.take_mark("="):
            nothing = self.is_mark(";") or self.token.kind == "end"
            value = ast.Literal("string", "", at=self.token.start) if nothing else self.expression()
        return ast.Set(name, value, at=at)

    def _declare(self) -> ast.Statement:
        if self.peek().text != "query_parameters":
            return self._unread_statement()
        at = self.advance().start
        self.advance()
        return ast.Declare(self.function_parameters(), at=at)

    def _unread_statement(self) -> ast.UnreadStatement:
        first = self.advance()
        second = self.advance()
        start = self.position
        self.skip(";")
        return ast.UnreadStatement(f"{first.text} {second.text}", self.text_since(start), at=first.start)

    # ------------------------------------------------------------------------------------------ queries

    def pipe_expression(self) -> ast.Expression:
        at = self.token.start
        source = self._source() or self.expression()
        if not self.is_mark("|"):
            return source
        operators: list[ast.Operator] = []
        while self.take_mark("|"):
            try:
                operators.append(self.operator())
            except Fault as fault:
                self.errors.append(fault.error)
                self.skip("|", ";")
        return ast.Pipeline(source, tuple(operators), at=at)

    def _is_query_ahead(self) -> bool:
        return self.token.kind == "name" and self.token.text in _SOURCE_OPERATORS

    def _source(self) -> ast.Expression | None:
        """A source that begins with a word of its own, if one stands here and is not the name of a column."""
        token, following = self.token, self.peek()
        if token.kind != "name":
            return None
        if token.text == "datatable" and (following.text == "(" or following.text == "["):
            return self._datatable()
        if token.text in ("externaldata", "external_data") and following.text == "(":
            return self._externaldata()
        if token.text == "range" and following.kind == "name" and self.peek(2).text == "from":
            return self._range()
        if token.text == "print" and _may_begin(following.kind, following.text):
            self.advance()
            return ast.Print(self.named_list(), at=token.start)
        if token.text in _SOURCE_OPERATORS and (
            following.kind in ("name", "string", "long") or following.text in ("(", "*", "[")
        ):
            return self.operator()
        return None

    def _datatable(self) -> ast.DataTable:
        at = self.advance().start
        columns = self.column_types() if self.is_mark("(") else ()
        self.need_mark("[")
        values: list[ast.Expression] = []
        while not self.is_mark("]"):
            values.append(self.expression())
            if not self.take_mark(","):
                break
        self.need_mark("]")
        return ast.DataTable(columns, tuple(values), at=at)

    def _externaldata(self) -> ast.ExternalData:
        at = self.advance().start
        columns = self.column_types()
        places: list[ast.Expression] = []
        if self.take_mark("["):
            while not self.is_mark("]"):
                places.append(self.expression())
                if not self.take_mark(","):
                    break
            self.need_mark("]")
        return ast.ExternalData(columns, tuple(places), self.bracketed_options(), at=at)

    def _range(self) -> ast.Range:
        at = self.advance().start
        name = self.name()
        self.need_word("from")
        first = self.expression()
        self.need_word("to")
        last = self.expression()
        self.need_word("step")
        return ast.Range(name, first, last, self.expression(), at=at)


def _may_begin(kind: str, text: str) -> bool:
    return kind in ("name", "string", "typed", "span", "real", "long") or text in ("(", "-", "+", "[")
