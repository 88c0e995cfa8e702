"""The things that a question names to a KQL template: "failed sign-ins of siobhan", "sign-ins of a user".

A query that does not use such a name answers another question, so it is not run: either another query takes the name,
or the person is asked. Above it stands `template_plans`; how a value finds its parameter is in `template_parameters`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import template_match, template_parameters
from sentinel_rag.agent.offline.names import NameSlot, may_be_named
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.template_match import Match, Template
from sentinel_rag.agent.offline.vocabulary import KIND_WORDS
from sentinel_rag.agent.planner.plan import Ask
from sentinel_rag.agent.row_text import plain

_SOME = re.compile(
    r"\b(?P<link>of|for|by|from|on)\s+(?:an?|one|some|a\s+certain|a\s+particular|a\s+given|a\s+single)\s+"
    r"(?P<kind>user|account|person|host|machine|device|computer|server)\b",
    re.IGNORECASE,
)


_LINK = r"\b(?P<link>of|for|by|from|on|did|does|do|has|have|had|was|is|users?|accounts?|hosts?)\s+(?:the\s+)?"
_NAME = r"[^\W\d_][\w.$'’-]{1,63}"
_OWNED = re.compile(
    rf"{_LINK}(?=(?P<name>{_NAME}(?:\s+{_NAME})?))|\b(?P<whose>{_NAME}?)['’]s\b(?=\s+\w)",
    re.IGNORECASE,
)


def with_named(reading: Reading, templates: Sequence[Template]) -> Reading:
    """The reading with a plain word as a name where an owner stands ("of siobhan", "siobhan's"), unless a template
    speaks of that word itself; and without the names of the templates, which name nothing."""
    called = {str(each.get("name", "")).lower() for each in templates}
    reading = replace(reading, names=tuple(name for name in reading.names if name.value.lower() not in called))
    if reading.names:
        return reading
    common = template_match.words_of(templates)
    for match in _OWNED.finditer(reading.rest):
        said = (match["name"] or match["whose"]).split()
        told = []
        for word in said:
            bare = re.sub(r"['’]s$", "", word.rstrip("."))
            if not may_be_named(bare) or _is_spoken_of(bare, common):
                break
            told.append(bare)
        if told:
            kind = "place" if (match["link"] or "").lower() == "from" else None  # "from russia" is no account
            return replace(reading, names=(NameSlot(" ".join(told), kind=kind, shaped=False),))
    return reading


_TIMES = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun|week)days?|weekends?|nights?|mornings?|holidays?)", re.I
)


def _is_spoken_of(word: str, common: frozenset[str]) -> bool:
    """True for a word of the templates, in the singular or the plural, and for a time ("on mondays")."""
    if _TIMES.fullmatch(word):
        return True
    word = word.lower()
    stems = {word.removesuffix(ending) for ending in ("s", "es", "ed")}
    return bool({word, f"{word}s", *(stem for stem in stems if len(stem) > 2)} & common)


def as_kinds(reading: Reading) -> tuple[Reading, ...]:
    """The reading with its one plain name as an account, as a host, and as a name of any kind, in this order."""
    if len(reading.names) != 1 or reading.names[0].kind is not None or template_match.kind_of(reading.names[0]):
        return (reading,)
    if re.search(rf"\bby\s+{re.escape(reading.names[0].value)}", reading.core, re.IGNORECASE):
        return (replace(reading, names=(replace(reading.names[0], kind="account"),)),)
    on_it = template_match.named(reading)[0].kind == "host"  # what happens "on" a thing happens on a host
    kinds = ("host", None) if on_it else ("account", "host", None)
    return tuple(replace(reading, names=(replace(reading.names[0], kind=kind),)) for kind in kinds)


def ask_for_one(reading: Reading, match: Match) -> Ask | None:
    """A question back for "of a user", where the query can be narrowed to one and the question does not say which."""
    some = _SOME.search(reading.core)
    if some is None or reading.names:
        return None
    kind = KIND_WORDS.get(some["kind"].lower(), some["kind"].lower())
    known = [NameSlot("x", kind=kind)]
    filled = template_parameters.fill(match.template, replace(reading, names=tuple(known)))
    if filled.unused or not filled.parameters:
        return None
    asked = _SOME.sub(lambda found: f"{found['link']} {found['kind']}", reading.text, count=1).rstrip(" .?!")
    everyone = _SOME.sub("", reading.text, count=1).rstrip(" .?!")
    return Ask(
        f"Which {some['kind'].lower()}? Answer with the name alone, or ask “{plain(everyone)}” for all of them.",
        pending=asked,
    )


def ask_without(unused: Sequence[NameSlot]) -> Ask:
    """A question back where no query that fits takes what the question names."""
    named = " and ".join(f"“{plain(name.value)}”" for name in unused)
    return Ask(
        f"No stored query for that can be narrowed to {named}, so I ran none: its rows would be about everything. "
        "Which of these do you want?",
        (*(f'Show the alerts that name "{name.value}"' for name in unused[:2]), "What queries can you run?"),
    )
