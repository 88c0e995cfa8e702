"""What a function of KQL is here: a signature in KQL's words, and SQL, Python or a builder that makes it.

`scalars.txt` and `aggregates.txt` are tables of `signature: result = SQL`; `scalar` and `aggregate` mark a builder over
a `BoundCall`, `python` a function that SQL calls. A signature is such as `substring(source: string, start: long,
length?: long): string`: names may be several (`iff|iif`), `?` is what may be left out, `start: long = 0` what then
stands for it, `...` any number; `sum[if]` is `sum`, and `sumif` with a condition.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.types import DYNAMIC, LONG, STRING, KustoType

if TYPE_CHECKING:
    import duckdb

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
    predicate: Typed | None = None
    """The condition of an aggregate that has one, which is none of its arguments."""

    def invalid(self, details: str, code: str = "SEM0001") -> KqlError:
        """Make the error for arguments that the function does not take."""
        shown = self.name.removeprefix("operator:")
        kind = "Operator" if shown != self.name else "Function"
        return KqlError(f"{kind} '{shown}' cannot be invoked in current context. Details: {details}", code)

    def constant_text(self, place: int) -> str | None:
        """The value of an argument that is a string literal; None for any other."""
        texts = (one for one in self.arguments[place : place + 1] if one.is_constant and one.type is STRING)
        return next((str(one.constant) for one in texts if not one.type_name), None)


Builder = Callable[[BoundCall], Typed]
"""Makes the SQL of one call; its arguments are in order, converted where the signature names a kind."""
Output = tuple[tuple[str, Typed], ...]
"""Several columns: the suffix or name of each and its expression."""


@dataclass(frozen=True)
class ArgumentKind:
    """What a signature says of an argument: the types that it takes (None: all), and what makes it so or raises."""

    taken: frozenset[KustoType] | None
    make: Callable[[BoundCall, int, Typed], Typed]


ARGUMENT_KINDS: dict[str, ArgumentKind] = {}
"""Filled by `conversion`, which knows the casts."""


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    optional: bool = False
    default: Typed | None = None
    nullable: bool = False
    """Whether a function of Python is called with a null here, which gives null without a call elsewhere."""


@dataclass(frozen=True)
class Function:
    """A function of one row or, as an `AggregateFunction`, of the rows of a group."""

    name: str
    make: Builder
    parameters: tuple[Parameter, ...] = ()
    open_ended: bool = False
    """Whether the last parameter takes any number of arguments."""
    note: str = ""
    """How the answer differs from Azure's, if it does."""
    columns: Callable[[BoundCall], Output] | None = None
    """For functions whose value is several columns."""
    windowed: bool = False
    """Whether it looks at neighbouring rows."""

    others: tuple[Function, ...] = ()
    """The same function for arguments of other numbers and types."""

    @property
    def status(self) -> str:
        return PARTLY if self.note else EXACT

    def build(self, call: BoundCall) -> Typed:
        """Make the typed SQL of a call. Raises KqlError for arguments that the function does not take."""
        counted = [one for one in (self, *self.others) if one._counts(len(call.arguments))] or [self]
        one = next((one for one in counted if one.takes(call)), None)
        if one is None and len(counted) > 1:
            listed = " or ".join(f"({', '.join(one.kind.strip('=') for one in each.parameters)})" for each in counted)
            given = ", ".join(one.type.value for one in call.arguments)
            raise call.invalid(f"takes {listed}, not ({given}).", "SEM0201")
        one = one or counted[0]
        return one.make(one.checked(call))

    def build_columns(self, call: BoundCall) -> Output:
        """Make the columns of a call that stands where several are taken; ("", value) for an ordinary function."""
        return (("", self.build(call)),) if self.columns is None else self.columns(self.checked(call))

    def takes(self, call: BoundCall) -> bool:
        pairs = zip(self.parameters, call.arguments, strict=False)
        kinds = ((ARGUMENT_KINDS[one.kind].taken, argument.type) for one, argument in pairs)
        return self._counts(len(call.arguments)) and all(taken is None or kind in taken for taken, kind in kinds)

    def _counts(self, count: int) -> bool:
        return self._least() <= count and (self.open_ended or count <= len(self.parameters))

    def _least(self) -> int:
        return sum(not one.optional for one in self.parameters)

    def checked(self, call: BoundCall) -> BoundCall:
        """Return the call with its arguments in order, counted and converted, and defaults for what is left out."""
        arguments = self._in_order(call)
        count = len(arguments)
        if not self._counts(count):
            every = (self, *self.others)
            least, most = min(one._least() for one in every), max(len(one.parameters) for one in every)
            wanted = f"at least {least}" if self.open_ended else str(most) if least == most else f"{least} to {most}"
            raise call.invalid(f"expects {wanted} argument(s), got {count}.", "SEM0219")
        found: list[Typed] = []
        predicate = None
        for place, argument in enumerate(arguments):
            parameter = self.parameters[min(place, len(self.parameters) - 1)]
            converted = ARGUMENT_KINDS[parameter.kind].make(call, place, argument)
            if parameter.name == "predicate" and isinstance(self, AggregateFunction):
                predicate = converted
            else:
                found.append(converted)
        left_out = () if self.open_ended else self.parameters[count:]
        found += [one.default for one in left_out if one.default is not None]
        return replace(call, name=self.name, arguments=tuple(found), names=(), predicate=predicate)

    def _in_order(self, call: BoundCall) -> tuple[Typed, ...]:
        if not any(call.names):
            return call.arguments
        known = [one.name for one in self.parameters]
        placed: dict[int, Typed] = {}
        for place, (name, argument) in enumerate(zip(call.names, call.arguments, strict=True)):
            if name is not None and name not in known:
                raise call.invalid(f"it has no parameter '{name}'.", "SEM0001")
            placed[place if name is None else known.index(name)] = argument
        if sorted(placed) != list(range(len(placed))):
            raise call.invalid("a parameter before the last one given has no value.", "SEM0219")
        return tuple(placed[place] for place in range(len(placed)))


@dataclass(frozen=True)
class AggregateFunction(Function):
    prefix: str | None = None
    """What stands before the argument's name in the automatic name of its column; None is the function's name and ""
    the argument's name alone."""

    def default_column_name(self, argument: str) -> str:
        """Return Kusto's automatic name of its column, such as `sum_x` or `count_`."""
        prefix = self.name if self.prefix is None else self.prefix
        return f"{prefix}_{argument}" if prefix else argument


SCALARS: dict[str, Function] = {}
AGGREGATES: dict[str, AggregateFunction] = {}

_SIGNATURE = re.compile(r"([^(]+)\((.*?)\)(?:: (\w+)(!?))?")
_ROW = re.compile(r"([^(]+\(.*?\): \w+!?) = (.*?)(?: -- (.*))?")
_HELD_AS = {"text": STRING, "json": DYNAMIC, "number": LONG, "integer": LONG}
"""Kind of a parameter -> the type of its default, where they have other names."""
_PARAMETER = re.compile(r"(\w+)(\?)?: ([=\w\[\]]+)(\.\.\.)?(?: = (\S+))?")


@dataclass(frozen=True)
class _Signature:
    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    open_ended: bool
    result: str = ""
    """A type, or `same` for that of the first argument."""
    is_sure: bool = False
    """Whether the result is never null: `long!`."""

    @classmethod
    def of(cls, text: str) -> _Signature:
        found = _SIGNATURE.fullmatch(text)
        assert found is not None, text
        names, listed, result, sure = found.groups(default="")
        parameters, open_ended = [], False
        for one in filter(None, listed.split(", ")):
            read = _PARAMETER.fullmatch(one)
            assert read is not None, one
            name, optional, kind, dots, default = read.groups()
            open_ended = bool(dots)
            held = None
            if default is not None:
                held = literal(json.loads(default), _HELD_AS.get(kind) or KustoType(kind))
            nullable = bool(optional) or default == "null" or (kind in ("json", "nullable") and not dots)
            parameters.append(Parameter(name, kind, bool(optional or default), held, nullable))
        return cls(tuple(names.split("|")), tuple(parameters), open_ended, result, bool(sure))

    def kind(self, call: BoundCall) -> KustoType:
        return call.arguments[0].type if self.result == "same" else KustoType(self.result)

    def conditional(self) -> Iterator[_Signature]:
        """This one, and for `name[if]` that with a condition behind what must be given."""
        yield replace(self, names=tuple(one.partition("[")[0] for one in self.names))
        place = sum(not one.optional for one in self.parameters)
        several = (*self.parameters[:place], Parameter("predicate", "condition"), *self.parameters[place:])
        names = tuple(re.sub(r"[][]", "", one) for one in self.names if "[" in one)
        yield replace(self, names=names, parameters=several)


def _add(
    known: dict[str, Any], kind: type[Function], signature: _Signature, make: Builder, more: dict[str, Any]
) -> None:
    for one in signature.conditional():
        for name in one.names:
            made = kind(name, make, one.parameters, one.open_ended, **more)
            before = known.get(name)
            known[name] = made if before is None else replace(before, others=(*before.others, made))


def rows(file: str) -> list[str]:
    """Return the rows of a table of this folder, without comments; an indented line goes on with the row before it."""
    text = re.sub(r"(?m)^((#|--).*)?\n", "", files(__package__).joinpath(file).read_text("utf-8"))
    return text.replace("\n    |", "|").replace("\n    ", " ").splitlines()


def _define(file: str, known: dict[str, Any], kind: type[Function], write: Callable[..., Typed]) -> None:
    """Define the functions of a table; `{*}` are all arguments in its SQL, `{1*}` those from the second on, and `{?}`
    is where an aggregate chooses the rows of its condition."""
    for row in rows(file):
        found = _ROW.fullmatch(row)
        assert found is not None, row
        signature, sql, note = found.groups(default="")
        read = _Signature.of(signature)
        _add(known, kind, read, _of_template(read, sql, write), {"note": note})


def _of_template(signature: _Signature, sql: str, write: Callable[..., Typed]) -> Builder:
    def build(call: BoundCall) -> Typed:
        if sql == "{0}":  # a literal stays one
            return replace(call.arguments[0], name="")
        kind = signature.kind(call)
        words = {"{name}": call.name, "{op}": call.name[9:], "{held}": kind.held}
        words |= {"{type}": call.arguments[0].type} if call.arguments else {}
        template = _WORD.sub(lambda found: words[found[0]], with_rest(sql, call.arguments))
        chosen = {} if call.predicate is None else {"only": call.predicate}
        return write(template, kind, *call.arguments, nullable=False if signature.is_sure else None, **chosen)

    return build


_WORD, _REST = re.compile(r"\{[a-z]+\}"), re.compile(r"\{(\d?)\*\}")


def with_rest(template: str, arguments: Sequence[Typed]) -> str:
    """Return a template in which `{1*}` is all arguments from that place on."""
    return _REST.sub(lambda found: listed(arguments[int(found[1] or 0) :], int(found[1] or 0)), template)


Marker = Callable[[Builder], Builder]


def scalar(*signatures: str, **more: Any) -> Marker:
    """Define scalar functions that a builder makes; `more` are fields of `Function`."""
    return _mark(SCALARS, Function, signatures, more)


def operators(names: str, parameters: str) -> Marker:
    """Define operators, which are functions named `operator:+` and so on."""
    return scalar(f"{'|'.join(f'operator:{one}' for one in names.split())}({parameters})")


def aggregate(*signatures: str, **more: Any) -> Marker:
    """Define aggregate functions that a builder makes; a parameter `predicate` is the condition of a row."""
    return _mark(AGGREGATES, AggregateFunction, signatures, more)


def _mark(known: dict[str, Any], kind: type[Function], signatures: tuple[str, ...], more: dict[str, Any]) -> Marker:
    def mark(make: Builder) -> Builder:
        for one in signatures:
            _add(known, kind, _Signature.of(one), make, more)
        return make

    return mark


_PYTHON: dict[str, tuple[Callable[..., Any], list[str] | None, str]] = {}
"""Name -> what DuckDB calls, the types of its parameters (None: any values of any type) and of its result."""
_VERSION = "kql_duckdb_functions_3"
"""A function of this name tells that a database has them already."""
_DYNAMIC = ("json", "nullable", "array", "bag", "numbers")
_HELD = {"text": "VARCHAR", **dict.fromkeys(_DYNAMIC, "JSON"), **{kind.value: kind.held for kind in KustoType}}


def python(signature: str, note: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define a function in Python, which SQL calls `kql_NAME`; a name that begins with `kql_` is for templates alone.

    A dynamic is decoded and encoded, an array of arguments is a list. A null gives null without a call, unless the
    parameter is `json`, `nullable` (a dynamic), or marked with `?`. With a parameter `any` values come as DuckDB gives
    them. Nothing is raised for a value in the data, except `refusal`.
    """
    read = _Signature.of(signature)
    name = f"kql_{read.names[0].removeprefix('kql_')}"
    assert name not in _PYTHON, name
    kinds = [one.kind for one in read.parameters]
    if read.open_ended:
        kinds[-1] += "[]"
    strict = [place for place, one in enumerate(read.parameters) if not one.nullable]

    def mark(call: Callable[..., Any]) -> Callable[..., Any]:
        _PYTHON[name] = (
            _over_held(call, [_DECODERS.get(kind) for kind in kinds], strict, encoded=read.result == "dynamic"),
            None if "any" in kinds else [_held(kind) for kind in kinds],
            KustoType(read.result).held,
        )
        if not signature.startswith("kql_"):
            _add(SCALARS, Function, read, _calling(name, read), {"note": note})
        return call

    return mark


def pythons(table: Mapping[str, Callable[..., Any]]) -> None:
    """Define functions in Python that are one expression each."""
    for signature, call in table.items():
        python(signature)(call)


def _held(kind: str) -> str:
    array = "[]" if kind.endswith("[]") else ""
    return _HELD.get(kind.removesuffix(array), kind.removesuffix(array)) + array


def _over_held(
    call: Callable[..., Any], decoders: Sequence[Callable[[Any], Any] | None], strict: Sequence[int], *, encoded: bool
) -> Callable[..., Any]:
    """`call` as DuckDB calls it, with values as they are held."""

    @functools.wraps(call)  # DuckDB counts the parameters of what it is given
    def over_held(*arguments: Any) -> Any:
        for place in strict:
            if arguments[place] is None:
                return None
        try:
            taken = (one if decode is None else decode(one) for decode, one in zip(decoders, arguments, strict=True))
            found = call(*taken)
        except NoAnswer:
            return None
        return json_text(found) if encoded and found is not None else found

    return over_held


class NoAnswer(Exception):
    """The answer of a function of Python is null, as for a value that it cannot read."""


def _decoded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _of_kind(text: str | None, kind: type[Any]) -> Any:
    found = _decoded(text)
    if not isinstance(found, kind):
        raise NoAnswer
    return found


def number(value: Any) -> int | float | None:
    """The number in an element; null for text, booleans, arrays and bags."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value if isinstance(value, (int, float)) else None


def _numbers(text: str | None) -> list[int | float]:
    found = [number(element) for element in _of_kind(text, list)]
    if None in found:
        raise NoAnswer
    return [one for one in found if one is not None]


_DECODERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("dynamic", "json", "nullable"), _decoded),
    "array": lambda text: _of_kind(text, list),
    "bag": lambda text: _of_kind(text, dict),
    "numbers": _numbers,
    **dict.fromkeys(("dynamic[]", "json[]"), lambda texts: [_decoded(text) for text in texts]),
    "array[]": lambda texts: [_of_kind(text, list) for text in texts],
}
"""Kind of a parameter -> its value for Python; for what is no array, bag or array of numbers the answer is null."""


def _calling(name: str, read: _Signature) -> Builder:
    """The SQL that calls it; a text that it does not give is the empty one."""
    sql = f"{name}({{*}})"
    if read.open_ended:
        fixed = len(read.parameters) - 1
        sql = f"{name}({''.join(f'{{{place}}}, ' for place in range(fixed))}[{{{fixed}*}}])"
    maybe = read.result == "string" and any(one.kind not in ("string", "text") for one in read.parameters)
    return _of_template(read, f"coalesce({sql}, '')" if maybe else sql, fill)


def refusal(message: str) -> ValueError:
    """Make the error by which a function ends a query for a value in the rows; only where null would mislead."""
    return ValueError(f"kql: {message}")


def install(connection: duckdb.DuckDBPyConnection, sql: str | None = None) -> None:
    """Register every function on the database of `connection`; one that has them is left as it is.

    With `sql`, only if it calls one: DuckDB loads numpy for it, which most queries need not wait for.
    """
    if sql is not None and "kql_" not in sql:
        return
    import duckdb  # here, so that a text can be checked where DuckDB is not loaded

    try:
        connection.execute(f"SELECT {_VERSION}()").fetchall()
        return
    except duckdb.CatalogException:
        pass
    register: Any = connection.create_function  # its types name no type that is text, which it takes
    for name, (call, parameters, result) in {**_PYTHON, _VERSION: (lambda: True, [], "BOOLEAN")}.items():
        register(name, call, parameters, result, null_handling="special")


_USE = re.compile(r"\{(\d+)\}")


def listed(arguments: Sequence[object], first: int = 0) -> str:
    """Return `{0}, {1}, ...`, the arguments of a template from place `first` on."""
    return ", ".join(f"{{{place + first}}}" for place in range(len(arguments)))


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
    sql = _put(template, texts)
    if binding:
        sql = f"list_transform([{value}], lambda _kql: {sql})[1]"
    return Typed(
        f"({sql})",
        result,
        nullable=result is not STRING if nullable is None else nullable,
        windowed=any(argument.windowed for argument in arguments),
        aggregated=any(argument.aggregated for argument in arguments),
    )


def _put(template: str, texts: Sequence[str]) -> str:
    return _USE.sub(lambda found: texts[int(found[1])] if int(found[1]) < len(texts) else found[0], template)


def joined(word: str, conditions: Sequence[Typed], *, nullable: bool = False) -> Typed:
    """Return conditions with AND or OR between them."""
    if len(conditions) == 1:
        return conditions[0]
    template = f" {word} ".join(f"{{{place}}}" for place in range(len(conditions)))
    return fill(template, KustoType.BOOL, *conditions, nullable=nullable)


_DEAR = ("lambda", "kql_", "select ", "random", "uuid", " over ")
_SHORT = 120


def _repeatable(argument: Typed) -> bool:
    """Whether computing it twice is cheaper than a lambda, in which DuckDB compiles a regular expression for each row.

    A text so short cannot grow by nesting: what holds it twice is longer.
    """
    sql = argument.sql.lower()
    return len(sql) <= _SHORT and not argument.aggregated and not any(word in sql for word in _DEAR)


def aggregated_over(
    template: str, result: KustoType, *arguments: Typed, only: Typed | None = None, nullable: bool | None = None
) -> Typed:
    """Return `template`, an aggregate in SQL, over its arguments, which it may read several times.

    What an aggregate reads are values of each row, so DuckDB computes an argument that stands twice once. `{?}` is
    where the rows for which `only` holds are chosen. No text is null, that of no rows neither.
    """
    texts = [argument.sql for argument in (*arguments, only) if argument is not None]
    template = template.replace("{?}", "" if only is None else f" FILTER (WHERE {{{len(arguments)}}})")
    sql = _put(f"coalesce({template}, '')" if result is STRING else template, texts)
    return Typed(f"({sql})", result, nullable=result is not STRING if nullable is None else nullable, aggregated=True)


# Before any builder of the same name, which then is for what no row takes.
_define("scalars.txt", SCALARS, Function, fill)
_define("aggregates.txt", AGGREGATES, AggregateFunction, aggregated_over)
