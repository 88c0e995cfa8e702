"""KQL text to the SQL that answers it: parse, lower, restrict, emit.

Uses duckdb-kql's stages one by one instead of its `to_sql`, because between lowering and emitting the allow-list and
the time range are applied; control commands (`.show`, `.set`, ...) have no way in at all. Pure: no database here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from duckdb_kql import errors as library  # noqa: TID253 - this module is about that library
from duckdb_kql.lower import lower  # noqa: TID253
from duckdb_kql.params import bind  # noqa: TID253
from duckdb_kql.translate import CLOCK_SLOT, clock  # noqa: TID253
from duckdb_kql.translate import to_sql as emit  # noqa: TID253

from sentinel_rag.workspace.kql import dialect
from sentinel_rag.workspace.kql.error_places import outside_grammar, unknown_function, with_place
from sentinel_rag.workspace.kql.errors import KqlError, KqlSyntaxError, not_supported, unresolved
from sentinel_rag.workspace.kql.plain_names import as_the_grammar_reads
from sentinel_rag.workspace.kql.scope import Discovered, Schema, Scope, UndiscoveredError, Window
from sentinel_rag.workspace.kql.spelling import names_made, nodes, reads_names, respelled, spelling_of, unmarked

MAX_QUERY_CHARS = 100_000
"""The service's own limit lies near 1 MB; a longer text than this is no question of an analyst."""


MAX_SQL_CHARS = 600_000
"""The engine plans a statement of this length within seconds, and cannot be interrupted while it plans."""


@dataclass(frozen=True, slots=True)
class Translation:
    """SQL with its bound values; `slots` tells which of the window's two parameters it mentions.

    If it `discovers`, its rows are not the answer: they go into the next translation of the same text.
    """

    sql: str
    parameters: Mapping[str, Any]
    slots: frozenset[str]
    tables: frozenset[str]
    discovers: bool = False


def translate(kql: str, schema: Schema, window: Window, discovered: Discovered = ()) -> Translation:
    """The SQL for `kql` over the tables of `schema`. Raises KqlError.

    `discovered` are the rows of the translations before that only discover, in order.
    """
    dialect.install()
    if len(kql) > MAX_QUERY_CHARS:
        raise KqlError(
            f"The query has {len(kql):,} characters; {MAX_QUERY_CHARS:,} are allowed.",
            kql_code="SEN0003",
            next_step="Put long lists of values into a table and join it.",
        )
    if not kql.strip():
        raise KqlSyntaxError("The query is empty.", kql_code="SYN0001", line=1, position=0)
    if _first_statement(kql).startswith("."):
        raise not_supported(_first_statement(kql).split(maxsplit=1)[0], line=1, position=0, hint="a control command")
    try:
        return _translate(kql, schema, window, discovered)
    except KqlError as error:
        raise with_place(kql, error) from error.__cause__
    except RecursionError as error:
        raise KqlError("The query is nested too deeply.", kql_code="SEN0003", next_step="Simplify it.") from error
    except library.KqlSyntaxError as error:
        raise (outside_grammar(kql) or _syntax_error(kql, error)) from error
    except library.KqlUnsupportedError as error:
        line, column = (error.span.line, error.span.column) if error.span else (None, None)
        hint = error.hint or ""
        if "in this wave" in hint or "Wave 1" in hint:  # the library's own roadmap says nothing to an analyst
            hint = ""
        name = construct_name(error.construct)
        if name == "evaluate":
            plugin = re.search(r"near 'evaluate(\w+)", error.hint or "")
            name = f"evaluate {plugin[1]}" if plugin else name
        if error.construct.startswith(("function:", "aggregate:")):
            raise unknown_function(kql, name, hint if "DuckDB" not in hint else "") from error
        if line is None:
            raise with_place(kql, not_supported(name, hint=hint)) from error
        raise not_supported(name, line=line, position=column, hint=hint) from error
    except library.KqlSchemaError as error:
        if "unknown table" in (error.hint or ""):
            raise with_place(kql, unresolved("table or column", error.name, schema)) from error
        raise KqlError(
            f"{error.name}: {error.hint or 'not known'}",
            kql_code="SEM0100",
            token=error.name,
            next_step="Name the columns with project before this operator.",
        ) from error
    except (library.KqlError, ValueError) as error:
        if "cluster(" in kql:
            raise not_supported("cluster", hint="another cluster") from error
        raise KqlError(str(error).splitlines()[0], kql_code="SEN0002", next_step="Correct the query.") from error
    except (LookupError, TypeError, AttributeError, AssertionError) as error:
        # The library trips over some faulty calls, such as a function with too few arguments, instead of refusing.
        raise KqlError(
            "The query cannot be translated; a function may have the wrong number of arguments.",
            kql_code="SEN0002",
            next_step="Check the arguments of its functions.",
        ) from error


def _translate(kql: str, schema: Schema, window: Window, discovered: Discovered) -> Translation:
    spelling: dict[str, str] = {}
    while True:
        with clock(None) as active:
            lowered = lower(as_the_grammar_reads(kql), None, {None: {}})
            scope = Scope(schema, window, spelling, discovered)
            written = respelled(lowered, spelling) if spelling else lowered
            try:
                emitted, query = _emitted(written, scope, schema)
            except UndiscoveredError as undiscovered:
                question = undiscovered.question
                asked = emit(question, {table: list(names) for table, names in schema.items()})
                return replace(_finished(asked, question, scope, active), discovers=True)
            except library.KqlSchemaError as error:
                wider = _wider_spelling(lowered, scope, schema, error)
                if wider == spelling or reads_names(lowered):
                    raise
                spelling = wider
                continue
            return _finished(emitted, query, scope, active)


def _emitted(lowered: Any, scope: Scope, schema: Schema) -> tuple[Any, Any]:
    query = scope.restrict(lowered)
    scope.check_spelling(query)
    return emit(query, {table: list(names) for table, names in schema.items()}), query


def _wider_spelling(lowered: Any, scope: Scope, schema: Schema, error: library.KqlSchemaError) -> dict[str, str]:
    """A spelling for all names that the query brings together, if it failed because two differ only in case."""
    pair = re.match(r"columns '([^']+)' and '([^']+)' differ only in case", error.hint or "")
    if pair is None:
        return {}
    names = [name for table in sorted(scope.tables) for name in schema[table]]
    made = sorted(name for node in nodes(lowered) for name in names_made(node))
    return spelling_of([*names, *made, unmarked(pair[1]), unmarked(pair[2])])


def _finished(emitted: Any, query: Any, scope: Scope, active: Any) -> Translation:
    if len(emitted) > MAX_SQL_CHARS:
        raise KqlError(
            "The query is too large for the embedded workspace once it is written out.",
            kql_code="SEN0003",
            next_step="Name fewer tables, or project the columns that you need before union and join.",
        )
    parameters = dict(emitted.parameters)
    if query.parameters:
        values, missing = bind(query.parameters, None)
        if missing:
            raise KqlError(f"The query declares parameters without a value: {', '.join(missing)}.", kql_code="SEN0002")
        parameters.update({slot: value for slot, value in values.items() if slot in emitted.slots})
    if active.used:  # `set query_now = ...` pinned it; else now() is the moment at which the SQL runs
        parameters[CLOCK_SLOT] = active.moment
    return Translation(str(emitted), parameters, frozenset(emitted.slots), frozenset(scope.tables))


def construct_name(construct: str) -> str:
    """`source:ExternalDataExpression` -> `external-data`: the grammar's class name as a person would write it."""
    kind, _, name = construct.rpartition(":")
    bare = re.sub(r"(OperatorPart|Operator|Expression|Statement)$", "", name)
    if bare == name and kind not in ("source", "expression"):
        return construct.replace("function:", "").replace("aggregate:", "")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", bare).lower().replace("external-data", "externaldata")


def _first_statement(kql: str) -> str:
    lines = (line.strip() for line in kql.splitlines())
    return next((line for line in lines if line and not line.startswith("//")), "")


def _syntax_error(kql: str, error: library.KqlSyntaxError) -> KqlSyntaxError:
    line, position = 1, 0
    if error.diagnostics:
        line, position = error.diagnostics[0].span.line, error.diagnostics[0].span.column
    lines = kql.splitlines()
    rest = lines[line - 1][position:] if 0 < line <= len(lines) else ""
    token = rest.split(maxsplit=1)[0][:40] if rest.split() else ""
    where = f"at '{token}' on line [{line},{position}]" if token else "at its end"
    return KqlSyntaxError(
        f"Query could not be parsed {where}",
        kql_code="SYN0002",
        line=line,
        position=position,
        token=token,
        next_step="Correct the query at that place.",
    )
