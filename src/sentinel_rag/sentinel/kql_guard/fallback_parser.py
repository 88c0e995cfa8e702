"""Reading KQL without Microsoft's parser: kql_duckdb's, into the same analysis, and stricter.

It fails closed. One walk over the tree records what the rules judge, wherever it stands, and a node that it does not
know is an error. What it finds nothing against is bound to the tables that it recorded, and no others: a name that is
none of them, or whatever the binder cannot compute, is an error too.
"""

from __future__ import annotations

from collections.abc import Iterator

from kql_duckdb import KnownTables, KqlError
from kql_duckdb.engine import translate
from kql_duckdb.syntax.parser import parse_all
from sentinel_rag.sentinel.kql_guard.analysis import (
    AGGREGATES,
    FUNCTIONS,
    PLUGINS,
    REFUSED_WORDS,
    STATEMENTS,
    SYNTAX,
    UNCHECKED,
    UNKNOWN_NAME,
    Analysis,
    Diagnostic,
    Place,
    Schema,
    Statement,
)
from sentinel_rag.sentinel.kql_guard.fallback_reader import FallbackReader, error, unchecked

_MOST_ERRORS = 20


def fallback_analysis(kql: str, schema: Schema) -> Analysis:
    """The analysis of `kql`; whatever cannot be read for certain is an error in its diagnostics."""
    # So that places, which count characters, are those of UTF-16: what is replaced is in quotes or wrong.
    kql = "".join(each if each <= "\uffff" else "\ufffd\ufffd" for each in kql)
    script, faults = parse_all(kql)
    if faults:
        found = tuple(error(SYNTAX, f"Syntax: {fault.message}", _place(kql, fault)) for fault in faults[:_MOST_ERRORS])
        return Analysis("Query", found, {}, (), (), (), (), None, "fallback")
    reader = FallbackReader(kql, schema, script)
    statements = tuple(reader.statements(script))
    if not reader.diagnostics and _may_be_bound(reader, statements):
        reader.diagnostics.extend(_binding_faults(kql, schema, reader))
    return Analysis(
        kind="Query",
        diagnostics=tuple(reader.diagnostics),
        kinds=reader.kinds,
        functions=tuple(reader.functions),
        references=tuple(reader.references),
        wildcards=tuple(reader.wildcards),
        statements=statements,
        result=None,
        parser="fallback",
    )


def _place(kql: str, fault: KqlError) -> Place:
    if fault.line is None or fault.column is None:
        return 0, 0
    before = kql.split("\n")[: fault.line - 1]
    return sum(len(each) + 1 for each in before) + fault.column - 1, len(fault.token) or 1


def _may_be_bound(reader: FallbackReader, statements: tuple[Statement, ...]) -> bool:
    """Whether the rules will refuse nothing of what the binder would trip over once more."""
    allowed = {"function": FUNCTIONS, "aggregate": AGGREGATES | FUNCTIONS, "plugin": PLUGINS}
    return (
        not reader.refused
        and not any(kind in REFUSED_WORDS for kind in reader.kinds)
        and all(each.kind in STATEMENTS for each in statements)
        and sum(each.kind == "ExpressionStatement" for each in statements) == 1
        and all(use.origin == "let" or use.name in allowed[use.origin] for use in reader.functions)
    )


def _binding_faults(kql: str, schema: Schema, reader: FallbackReader) -> Iterator[Diagnostic]:
    """What is wrong with a name or a value, over the tables that the reader has recorded."""
    tables = KnownTables.of_schema({use.name: schema[use.name] for use in reader.references})
    try:
        translate(kql, tables)
    except KqlError as fault:
        yield _binding(fault, _place(kql, fault), reader.lets)
    except Exception:  # whatever the binder trips over is a query that it cannot vouch for
        yield unchecked("This query", (0, 0))


def _binding(fault: KqlError, at: Place, lets: set[str]) -> Diagnostic:
    if fault.code == "SEM0100" and fault.token:
        columns = tuple(each for each in fault.known if each not in lets and not each.startswith("$"))
        return error(UNKNOWN_NAME, f"The name '{fault.token}' is no known column.", at, columns)
    if fault.code == "KDB0001":
        return unchecked(f"`{fault.token}`", at) if fault.token else error(UNCHECKED, fault.message, at)
    return error(fault.code, fault.message, at)
