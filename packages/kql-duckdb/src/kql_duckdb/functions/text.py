"""Text: joining, cutting, replacing and extracting, and the searches `has`, `contains` and `matches regex`.

Source: the Kusto pages named like the functions and "String operators". Positions count characters from 0. A term is a
run of letters and digits; every other character ends it, the underscore too. SQL of searches is written so that DuckDB
answers from its dictionaries: the pattern is a constant that it compiles once, behind a substring search that costs a
quarter of it.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.conversion import convert, to_string
from kql_duckdb.functions.definitions import (
    ARGUMENT_KINDS,
    ArgumentKind,
    BoundCall,
    fill,
    joined,
    listed,
    operators,
    python,
    pythons,
    scalar,
)
from kql_duckdb.types import BOOL, DYNAMIC, GUID, INT, LONG, STRING


@scalar("strcat(arg: text...)")
def _joined(call: BoundCall) -> Typed:
    """`strcat` of constants is a constant, since Kusto takes it where a pattern must be one."""
    if all(argument.is_constant for argument in call.arguments):
        return literal("".join(str(argument.constant) for argument in call.arguments), STRING)
    return fill(f"concat({listed(call.arguments)})", STRING, *call.arguments)


@scalar("substring(string: text, start: long, length?: long)")
def _substring(call: BoundCall) -> Typed:
    """A negative start counts from the end, and before the beginning there is nothing."""
    text, start, *length = call.arguments
    plain = start.is_constant and start.constant is not None and 0 <= start.constant < 2**31 - 1
    most = "least({1}, 2147483646)"
    first = "{1} + 1" if plain else f"CASE WHEN {{1}} < 0 THEN length({{0}}) + {{1}} ELSE {most} END + 1"
    taken = f"substring({{0}}, {first})"
    if length:
        taken = f"substring({{0}}, {first}, least(greatest({{2}}, 0), 2147483646))"
    if not plain:
        taken = f"CASE WHEN {{1}} < -length({{0}}) THEN '' ELSE {taken} END"
    return fill(taken, STRING, text, start, *length)


@python("indexof(string: text, match: text, start: long, length: long = -1, occurrence: long = 1): long")
def _place_of(text: str, looked_for: str, start: int, length: int, occurrence: int) -> int | None:
    """Each occurrence is looked for from the character after the one before it, in `length` characters."""
    if length < -1 or occurrence < 1:
        return None
    place = max(start + len(text), 0) if start < 0 else start
    for _ in range(occurrence):
        found = text.find(looked_for, place, len(text) if length == -1 else place + length)
        if found < 0:
            return -1
        place = found + 1
    return place - 1


@scalar("countof(source: string, search: string, kind?: string)")
def _count_of(call: BoundCall) -> Typed:
    """Plain texts are counted where they overlap, matches of a regular expression where they do not."""
    text, looked_for = call.arguments[:2]
    kind = (call.constant_text(2) or "normal").lower() if len(call.arguments) > 2 else "normal"
    if kind == "normal":
        return fill("kql_countof({0}, {1})", LONG, text, looked_for, nullable=False)
    if kind != "regex":
        raise call.invalid("argument #3 must be 'normal' or 'regex'.", "SEM0207")
    matches, looked_for = "regexp_extract_all({0}, {1})", _of_regex(call, 1, looked_for)
    return fill(f"CAST(len({matches}) AS BIGINT)", LONG, text, looked_for, nullable=False)


@scalar("extract(regex: regex, captureGroup: long, source: string, typeLiteral?: type)")
def _extract(call: BoundCall) -> Typed:
    group, text = convert(call.arguments[1], INT), call.arguments[2]
    if not group.is_constant:
        raise call.invalid("argument #2 must be a constant.", "SEM0040")
    found = fill(f"regexp_extract({{0}}, {{1}}, {int(group.constant)})", STRING, text, call.arguments[0])
    return convert(found, call.arguments[3].type) if len(call.arguments) > 3 else found


_MOST_GROUPS = 16
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?P<(\w+)>)?(\?)?", re.DOTALL)


def _groups(pattern: str) -> list[str]:
    """The capture groups of a regular expression in order, each by its name or ""."""
    return [
        found[1] or "" for found in _PIECE.finditer(pattern) if found[0].startswith("(") and (found[1] or not found[2])
    ]


@scalar("extract_all|extractall(regex: regex, captureGroups: any, source?: any)")
def _extract_all(call: BoundCall) -> Typed:
    """The groups of each match, never the match itself; a flat array of one group. No match gives null."""
    pattern, text = call.arguments[0], call.arguments[-1]
    if not pattern.is_constant:
        return _extract_all_by_value(call, pattern, to_string(text))
    names = _groups(str(pattern.constant))
    if not 1 <= len(names) <= _MOST_GROUPS:
        raise call.invalid(f"the regex must have 1 to {_MOST_GROUPS} capture groups, not {len(names)}.", "SEM0213")
    wanted = _wanted_groups(call, names) if len(call.arguments) > 2 else list(range(1, len(names) + 1))
    text = to_string(text)
    if len(wanted) == 1:
        matches = fill(f"regexp_extract_all({{0}}, {{1}}, {wanted[0]})", DYNAMIC, text, pattern)
        return replace(fill("CASE WHEN len({0}) > 0 THEN to_json({0}) END", DYNAMIC, matches), texts=matches)
    lists = ", ".join(f"regexp_extract_all({{0}}, {{1}}, {group})" for group in wanted)
    matches = fill(f"[{lists}]", DYNAMIC, text, pattern)
    return fill(f"CASE WHEN len({{0}}[1]) > 0 THEN {_MATCHES} END", DYNAMIC, matches)


# A list of the matches of each group becomes one of the groups of each match.
_MATCHES = "to_json(list_transform({0}[1], lambda _e, _i: list_transform({0}, lambda _found: _found[_i])))"


def _extract_all_by_value(call: BoundCall, pattern: Typed, text: Typed) -> Typed:
    """`extract_all` with a regex that the rows give, such as one that toscalar() reads of a watchlist."""
    every = "range(1, 1 + kql_count_groups({1}))"
    if len(call.arguments) > 2:
        chosen = call.arguments[1].constant if call.arguments[1].is_constant else None
        if not isinstance(chosen, list) or not all(type(one) is int and one > 0 for one in chosen):
            raise call.invalid("argument #1 must be a constant where groups are not chosen by number.", "SEM0040")
        groups = f"list_filter(CAST({chosen} AS BIGINT[]), lambda _w: _w <= kql_count_groups({{1}}))"
        every = f"CASE WHEN len({groups}) > 0 THEN {groups} ELSE {every} END"
    lists = f"list_transform({every}, lambda _g: regexp_extract_all({{0}}, {{1}}, CAST(_g AS INTEGER)))"
    matches = fill(lists, DYNAMIC, text, pattern)
    one = f"CASE WHEN len({{0}}) > 1 THEN {_MATCHES} ELSE to_json({{0}}[1]) END"
    return fill(f"CASE WHEN len({{0}}[1]) > 0 THEN {one} END", DYNAMIC, matches)


def _wanted_groups(call: BoundCall, names: list[str]) -> list[int]:
    """Indices and names of groups, in the order asked for; what is no group is left out, and nothing means all."""
    chosen = call.arguments[1]
    if not chosen.is_constant or not isinstance(chosen.constant, list):
        raise call.invalid("argument #2 must be a constant dynamic array.", "SEM0214")
    wanted = []
    for one in chosen.constant:
        if isinstance(one, str):
            if one not in names:
                raise call.invalid(f"the regex has no capture group '{one}'.", "SEM0214")
            wanted.append(names.index(one) + 1)
        elif isinstance(one, int) and 1 <= one <= len(names):
            wanted.append(one)
    return wanted or list(range(1, len(names) + 1))


@scalar("split(source: text, delimiter: string)")
def _split(call: BoundCall) -> Typed:
    parts = fill("str_split({0}, {1})", STRING, *call.arguments)
    return replace(fill("to_json({0})", DYNAMIC, parts, nullable=False), texts=parts)


@python("replace_strings(text: string, lookups: nullable, rewrites: nullable): string")
def _replace_strings(text: str, lookups: Any, rewrites: Any) -> str:
    """A lookup takes all its places before the next one looks, and none looks into what was put in.

    One whose rewrite is no text stands as it is.
    """
    if not isinstance(lookups, list) or not isinstance(rewrites, list):
        return text
    pieces = [text]  # what was put in stands at the odd places
    for looked_for, rewrite in itertools.zip_longest(lookups, rewrites[: len(lookups)]):
        if isinstance(looked_for, str) and looked_for:
            put = rewrite if isinstance(rewrite, str) else looked_for
            split = ([one] if place % 2 else _between(put, one.split(looked_for)) for place, one in enumerate(pieces))
            pieces = list(itertools.chain.from_iterable(split))
    return "".join(pieces)


def _between(put: str, parts: list[str]) -> list[str]:
    return [parts[0], *(one for part in parts[1:] for one in (put, part))]


_EDGES = {"has": "^$", "hasprefix": "^", "hassuffix": "$"}
"""Operator -> where a term must begin (^) and end ($) with the text that is looked for."""
_SUBSTRING = {
    "contains": ("contains({0}, {1})", "%{}%"),
    "startswith": ("starts_with({0}, {1})", "{}%"),
    "endswith": ("ends_with({0}, {1})", "%{}"),
}
"""Operator -> the SQL that tells it, and its pattern for ILIKE."""
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_FEW = 3
"""Up to so many texts are looked for one by one; of more, one pattern is cheaper."""


def _parts(call: BoundCall) -> tuple[str, bool, bool]:
    """The plain name of the operator, whether it is negated and whether letters must have the same case."""
    name = call.name.removeprefix("operator:")
    negated = name.startswith("!")
    name = name.removeprefix("!")
    return name.removesuffix("_cs"), negated, name.endswith("_cs")


def _with_signs(names: str) -> str:
    return " ".join(f"{sign}{name}{case}" for name in names.split() for sign in ("", "!") for case in ("", "_cs"))


def _searched(call: BoundCall, place: int = 0) -> Typed:
    argument = call.arguments[place]
    if argument.type not in (STRING, DYNAMIC):
        raise call.invalid(f"argument #{place + 1} must be a string or dynamic, not {argument.type}.", "SEM0025")
    return to_string(argument)


def _negated(test: Typed, negated: bool) -> Typed:
    return fill("NOT {0}", BOOL, test, nullable=False) if negated else test


@operators(_with_signs("has hasprefix hassuffix"), "text: any, term: any")
def _term_search(call: BoundCall) -> Typed:
    name, negated, sensitive = _parts(call)
    flags = _EDGES[name] + "c" * sensitive
    text, needle = _searched(call), to_string(call.arguments[1])
    test = _term(text, str(needle.constant), flags) if needle.is_constant else _term_of_row(text, needle, flags)
    return _negated(test, negated)


def _term_of_row(text: Typed, needle: Typed, flags: str = "^$") -> Typed:
    sides = "{0}, {1}" if "c" in flags else "lower({0}), lower({1})"
    test = f"CASE WHEN contains({sides}) THEN kql_has({{0}}, {{1}}, '{flags}') ELSE FALSE END"
    return fill(test, BOOL, text, needle, nullable=False)


def _term(text: Typed, needle: str, flags: str = "^$") -> Typed:
    sensitive = "c" in flags
    matching = literal(("" if sensitive else "(?i)") + _around(_escaped(needle), *_edges(needle, flags)), STRING)
    # In a lambda, where a long text would be bound, the pattern would be compiled for each row.
    if not (sensitive or needle.isascii()) or (not text.simple and len(text.sql) > 120):
        return fill("regexp_matches({0}, {1})", BOOL, text, matching, nullable=False)
    # `_` and `%` only widen ILIKE, which finds at least every text that has this one.
    present, part = ("contains({0}, {1})", needle) if sensitive else ("{0} ILIKE {1}", f"%{needle}%")
    both = f"CASE WHEN {present} THEN regexp_matches({{0}}, {{2}}) ELSE FALSE END"
    return fill(both, BOOL, text, literal(part, STRING), matching, nullable=False)


def _edges(needle: str, flags: str = "^$") -> tuple[bool, bool]:
    """Whether no letter or digit may stand before and behind the text."""
    first, last = (one.isalpha() or one.isnumeric() for one in (needle[:1], needle[-1:]))
    return "^" in flags and first, "$" in flags and last


def _around(pattern: str, begins: bool, ends: bool) -> str:
    start = r"(?:^|[^\pL\pN])" if begins else ""
    end = r"(?:$|[^\pL\pN])" if ends else ""
    return f"{start}(?:{pattern}){end}"


def _escaped(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)


def _has(text: str, needle: str, flags: str = "^$") -> bool:
    return _compiled(needle, flags).search(text) is not None


@lru_cache(4096)
def _compiled(needle: str, flags: str) -> re.Pattern[str]:
    """The same as `_term` in Python's regular expressions, for texts that each row has of its own."""
    begins, ends = _edges(needle, flags)
    pattern = r"(?<![^\W_])" * begins + re.escape(needle) + r"(?![^\W_])" * ends
    return re.compile(pattern, 0 if "c" in flags else re.IGNORECASE)


@operators(_with_signs("contains startswith endswith"), "text: any, part: any")
def _substring_search(call: BoundCall) -> Typed:
    name, negated, sensitive = _parts(call)
    text, needle = _searched(call), to_string(call.arguments[1])
    template, wide = _SUBSTRING[name]
    if sensitive:
        return _negated(fill(template, BOOL, text, needle, nullable=False), negated)
    folded = template.replace("{0}", "lower({0})")
    if not (needle.is_constant and str(needle.constant).isascii()):
        folded = folded.replace("{1}", "lower({1})")
        return _negated(fill(folded, BOOL, text, needle, nullable=False), negated)
    looked_for, present = str(needle.constant), "{0} ILIKE {2}"
    if "%" in looked_for or "_" in looked_for:
        present = f"CASE WHEN {present} THEN {folded} ELSE FALSE END"
    patterns = literal(looked_for.lower(), STRING), literal(wide.format(looked_for), STRING)
    return _negated(fill(present, BOOL, text, *patterns, nullable=False), negated)


@operators("has_any has_all", "text: any, terms: any...")
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
            template = f"kql_has_list({{0}}, {{1}}, {every})"
            tests.append(fill(template, BOOL, text, item, nullable=False))
        else:
            tests.append(_term_of_row(text, to_string(item)))
    tests += _has_constants(text, list(dict.fromkeys(constants)), every)
    return joined("AND" if every else "OR", tests) if tests else literal(every, BOOL)


def _texts_of(held: object) -> list[str]:
    if isinstance(held, list):
        return [text for one in held for text in _texts_of(one)]
    return ["" if held is None else held if isinstance(held, str) else json_text(held)]


def _has_constants(text: Typed, needles: list[str], every: bool) -> list[Typed]:
    if every or len(needles) <= _FEW:
        return [_term(text, needle) for needle in needles]
    # Texts with the same edges share one pattern; with edges of their own it outgrows RE2's fast automaton.
    groups: dict[tuple[bool, bool], list[str]] = {}
    for needle in needles:
        groups.setdefault(_edges(needle), []).append(_escaped(needle))
    patterns = [literal("(?i)" + _around("|".join(group), *edges), STRING) for edges, group in groups.items()]
    return [fill("regexp_matches({0}, {1})", BOOL, text, one, nullable=False) for one in patterns]


def _has_in_relation(text: Typed, relation: Typed, every: bool) -> Typed:
    needle = to_string(Typed("_kql_needle._kql_v", relation.type, simple=True))
    test = _term_of_row(Typed("_kql_hay._kql_h", STRING, simple=True), needle).sql
    # The text is one row of its own, so that it is written once however often it is read.
    rows = "FROM ({1}) AS _kql_needle(_kql_v), (SELECT {0} AS _kql_h) AS _kql_hay"
    sql = f"NOT EXISTS (SELECT 1 {rows} WHERE NOT {test})" if every else f"EXISTS (SELECT 1 {rows} WHERE {test})"
    return fill(sql, BOOL, text, Typed(relation.sql, relation.type, simple=True), nullable=False)


pythons({
    "kql_count_groups(regex: string): long": lambda pattern: len(_groups(pattern)),
    "kql_countof(text: string, match: string): long": lambda text, looked_for: (
        sum(text.startswith(looked_for, place) for place in range(len(text))) if looked_for else 0
    ),
    "kql_has(text: string, needle: string, flags: string): bool": lambda text, needle, flags: _has(text, needle, flags),
    "kql_has_list(text: string, held: json, every: bool): bool": lambda text, held, every: (
        held is not None and (all if every else any)(_has(text, needle) for needle in _texts_of(held))
    ),
    "has_any_index(source: string, values: array): long": lambda text, held: next(
        (place for place, one in enumerate(held) if _has(text, _texts_of(one)[0])), -1
    ),
})  # fmt: skip


_LOOKAROUND = re.compile(r"\(\?<?[=!]")
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


def _of_regex(call: BoundCall, place: int, argument: Typed) -> Typed:
    """Return an argument that is a regular expression, rewritten for RE2 if it is a constant."""
    if argument.type not in (STRING, DYNAMIC, GUID):
        raise call.invalid(f"argument #{place + 1} must be a string, not {argument.type}.", "SEM0201")
    text = to_string(argument)
    return literal(regex(str(text.constant)), STRING) if text.is_constant else text


def _of_filled_regex(call: BoundCall, place: int, argument: Typed) -> Typed:
    pattern = _of_regex(call, place, argument)
    if pattern.is_constant and not pattern.constant:
        raise call.invalid("the regex is empty.", "SEM0217")
    return pattern


_TEXTUAL = frozenset((STRING, DYNAMIC, GUID))
ARGUMENT_KINDS |= {"regex": ArgumentKind(_TEXTUAL, _of_regex), "filled_regex": ArgumentKind(_TEXTUAL, _of_filled_regex)}


@scalar("operator:matches regex(text: any, pattern: any)")
def _matches_regex(call: BoundCall) -> Typed:
    pattern = _of_regex(call, 1, call.arguments[1])
    test = fill("regexp_matches({0}, {1})", BOOL, _searched(call), pattern, nullable=False)
    return _negated(test, "!" in call.name or "not" in call.name)
