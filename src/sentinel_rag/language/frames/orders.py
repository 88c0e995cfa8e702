"""Orders to change something, read into slots: the act, the incident, the values, the text to write, and what is open.

An order is taken only from a sentence that begins as one, and only if every word of it has a place; a question about a
change, a statement, a quotation and a negated order are none. Pure: it knows no row and no conversation, so nothing
that others wrote can become an order. Words are data in `orders.toml`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache

from sentinel_rag.language.frames.frame import Token, shaped_tokens
from sentinel_rag.language.frames.phrases import (
    LANGUAGES,
    WORD,
    Item,
    PhraseBook,
    phrase_book,
    phrases_alone,
    phrases_of,
    sections,
)
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.text import toml_beside

_SHARED = ("severity", "status", "class", "ref")
"""Sections of the questions' lexicon that orders have in common with it."""
_EARLIER = ("again", "asked", "gateway")
"""Sections of what is said of orders that were given before."""
_OWN = {"level": "severity", "state": "status"}
"""Sections of orders that say first what a word of a shared section means in an order."""
_WEAK = frozenset({"set", "make", "give", "take", "open", "lower", "raise"})
"""Acts that other sentences begin with too; they are orders only with an incident and a value."""
_SETTING = frozenset({"set", "mark", "make", "lower", "raise", "classify"})
"""Acts behind which a level or a state alone is the value."""
_NEEDS = {"run": "playbook", "bring": "channel"}
"""Verbs that are orders for what no tool does only beside words of a type: "run the playbook", "send me it by mail"."""
_HANDING = frozenset({"assign", "give"})
_NO_LITERALS = frozenset({"table", "template", "operation"})
"""Shapes that words of an order may have ("FalsePositive")."""
_SILENT = ("to", "joint", "filler", "opening", "field", "thing", "person")
_PASTED = re.compile(r"\s*(?:>|```|[\"'“‘«„`])")
_CLAUSE = re.compile(r"[,;:.]")
_COMMA = re.compile(r",\s")
_NOTE = re.compile(r":\s|\s[-–—]\s")
_COLON = re.compile(r"\s*:(?![/\\\d])\s*|\s*:\s+")
_QUOTES = re.compile(r"\"([^\"]+)\"|“([^”]+)”|„([^“”]+)[“”]|«\s*([^»]+?)\s*»|'([^'\n]{2,}?)'(?!\w)", re.DOTALL)
_MOST_NAME_WORDS = 4
_LEAST_SPOKEN = 11
"""The least number that is one in words too: smaller ones mean lines, or nothing ("give me one")."""


class Act(StrEnum):
    """What kind of order a sentence is."""

    CHANGE = "change"
    COMMENT = "comment"
    BEYOND = "beyond"
    """What no tool does."""
    HOW = "how"
    """A question how to order something."""
    REFUSED = "refused"
    """A negated order."""
    LATER = "later"
    """Under a condition, or for another time."""


class Problem(StrEnum):
    """Why no call can hold what an order says."""

    CLASSES = "classes"
    VALUES = "values"
    NO_CRITICAL = "no_critical"
    NEW_OR_ACTIVE = "new_or_active"
    WHICH_SEVERITY = "which_severity"


@dataclass(frozen=True, slots=True)
class Order:
    """One order: slots that are filled, and what is open."""

    act: Act
    changes: Mapping[str, str] = field(default_factory=dict)
    """Arguments of an update. An owner "me" or "?name" is none yet."""
    note: str = ""
    """The comment of a classification."""
    message: str = ""
    """The text of a comment of its own; beside `changes` it is a second call."""
    comments: bool = False
    incidents: tuple[str, ...] = ()
    """The incidents that are named for certain."""
    numbers: tuple[str, ...] = ()
    """Numbers alone: of incidents, unless they are lines of a list."""
    pointed: tuple[str, ...] = ()
    """Words that point: "it", "them", places of a list from 1, "-1" for the last."""
    workspace: str = ""
    person: str = ""
    """Who "me" is by the words."""
    noun: bool = False
    """Whether a word for an incident stands there."""
    every: bool = False
    """For all of something."""
    reclassifies: bool = False
    unread: tuple[str, ...] = ()
    tail: str = ""
    """Words behind the last comma that nothing read; they may be meant as the comment."""
    problem: Problem | None = None
    unsure: bool = False
    """Put as a question or a wish."""
    device: bool = False
    """What is to be changed is a device, an account or the like."""
    parts: tuple[Order, ...] = ()
    """The orders of a sentence that holds several, each for an incident of its own."""
    wish: str = ""
    """The order inside of one under a condition."""

    @property
    def aims(self) -> bool:
        """True if the words say for which incident."""
        return bool(self.incidents or self.numbers or self.pointed)


def read_order(text: str) -> Order | None:
    """The order that a sentence is; None if it is none."""
    text = text.replace("’", "'")
    pasted = _PASTED.match(text)
    if pasted is not None:
        return Order(Act.BEYOND) if read_order(text[pasted.end() :]) is not None else None
    languages = _languages_of(text, earlier=False)
    if not languages:
        return None
    read = _best(text, languages)
    if _asked_elsewhere(read, text, languages):
        return None
    return _put_off(read) or _read(read) or _asks_how(read) or _behind_a_question(read)


class Said(StrEnum):
    """What a sentence says of changes that were asked for before."""

    AGAIN = "explicit"
    AGAIN_JUST_NOW = "loose"
    """Words that mean it only right after it was asked for."""
    DROP = "drop"
    YES = "yes"
    ALL = "all"
    """What was changed here."""
    INCIDENT = "deed"
    """Whether it was done."""
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a sentence may say of earlier changes, and the incidents that it names."""

    said: frozenset[Said] = frozenset()
    numbers: tuple[str, ...] = ()
    pointed: bool = False


def read_earlier(text: str) -> Earlier:
    """What a sentence says of changes that were asked for before, if it says nothing else."""
    for language in _languages_of(text, earlier=True):
        items = items_of(text.replace("’", "'"), language, earlier=True).items
        said = {value for item in items for type_, value in item.senses if value in set(Said)}
        numbers = [sense[1] for item in items if (sense := item.sense("digits"))]
        numbers += [item.text for item in items if item.sense("lit", frozenset({"number"}))]
        found = frozenset(
            one
            for one in map(Said, said)
            if all(_says(item, one) for item in items) and (one in _OF_INCIDENTS or not numbers)
        )
        if found:
            pointed = any(item.sense("asked", frozenset({"it"})) for item in items)
            return Earlier(found, tuple(dict.fromkeys(numbers)), pointed)
    return Earlier()


def means_again(text: str, *, just_now: bool) -> bool:
    """True for words that mean a change asked for before and nothing else, such as "do it now"; looser ones ("go
    ahead") only where it was asked for `just_now`."""
    said = read_earlier(text).said
    return Said.AGAIN in said or (just_now and Said.AGAIN_JUST_NOW in said)


_OF_INCIDENTS = (Said.ALL, Said.INCIDENT, Said.UNDO)


def _says(item: Item, said: Said) -> bool:
    type_ = "asked" if said in _OF_INCIDENTS else "again"
    values = frozenset({said.value, "padding", *(("it",) if type_ == "asked" else ())})
    return (
        item.sense(type_, values) is not None or item.sense("digits") is not None or item.senses[0] == ("lit", "number")
    )


def asks_the_gateway(text: str) -> bool:
    """True for a question about the gateway's own decision ("why was that denied?"); a word beside those that such a
    question may have, a host or a sign-in, makes it one about data."""
    items = items_of(text.replace("’", "'"), LANGUAGES[0], earlier=True).items
    known = all(item.sense("gateway") or item.sense("digits") for item in items)
    begins = next((item for item in items if not item.sense("gateway", frozenset({"around"}))), None)
    decided = any(item.sense("gateway", frozenset({"decided"})) for item in items)
    return known and decided and begins is not None and begins.sense("gateway", frozenset({"asks"})) is not None


def read_pick(text: str) -> int | None:
    """The place of a list that a sentence alone points at, from 1; -1 is the last."""
    for language in LANGUAGES:
        places: list[int] = []
        for item in items_of(text.replace("’", "'"), language).items:
            place = item.sense("ref") or item.sense("digits")
            if item.sense("lit", frozenset({"item", "number"})):
                places.append(int(item.text.strip("#[] ")))
            elif place is not None and place[1].lstrip("-").isdigit():
                places.append(int(place[1]))
            elif not (item.sense("opening") or item.sense("filler") or item.sense("thing", _OF_A_LIST)):
                break
        else:
            if len(places) == 1:
                return places[0]
    return None


def read_values(text: str) -> dict[str, str]:
    """The values that a sentence alone says, by their fields: an answer to a question back. Empty if it says more."""
    quoted = _QUOTES.fullmatch(text.strip())
    if quoted is not None:
        return {"message": next(group for group in quoted.groups() if group).strip()}
    for language in LANGUAGES:
        told: dict[str, str] = {}
        for item in items_of(text.replace("’", "'"), language).items:
            found = [(name, sense[1]) for name, type_ in _VALUES if (sense := item.sense(type_))]
            if item.senses[0] in (("lit", "upn"), ("lit", "guid")):
                found = [("owner", item.text)]
            if not found and not any(item.sense(type_) for type_ in ("opening", "filler", "to", "field", "person")):
                break
            if found and told.setdefault(*found[0]) != found[0][1]:
                break
        else:
            if told and "?" not in told.values():
                return told
    return {}


_OF_A_LIST = frozenset({"one", "line"})
_VALUES = (("classification", "class"), ("classification_reason", "reason"), ("severity", "severity"))


# --- words to items


def _data() -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    return toml_beside(__package__, "orders.toml")


@cache
def order_book(language: str, *, earlier: bool = False) -> PhraseBook:
    """The phrases of orders in a language, with those of English for what it has no word for; or those that are said of
    `earlier` orders."""
    tables: list[list[tuple[str, Mapping[str, list[str]]]]] = []
    for name in dict.fromkeys((language, "en")):
        own = _data()[name].items()
        tables.append([(_OWN.get(type_, type_), told) for type_, told in own if (type_ in _EARLIER) is earlier])
        tables.append([] if earlier else [(type_, sections(name).get(type_, {})) for type_ in _SHARED])
    return phrases_alone(language, tables)


@dataclass(frozen=True, slots=True)
class Read:
    """A text as items: literals by their shape, phrases of orders, and words that are neither ("text")."""

    text: str
    items: tuple[Item, ...]

    def gap(self, place: int) -> str:
        """What stands before an item."""
        before = self.items[place - 1].end if place else 0
        return self.text[before : self.items[place].start]

    def first(self, place: int, *types: str) -> int:
        """The first place from `place` on whose item is of none of the types."""
        while place < len(self.items) and any(self.items[place].sense(type_) for type_ in types):
            place += 1
        return place


def items_of(text: str, language: str, *, earlier: bool = False) -> Read:
    """The items of a text in one language."""
    book = order_book(language, earlier=earlier)
    tokens = [_as_number(token, book) for token in shaped_tokens(text) if token.shape not in _NO_LITERALS]
    items = [Item((("lit", token.shape),), token.value, token.start, token.end) for token in tokens]
    words: list[tuple[str, tuple[int, int]]] = []

    def flush() -> None:
        items.extend(book.cover([word for word, _ in words], [span for _, span in words], text)[1])
        words.clear()

    last = 0
    for match in WORD.finditer(text):
        if any(token.start < match.end() and match.start() < token.end for token in tokens):
            continue
        apart = re.search(r"[,;:.!?()\n–—]|\s-\s", text[last : match.start()])
        if apart or any(last <= token.start < match.start() for token in tokens):
            flush()
        words.append((fold(match[0]), match.span()))
        last = match.end()
    flush()
    return Read(text, tuple(sorted(items, key=lambda item: item.start)))


def _as_number(token: Token, book: PhraseBook) -> Token:
    """The token; a number that is written to its noun ("inc-124") is that number."""
    glued = re.fullmatch(r"([^\W\d_]+)[-_]?(\d+)", token.value) if token.shape == "host" else None
    if glued is None or ("thing", "one") not in book.senses(fold(glued[1])):
        return token
    return replace(token, shape="number", value=glued[2])


def _languages_of(text: str, *, earlier: bool) -> list[str]:
    """The languages that have a phrase of orders beginning with a word of the text."""
    words = {fold(match[0]) for match in WORD.finditer(text)}
    found = [language for language in LANGUAGES if not words.isdisjoint(_beginnings(language, earlier=earlier))]
    english = phrase_book(LANGUAGES[0])
    if found and LANGUAGES[0] not in found and all(word.isdecimal() or english.known([word]) for word in words):
        return []  # "active ones only, worst on top"
    return found


@cache
def _beginnings(language: str, *, earlier: bool) -> frozenset[str]:
    """The first words of the phrases without which a text is no order of the language."""
    types = _EARLIER if earlier else ("act", "beyond", "last")
    own = [words for type_, values in _data()[language].items() if type_ in types for words in values.values()]
    phrases = (one for values in own for pattern in values for one in phrases_of(pattern))
    return frozenset(phrase[0] for phrase in phrases if phrase)


def _best(text: str, languages: Sequence[str] = LANGUAGES) -> Read:
    """The items in the language in which the text is an order that is read best."""
    reads = [items_of(text, languages[0])]
    if any(item.type == "text" for item in reads[0].items):
        reads += [items_of(text, language) for language in languages[1:]]
    orders = [read for read in reads if _verb_at(read) is not None] or reads[:1]
    return min(orders, key=lambda read: sum(item.type == "text" for item in read.items))


def _verb_at(read: Read) -> int | None:
    """The place of the verb of an order: first behind what may stand before one, or last ("bitte 124 schließen")."""
    place = read.first(0, "opening", "no")
    if place >= len(read.items) or read.items[place].sense("reads"):
        return None
    if any(read.items[at].sense("reads") for at in range(place)):
        return None
    if read.items[place].sense("act") or read.items[place].sense("beyond"):
        return place
    last = max((at for at, item in enumerate(read.items) if item.sense("last")), default=0)
    behind = read.items[last + 1 :]  # "Vorfall 40 schließen als gutartig"
    ends = all(item.sense("filler") or item.type in ("text", "to", "class", "severity", "lit") for item in behind)
    return last if ends and last > place and all(item.type != "text" for item in read.items[:last]) else None


# --- an order under a condition


def _asked_elsewhere(read: Read, text: str, languages: Sequence[str]) -> bool:
    """True where the first word asks something in another language, which knows more of the words: "Comment ...?"."""
    first = read.items[0].text if read.items else ""
    others = [one for one in LANGUAGES if one not in languages]
    reads = [items_of(text, one) for one in others if items_of(first, one).items[0].sense("question")]
    unknown = [sum(item.type == "text" for item in one.items) for one in (read, *reads)]
    return min(unknown) < unknown[0]


def _put_off(read: Read) -> Order | None:
    """An order that begins with a condition or with a time to come."""
    begin = read.first(0, "opening")
    if begin >= len(read.items) or read.text.rstrip().endswith("?"):
        return None
    if any(item.sense("inverts") for item in read.items[begin + 1 : begin + 2]):
        return None  # "when did he close it" asks
    later = _later(read.items, begin)
    if not later and not read.items[begin].sense("condition", frozenset({"if"})):
        return None
    for place in range(begin + 1, len(read.items)):
        item = read.items[place]
        clause = _CLAUSE.search(read.gap(place)) or item.sense("joint") or later
        if not (
            item.sense("act") or (clause and (item.sense("beyond") or item.sense("opening") or item.sense("joint")))
        ):
            continue
        said = read.text[item.end if item.sense("joint") else item.start :].strip()
        inside = _read(_best(said))
        if inside is not None and inside.act is not Act.REFUSED and (inside.aims or inside.act is Act.BEYOND):
            return Order(Act.LATER, wish=said)
    return None


def _asks_how(read: Read) -> Order | None:
    """A question how something is changed here, about no incident that is named: "how do I close a case?"."""
    begin = read.first(0, "opening")
    asked = begin < len(read.items) and read.items[begin].sense("question", frozenset({"how"}))
    acts = [place for place, item in enumerate(read.items) if item.sense("act")]
    named = any(item.sense("digits") or item.sense("lit") or item.sense("ref") for item in read.items)
    if not asked or named or not acts or not any(item.sense("thing") for item in read.items[acts[0] :]):
        return None
    between = read.items[begin + 1 : acts[0]]
    return Order(Act.HOW) if all(item.sense("opening") or item.sense("how") for item in between) else None


def _behind_a_question(read: Read) -> Order | None:
    """An order behind something else that is asked ("show 12 and close it"): it is said apart, or not at all."""
    for place in range(1, len(read.items) - 1):
        item, before, behind = read.items[place], read.items[place - 1], read.items[place + 1]
        if item.sense("question") or before.sense("question") or read.items[0].sense("question"):
            return None
        joined = before.sense("joint") or _CLAUSE.search(read.gap(place))
        aimed = behind.sense("ref") or behind.sense("digits") or behind.sense("thing") or behind.sense("lit")
        if joined and aimed and (item.sense("act") or item.sense("beyond")) and not item.sense("reads"):
            return Order(Act.BEYOND, device=item.sense("beyond", frozenset({"device"})) is not None)
    return None


def _later(items: Sequence[Item], place: int) -> int:
    """How many items at `place` are a time to come: "tomorrow", "in 2 hours", "at 5 pm"; none if 0."""
    if items[place].sense("condition", frozenset({"later"})):
        return 1
    for width in (1, 2):
        number, unit = items[place + width - 1 : place + width], items[place + width : place + width + 1]
        timed = unit and unit[0].sense("condition", frozenset({"unit"})) and number and number[0].sense("num")
        if timed and (width == 1 or items[place].sense("filler")):
            return width + 1
    return 0


# --- the slots of an order


def _read(read: Read) -> Order | None:
    at = _verb_at(read)
    if at is None:
        return None
    verb, before = read.items[at], read.items[:at]
    first = read.first(0, "opening", "no") == at
    if first and any(item.sense("no") and not item.sense("opening") for item in before):
        return Order(Act.REFUSED)
    if verb.sense("beyond"):
        needed = next((type_ for value, type_ in _NEEDS.items() if verb.sense("beyond", frozenset({value}))), "")
        asks = any(item.sense("question") for item in read.items)
        if asks or (needed and not any(item.sense(needed) for item in read.items)):
            return None
        return Order(Act.BEYOND, device=verb.sense("beyond", frozenset({"device"})) is not None)
    # Where the verb stands last, what stands before it is read as if it stood behind.
    opened = at if first else read.first(0, "opening")
    items = (*read.items[:opened], verb, *read.items[opened:at], *read.items[at + 1 :])
    order = _clauses(Read(read.text, items), opened)
    if order is None:
        return None
    doubt = any(item.sense("opening", frozenset({"doubt"})) for item in before)
    polite = any(item.sense("opening", frozenset({"polite"})) for item in before)
    asked = _head_end(read.text, order).rstrip().endswith("?")
    if asked and polite and order.act is Act.CHANGE and order.every and not order.aims:
        return Order(Act.HOW)  # "can you close incidents?"
    asked &= not polite
    return replace(order, unsure=order.unsure or doubt or asked)


def _head_end(text: str, order: Order) -> str:
    written = order.message or order.note
    return text[: text.rfind(written)] if written else text


def _clauses(read: Read, at: int) -> Order | None:
    """The order that begins at `at`, with those that are joined to it."""
    orders: list[Order] = []
    place: int | None = at
    while place is not None:
        order, place = _clause(read, place)
        if order is None:
            return None if not orders else replace(orders[0], unread=(*orders[0].unread, read.items[at].text))
        orders.append(order)
    first = orders[0]
    if first.act is not Act.CHANGE and len(orders) == 1:
        return first
    merged = first
    for order in orders[1:]:
        own = (*order.incidents, *order.numbers, *(one for one in order.pointed if one != "it"))
        if order.act in (Act.REFUSED, Act.LATER):
            return order
        if own and own != (*first.incidents, *first.numbers, *first.pointed):
            return replace(first, parts=tuple(orders))
        merged = _merged(merged, order)
    return merged


def _merged(order: Order, other: Order) -> Order:
    """Two orders for the same incident as one."""
    both = {**order.changes, **other.changes}
    differ = any(order.changes.get(name, value) != value for name, value in other.changes.items())
    return replace(
        order,
        act=Act.CHANGE if both else order.act,
        changes=both,
        note=order.note or other.note,
        message=order.message or other.message,
        comments=order.comments or other.comments,
        unread=(*order.unread, *other.unread),
        tail=order.tail or other.tail,
        problem=order.problem or other.problem or (Problem.VALUES if differ else None),
        person=order.person or other.person,
        reclassifies=order.reclassifies or other.reclassifies,
        pointed=order.pointed or (other.pointed if not order.aims else ()),
        incidents=order.incidents or other.incidents if not order.aims else order.incidents,
        numbers=order.numbers or other.numbers if not order.aims else order.numbers,
    )


def _clause(read: Read, at: int) -> tuple[Order | None, int | None]:
    """The order whose verb stands at `at`, and the place of the next verb."""
    verb = read.items[at].sense("act")
    if verb is None:
        return None, None
    slots = _Slots(read, verb[1], at)
    return slots.order(), slots.next


class _Slots:
    """Fills the slots of one clause from left to right."""

    def __init__(self, read: Read, act: str, at: int) -> None:
        self.read, self.act, self.at = read, act, at
        self.next: int | None = None
        self.values: dict[str, list[str]] = defaultdict(list)
        self.incidents: list[str] = []
        self.numbers: list[str] = []
        self.pointed: list[str] = []
        self.unread: list[Item] = []
        self.fields: set[str] = set()
        self.person = self.workspace = self.note = self.message = ""
        self.noun = self.every = self.again = self.over = self.negated = False
        self.put_off: Item | None = None
        self.end = len(read.text)
        for item in self._scope():
            if sense := item.sense("field"):
                self.fields.add(sense[1])

    def order(self) -> Order | None:
        """The order, as far as its words say it; None if they are none after all."""
        self._texts()
        place = self.at + 1
        while place < self._stop():
            place += self._take(place)
        if self.negated:
            return Order(Act.REFUSED)
        order = self._settled()
        if order is not None and self.put_off is not None:
            wish = self.read.text[self.read.items[self.at].start : self.put_off.start].strip(" ,")
            return Order(Act.LATER, wish=wish if order.aims else "")
        return order

    # --- where the clause ends, and its free text

    def _scope(self) -> Sequence[Item]:
        return self.read.items[self.at + 1 :]

    def _stop(self) -> int:
        """The place behind the last item of the clause."""
        if self.next is not None:
            return self.next
        return next((n for n, item in enumerate(self.read.items) if item.start >= self.end), len(self.read.items))

    def _texts(self) -> None:
        """Find the text that is to be written, and the verb of a clause that follows."""
        items, text = self.read.items, self.read.text
        comments = self.act == "comment"
        aimed = False
        for place in range(self.at + 1, len(items) + 1):
            gap = text[items[place - 1].end : items[place].start if place < len(items) else len(text)]
            colon = _COLON.search(gap)
            if comments and colon:
                self._write(items[place - 1].end + colon.end())
                return
            if not comments and "class" in {type_ for item in items[self.at : place] for type_, _ in item.senses}:
                mark = _NOTE.search(gap)
                if mark:
                    self._write(items[place - 1].end + mark.end(), items[place - 1].end)
                    return
            if place == len(items):
                return
            item = items[place]
            if comments and (
                item.sense("text", frozenset({"saying"})) or (aimed and item.sense("text", frozenset({"that"})))
            ):
                self._write(item.end, item.start)
                return
            if comments and item.sense("lit", frozenset({"quoted"})):
                self.message = item.text.strip()
                continue
            if not comments and item.sense("text", frozenset({"note"})):
                self._write(item.end, item.start)
                return
            joined = items[place - 1].sense("joint") or _CLAUSE.search(gap) or item.sense("joint")
            if joined and item.sense("act") and not items[place - 1].sense("to"):
                self.next = place
                return
            aimed = aimed or bool(item.sense("num") or item.sense("lit") or item.sense("ref"))

    def _write(self, begin: int, end: int | None = None) -> None:
        """The text from `begin` on is written as it stands; the clause ends at `end`."""
        written = self.read.text[begin:].lstrip(" :=").strip()
        whole = _QUOTES.fullmatch(written)
        written = next(group for group in whole.groups() if group).strip() if whole else written
        self.end = begin if end is None else end
        if self.act == "comment":
            self.message = written
        else:
            self.note = written

    # --- one item after the other

    def _take(self, place: int) -> int:
        """Take the item at `place`; how many were taken."""
        item = self.read.items[place]
        before = self.read.items[place - 1]
        if item.sense("no") and not item.sense("opening"):
            self.negated |= _COMMA.search(self.read.text, self.read.items[self.at].end, item.start) is None
        elif wide := (_later(self.read.items, place) or (1 if item.sense("condition", frozenset({"if"})) else 0)):
            self.put_off = self.put_off or item
            return wide
        elif item.sense("lit"):
            self._literal(item, before)
        elif sense := item.sense("num"):
            self._number(item, sense[1], before)
        elif sense := item.sense("ref"):
            self._point(place, sense[1])
        elif item.sense("thing", frozenset({"workspace"})):
            return self._place(place)
        elif not self._value(item, before, place) and not self._passed(item):
            self.unread.append(item)
        return 1

    def _literal(self, item: Item, before: Item) -> None:
        shape = item.senses[0][1]
        owned = before.sense("to") or before.sense("person") or before.sense("field", frozenset({"owner"}))
        if shape == "item":
            self.pointed.append(item.text.strip("[]"))
        elif shape in ("number", "portal") or (shape == "guid" and not owned):
            self.incidents.append(item.text)
        elif shape in ("upn", "guid") and (self._hands_over() or (shape == "upn" and self.act in _SETTING)):
            if before.sense("to", frozenset({"from"})):
                return
            if before.sense("person", frozenset({"is"})):
                self.person = item.text
                self.values["owner"] = []
            self.values["owner"].append(item.text)
        elif not (shape == "user" and self._name(item, before)) and (shape != "quoted" or self.act != "comment"):
            self.unread.append(item)

    def _hands_over(self) -> bool:
        return self.act in _HANDING | {"take"} or "owner" in self.fields

    def _number(self, item: Item, value: str, before: Item) -> None:
        if before.sense("thing", frozenset({"line"})):
            self.pointed.append(value)
        elif not item.sense("digits") and int(value) < _LEAST_SPOKEN:
            self.unread.append(item)
        elif before.sense("thing", frozenset({"one", "many"})) or self.incidents:
            self.incidents.append(value)
        else:
            self.numbers.append(value)

    def _point(self, place: int, value: str) -> None:
        named = any(self.read.items[at].sense("num") for at in range(place + 1, min(place + 2, len(self.read.items))))
        if value == "definite":
            self.noun = True
            if named:
                self.incidents.append("")  # the number behind it is an incident's
                self.incidents.pop()
            else:
                self.pointed.append("it")
        elif value == "they":
            self.unread.append(self.read.items[place])
        else:
            self.pointed.append({"its": "it", "ones": "them"}.get(value, value))

    def _place(self, place: int) -> int:
        """The workspace that is named, and how many items that takes."""
        found = re.match(r"\s+([\w.-]*\w)", self.read.text[self.read.items[place].end :])
        if found is None:
            self.unread.append(self.read.items[place])
            return 1
        self.workspace = found[1]
        end = self.read.items[place].end + found.end()
        return sum(self.read.items[place].start <= item.start < end for item in self.read.items)

    def _value(self, item: Item, before: Item, place: int) -> bool:
        """True if the item fills a slot."""
        behind = self.read.items[place + 1 : place + 2]
        left = before.sense("to", frozenset({"from"})) and behind and behind[0].sense("to")
        to = before.sense("to", frozenset({"to"})) is not None
        if sense := item.sense("class"):
            self.values["classification"].append(sense[1])
        elif sense := item.sense("reason"):
            self.values["classification_reason"].append(sense[1])
        elif (sense := item.sense("severity")) and (self.act in _SETTING or self._said_before(place, "severity")):
            self.values["severity"] += [] if left else [sense[1]]
        elif (sense := item.sense("status")) and ("status" in self.fields or to or self.act in _SETTING | {"close"}):
            self.values["status"] += [] if left else [sense[1]]
        elif to and item.sense("act", frozenset({"close"})):
            self.values["status"].append("Closed")
        elif sense := item.sense("person"):
            return self._owner(sense[1], before)
        elif item.type == "text" or (to and item.sense("act")):
            return self._name(item, before)
        else:
            return False
        return True

    def _said_before(self, place: int, name: str) -> bool:
        """True if the field stands before the item ("severity to low", not "low severity")."""
        before = [item for item in self.read.items[max(self.at, place - 2) : place] if not item.sense("to")]
        return bool(before) and before[-1].sense("field", frozenset({name})) is not None

    def _owner(self, value: str, before: Item) -> bool:
        if value == "is":
            return True
        if self._hands_over():
            self.values["owner"].append("unassigned" if value == "nobody" else "me")
        return value == "me" or self.act in _HANDING or "owner" in self.fields

    def _name(self, item: Item, before: Item) -> bool:
        """True if the words are a person's name, which names no user for certain."""
        handed = self.act in _HANDING or "owner" in self.fields
        if not handed or before.sense("to", frozenset({"from"})):
            return bool(handed)
        said = self.values["owner"]
        if (
            said
            and said[-1].startswith("?")
            and before.type == item.type == "text"
            and len(said[-1].split()) < _MOST_NAME_WORDS
        ):
            said[-1] += f" {item.text}"
            return True
        said.append(f"?{item.text}")
        return True

    def _passed(self, item: Item) -> bool:
        """True for words that only join and place the others."""
        if sense := item.sense("thing"):
            self.noun = self.noun or sense[1] in ("one", "many")
            self.every = self.every or sense[1] in ("many", "all")
            return sense[1] in ("one", "many", "all", "line")
        self.again = self.again or item.sense("to", frozenset({"again"})) is not None
        self.over = item.sense("to", frozenset({"over"})) is not None
        return any(item.sense(type_) for type_ in _SILENT)

    # --- what comes of it

    def _settled(self) -> Order | None:
        values = self.values
        if self.act == "make" and self.over and not values["severity"]:
            self.act = "close"
        if self.act == "open":
            if not self.again:
                return None
            self.act = "reopen"
        if self.act in ("close", "reopen"):
            values["status"] = ["Closed" if self.act == "close" else "Active"]
        if self.act == "unassign":
            values["owner"] = ["unassigned"]
        if self.act == "take" and not values["owner"]:
            values["owner"] = ["me"]
        if any(not who.startswith("?") for who in values["owner"]):
            # Beside a user who is named for certain, other words are no name.
            self.unread += [item for item in self._scope() if f"?{item.text}" in values["owner"]]
            values["owner"] = [who for who in values["owner"] if not who.startswith("?")]
        changes = {name: said[0] for name, said in values.items() if said}
        comments = self.act == "comment"
        order = Order(
            Act.COMMENT if comments else Act.CHANGE,
            {} if comments else changes,
            note=self.note,
            message=self.message,
            comments=comments,
            incidents=tuple(dict.fromkeys(self.incidents)),
            numbers=tuple(dict.fromkeys(self.numbers)),
            pointed=tuple(dict.fromkeys(self.pointed)),
            workspace=self.workspace,
            person=self.person,
            noun=self.noun,
            every=self.every,
            reclassifies=self.act == "classify" or "classification" in self.fields,
            unread=tuple(item.text for item in self.unread),
            problem=self._problem(),
        )
        if comments and order.unread and not order.aims and not order.message:
            return None
        order = self._with_tail(order)
        if comments or changes:
            lost = self.act in _WEAK and not order.aims and (order.unread or not self.fields or order.every)
            nobody = self.act in _HANDING and not order.aims and order.problem is Problem.VALUES
            nobody |= self.act in _HANDING and any(item.sense("question") for item in self._scope())
            return None if lost or nobody else order  # "weisen Sie die Änderungen an den Rollen nach"
        if self.act in ("lower", "raise"):
            return replace(order, problem=Problem.WHICH_SEVERITY) if order.aims else None
        if not order.aims or order.unread:
            nothing = self.act in _WEAK or (self.act == "mark" and not order.aims)  # "Mark's sign-ins"
            return None if nothing else Order(Act.BEYOND)
        return Order(Act.BEYOND)

    def _problem(self) -> Problem | None:
        values = {name: set(said) for name, said in self.values.items()}
        if len(values.get("classification", ())) > 1 or len(values.get("classification_reason", ())) > 1:
            return Problem.CLASSES
        if any(len(said) > 1 for said in values.values()):
            return Problem.VALUES
        if "?" in values.get("severity", ()):
            return Problem.NO_CRITICAL
        return Problem.NEW_OR_ACTIVE if values.get("status", set()) & {"?", "Open"} else None

    def _with_tail(self, order: Order) -> Order:
        """The order, with what stands behind its last comma as words that may be the comment."""
        if not order.unread or not order.changes or order.note:
            return order
        first = self.unread[0]
        comma = self.read.text.rfind(",", 0, first.start)
        behind = [item for item in self._scope() if item.start > comma]
        plain = all(not (item.sense("num") or item.sense("lit") or item.sense("act")) for item in behind)
        words = self.read.text[comma + 1 :].strip(" .!")
        return replace(order, tail=words) if comma > 0 and plain and len(words.split()) > 1 else order
