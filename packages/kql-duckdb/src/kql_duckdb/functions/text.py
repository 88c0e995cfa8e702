"""Text: joining, cutting, searching, replacing and extracting strings.

Source: the Kusto pages named like the functions. Positions count characters from 0. What hunting asks of each row is
SQL; the rest is Python. Encodings are in `encodings`, texts that have a form of their own in `parsing`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import DYNAMIC, INT, LONG, STRING, convert, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function
from kql_duckdb.functions.text_search import regex_argument


def _joined(call: BoundCall) -> Typed:
    """`strcat` of constants is a constant, since Kusto takes it where a pattern must be one."""
    arguments = call.arguments
    if all(argument.is_constant for argument in arguments):
        return literal("".join(str(argument.constant) for argument in arguments), STRING)
    listed = ", ".join(f"{{{place}}}" for place in range(len(arguments)))
    return fill(f"concat({listed})", STRING, *arguments)


def _joined_with(call: BoundCall) -> Typed:
    listed = ", ".join(f"{{{place}}}" for place in range(len(call.arguments)))
    return fill(f"concat_ws({listed})", STRING, *call.arguments)


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


def _index_of(call: BoundCall) -> Typed:
    text, looked_for, *rest = call.arguments
    if not rest:
        return fill("CAST(position({1} IN {0}) - 1 AS BIGINT)", LONG, text, looked_for)
    return fill("kql_indexof({0}, {1}, {2}, {3}, {4})", LONG, text, looked_for, *_window(rest))


def _window(given: list[Typed]) -> list[Typed]:
    """Start, length and occurrence, as far as they are given."""
    return [*given, *(literal(default, LONG) for default in (0, -1, 1)[len(given) :])]


@python_function("kql_indexof", ("VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "BIGINT"), "BIGINT")
def _place_of(text: str, looked_for: str, start: int | None, length: int | None, occurrence: int | None) -> int | None:
    """Each occurrence is looked for from the character after the one before it, in `length` characters."""
    if start is None or length is None or occurrence is None or length < -1 or occurrence < 1:
        return None
    place = max(start + len(text), 0) if start < 0 else start
    for _ in range(occurrence):
        found = text.find(looked_for, place, len(text) if length == -1 else place + length)
        if found < 0:
            return -1
        place = found + 1
    return place - 1


# What stands before the n-th match is matched too: its length is the place. Matches do not overlap.
_BEFORE = "'(?s)^((?:.*?(?:' || {1} || ')){' || CAST({4} - 1 AS VARCHAR) || '}.*?)(?:' || {1} || ')'"
_PART = "CASE WHEN {3} = -1 THEN substr({0}, {2} + 1) ELSE substr({0}, {2} + 1, {3}) END"
_PLACE_OF_REGEX = (
    f"CASE WHEN {{2}} < 0 OR {{4}} < 1 OR {{3}} < -1 THEN NULL WHEN regexp_matches({_PART}, {_BEFORE}) "
    f"THEN {{2}} + length(regexp_extract({_PART}, {_BEFORE}, 1)) ELSE -1 END"
)


def _index_of_regex(call: BoundCall) -> Typed:
    text, _, *rest = call.arguments
    return fill(_PLACE_OF_REGEX, LONG, text, regex_argument(call, 1), *_window(rest))


def _count_of(call: BoundCall) -> Typed:
    """Plain texts are counted where they overlap, matches of a regular expression where they do not."""
    text, looked_for = call.arguments[:2]
    kind = (call.constant_text(2) or "normal").lower() if len(call.arguments) > 2 else "normal"
    if kind == "normal":
        return fill("kql_countof({0}, {1})", LONG, text, looked_for, nullable=False)
    if kind != "regex":
        raise call.invalid("argument #3 must be 'normal' or 'regex'.", "SEM0207")
    return fill(
        "CAST(len(regexp_extract_all({0}, {1})) AS BIGINT)", LONG, text, regex_argument(call, 1), nullable=False
    )


@python_function("kql_countof", ("VARCHAR", "VARCHAR"), "BIGINT")
def _occurrences(text: str, looked_for: str) -> int:
    count, place = 0, text.find(looked_for) if looked_for else -1
    while place >= 0:
        count += 1
        place = text.find(looked_for, place + 1)
    return count


def _replace_regex(call: BoundCall) -> Typed:
    return fill(
        "regexp_replace({0}, {1}, {2}, 'g')", STRING, call.arguments[0], regex_argument(call, 1), call.arguments[2]
    )


def _replace(call: BoundCall) -> Typed:
    """The older order of arguments: regular expression, rewrite, source."""
    return fill("regexp_replace({2}, {0}, {1}, 'g')", STRING, regex_argument(call, 0), *call.arguments[1:])


_TRIMMED = {"trim_start": "^({})", "trim_end": "({})$", "trim": "^({0})|({0})$"}


def _trim(call: BoundCall) -> Typed:
    """Kusto puts the regular expression into a group, anchors it and removes each match, one at each end."""
    pattern, text = regex_argument(call, 0), call.arguments[1]
    wrapped = _TRIMMED[call.name]
    if not pattern.is_constant:
        parts = wrapped.replace("{0}", "{}").split("{}")
        joined = " || {1} || ".join(f"'{part}'" for part in parts)
        return fill(f"regexp_replace({{0}}, {joined}, '', 'g')", STRING, text, pattern)
    if not pattern.constant:
        raise call.invalid("the regex is empty.", "SEM0217")
    whole = literal(wrapped.format(pattern.constant), STRING)
    return fill("regexp_replace({0}, {1}, '', 'g')", STRING, text, whole)


def _extract(call: BoundCall) -> Typed:
    group, text = convert(call.arguments[1], INT), call.arguments[2]
    if not group.is_constant:
        raise call.invalid("argument #2 must be a constant.", "SEM0040")
    found = fill(f"regexp_extract({{0}}, {{1}}, {int(group.constant)})", STRING, text, regex_argument(call, 0))
    return convert(found, call.arguments[3].type) if len(call.arguments) > 3 else found


_MOST_GROUPS = 16
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?P<(\w+)>)?(\?)?", re.DOTALL)


def _groups(pattern: str) -> list[str]:
    """The capture groups of a regular expression in order, each by its name or ""."""
    return [
        found[1] or "" for found in _PIECE.finditer(pattern) if found[0].startswith("(") and (found[1] or not found[2])
    ]


def _extract_all(call: BoundCall) -> Typed:
    """The groups of each match, never the match itself; a flat array of one group. No match gives null."""
    pattern, text = regex_argument(call, 0), call.arguments[-1]
    if not pattern.is_constant:
        raise call.invalid("argument #1 must be a constant.", "SEM0040")
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
    row = ", ".join(f"{{0}}[{place + 1}][_i]" for place in range(len(wanted)))
    rows = f"to_json(list_transform({{0}}[1], lambda _e, _i: [{row}]))"
    return fill(f"CASE WHEN len({{0}}[1]) > 0 THEN {rows} END", DYNAMIC, matches)


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


def _split(call: BoundCall) -> Typed:
    text, delimiter, *index = call.arguments
    if not index:
        parts = fill("str_split({0}, {1})", STRING, text, delimiter)
        return replace(fill("to_json({0})", DYNAMIC, parts, nullable=False), texts=parts)
    place = convert(index[0], LONG)
    at = "least({2}, 2147483646) + 1"
    one = f"CASE WHEN {{2}} < 0 THEN [] ELSE list_slice(str_split({{0}}, {{1}}), {at}, {at}) END"
    return fill(f"to_json({one})", DYNAMIC, text, delimiter, place)


@dynamic_function("kql_replace_strings", ("VARCHAR", "JSON", "JSON"), "VARCHAR")
def _replace_strings(text: str, lookups: Any, rewrites: Any) -> str:
    """A lookup takes all its places before the next one looks, and none looks into what was put in.

    One whose rewrite is no text stands as it is.
    """
    if not isinstance(lookups, list) or not isinstance(rewrites, list):
        return text
    pieces: list[tuple[str, bool]] = [(text, False)]
    for looked_for, rewrite in itertools.zip_longest(lookups[: len(lookups)], rewrites[: len(lookups)]):
        if not isinstance(looked_for, str) or not looked_for:
            continue
        put = rewrite if isinstance(rewrite, str) else looked_for
        pieces = [part for piece in pieces for part in _marked(piece, looked_for, put)]
    return "".join(piece for piece, _ in pieces)


def _marked(piece: tuple[str, bool], looked_for: str, put: str) -> list[tuple[str, bool]]:
    text, done = piece
    if done or looked_for not in text:
        return [piece]
    parts = text.split(looked_for)
    return [(parts[0], False)] + [one for part in parts[1:] for one in ((put, True), (part, False))]


@python_function("kql_translate", ("VARCHAR", "VARCHAR", "VARCHAR"), "VARCHAR")
def _translate(search: str, replacement: str, text: str) -> str:
    """A shorter list of replacements goes on with its last character; an empty one removes."""
    padded = replacement + replacement[-1:] * (len(search) - len(replacement))
    table: dict[int, str | None] = {}
    for place, character in enumerate(search):
        table.setdefault(ord(character), padded[place] if padded else None)
    return text.translate(table)


_ROW_OF_TRIM = "(regex: string, source: string)"

FUNCTIONS: tuple[ScalarFunction, ...] = (
    function("strcat(arg: text...)", _joined),
    function("strcat_delim(delimiter: text, arg: text...)", _joined_with),
    function("strcmp(s1: text, s2: text): long", "CAST(({0} > {1})::INTEGER - ({0} < {1})::INTEGER AS BIGINT)"),
    function(
        "strrep(value: text, multiplier: long, delimiter?: text)",
        lambda call: fill(
            "CASE WHEN {1} > 0 THEN repeat({0} || {2}, least({1}, 1024) - 1) || {0} ELSE '' END",
            STRING,
            *[*call.arguments, literal("", STRING)][:3],
        ),
    ),
    function("strlen(string: string): long", "CAST(length({0}) AS BIGINT)"),
    function("string_size(string: string): long", "CAST(strlen({0}) AS BIGINT)"),
    function("toupper(value: text): string", "upper({0})", status="partly", note="the large sharp s is ẞ, not ß"),
    function("tolower(value: text): string", "lower({0})"),
    function("substring(string: text, start: long, length?: long)", _substring),
    function("indexof(string: text, match: text, start?: long, length?: long, occurrence?: long)", _index_of),
    function(
        "indexof_regex(string: text, match: text, start?: long, length?: long, occurrence?: long)", _index_of_regex
    ),
    function("reverse(value: text): string", "reverse({0})"),
    function("split(source: text, delimiter: string, requestedIndex?: any)", _split),
    function("extract(regex: string, captureGroup: long, source: string, typeLiteral?: type)", _extract),
    *(
        function(f"{name}(regex: string, captureGroups: any, source?: any)", _extract_all)
        for name in ("extract_all", "extractall")
    ),
    function("replace(regex: string, rewrite: string, source: string)", _replace),
    function("replace_regex(source: string, lookup_regex: string, rewrite_pattern: string)", _replace_regex),
    function("replace_string(text: string, lookup: string, rewrite: string): string", "replace({0}, {1}, {2})"),
    function(
        "replace_strings(text: string, lookups: dynamic, rewrites: dynamic): string",
        "coalesce(kql_replace_strings({0}, {1}, {2}), '')",
    ),
    *(function(f"{name}{_ROW_OF_TRIM}", _trim) for name in ("trim", "trim_start", "trim_end")),
    function("countof(source: string, search: string, kind?: string)", _count_of),
    function(
        "translate(searchList: string, replacementList: string, source: string): string", "kql_translate({0}, {1}, {2})"
    ),
    function("isascii(value: text): bool", r"NOT regexp_matches({0}, '[^\x00-\x7F]')"),
    function("isutf8(value: text): bool", "{0} IS NOT NULL"),
    function("regex_quote(string: text): string", r"regexp_replace({0}, '([\\.+*?()|\[\]{}^$#&\-~])', '\\\1', 'g')"),
)
