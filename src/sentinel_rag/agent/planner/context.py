"""What a conversation can lean on, as typed state: things spoken of, lists as they stood, the last decisions, offers.

It holds ids, frames and the words that tell lines apart, never an answer: a question about a state is asked of the
tools again. Bounded. How a sentence leans on it is in `binding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sentinel_rag.agent.planner.decisions import Decision, DecisionKind, Option, Unclear
from sentinel_rag.agent.planner.knowledge import KnowledgeWish
from sentinel_rag.agent.things import ALERT, INCIDENT, LONGEST_ID, OWNER, QUESTION, ListItem, entity_item, shown_words
from sentinel_rag.language.frames import Frame

MOST_LINES = 1000
"""Lines of one list that are kept."""
_MOST_LISTS, _MOST_LINES_OF_ALL, _MOST_SPOKEN, _MOST_TOLD, _MOST_DECISIONS = 30, 1200, 60, 200, 10


@dataclass(frozen=True, slots=True)
class ShownList:
    """A numbered list as it stood on the screen."""

    items: tuple[ListItem, ...]
    turn: int
    total: int | None = None
    """How many there are of its kind in all; None if that is not known."""
    by: Decision | None = None
    """What listed it, so that it can be narrowed and sorted."""
    beside: bool = False
    """Whether it came with an answer about one thing, such as the alerts of an incident."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A thing that a question or an answer was about, and when."""

    item: ListItem
    turn: int
    doubted: bool = False
    """Whether it is a name that was asked back, so that a pronoun for it is asked back too."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """Words of the last sentence, and the things that they were taken for."""

    said: str
    items: tuple[ListItem, ...]


@dataclass
class Context:
    """What the next sentence of one conversation may lean on. `turn` counts its sentences."""

    turn: int = 0
    decisions: tuple[Decision, ...] = ()
    """Those that were carried out, the newest last."""
    lists: tuple[ShownList, ...] = ()
    dropped: int = 0
    """Lists that were forgotten, so that "the first list" is not taken for one that came later."""
    spoken: tuple[Spoken, ...] = ()
    """Things that were spoken of one by one, the newest last."""
    together: tuple[ListItem, ...] = ()
    """Things that were spoken of at once: what "both" means."""
    together_turn: int = 0
    told: tuple[Spoken, ...] = ()
    """Things that answers told of without a number, in their order."""
    rows: tuple[ShownList, ...] = ()
    """Things of one kind that an answer told of together, the newest of each kind: "the second host"."""
    unlisted: int = 0
    """The last turn that asked for a list and showed none of its lines: a count, or nothing was found."""
    waiting: Decision | None = None
    """A question back that is open."""
    offers: tuple[Option, ...] = ()
    """Ways to go on that the last answer or question back proposed."""
    shown: int = 0
    """Rows of the newest list that are on the screen."""
    pointed_into: int = 0
    """The number of the list that the last question pointed into, 0 for none."""
    moment: Mapping[str, str] = field(default_factory=dict)
    """The stretch of time that the last answer told of, as a window; empty if it told of none."""
    pointed: tuple[Pointed, ...] = field(default=(), compare=False)
    """What the last sentence pointed at. Not stored."""
    pointing: int = field(default=0, compare=False)
    """The number of the list that the last sentence points into. Not stored."""

    @property
    def before(self) -> Decision | None:
        """The last decision that was carried out."""
        return self.decisions[-1] if self.decisions else None

    @property
    def documents(self) -> KnowledgeWish | None:
        """What was looked for in the knowledge base, where the last answer was of it."""
        return self.before.wish if self.before is not None else None

    @property
    def footnote(self) -> str:
        """`References: “[2]” = incident 31`, for a person; empty where nothing was pointed at but by its own id."""
        pairs = [
            f"“{each.said}” = {', '.join(map(shown_words, each.items))}"
            for each in self.pointed
            if each.said and [each.said] != [item.value for item in each.items]
        ]
        return f"References: {'; '.join(pairs)}" if pairs else ""

    def remember(
        self,
        decision: Decision,
        items: Sequence[ListItem] = (),
        *,
        first: int = 0,
        total: int | None = None,
        told: Iterable[ListItem] = (),
        about: Sequence[ListItem] = (),
        offers: Sequence[Option] = (),
        found: bool = True,
    ) -> None:
        """What was decided and came back: `items` under their numbers, `first` of them stood there already; what was
        `told` without a number; what the answer is `about`. A name that nothing carries leaves no name behind."""
        self.turn += 1
        self.offers = tuple(replace(each, frame=_plain(each.frame)) for each in (tuple(offers) or decision.options))
        asked = replace(decision, frame=_plain(decision.frame), options=self.offers)
        self.waiting = asked if decision.kind is DecisionKind.ASK else None
        if decision.kind is DecisionKind.ASK:
            self._list_choices(decision)
            if len(decision.frame.all("name")) == 1:
                self._speak_of(decision, (), doubted=decision.reason in _OF_NAMES)
            return
        if decision.kind is not DecisionKind.CALL:
            return
        of_documents = decision.wish is not None
        self.moment = {}
        self.pointed_into = (self.pointing or self.list_number) if self.pointed else 0
        kept = replace(decision, frame=_plain(decision.frame) if found else _without_names(decision.frame))
        self.decisions = (*self.decisions, kept)[-_MOST_DECISIONS:]
        self._tell(told)
        self._speak_of(decision, about)
        if items:
            self.show(items, first=first, total=total, by=None if of_documents else kept)
        elif decision.calls and decision.calls[0].tool in _LISTING and not self._shows(decision):
            self.unlisted = self.turn
        alone = len(items) == 1 and total in (None, 1) and not of_documents
        if alone and (items[0].kind == INCIDENT or not self.lists[-1].beside):
            self.speak_of(items[0])

    def propose(self, options: Iterable[Option]) -> None:
        """Ways to go on that a question back proposes, which no frame of its own waits for."""
        self.begin_turn()
        self.offers = tuple(replace(each, frame=_plain(each.frame)) for each in options)

    def begin_turn(self) -> None:
        """Another sentence came that is no question: nothing waits for a choice any more."""
        self.turn += 1
        self.waiting, self.offers, self.pointed = None, (), ()

    def show(
        self, items: Sequence[ListItem], *, first: int = 0, total: int | None = None, by: Decision | None = None
    ) -> None:
        """Remember a numbered list; `first` rows stood above it already and keep their numbers."""
        above = self.lists[-1].items[:first] if first and self.lists else ()
        kept = tuple(self._fullest(item) if len(item.value) <= LONGEST_ID else ListItem(item.kind) for item in items)
        beside = by is not None and by.frame.has("incident", "name")
        shown = ShownList((above + kept)[:MOST_LINES], self.turn, total, by, beside)
        self.lists = (*(self.lists[:-1] if above else self.lists), shown)
        self.shown = len(shown.items)
        while len(self.lists) > _MOST_LISTS or (
            len(self.lists) > 1 and sum(len(each.items) for each in self.lists) > _MOST_LINES_OF_ALL
        ):
            self.lists, self.dropped = self.lists[1:], self.dropped + 1

    def speak_of(self, item: ListItem, *, doubted: bool = False) -> None:
        """What is talked about from here on."""
        if item.value and len(item.value) <= LONGEST_ID and item.kind != QUESTION:
            others = tuple(each for each in self.spoken if each.item.key != item.key)
            self.spoken = (*others, Spoken(self._fullest(item), self.turn, doubted))[-_MOST_SPOKEN:]

    def learn(self, told: Iterable[ListItem], about: Iterable[ListItem]) -> None:
        """Keep what an answer that nobody decided here told of, and what it was about."""
        for each in self.pointed:
            for item in each.items:
                self.speak_of(item)
        self._tell(told)
        for item in about:
            self.speak_of(item)

    def focus(self, *kinds: str) -> Spoken | None:
        """The thing of one of `kinds`, any without, that was spoken of last."""
        return next((each for each in reversed(self.spoken) if not kinds or each.item.of_kind in kinds), None)

    def current(self, kind: str) -> ListItem | None:
        """The thing of `kind` that is talked about; None if a list of such things came after it."""
        focus = self.focus(kind)
        newer = focus is not None and any(
            shown.turn > focus.turn and any(line.of_kind == kind for line in shown.items) for shown in self.lists[-1:]
        )
        return None if focus is None or newer else focus.item

    def known_incidents(self) -> frozenset[str]:
        """Every incident number that this conversation has shown or heard."""
        seen = [item for shown in self.lists for item in shown.items]
        seen += [each.item for each in (*self.spoken, *self.told)]
        numbers = [number for each in seen for number in (each.incident, each.value if each.kind == INCIDENT else "")]
        return frozenset(filter(None, numbers))

    def clear(self) -> None:
        """Drop the last question and what is open; what was shown keeps its numbers."""
        self.decisions, self.waiting, self.offers, self.shown, self.moment = (), None, (), 0, {}

    @property
    def list_number(self) -> int:
        """The number of the newest list among all that were shown, from 1; 0 for none."""
        return self.dropped + len(self.lists)

    def _shows(self, decision: Decision) -> bool:
        """Whether the rows that were counted are those of the list on the screen."""
        shown = self.lists[-1].by if self.lists else None
        return shown is not None and shown.calls == decision.calls

    def _list_choices(self, decision: Decision) -> None:
        """The choices of a question back are a list of their own, unless they stand in the one on the screen."""
        things = [option.item for option in decision.options if option.item is not None]
        numbers = [option.number for option in decision.options]
        if not things or numbers != list(range(1, len(things) + 1)):
            return
        shown = self.lists[-1].items[: len(things)] if self.lists else ()
        if [item.key for item in shown] != [item.key for item in things]:
            self.show(things)

    def _speak_of(self, decision: Decision, about: Sequence[ListItem], *, doubted: bool = False) -> None:
        """Entities come before incidents, so that "it" is the incident in which a host was asked about."""
        frame = decision.frame
        pointed = {item.value: item for each in self.pointed for item in each.items}
        owners = [entity_item(OWNER, name) for name in frame.all("owner") if name not in _NOBODY]
        names = [
            entity_item((frame.name_kinds(name) or ("",))[0], frame.whole.get(name, name)) for name in frame.all("name")
        ]
        things = [pointed.get(item.value, item) for item in (names or owners)]
        incidents = [
            ListItem(ALERT, number) if number in frame.all("alert") else ListItem(INCIDENT, number, incident=number)
            for number in frame.all("incident")
        ]
        things += [pointed.get(item.value, item) for item in incidents]
        alerts = [ListItem(ALERT, alert) for alert in frame.all("alert_id")]
        things += [pointed.get(item.value, item) for item in alerts]
        if len(things) == 1 or len({item.kind for item in things}) > 1:
            for item in things:
                self.speak_of(item, doubted=doubted and item.kind not in (INCIDENT, ALERT))
        elif things:
            self.together, self.together_turn = tuple(things), self.turn
        for item in about:
            self.speak_of(item)

    def _tell(self, told: Iterable[ListItem]) -> None:
        fresh = {item.key: Spoken(item, self.turn) for item in told if item.value and len(item.value) <= LONGEST_ID}
        kept = tuple(each for each in self.told if each.item.key not in fresh)
        self.told = (*kept, *fresh.values())[-_MOST_TOLD:]
        for kind in dict.fromkeys(each.item.of_kind for each in fresh.values()):
            row = tuple(each.item for each in fresh.values() if each.item.of_kind == kind)
            if len(row) > 1:
                others = tuple(shown for shown in self.rows if shown.items[0].of_kind != kind)
                self.rows = (*others, ShownList(row[:MOST_LINES], self.turn))

    def _fullest(self, item: ListItem) -> ListItem:
        """The same thing as it was shown with its title and time, if `item` does not say them."""
        if item.time or item.title:
            return item
        shown = [each for shown in reversed(self.lists) for each in shown.items]
        shown += [each.item for each in (*reversed(self.spoken), *reversed(self.told))]
        return next((each for each in shown if each.key == item.key and (each.time or each.title)), item)


def _plain(frame: Frame) -> Frame:
    """A frame as it is kept: what was read as what is not needed again."""
    return replace(frame.copy(), items=())


_OF_NAMES = (Unclear.UNKNOWN_NAME, Unclear.NEAR_NAME, Unclear.AMBIGUOUS_NAME, Unclear.WHICH_NAME)
"""Reasons to ask back for a name, of which it is open whether there is such a thing."""
_NOBODY = ("unassigned", "me")
_LISTING = ("query_incidents", "query_alerts", "get_top_entities")
_NARROWS = ("severity", "min", "status", "owner", "tactic", "product", "class")


def _without_names(frame: Frame) -> Frame:
    """A frame whose name nothing carries; where something else narrowed it too, that may be why nothing was found."""
    kept = _plain(frame)
    if frame.window or frame.has(*_NARROWS, "meta:everywhere"):
        return kept
    for type_ in ("name", "of_kind", "title"):
        kept.features.pop(type_, None)
    return kept
