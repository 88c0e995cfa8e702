"""What names mean outside a row: lets, parameters of functions, tables named by `as`. Scopes nest and never change.

A let is bound where it is first read, in the scope where it was written, so that one that nobody reads costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kql_duckdb.algebra import Relation
from kql_duckdb.expressions import Typed
from kql_duckdb.syntax import ast


@dataclass(slots=True, eq=False)
class ValueOf:
    """A scalar that is known: the argument of a function, or a let once it was bound."""

    value: Typed


@dataclass(slots=True, eq=False)
class TableOf:
    """A relation that is known."""

    relation: Relation


@dataclass(slots=True, eq=False)
class Unbound:
    """A let as written, and the scope before it."""

    expression: ast.Expression
    environment: Environment
    tabular: bool


@dataclass(slots=True, eq=False)
class FunctionOf:
    """A let function, the scope before it, and whether its body is a table (None until somebody asks)."""

    function: ast.Function
    environment: Environment
    tabular: bool | None = None


Binding = ValueOf | TableOf | Unbound | FunctionOf


@dataclass(slots=True, eq=False)
class Environment:
    """The bindings of one statement list; what is not here is looked up in the one around it."""

    outer: Environment | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)

    def find(self, name: str) -> Binding | None:
        scope: Environment | None = self
        while scope is not None:
            found = scope.bindings.get(name)
            if found is not None:
                return found
            scope = scope.outer
        return None

    def rebind(self, name: str, binding: Binding) -> None:
        """Put what a let turned out to be in its place."""
        scope: Environment | None = self
        while scope is not None:
            if name in scope.bindings:
                scope.bindings[name] = binding
                return
            scope = scope.outer

    def bound(self, name: str, binding: Binding) -> Environment:
        """A scope inside this one in which `name` is known too."""
        return Environment(self, {name: binding})

    def names(self) -> Iterator[str]:
        scope: Environment | None = self
        while scope is not None:
            yield from scope.bindings
            scope = scope.outer
