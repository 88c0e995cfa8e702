"""The operators after a bar, and the sources that begin with a word of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kql_duckdb.syntax import ast
from kql_duckdb.syntax.expression_parser import ExpressionParser

_JOIN_WORDS = ("kind", "withsource", "with_source", "isfuzzy")
_WORDS = """assert-schema execute-and-cache graph-mark-components graph-match graph-shortest-paths
    graph-to-table graph-where-edges graph-where-nodes macro-expand make-graph project-by-names"""
_UNREAD = frozenset(_WORDS.split())


class OperatorParser(ExpressionParser):
    """Reads one operator at the cursor, its word included."""

    def operator(self) -> ast.Operator:
        token = self.token
        reader = _READERS.get(token.text) if token.kind == "name" else None
        if reader is None:
            if token.kind == "name" and token.text in _UNREAD:
                return self._unread()
            raise self.unexpected("an operator such as where, summarize or project")
        self.advance()
        return reader(self, token.start)

    def operators(self) -> tuple[ast.Operator, ...]:
        """`OPERATOR | OPERATOR ...` without a source, as in the brackets of `mv-apply`."""
        found = [self.operator()]
        while self.take_mark("|"):
            found.append(self.operator())
        return tuple(found)

    def bracketed_operators(self) -> tuple[ast.Operator, ...]:
        self.need_mark("(")
        found = self.operators()
        self.need_mark(")")
        return found

    # ------------------------------------------------------------------------------------------ parts

    def parameters(self, *words: str) -> tuple[ast.Parameter, ...]:
        """`hint.x = y` and `WORD = VALUE` for the given words."""
        found: list[ast.Parameter] = []
        while self.token.kind == "name":
            at = self.token.start
            if self.token.text in ("hint", "hints") and self.is_mark(".", 1):
                name = f"hint.{self.peek(2).text}"
                self.position += 3
            elif self.token.text in words and self.is_mark("=", 1):
                name = self.advance().text
            else:
                break
            self.need_mark("=")
            found.append(ast.Parameter(name, self._parameter_value(), at=at))
        return tuple(found)

    def _parameter_value(self) -> ast.Expression:
        if self.token.kind in ("string", "long", "real", "span", "typed"):
            return self.literal()
        at = self.token.start
        name = self.name("a value")
        if name in ("true", "false"):
            return ast.Literal("bool", name == "true", at=at)
        return ast.Name(name, at=at)

    def named(self, read: Callable[[], ast.Expression] | None = None) -> ast.Named:
        at = self.token.start
        read = read or self.expression
        if self.is_mark("(") and self.is_mark("=", self.matching() + 1):
            self.advance()
            names = [self.name("the name of a column")]
            while self.take_mark(","):
                names.append(self.name("the name of a column"))
            self.need_mark(")")
            self.need_mark("=")
            return ast.Named(read(), tuple(names), several=True, at=at)
        if self.is_name() and self.is_mark("=", 1 if self.token.kind == "name" else 3):
            name = self.name()
            self.advance()
            return ast.Named(read(), (name,), at=at)
        return ast.Named(read(), at=at)

    def named_list(self) -> tuple[ast.Named, ...]:
        found = [self.named()]
        while self.take_mark(","):
            found.append(self.named())
        return tuple(found)

    def ordered(self, read: Callable[[], ast.Named] | None = None) -> ast.OrderedBy:
        at = self.token.start
        expression = (read or self.named)()
        direction = nulls = ""
        if self.is_word("asc", "desc"):
            direction = self.advance().text
        elif self.is_word("granny") and self.is_mark("-", 1):
            self.position += 2
            direction = f"granny-{self.advance().text}"
        if self.take_word("nulls"):
            if not self.is_word("first", "last"):
                raise self.unexpected("first or last")
            nulls = self.advance().text
        return ast.OrderedBy(expression, direction, nulls, at=at)

    def ordered_list(self) -> tuple[ast.OrderedBy, ...]:
        found = [self.ordered()]
        while self.take_mark(","):
            found.append(self.ordered())
        return tuple(found)

    def column_types(self) -> tuple[ast.ColumnType, ...]:
        """`(NAME : TYPE, ...)`."""
        self.need_mark("(")
        found: list[ast.ColumnType] = []
        while not self.is_mark(")"):
            at = self.token.start
            name = self._column_name()
            self.need_mark(":")
            found.append(ast.ColumnType(name, self.type_name(), at=at))
            if not self.take_mark(","):
                break
        self.need_mark(")")
        return tuple(found)

    def _column_name(self) -> str:
        if self.token.kind == "string":
            literal = self.literal()
            return str(literal.value)
        return self.name("the name of a column")

    def schema(self) -> ast.Schema:
        at = self.need_mark("(").start
        is_open = False
        columns: list[ast.ColumnType] = []
        while not self.is_mark(")"):
            if self.take_mark("*"):
                is_open = True
            else:
                column_at = self.token.start
                name = self._column_name()
                self.need_mark(":")
                columns.append(ast.ColumnType(name, self.type_name(), at=column_at))
            if not self.take_mark(","):
                break
        self.need_mark(")")
        return ast.Schema(tuple(columns), is_open, at=at)

    def options(self) -> tuple[ast.Argument, ...]:
        """`NAME = VALUE` and bare words, with or without commas between them."""
        found: list[ast.Argument] = []
        while self.is_name() or self.token.kind in ("string", "long", "real", "span", "typed"):
            at = self.token.start
            name = None
            if self.token.kind == "name" and self.is_mark("=", 1):
                name = self.name()
                self.advance()
            found.append(ast.Argument(self.additive(), name, at=at))
            self.take_mark(",")
        return tuple(found)

    def bracketed_options(self) -> tuple[ast.Argument, ...]:
        if not self.take_word("with"):
            return ()
        return self.plain_options()

    def plain_options(self) -> tuple[ast.Argument, ...]:
        self.need_mark("(")
        found = self.options()
        self.need_mark(")")
        return found

    def _tables(self) -> tuple[ast.Expression, ...]:
        """`in (A, B*)` of `search` and `find`."""
        if not self.take_word("in"):
            return ()
        self.need_mark("(")
        found = [self._input()]
        while self.take_mark(","):
            found.append(self._input())
        self.need_mark(")")
        return tuple(found)

    def _input(self) -> ast.Expression:
        """One table of a union: a name with stars, a call, or a query in brackets."""
        if self.is_mark("*") or (self.token.kind in ("name", "long") and self._touches_star()):
            return self.name_or_pattern()
        return self.postfix()

    def _touches_star(self) -> bool:
        follower = self.peek()
        return follower.text == "*" and follower.start == self.token.end

    def type_clause(self) -> str:
        """`to typeof(TYPE)`."""
        if not self.take_word("to"):
            return ""
        self.need_word("typeof")
        self.need_mark("(")
        kind = self.type_name()
        self.need_mark(")")
        return kind

    def _unread(self) -> ast.Unread:
        token = self.advance()
        start = self.position
        self.skip("|", ";")
        return ast.Unread(token.text, self.text_since(start), at=token.start)

    # ------------------------------------------------------------------------------------------ rows and columns

    def where(self, at: int) -> ast.Operator:
        self.parameters("kind")
        return ast.Where(self.expression(), at=at)

    def extend(self, at: int) -> ast.Operator:
        return ast.Extend(self.named_list(), at=at)

    def project(self, at: int) -> ast.Operator:
        keyword = self.tokens[self.position - 1].text
        if not self.is_name() and self.token.text in ("|", ";", ")", ""):
            return ast.Project((), keyword, at=at)
        return ast.Project(self.named_list(), keyword, at=at)

    def choose(self, at: int) -> ast.Operator:
        keyword = self.tokens[self.position - 1].text

        def pattern() -> ast.Named:
            start = self.token.start
            return ast.Named(self.name_or_pattern(), at=start)

        found = [self.ordered(pattern)]
        while self.take_mark(","):
            found.append(self.ordered(pattern))
        return ast.Choose(keyword, tuple(found), at=at)

    def sort(self, at: int) -> ast.Operator:
        self.parameters()
        self.need_word("by")
        return ast.Sort(self.ordered_list(), at=at)

    def top(self, at: int) -> ast.Operator:
        self.parameters()
        count = self.expression()
        self.need_word("by")
        return ast.Top(count, self.ordered_list(), at=at)

    def take(self, at: int) -> ast.Operator:
        return ast.Take(self.expression(), at=at)

    def count(self, at: int) -> ast.Operator:
        return ast.Count(self.name() if self.take_word("as") else "", at=at)

    def distinct(self, at: int) -> ast.Operator:
        self.parameters()
        return ast.Distinct(self.named_list(), at=at)

    def summarize(self, at: int) -> ast.Operator:
        parameters = self.parameters()
        aggregates = () if self.is_word("by") or not self._begins_expression() else self.named_list()
        keys: tuple[ast.Named, ...] = ()
        size = None
        if self.take_word("by"):
            keys = self.named_list()
            if self.is_word("bin") and self.is_mark("=", 1):
                self.position += 2
                size = self.expression()
        return ast.Summarize(aggregates, keys, parameters, size, at=at)

    def _begins_expression(self) -> bool:
        return self.token.kind != "end" and self.token.text not in ("|", ";", ")")

    def serialize(self, at: int) -> ast.Operator:
        return ast.Serialize(self.named_list() if self._begins_expression() else (), at=at)

    def sample(self, at: int) -> ast.Operator:
        return ast.Sample(self.expression(), at=at)

    def sample_distinct(self, at: int) -> ast.Operator:
        count = self.expression()
        self.need_word("of")
        return ast.Sample(count, self.named(), at=at)

    def top_hitters(self, at: int) -> ast.Operator:
        count = self.expression()
        self.need_word("of")
        key = self.named()
        return ast.TopHitters(count, key, self.expression() if self.take_word("by") else None, at=at)

    def top_nested(self, at: int) -> ast.Operator:
        levels = []
        while True:
            level_at = self.token.start
            count = None if self.is_word("of") else self.expression()
            self.need_word("of")
            key = self.named()
            others = None
            if self.take_word("with"):
                self.need_word("others")
                self.need_mark("=")
                others = self.expression()
            self.need_word("by")
            levels.append(ast.NestedLevel(count, key, self.ordered(), others, at=level_at))
            if not self.is_mark(","):
                break
            self.advance()
            self.need_word("top-nested")
        return ast.TopNested(tuple(levels), at=at)

    # ------------------------------------------------------------------------------------------ several tables

    def join(self, at: int) -> ast.Operator:
        keyword = self.tokens[self.position - 1].text
        parameters = self.parameters(*_JOIN_WORDS)
        right = self.postfix()
        conditions: list[ast.Expression] = []
        if self.take_word("on", "where"):
            conditions.append(self.expression())
            while self.take_mark(","):
                conditions.append(self.expression())
        return ast.Join(keyword, right, tuple(conditions), parameters, at=at)

    def union(self, at: int) -> ast.Operator:
        parameters = self.parameters(*_JOIN_WORDS)
        inputs = [self._input()]
        while self.take_mark(","):
            inputs.append(self._input())
        return ast.Union(tuple(inputs), (*parameters, *self.parameters(*_JOIN_WORDS)), at=at)

    def search(self, at: int) -> ast.Operator:
        parameters = self.parameters("kind")
        tables = self._tables()
        return ast.Search(self._search_predicate(), tables, parameters, at=at)

    def _search_predicate(self) -> ast.Expression:
        outer, self.searching = self.searching, True
        try:
            return self.expression()
        finally:
            self.searching = outer

    def find(self, at: int) -> ast.Operator:
        parameters = self.parameters("withsource", "with_source", "datascope")
        tables = self._tables()
        self.take_word("where")
        predicate = self._search_predicate()
        columns: list[ast.FindColumn] = []
        away: list[ast.Expression] = []
        smart = False
        if self.take_word("project"):
            columns.append(self._find_column())
            while self.take_mark(","):
                columns.append(self._find_column())
        elif self.take_word("project-smart"):
            smart = True
        if self.take_word("project-away"):
            away.append(self.name_or_pattern())
            while self.take_mark(","):
                away.append(self.name_or_pattern())
        return ast.Find(predicate, tables, tuple(columns), smart, tuple(away), parameters, at=at)

    def _find_column(self) -> ast.FindColumn:
        at = self.token.start
        if self.is_word("pack") and self.is_mark("(", 1):
            self.position += 2
            self.need_mark("*")
            self.need_mark(")")
            return ast.FindColumn("*", at=at)
        name = self.name("the name of a column")
        return ast.FindColumn(name, self.type_name() if self.take_mark(":") else "", at=at)

    def partition(self, at: int) -> ast.Operator:
        parameters = self.parameters()
        self.need_word("by")
        key = self._key_path()
        late = self.parameters()
        self.take_word("in")
        if self.take_mark("{"):
            query = self.pipe_expression()
            self.need_mark("}")
            return ast.Partition(key, (), query, (*parameters, *late), at=at)
        return ast.Partition(key, self.bracketed_operators(), None, (*parameters, *late), at=at)

    def _key_path(self) -> ast.Expression:
        """A column or a member of one; what follows in brackets is no call."""
        at = self.token.start
        value: ast.Expression = ast.Name(self.name("the name of a column"), at=at)
        while self.take_mark("."):
            value = ast.Member(value, self.name(), at=at)
        return value

    def fork(self, at: int) -> ast.Operator:
        branches = []
        while self.is_mark("(") or (self.token.kind == "name" and self.is_mark("=", 1)):
            branch_at = self.token.start
            name = ""
            if not self.is_mark("("):
                name = self.name()
                self.advance()
            branches.append(ast.Branch(self.bracketed_operators(), name, at=branch_at))
            self.take_mark(",")
        if not branches:
            raise self.unexpected("'('")
        return ast.Fork(tuple(branches), at=at)

    def facet(self, at: int) -> ast.Operator:
        self.need_word("by")
        columns = [self.expression()]
        while self.take_mark(","):
            columns.append(self.expression())
        return ast.Facet(tuple(columns), self.bracketed_operators() if self.take_word("with") else (), at=at)

    # ------------------------------------------------------------------------------------------ dynamic and text

    def mv_expand(self, at: int) -> ast.Operator:
        parameters = self.parameters("kind", "bagexpansion", "with_itemindex")
        columns = self._expansions()
        limit = self.expression() if self.take_word("limit") else None
        return ast.MvExpand(columns, limit, parameters, at=at)

    def mv_apply(self, at: int) -> ast.Operator:
        parameters = self.parameters("kind", "bagexpansion", "with_itemindex")
        columns = self._expansions()
        limit = self.expression() if self.take_word("limit") else None
        marker = self.expression() if self.take_word("id") else None
        self.need_word("on")
        return ast.MvApply(columns, self.bracketed_operators(), limit, marker, parameters, at=at)

    def _expansions(self) -> tuple[ast.Expansion, ...]:
        found = []
        while True:
            at = self.token.start
            found.append(ast.Expansion(self.named(), self.type_clause(), at=at))
            if not self.take_mark(","):
                return tuple(found)

    def parse(self, at: int) -> ast.Operator:
        keyword = self.tokens[self.position - 1].text
        parameters = self.parameters("kind", "flags")
        expression = self.expression()
        self.need_word("with")
        pattern: list[ast.Literal | ast.ParseColumn] = []
        while True:
            token = self.token
            if token.kind == "string":
                pattern.append(self.literal())
            elif self.take_mark("*"):
                pattern.append(ast.ParseColumn("*", at=token.start))
            elif self.is_name():
                name = self.name()
                pattern.append(ast.ParseColumn(name, self.type_name() if self.take_mark(":") else "", at=token.start))
            else:
                break
        if not pattern:
            raise self.unexpected("a pattern")
        return ast.Parse(keyword, expression, tuple(pattern), parameters, at=at)

    def parse_kv(self, at: int) -> ast.Operator:
        expression = self.expression()
        self.need_word("as")
        columns = self.column_types()
        return ast.ParseKv(expression, columns, self.bracketed_options(), at=at)

    def make_series(self, at: int) -> ast.Operator:
        parameters = self.parameters("kind")
        aggregates = []
        while True:
            part_at = self.token.start
            column = self.named()
            default = None
            if self.is_word("default") and self.is_mark("=", 1):
                self.position += 2
                default = self.expression()
            aggregates.append(ast.SeriesAggregate(column, default, at=part_at))
            if not self.take_mark(","):
                break
        self.need_word("on")
        axis = self.named(self.additive)
        first = last = None
        in_range = self.take_word("in")
        if in_range:
            self.need_word("range")
            self.need_mark("(")
            first = self.expression()
            self.need_mark(",")
            last = self.expression()
            self.need_mark(",")
            step = self.expression()
            self.need_mark(")")
        else:
            first = self.expression() if self.take_word("from") else None
            last = self.expression() if self.take_word("to") else None
            self.need_word("step")
            step = self.expression()
        keys = self.named_list() if self.take_word("by") else ()
        return ast.MakeSeries(tuple(aggregates), axis, first, last, step, keys, parameters, in_range, at=at)

    # ------------------------------------------------------------------------------------------ the rest

    def evaluate(self, at: int) -> ast.Operator:
        parameters = self.parameters()
        call = self._plugin_call()
        return ast.Evaluate(call, self.schema() if self.take_mark(":") else None, parameters, at=at)

    def _plugin_call(self) -> ast.Call:
        at = self.token.start
        name = self.name("the name of a function")
        return ast.Call(name, self.arguments(), at=at)

    def invoke(self, at: int) -> ast.Operator:
        return ast.Invoke(self._plugin_call(), at=at)

    def as_name(self, at: int) -> ast.Operator:
        parameters = self.parameters()
        return ast.As(self.name(), parameters, at=at)

    def getschema(self, at: int) -> ast.Operator:
        self.parameters("kind")
        return ast.GetSchema(at=at)

    def consume(self, at: int) -> ast.Operator:
        return ast.Consume(self.parameters("decodeblocks"), at=at)

    def reduce(self, at: int) -> ast.Operator:
        self.parameters("kind")
        self.need_word("by")
        expression = self.expression()
        return ast.Reduce(expression, self.options() if self.take_word("with") else (), at=at)

    def render(self, at: int) -> ast.Operator:
        kind = self.name("the kind of a chart")
        options = self.bracketed_options() if self.is_word("with") else self.options()
        return ast.Render(kind, options, at=at)

    def scan(self, at: int) -> ast.Operator:
        parameters = self.parameters("with_match_id", "kind")
        order: tuple[ast.OrderedBy, ...] = ()
        partition: tuple[ast.Named, ...] = ()
        columns: tuple[ast.ScanColumn, ...] = ()
        if self.take_word("order"):
            self.need_word("by")
            order = self.ordered_list()
        if self.take_word("partition"):
            self.need_word("by")
            partition = self.named_list()
        if self.take_word("declare"):
            columns = self._scan_columns()
        self.need_word("with")
        self.need_mark("(")
        steps = []
        while self.is_word("step"):
            steps.append(self._scan_step())
        self.need_mark(")")
        return ast.Scan(tuple(steps), columns, order, partition, parameters, at=at)

    def _scan_columns(self) -> tuple[ast.ScanColumn, ...]:
        self.need_mark("(")
        found = []
        while not self.is_mark(")"):
            at = self.token.start
            name = self.name("the name of a column")
            self.need_mark(":")
            kind = self.type_name()
            found.append(ast.ScanColumn(name, kind, self.expression() if self.take_mark("=") else None, at=at))
            if not self.take_mark(","):
                break
        self.need_mark(")")
        return tuple(found)

    def _scan_step(self) -> ast.ScanStep:
        at = self.need_word("step").start
        name = self.name("the name of a step")
        optional = self.take_word("optional")
        output = ""
        if self.take_word("output"):
            self.need_mark("=")
            output = self.name("all, last or none")
        self.need_mark(":")
        condition = self.expression()
        assignments = self.named_list() if self.take_mark("=>") else ()
        self.need_mark(";")
        return ast.ScanStep(name, condition, assignments, output, optional, at=at)


_P = OperatorParser
_READERS: dict[str, Callable[[Any, int], ast.Operator]] = {
    "where": _P.where, "filter": _P.where, "extend": _P.extend, "project": _P.project, "project-rename": _P.project,
    "project-away": _P.choose, "project-keep": _P.choose, "project-reorder": _P.choose, "sort": _P.sort,
    "order": _P.sort, "top": _P.top, "take": _P.take, "limit": _P.take, "count": _P.count, "distinct": _P.distinct,
    "summarize": _P.summarize, "serialize": _P.serialize, "sample": _P.sample, "sample-distinct": _P.sample_distinct,
    "top-hitters": _P.top_hitters, "top-nested": _P.top_nested, "join": _P.join, "lookup": _P.join,
    "union": _P.union, "search": _P.search, "find": _P.find, "partition": _P.partition, "fork": _P.fork,
    "facet": _P.facet, "mv-expand": _P.mv_expand, "mvexpand": _P.mv_expand, "mv-apply": _P.mv_apply,
    "mvapply": _P.mv_apply, "parse": _P.parse, "parse-where": _P.parse, "parse-kv": _P.parse_kv,
    "make-series": _P.make_series, "evaluate": _P.evaluate, "invoke": _P.invoke, "as": _P.as_name,
    "getschema": _P.getschema, "consume": _P.consume, "reduce": _P.reduce, "render": _P.render, "scan": _P.scan,
}  # fmt: skip
"""Word of an operator -> what reads the rest of it."""
