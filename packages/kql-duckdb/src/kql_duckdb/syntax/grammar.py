"""How what begins with a word of its own is written: operators, statements, sources and parts of these, as a table.

A row is what the parser reads: words and marks as they are (`a|b` either), a field in capitals with the way to read it
(`FIELD:kind`, an expression if it has none, with `+` for a list and `*` for one that may be empty), `word!flag` a word
that the flag tells of, `< ... >` what may be missing, and `!` a field that no other way may leave out. `word=` are
parameters that may stand behind an operator's own word, as every `hint.x=` may, and `...` is where they may stand
again. A row with `@` has a name and no word of its own. A kind is a method of the parser, or another row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a row: words, a field, or parts that may be missing."""

    words: tuple[str, ...] = ()
    field: str = ""
    kind: str = ""
    several: bool = False
    closing: str = ""
    """The bracket behind a list that may be empty."""
    needed: bool = False
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Rule:
    parts: tuple[Part, ...]
    parameters: tuple[str, ...]
    fields: dict[str, Any]
    """Its fields with what stands for a part that is missing."""
    needed: tuple[str, ...]


_SEQUENCES = ("operators", "options", "parameters")
"""Kinds that are lists without a notation for it."""


def _rules(table: str) -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for row in table.strip().replace("\n    ", " ").splitlines():
        words = row.split()
        names = words[0].removeprefix("@").split("|")
        parameters = tuple(word[:-1] for word in words if word.endswith("=") and word != "=")
        parts = _parts([word for word in words if word[0] != "@" and word.removesuffix("=") not in parameters])
        fields: dict[str, Any] = {"parameters": ()}
        for part in _flat(parts):
            fields[part.field] = False if part.words else () if part.several or part.kind in _SEQUENCES else None
        fields.pop("", None)
        needed = tuple(part.field for part in _flat(parts) if part.needed)
        found.update(dict.fromkeys(names, Rule(parts, parameters, fields, needed)))
    return found


def _flat(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from _flat(part.parts)


def _parts(written: list[str]) -> tuple[Part, ...]:
    found: list[Part] = []
    while written:
        word = written.pop(0)
        if word == ">":
            break
        if word == "<":
            found.append(Part(parts=_parts(written)))
        elif word == "...":
            found.append(Part(field="parameters", kind="parameters"))
        elif word.rstrip("!+*").partition(":")[0].isupper():
            name, _, kind = word.rstrip("!+*").partition(":")
            closing = written[0] if word.endswith("*") else ""
            several = word.endswith(("+", "*"))
            found.append(Part((), name.lower(), kind or "expression", several, closing, word.endswith("!")))
        else:
            text, _, flag = word.partition("!")
            found.append(Part(tuple(text.split("|")), flag))
    return tuple(found)


OPERATORS: Final = _rules(
    """
where|filter kind= PREDICATE
extend COLUMNS:named+
project|project-rename < COLUMNS:named+ >
project-away|project-keep|project-reorder COLUMNS:choice+
sort|order by KEYS:ordered+
top COUNT by KEYS:ordered+
take|limit|sample COUNT
count < as NAME:name >
distinct COLUMNS:named+
summarize < AGGREGATES:named+ > < by KEYS:named+ < bin = BIN > >
join|lookup kind= withsource= with_source= isfuzzy= RIGHT:postfix < on|where CONDITIONS+ >
union kind= withsource= with_source= isfuzzy= INPUTS:input+ ...
search kind= < in ( TABLES:input+ ) > PREDICATE:search_predicate
find withsource= with_source= datascope= < in ( TABLES:input+ ) > < where > PREDICATE:search_predicate
    < project COLUMNS:find_column+ > < project-smart!smart > < project-away AWAY:name_or_pattern+ >
mv-expand|mvexpand kind= bagexpansion= with_itemindex= COLUMNS:expansion+ < limit LIMIT >
mv-apply|mvapply kind= bagexpansion= with_itemindex= COLUMNS:expansion+ < limit LIMIT > < id ID > on ( BODY:operators )
parse|parse-where kind= flags= EXPRESSION with PATTERN:parse_pattern
parse-kv EXPRESSION as ( COLUMNS:column_type* ) < with ( OPTIONS:options ) >
make-series kind= AGGREGATES:series+ on AXIS:axis < in!in_range range ( FIRST , LAST , STEP! ) >
    < from FIRST > < to LAST > < step STEP! > < by KEYS:named+ >
evaluate CALL:plugin_call < : SCHEMA:schema >
invoke CALL:plugin_call
partition by KEY:key_path ... < in > < ( BODY:operators ) > < { QUERY:pipe_expression } >
@top-nested LEVELS:level+
top-hitters COUNT of KEY:named < by WEIGHT >
sample-distinct COUNT of KEY:named
serialize < COLUMNS:named+ >
as NAME:name
getschema kind=
consume decodeblocks=
render KIND:name < with ( OPTIONS:options ) > < OPTIONS:options >
"""
)

OTHERS: Final = _rules(
    """
let NAME:name = VALUE:let_value
set NAME:name < = VALUE:option_value >
declare query_parameters ( PARAMETERS:function_parameter* )
datatable < ( COLUMNS:column_type* ) > [ VALUES* ]
externaldata|external_data ( COLUMNS:column_type* ) < [ PLACES* ] > < with ( OPTIONS:options ) >
range NAME:name from FIRST to LAST step STEP
print COLUMNS:named+
@expansion COLUMN:named < to typeof ( TYPE:type_name ) >
@series COLUMN:named < default = DEFAULT >
@level top-nested < COUNT > of KEY:named < with others = OTHERS > by ORDER:ordered
"""
)

UNREAD: Final = frozenset(
    """assert-schema execute-and-cache facet fork graph-mark-components graph-match graph-shortest-paths graph-to-table
    graph-where-edges graph-where-nodes macro-expand make-graph project-by-names project-smart reduce scan""".split()  # noqa: SIM905 - a word list reads better
)
"""Operators that are refused, so known by name and not read further."""

HYPHENATED: Final = [word for word in (*OPERATORS, *UNREAD) if "-" in word]
