"""What a sentence says beside what it asks for: why somebody asks, when they go home, what happened to them before.

A clause that opens as such and holds nothing that narrows rows says nothing of the question. A clause that tells,
beside one that asks, gives its names, times and kinds of things to the other; its verbs say nothing. A word that
nothing knows is loose where its form or its place shows that it hardly narrows: an adverb of manner, the label before
a colon, a word of a clause that tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.language.frames.asides import asides as said_beside
from sentinel_rag.language.frames.phrases import Item, PhraseBook, phrase_book, sections, words_of
from sentinel_rag.language.lexicon import fold

_BREAK = re.compile(r"[,;:!?–—]|\.(?=\s|$)|\s-+>?\s|\.\.+|[()]")
_LABEL = re.compile(r"\s*[:?]\s|\s+[-–—]\s")
_NARROWING = ("name", "lit", "digits", "severity", "status", "class", "threat", "tactic", "product", "not")
_TOLD = ("name", "lit", "kind", "severity", "class", "threat", "tactic", "product", "order", "plural")
"""What a clause that tells gives to the one that asks."""
_ASKS = (
    ("ask", None),
    ("op", frozenset({"list", "count", "summary", "trend", "priority", "top", "average", "exists", "compare"})),
)
"""With what the question itself begins behind a clause that no comma ends."""
_HEADS = ("text", "threat", "tactic")
"""What a label before a question names: "C2 hypothesis: blocked destinations"."""
_POINTS = ("ref", "that")
_NOTHING = (("f", "f"),)
_CORRECTED = ("lit", "num", "kind", "severity", "status", "class", "product", "tactic")
"""What a word behind one that takes it back puts right."""
_LISTED = frozenset({"incident", "alert"})
_FEWEST_WORDS, _MOST_LOOSE, _LONGEST_TAG, _LONGEST_LABEL = 4, 6, 3, 2


def without(items: Sequence[Item], clauses: Sequence[tuple[int, int]]) -> list[Item]:
    """The items, those of clauses beside the question as words that mean nothing."""
    return [
        replace(item, senses=_NOTHING) if any(first <= place < last for first, last in clauses) else item
        for place, item in enumerate(items)
    ]


def asides(items: Sequence[Item], text: str) -> list[tuple[int, int]]:
    """The first and the last place of each clause beside the question; together they are never all of the sentence."""
    for stops in (False, True):
        found = _clauses(items, text, stops=stops)
        apart = [item for at, item in enumerate(items) if not any(first <= at < last for first, last in found)]
        if any(not item.silent and item.sense("meta") is None for item in apart):
            return found
    return []


def _clauses(items: Sequence[Item], text: str, *, stops: bool) -> list[tuple[int, int]]:
    """Clauses up to the next sign, or with `stops` up to where a question begins that no comma parts from them."""
    found: list[tuple[int, int]] = []
    for first, last in _segments(items, text):
        place = first
        while place < last:
            opener = items[place].sense("aside")
            if opener is None or (opener[1] == "begins" and any(not one.silent for one in items[first:place])):
                place += 1
                continue
            begins = (at for at in range(place + 1, last) if _asks(items[at]))
            narrowed = any(_narrows(item) for item in items[place:last])
            end = next(begins, last) if stops or narrowed else last
            if not any(_narrows(item) for item in items[place:end]):
                found.append((place, end))
            place = end + 1
    return found


def told_apart(items: Sequence[Item], text: str, book: PhraseBook) -> tuple[list[Item], list[Item]]:
    """The items without what clauses that only tell say by their verbs, and the words of those that nothing knows."""
    segments = _segments(items, text)
    asking = [any(map(_asks, items[first:last])) for first, last in segments]
    strange = [any(item.type == "text" for item in items[first:last]) for first, last in segments]
    says = [any(not item.silent and not _only_asks(item) for item in items[first:last]) for first, last in segments]
    if not any(asks and full and not odd for asks, full, odd in zip(asking, says, strange, strict=True)):
        return list(items), []
    telling = [
        (first, last)
        for (first, last), asks, odd in zip(segments, asking, strange, strict=True)
        if (odd or not asks) and last - first >= _FEWEST_WORDS and _finite(items[first:last], book)
    ]
    unknown = [item for first, last in telling for item in items[first:last] if item.type == "text"]
    if not unknown:  # "I have the board at three."
        telling = [(first, last) for first, last in telling if all(map(_says_little, items[first:last]))]
    if not telling or len(unknown) > _MOST_LOOSE or any(_like_a_name(item, text) for item in unknown):
        return list(items), []
    said = [
        item
        if not any(first <= at < last for first, last in telling) or item.type in _TOLD or item.type == "text"
        else replace(item, senses=_NOTHING)
        for at, item in enumerate(items)
    ]
    content = any(
        item.type in ("name", "lit", "threat", "kind") for first, last in telling for item in said[first:last]
    )
    if content:  # "that" of the clause that asks points at what the other one tells
        said = [replace(item, senses=_NOTHING) if item.type in _POINTS else item for item in said]
    return said, unknown


def _only_asks(item: Item) -> bool:
    """True for a word that asks and tells nothing of what: "who?", "have a look"."""
    return item.type == "ask" or item.sense("op", frozenset({"list", "exists", "count"})) is not None


def tags(items: Sequence[Item], text: str) -> list[tuple[int, int]]:
    """The questions that only ask to agree, each behind a sign: ", weren't they?"."""
    return [
        (first, last)
        for first, last in _segments(items, text)[1:]
        if last - first <= _LONGEST_TAG
        and any(item.type == "not" for item in items[first:last])
        and any(item.type == "ref" for item in items[first:last])
        and all(item.silent or item.type in ("not", "ref") for item in items[first:last])
    ]


def taken_back(items: Sequence[Item], text: str) -> list[tuple[int, int]]:
    """Each word that one of its type puts right behind it, and what says so: "on web-03, no wait, on dc-01"."""
    found: list[tuple[int, int]] = []
    for mark in said_beside(text, "correction", "mark"):
        end = next((sign.start() for sign in _BREAK.finditer(text, mark.end() + 1)), len(text))
        right = [item for item in items if mark.end() <= item.start < end and item.type in _CORRECTED]
        before = [(at, item) for at, item in reversed([*enumerate(items)]) if item.end <= mark.start()]
        wrong = [next((at for at, item in before if _alike(item, one)), None) for one in right]
        said = [at for at, item in enumerate(items) if mark.start() <= item.start < mark.end()]
        found += [(at, at + 1) for at in (*wrong, *said) if at is not None and set(wrong) - {None}]
    return found


def _alike(item: Item, other: Item) -> bool:
    """True for two levels, two kinds of rows, two numbers, or two names of one kind."""
    return item.type == other.type and (item.type != "lit" or item.senses[1:] == other.senses[1:])


def _says_little(item: Item) -> bool:
    return item.silent or item.type in ("num", "modal", "do", "ref", "meta")


def _like_a_name(item: Item, text: str) -> bool:
    """True for an unknown word that is written as a name is, where no sentence begins."""
    begins = not re.search(r"\w\s*$", text[: item.start])
    return not item.text.isalpha() or (not begins and item.text != item.text.lower() and len(item.text) > 1)


def _finite(items: Sequence[Item], book: PhraseBook) -> bool:
    """True where a verb with a subject stands, as a clause has one and a list of filters has none."""
    marks = {word for phrase in sections(book.language).get("finite", {}).get("marks", ()) for word in phrase.split()}
    return any(marks & set(words_of(item.text)) for item in items)


def _segments(items: Sequence[Item], text: str) -> list[tuple[int, int]]:
    """The stretches of items between the signs of a sentence."""
    starts = [0] + [
        place for place in range(1, len(items)) if _BREAK.search(text[items[place - 1].end : items[place].start])
    ]
    return list(zip(starts, [*starts[1:], len(items)], strict=True))


def _asks(item: Item) -> bool:
    return any(item.sense(type_, values) is not None for type_, values in _ASKS)


def _narrows(item: Item) -> bool:
    kind = item.sense("kind")
    return (
        item.type in _NARROWING
        or (kind is not None and kind[1] != "thing")
        or item.sense("owner", frozenset({"unassigned"})) is not None
    )


def loose(items: Sequence[Item], text: str, book: PhraseBook) -> list[Item]:
    """The unknown words that hardly narrow anything."""
    label = _label(items, text)
    found = [
        item
        for place, item in enumerate(items)
        if (item.type in _HEADS and place < label)
        or (item.type == "text" and _adverb(item, text, book))
        or (item.type in ("text", "qualifier") and _explains_a_name(items[place : place + 3], text, book))
    ]
    others = [place for place, item in enumerate(items) if item.type == "text" and item not in found]
    if len(others) == 1 and _stands_apart(items, others[0], text, book):
        found.append(items[others[0]])
    return found


def _label(items: Sequence[Item], text: str) -> int:
    """How many items are a heading that names the matter: "Note:", "BEC check:" before a question to the logs."""
    length = 1 + next((at for at, item in enumerate(items) if _LABEL.match(text, item.end)), len(items))
    first, rest = items[:length], items[length:]
    if length > _LONGEST_TAG or not rest:
        return 0
    unknown = all(item.type == "text" for item in first) and length <= _LONGEST_LABEL
    logs = any(item.type == "topic" for item in rest) and not any(item.sense("kind", _LISTED) for item in rest)
    heads = all(item.type in _HEADS or item.silent or _only_asks(item) for item in first)
    heads = heads and not any(item.sense("program") for item in first)
    return length if unknown or (logs and heads) else 0


def _explains_a_name(items: Sequence[Item], text: str, book: PhraseBook) -> bool:
    """True for a word that tells what a name behind it is: "the finance host, ws-01", "our director m.keller"."""
    item, *behind = items
    of_kind = bool(behind) and behind[0].sense("kind") is not None
    name = behind[1:] if of_kind else behind
    if not name or name[0].sense("name") is None or _BREAK.search(text[item.end : name[0].start].replace(",", "")):
        return False
    return of_kind or (name[0].start - item.end == 1 and _behind(item, text, book, "own"))


def _stands_apart(items: Sequence[Item], place: int, text: str, book: PhraseBook) -> bool:
    """True for a word that neither names, nor describes, nor is told of what stands beside it."""
    item = items[place]
    first, last = next(each for each in _segments(items, text) if each[0] <= place < each[1])
    if place == last - 1:
        return False
    before, after = items[place - 1], items[place + 1]
    if place == first:
        fits = _object(after, book)
    else:
        beside = after.silent or after.start - item.end > 1
        fits = beside and before.silent and not _behind(item, text, book, "never_behind", "never_apart_behind")
    return fits and item.text.isalpha() and item.text.islower() and not _of_time(item, book)


def _of_time(item: Item, book: PhraseBook) -> bool:
    """True for a word of time, which is never left out of a question."""
    told = (sections(language).get("kept", {}).get("time", ()) for language in dict.fromkeys(("en", book.language)))
    return fold(item.text) in {word for phrases in told for phrase in phrases for word in words_of(phrase)}


def ordinary(items: Sequence[Item], text: str, language: str) -> bool:
    """True if the words that nothing knows are written as words of a language are, and stand where no name does."""
    book = phrase_book(language)
    return not any(
        item.type == "text"
        and (
            not item.text.isalpha()
            or len(item.text) == 1
            or text.startswith("'", item.end)  # a possessor, or a word in quotes
            or _behind(item, text, book, "never_behind")
            or _describes(items[place : place + 2])
            or _of_time(item, book)
            or (not book.capitals and not item.text.isupper() and _like_a_name(item, text))
        )
        for place, item in enumerate(items)
    )


def _describes(items: Sequence[Item]) -> bool:
    """True for a word right before what it may narrow: "admin logons"."""
    first, *after = items
    return bool(after) and after[0].start - first.end == 1 and after[0].type in ("topic", "kind", "threat")


def _object(item: Item, book: PhraseBook) -> bool:
    """True for what a verb that only asks for something stands before, as no order to change something does."""
    objects = sections(book.language).get("adverb", {}).get("objects", ())
    return item.type in ("ask", "op", "aside") or words_of(item.text)[0] in objects


def _behind(item: Item, text: str, book: PhraseBook, *settings: str) -> bool:
    """True for a word behind one of those of a setting, such as a preposition, where names and descriptions stand."""
    told = [sections(language).get("adverb", {}) for language in dict.fromkeys(("en", book.language))]
    behind = {fold(word) for each in told for one in settings for word in each.get(one, ())}
    return bool(set(words_of(text[: item.start])[-1:]) & behind)


def _adverb(item: Item, text: str, book: PhraseBook) -> bool:
    """True for a word with the ending of an adverb that stands where no name does."""
    endings = sections(book.language).get("adverb", {}).get("endings", ())
    return (
        item.text[1:].islower() and item.text.endswith(tuple(endings)) and not _behind(item, text, book, "never_behind")
    )
