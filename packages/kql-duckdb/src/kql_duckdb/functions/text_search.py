"""`has`, `contains` and their kind, `matches regex` and the regular expressions of Kusto.

Source: the Kusto page "String operators". A term is a run of letters and digits; every other character ends it, the
underscore too. SQL is written so that DuckDB answers from its dictionaries: the pattern is a constant that it compiles
once, behind a substring search that costs a quarter of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import BOOL, DYNAMIC, STRING, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function

_TERM_OPERATORS = {"has": (True, True), "hasprefix": (True, False), "hassuffix": (False, True)}
"""Operator -> whether a term must begin and end where the text that is looked for does."""

_SUBSTRING = {
    "contains": "contains({0}, {1})",
    "startswith": "starts_with({0}, {1})",
    "endswith": "ends_with({0}, {1})",
}
_ILIKE = {"contains": "%{}%", "startswith": "{}%", "endswith": "%{}"}
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_FEW = 3
"""Up to so many texts are looked for one by one; of more, one pattern is cheaper."""


def _parts(call: BoundCall) -> tuple[str, bool, bool]:
    """The plain name of the operator, whether it is negated and whether letters must have the same case."""
    name = call.name.removeprefix("operator:")
    negated = name.startswith("!")
    name = name.removeprefix("!")
    return name.removesuffix("_cs"), negated, name.endswith("_cs")


def _searched(call: BoundCall, place: int = 0) -> Typed:
    argument = call.arguments[place]
    if argument.type not in (STRING, DYNAMIC):
        raise call.invalid(f"argument #{place + 1} must be a string or dynamic, not {argument.type}.", "SEM0025")
    return to_string(argument)


def _negated(test: Typed, negated: bool) -> Typed:
    return fill("NOT {0}", BOOL, test, nullable=False) if negated else test


def _term_search(call: BoundCall) -> Typed:
    name, negated, sensitive = _parts(call)
    begins, ends = _TERM_OPERATORS[name]
    text, needle = _searched(call), to_string(call.arguments[1])
    if needle.is_constant:
        return _negated(_term(text, str(needle.constant), begins, ends, sensitive), negated)
    flags = f"{'^' if begins else ''}{'$' if ends else ''}{'c' if sensitive else ''}"
    sides = "{0}, {1}" if sensitive else "lower({0}), lower({1})"
    test = f"CASE WHEN contains({sides}) THEN kql_has({{0}}, {{1}}, '{flags}') ELSE FALSE END"
    return _negated(fill(test, BOOL, text, needle, nullable=False), negated)


def _term(text: Typed, needle: str, begins: bool, ends: bool, sensitive: bool) -> Typed:
    pattern = _around(_escaped(needle), begins and _is_term(needle[:1]), ends and _is_term(needle[-1:]))
    matching = literal(("" if sensitive else "(?i)") + pattern, STRING)
    if sensitive:
        present, part = "contains({0}, {1})", needle
    elif needle.isascii():
        # `_` and `%` only widen ILIKE, which finds at least every text that has this one.
        present, part = "{0} ILIKE {1}", f"%{needle}%"
    else:
        return fill("regexp_matches({0}, {1})", BOOL, text, matching, nullable=False)
    if not text.simple and len(text.sql) > 120:
        # In a lambda the pattern would be compiled for each row.
        return fill("regexp_matches({0}, {1})", BOOL, text, matching, nullable=False)
    both = f"CASE WHEN {present} THEN regexp_matches({{0}}, {{2}}) ELSE FALSE END"
    return fill(both, BOOL, text, literal(part, STRING), matching, nullable=False)


def _is_term(character: str) -> bool:
    return character.isalpha() or character.isnumeric()


def _around(pattern: str, begins: bool, ends: bool) -> str:
    start = r"(?:^|[^\pL\pN])" if begins else ""
    end = r"(?:$|[^\pL\pN])" if ends else ""
    return f"{start}(?:{pattern}){end}"


def _escaped(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)


@python_function("kql_has", ("VARCHAR", "VARCHAR", "VARCHAR"), "BOOLEAN")
def _has(text: str | None, needle: str | None, flags: str) -> bool:
    return _compiled(needle or "", flags).search(text or "") is not None


@lru_cache(4096)
def _compiled(needle: str, flags: str) -> re.Pattern[str]:
    """The same as `_term` in Python's regular expressions, for texts that each row has of its own."""
    start = r"(?<![^\W_])" if "^" in flags and _is_term(needle[:1]) else ""
    end = r"(?![^\W_])" if "$" in flags and _is_term(needle[-1:]) else ""
    return re.compile(start + re.escape(needle) + end, 0 if "c" in flags else re.IGNORECASE)


def _substring_search(call: BoundCall) -> Typed:
    name, negated, sensitive = _parts(call)
    text, needle = _searched(call), to_string(call.arguments[1])
    template = _SUBSTRING[name]
    if not sensitive:
        folded = template.replace("{0}", "lower({0})")
        if needle.is_constant and str(needle.constant).isascii():
            return _negated(_ilike(text, str(needle.constant), name, folded), negated)
        template = folded.replace("{1}", "lower({1})")
    return _negated(fill(template, BOOL, text, needle, nullable=False), negated)


def _ilike(text: Typed, needle: str, name: str, folded: str) -> Typed:
    present = "{0} ILIKE {2}"
    if "%" in needle or "_" in needle:
        present = f"CASE WHEN {present} THEN {folded} ELSE FALSE END"
    exact, wide = literal(needle.lower(), STRING), literal(_ILIKE[name].format(needle), STRING)
    return fill(present, BOOL, text, exact, wide, nullable=False)


def _list_search(call: BoundCall) -> Typed:
    """`has_any` and `has_all`: an array stands for its elements, a relation for the values of its column."""
    every = call.name == "operator:has_all"
    text = _searched(call)
    constants: list[str] = []
    tests: list[Typed] = []
    for item in call.arguments[1:]:
        if item.relation:
            tests.append(_has_in_relation(text, item, every))
        elif item.is_constant:
            held = item.constant if item.type is DYNAMIC else str(item.constant)
            constants += _texts_of(held)
        elif item.type is DYNAMIC:
            tests.append(fill(f"kql_has_{'all' if every else 'any'}({{0}}, {{1}})", BOOL, text, item, nullable=False))
        else:
            tests.append(_term_search(BoundCall("operator:has", (text, item), (), call.context)))
    if constants:
        tests.append(_has_all(text, constants) if every else _has_any(text, constants))
    if not tests:
        return literal(every, BOOL)
    word = " AND " if every else " OR "
    return fill(word.join(f"{{{place}}}" for place in range(len(tests))), BOOL, *tests, nullable=False)


def _texts_of(held: object) -> list[str]:
    if isinstance(held, list):
        return [text for one in held for text in _texts_of(one)]
    return ["" if held is None else held if isinstance(held, str) else json_text(held)]


def _has_all(text: Typed, needles: Iterable[str]) -> Typed:
    tests = [_term(text, needle, True, True, False) for needle in dict.fromkeys(needles)]
    return fill(" AND ".join(f"{{{place}}}" for place in range(len(tests))), BOOL, *tests, nullable=False)


def _has_any(text: Typed, needles: list[str]) -> Typed:
    needles = list(dict.fromkeys(needles))
    if len(needles) <= _FEW:
        tests = [_term(text, needle, True, True, False) for needle in needles]
        return fill(" OR ".join(f"{{{place}}}" for place in range(len(tests))), BOOL, *tests, nullable=False)
    # Texts with the same edges share one pattern; with edges of their own it outgrows RE2's fast automaton.
    edges: dict[tuple[bool, bool], list[str]] = {}
    for needle in needles:
        edges.setdefault((_is_term(needle[:1]), _is_term(needle[-1:])), []).append(needle)
    patterns = (_around("|".join(map(_escaped, group)), *edge) for edge, group in edges.items())
    constants = [literal("(?i)" + pattern, STRING) for pattern in patterns]
    tests_sql = (f"regexp_matches({{0}}, {{{place + 1}}})" for place in range(len(constants)))
    return fill(" OR ".join(tests_sql), BOOL, text, *constants, nullable=False)


def _has_in_relation(text: Typed, relation: Typed, every: bool) -> Typed:
    needle = to_string(Typed("_kql_needle._kql_v", relation.type, simple=True)).sql
    pair = f"lower(_kql_hay._kql_h), lower({needle})"
    test = f"CASE WHEN contains({pair}) THEN kql_has(_kql_hay._kql_h, {needle}, '^$') ELSE FALSE END"
    # The text is one row of its own, so that it is written once however often it is read.
    rows = "FROM ({1}) AS _kql_needle(_kql_v), (SELECT {0} AS _kql_h) AS _kql_hay"
    sql = f"NOT EXISTS (SELECT 1 {rows} WHERE NOT {test})" if every else f"EXISTS (SELECT 1 {rows} WHERE {test})"
    return fill(sql, BOOL, text, Typed(relation.sql, relation.type, simple=True), nullable=False)


@dynamic_function("kql_has_any", ("VARCHAR", "JSON"), "BOOLEAN")
def _has_any_of(text: str, held: object) -> bool:
    return any(_has(text, needle, "^$") for needle in _texts_of(held)) if held is not None else False


@dynamic_function("kql_has_all", ("VARCHAR", "JSON"), "BOOLEAN")
def _has_all_of(text: str, held: object) -> bool:
    return all(_has(text, needle, "^$") for needle in _texts_of(held)) if held is not None else False


@dynamic_function("kql_has_any_index", ("VARCHAR", "JSON"), "BIGINT")
def _has_any_index(text: str, held: object) -> int | None:
    if not isinstance(held, list):
        return None
    return next((place for place, one in enumerate(held) if _has(text, _texts_of(one)[0], "^$")), -1)


_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_NAMED = re.compile(r"\(\?<(?=[A-Za-z_])|\(\?'([A-Za-z_]\w*)'")
_SKIPPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:<?[=!]|<(?=[A-Za-z_])|'[A-Za-z_]\w*')", re.DOTALL)


def regex(pattern: str) -> str:
    """Return a regular expression as RE2 reads it. Raises KqlError for what RE2, and so Kusto, does not have."""

    def rewritten(found: re.Match[str]) -> str:
        piece = found[0]
        if piece[0] in "\\[":
            return piece
        if _LOOKAROUND.fullmatch(piece):
            raise KqlError(f"Regex pattern is ill-formed: '{piece}' (look-around) is not supported by RE2.", "SEM0420")
        return f"(?P<{piece[3:-1]}>" if piece[2] == "'" else "(?P<"

    return _SKIPPED.sub(rewritten, pattern)


def regex_argument(call: BoundCall, place: int) -> Typed:
    """Return an argument that is a regular expression, rewritten for RE2 if it is a constant."""
    argument = to_string(call.arguments[place])
    return literal(regex(str(argument.constant)), STRING) if argument.is_constant else argument


def _matches_regex(call: BoundCall) -> Typed:
    test = fill("regexp_matches({0}, {1})", BOOL, _searched(call), regex_argument(call, 1), nullable=False)
    return _negated(test, "!" in call.name or "not" in call.name)


def _operators(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield from (f"operator:{sign}{name}{case}" for sign in ("", "!") for case in ("", "_cs"))


FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(ScalarFunction(name, _term_search, 2, 2) for name in _operators(_TERM_OPERATORS)),
    *(ScalarFunction(name, _substring_search, 2, 2) for name in _operators(_SUBSTRING)),
    ScalarFunction("operator:has_any", _list_search, 2, None),
    ScalarFunction("operator:has_all", _list_search, 2, None),
    ScalarFunction("operator:matches regex", _matches_regex, 2, 2),
    function("has_any_index(source: string, values: dynamic): long", "kql_has_any_index({0}, {1})"),
)
