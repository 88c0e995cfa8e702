"""Finds the places of a question that point at something: `[2]`, "the second one", "that host", "its", "both".

Reads words only; what they point at is chosen with the conversation, see `choosing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from sentinel_rag.agent.references import description_words, place_words, pronoun_words
from sentinel_rag.agent.references.mention_forms import Form, ListChoice, Mention
from sentinel_rag.agent.references.wording import END, MASK, NOUN, ORDINAL, ORDINALS, is_plural, kind_of, spoken

_OF_LIST = re.compile(
    rf"\s+(?:of|from|in|on|off)\s+(?:the\s+|that\s+|your\s+)?"
    rf"(?:(?:(?:very\s+)?(?P<which>{ORDINAL}|previous|prior|earlier|other|current|original|latest)\s+)?"
    rf"(?:(?P<kind>(?:top\s+)?(?:{NOUN}))\s+)?(?:list|table|results|answer)(?:\s+of\s+(?P<kind2>{NOUN}))?"
    rf"(?P<back>\s+(?:before|earlier|above|from\s+before|from\s+earlier|you\s+showed(?:\s+(?:me|before|earlier))*))?"
    rf"|(?P<kind3>{NOUN})(?P<back2>\s+(?:from\s+)?(?:before|earlier|above))?(?={END})|(?P<before>before|earlier)\b)",
    re.IGNORECASE,
)


_NAMED = re.compile(
    r"\b(?:incidents?|cases?|tickets?)[\s#:-]*\d{1,9}\b(?![\w/-]|[.:]\d)"
    r"|\balert\s+(?=[\w.:{}]*[-_])(?=[\w.:{}-]*\d)[\w.:{}-]*\w",
    re.IGNORECASE,
)
"""Things that the question names itself: "the second incident 1" points at none but that."""

_OF_SOME_LIST = re.compile(
    r"\s+(?:of|from|in|on)\s+(?:[\w'’-]+\s+){0,4}(?:lists?|table)\b(?:\s+(?:at|from|with|of)\s+[^,;?!]*)?", re.I
)
"""Words that name a list in a way that is not understood: which one is asked back, not taken to be the last."""


def whole(mention: Mention, masked: str) -> bool:
    """True if the question holds nothing but the mention."""
    return not re.search(r"[\w\ufffc]", masked[: mention.start] + masked[mention.end :])


def mentions_in(masked: str) -> list[Mention]:
    """Every mention, those that claim more first; of two that share a word the earlier one counts unless it points at
    nothing."""
    found: list[Mention] = []
    pointing = _NAMED.sub(lambda match: MASK * len(match[0]), masked)
    for read in _READERS:
        for mention in read(pointing):
            listed = mention.form in (Form.PLACES, Form.DESCRIBED) and mention.chosen is None
            found.append(_with_list(mention, masked) if listed else mention)
    return found


_SAYS_WHICH = re.compile(
    r"\s+(?:(?P<first>(?:at|from)\s+the\s+(?:very\s+)?(?:beginning|start))|"
    r"(?:that|which|where|about|you|at|from|with(?!\s+(?:\[|\d|it\b|incident|alert|the\s+(?:one|other|first|second|third|last))))\b"
    r"[^,;?!]*)",
    re.IGNORECASE,
)
_BEFORE = frozenset({"previous", "prior", "earlier", "other"})


def _with_list(mention: Mention, masked: str) -> Mention:
    """The mention with the list that is named behind it: "of the first list", "from the list of incidents"."""
    match = _OF_LIST.match(masked, mention.end)
    if match is None:
        other = _OF_SOME_LIST.match(masked, mention.end)
        return mention if other is None else replace(mention, end=other.end(), chosen=ListChoice(unknown=True))
    kind = next((match[name] for name in ("kind", "kind2", "kind3") if match[name]), "")
    kind = kind_of(re.sub(r"^top\s+", "", kind, flags=re.IGNORECASE))
    which = spoken(match["which"] or "")
    earlier = bool(match["back"] or match["back2"] or match["before"]) or which in _BEFORE
    if match["kind3"] and not earlier and mention.form is Form.PLACES and not is_plural(match["kind3"]):
        return mention
    place = 1 if which == "original" else ORDINALS.get(which, 0)
    if further := _SAYS_WHICH.match(masked, match.end()):
        known = ListChoice(place=1) if further["first"] and not (kind or which or earlier) else ListChoice(unknown=True)
        return replace(mention, end=further.end(), chosen=known)
    return replace(mention, end=match.end(), chosen=ListChoice(place=place, kind=kind, earlier=earlier))


_READERS: tuple[Callable[[str], Iterator[Mention]], ...] = (
    place_words.read_brackets,
    description_words.read_earlier,
    place_words.read_line_numbers,
    place_words.read_hashed,
    place_words.read_bare,
    place_words.read_beside,
    pronoun_words.read_other,
    place_words.read_ordinals,
    description_words.read_described,
    pronoun_words.read_that,
    pronoun_words.read_them,
    pronoun_words.read_it,
)
"""Those that claim more come first."""
