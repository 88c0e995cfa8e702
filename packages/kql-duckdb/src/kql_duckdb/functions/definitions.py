"""What a function of KQL is here: a name, the arguments that it takes, and how its SQL is made.

Most functions are one line: a signature in KQL's words and a template of SQL (`function`). Those that need more have a
builder over a `BoundCall`. Aggregates, functions of several columns and functions over neighbouring rows are the same
idea with one more field. `registry` collects what the modules beside this one define.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed
from kql_duckdb.types import KustoType

EXACT, PARTLY, REFUSED = "exact", "partly", "refused"


@dataclass(frozen=True)
class Context:
    """What a function may know of the place where it is called."""

    now: Typed
    """The time of the query, a datetime literal: one for the whole query."""
    columns: Mapping[str, Typed] = field(default_factory=dict)
    """The columns in scope, in order; those of `column_ifexists` and `pack_all`."""
    ingestion_time: Typed | None = None
    """The column that holds it, where a table has one."""
    row_order: str = ""
    """SQL of the column that numbers the rows in an order that counts; empty where rows are not serialized."""
    hoist: Callable[[Typed], Typed] | None = None
    """Computes an expression one SELECT earlier and returns its column. None where that cannot be done."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What `current_database()` and its kind answer, by function name."""

    def hoisted(self, value: Typed, construct: str) -> Typed:
        """Return a column that holds `value`, for templates that a lambda cannot serve, such as nested windows."""
        if value.simple:
            return value
        if self.hoist is None:
            raise not_supported(construct, "it stands where its argument cannot be computed first")
        return self.hoist(value)


@dataclass(frozen=True)
class BoundCall:
    """A call whose arguments are bound."""

    name: str
    arguments: tuple[Typed, ...]
    names: tuple[str | None, ...]
    """The name that the query gives each argument (`f(limit = 3)`), or None; empty where no argument has one."""
    context: Context

    def invalid(self, details: str, code: str = "SEM0001") -> KqlError:
        """Make the error for arguments that the function does not take."""
        shown = self.name.removeprefix("operator:")
        kind = "Operator" if shown != self.name else "Function"
        return KqlError(f"{kind} '{shown}' cannot be invoked in current context. Details: {details}", code)

    def constant_text(self, place: int) -> str | None:
        """The value of an argument that is a string literal; None for any other."""
        if place < len(self.arguments):
            argument = self.arguments[place]
            if argument.is_constant and argument.type is KustoType.STRING and not argument.type_name:
                return str(argument.constant)
        return None


Output = tuple[tuple[str, Typed], ...]
"""Several columns: the suffix or name of each and its expression."""


class Builder(Protocol):
    """Makes the SQL of one call; its arguments are in order, converted where the signature names a type."""

    def __call__(self, call: BoundCall) -> Typed: ...


@dataclass(frozen=True)
class Function:
    """What scalar and aggregate functions have in common."""

    name: str
    make: Builder
    least: int = 0
    most: int | None = None
    """None is any number of arguments."""
    parameters: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kind that each argument is converted to (see `ARGUMENT_KINDS`); the last is that of all that follow."""
    status: str = EXACT
    note: str = ""
    """How the answer differs where the status is `partly`; why there is none where it is `refused`."""
    make_columns: Callable[[BoundCall], Output] | None = None
    """For functions whose value is several columns."""

    def build(self, call: BoundCall) -> Typed:
        """Make the typed SQL of a call. Raises KqlError for arguments that the function does not take."""
        return self.make(self.checked(call))

    def build_columns(self, call: BoundCall) -> Output:
        """Make the columns of a call that stands where several are taken; ("", value) for an ordinary function."""
        if self.make_columns is None:
            return (("", self.build(call)),)
        return self.make_columns(self.checked(call))

    def checked(self, call: BoundCall) -> BoundCall:
        """Return the call with its arguments in order, counted and converted."""
        arguments = _in_order(self, call)
        count = len(arguments)
        if count < self.least or (self.most is not None and count > self.most):
            raise call.invalid(f"expects {_allowed(self)} argument(s), got {count}.", "SEM0219")
        if self.kinds:
            places = (self.kinds[min(place, len(self.kinds) - 1)] for place in range(count))
            arguments = tuple(
                ARGUMENT_KINDS[kind](call, place, argument)
                for place, (kind, argument) in enumerate(zip(places, arguments, strict=True))
            )
        return replace(call, name=self.name, arguments=arguments, names=())


@dataclass(frozen=True)
class ScalarFunction(Function):
    """A function of one row, or of the rows around it where it is a window function."""


@dataclass(frozen=True)
class AggregateFunction(Function):
    """A function of the rows of a group."""

    prefix: str | None = None
    """What stands before the argument's name in the automatic name of its column; None is the function's name and ""
    the argument's name alone."""

    def default_column_name(self, call: BoundCall) -> str:
        """Return Kusto's automatic name of its column, such as `sum_x` or `count_`."""
        prefix = self.name if self.prefix is None else self.prefix
        argument = call.arguments[0].name if call.arguments else ""
        return f"{prefix}_{argument}" if prefix else argument


ARGUMENT_KINDS: dict[str, Callable[[BoundCall, int, Typed], Typed]] = {}
"""Kind -> what brings an argument to it, or raises KqlError. Filled by `conversion`, which knows the casts."""


def _in_order(function: Function, call: BoundCall) -> tuple[Typed, ...]:
    if not any(call.names):
        return call.arguments
    placed: dict[int, Typed] = {}
    for place, (name, argument) in enumerate(zip(call.names, call.arguments, strict=True)):
        if name is None:
            placed[place] = argument
        elif name in function.parameters:
            placed[function.parameters.index(name)] = argument
        else:
            raise call.invalid(f"it has no parameter '{name}'.", "SEM0001")
    if sorted(placed) != list(range(len(placed))):
        raise call.invalid("a parameter before the last one given has no value.", "SEM0219")
    return tuple(placed[place] for place in range(len(placed)))


def _allowed(function: Function) -> str:
    if function.most is None:
        return f"at least {function.least}"
    return str(function.least) if function.least == function.most else f"{function.least} to {function.most}"


_SIGNATURE = re.compile(r"(\w+)\((.*)\)(?:: (\w+))?")
_USE = re.compile(r"\{(\d+)\}")


def function(
    signature: str,
    made: str | Builder | Callable[..., Any],
    *,
    status: str = EXACT,
    note: str = "",
    columns: Callable[[BoundCall], Output] | None = None,
) -> ScalarFunction:
    """Define a scalar function.

    `signature` is such as `substring(source: string, start: long, length?: long): string`; the kind of the last
    parameter may end in `...`. `made` is a template whose `{0}` is the first argument, or a builder.
    """
    return ScalarFunction(**_defined(signature, made), status=status, note=note, make_columns=columns)


def aggregate(
    signature: str,
    made: str | Builder | Callable[..., Any],
    *,
    prefix: str | None = None,
    status: str = EXACT,
    note: str = "",
    columns: Callable[[BoundCall], Output] | None = None,
) -> AggregateFunction:
    """Define an aggregate function; see `function`."""
    return AggregateFunction(
        **_defined(signature, made, aggregated=True), status=status, note=note, make_columns=columns, prefix=prefix
    )


def _defined(signature: str, made: str | Builder | Callable[..., Any], *, aggregated: bool = False) -> dict[str, Any]:
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    name, listed, result = found.groups()
    parameters, kinds, least, open_ended = [], [], 0, False
    for one in filter(None, listed.split(", ")):
        parameter, kind = one.split(": ")
        open_ended = kind.endswith("...")
        least += not parameter.endswith("?")
        parameters.append(parameter.rstrip("?"))
        kinds.append(kind.removesuffix("..."))
    make: Any = made
    if isinstance(made, str):
        make = _of_template(made, KustoType(result), aggregated)
    most = None if open_ended else len(parameters)
    return {"name": name, "make": make, "least": least, "most": most, "parameters": tuple(parameters)} | {
        "kinds": tuple(kinds)
    }


def _of_template(template: str, result: KustoType, aggregated: bool) -> Builder:
    def build(call: BoundCall) -> Typed:
        if aggregated:
            return aggregated_over(template, result, *call.arguments)
        return fill(template, result, *call.arguments)

    return build


def fill(template: str, result: KustoType, *arguments: Typed, nullable: bool | None = None) -> Typed:
    """Return `template` with its arguments put in for `{0}`, `{1}` and so on, each computed once.

    An argument that the template reads twice, or inside a lambda, is bound by a lambda of its own unless it is a column
    or a literal: the text stays linear in that of the query, and no subquery comes to stand in a lambda.
    """
    known = range(len(arguments))
    uses = [place for found in _USE.findall(template) if (place := int(found)) in known]
    texts = [argument.sql for argument in arguments]
    inside = "lambda" in template
    binding = any(
        not arguments[place].simple and (inside or (uses.count(place) > 1 and not _repeatable(arguments[place])))
        for place in set(uses)
    )
    if binding:
        inner = [place for place in sorted(set(uses)) if not arguments[place].simple]
        fields = ", ".join(f"a{place} := {texts[place]}" for place in inner)
        value = f"struct_pack({fields})" if len(inner) > 1 else texts[inner[0]]
        for place in inner:
            texts[place] = f"_kql.a{place}" if len(inner) > 1 else "_kql"
    sql = _USE.sub(lambda found: texts[int(found[1])] if int(found[1]) in known else found[0], template)
    if binding:
        sql = f"list_transform([{value}], lambda _kql: {sql})[1]"
    return Typed(
        f"({sql})",
        result,
        nullable=result is not KustoType.STRING if nullable is None else nullable,
        windowed=any(argument.windowed for argument in arguments),
        aggregated=any(argument.aggregated for argument in arguments),
    )


_DEAR = ("lambda", "kql_", "select ", "random", "uuid", " over ")
_SHORT = 120


def _repeatable(argument: Typed) -> bool:
    """Whether computing it twice is cheaper than a lambda, in which DuckDB compiles a regular expression for each row.

    A text so short cannot grow by nesting: what holds it twice is longer.
    """
    sql = argument.sql.lower()
    return len(sql) <= _SHORT and not argument.aggregated and not any(word in sql for word in _DEAR)


def aggregated_over(template: str, result: KustoType, *arguments: Typed) -> Typed:
    """Return `template`, an aggregate in SQL, over its arguments, which it may read several times.

    What an aggregate reads are values of each row, so DuckDB computes an argument that stands twice once.
    """
    texts = [argument.sql for argument in arguments]
    known = range(len(texts))
    sql = _USE.sub(lambda found: texts[int(found[1])] if int(found[1]) in known else found[0], template)
    return Typed(f"({sql})", result, nullable=result is not KustoType.STRING, aggregated=True)
