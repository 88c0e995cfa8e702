"""The words that stand for a thing in a question: `incident 31`, `alert 3f1c...`, `host "web-03"`.

An entity's name comes from the logs, so an attacker may have written it. One that is not plainly a name gets no place
in the person's sentence: the sentence keeps the person's own words for it and the thing travels beside them.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.references.listed import ALERT, ENTITY, INCIDENT, QUESTION, ListItem
from sentinel_rag.agent.row_text import plain, quoted

LONGEST_NAME = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:{}-]{0,199}")
_SIGNS_OF_A_NAME = re.compile(r"[\w.@:\\/$%+~()&=#\u27e6\u27e7 -]+")
_WORDS_OF_A_NAME = 3
_KIND_WORDS = {
    "filehash": "hash",
    "ip": "ip",
    "dns": "domain",
    "mailmessage": "mail",
    "cloud-application": "application",
    "azure-resource": "resource",
}


def words_for(item: ListItem) -> str | None:
    """The words for `item`; None if its id is unknown or may not stand in a sentence."""
    if item.kind == INCIDENT:
        return f"incident {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == ALERT:
        return f"alert {item.value}" if _ID.fullmatch(item.value) else None
    if item.kind == QUESTION:
        return item.value
    if not is_a_name(item.value):
        return None
    kind = _KIND_WORDS.get(item.entity_kind, item.entity_kind) if item.kind == ENTITY else item.kind
    return f'{kind} "{item.value}"'.lstrip()


def is_a_name(value: str) -> bool:
    """True for what reads as a name and not as a sentence: few words, no sign that ends a quotation or a clause."""
    return (
        0 < len(value) <= LONGEST_NAME
        and plain(value, limit=LONGEST_NAME) == value
        and _SIGNS_OF_A_NAME.fullmatch(value) is not None
        and len(value.split()) <= _WORDS_OF_A_NAME
        and not reads_like_instruction(value)
    )


def joined_words(items: tuple[ListItem, ...]) -> str | None:
    """The words for several things; None if one of them has none."""
    words = [words_for(item) for item in items]
    known = [each for each in words if each is not None]
    if len(known) < len(words) or not known:
        return None
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}"


def shown_words(item: ListItem) -> str:
    """The thing as a footnote or a question back names it: one safe line."""
    if item.kind in (INCIDENT, ALERT):
        return f"{item.kind} {plain(item.value, limit=80)}"
    return f"{item.of_kind} {plain(item.value, limit=120)}".strip()


def shown_line(number: int, item: ListItem) -> str:
    """A numbered line of a question back: the thing and the words that tell it from the others."""
    told = [quoted(item.title, limit=80)] if item.title else []
    told += [plain(word, limit=60) for word in (item.severity, item.place, item.time) if word]
    return f"[{number}] {shown_words(item)}" + (f": {', '.join(told)}" if told else "")
