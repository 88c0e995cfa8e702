"""One sentence on its way to a whole frame, with what every way of leaning needs: lists, things that are spoken of, and
the frame about a thing that was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sentinel_rag.agent.planner.context import Context, Pointed, ShownList
from sentinel_rag.agent.planner.decisions import Decision, Option, Unclear, about, ask, things
from sentinel_rag.agent.planner.merging import LISTED, asks_of_a_thing, is_list, merged, types_of
from sentinel_rag.agent.things import ALERT, INCIDENT, OWNER, ListItem
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import SILENT, Item

MOST_AT_ONCE = 10
"""Things that one sentence may ask about together."""
LISTED_KINDS = tuple(f"kind:{kind}" for kind in sorted(LISTED))
SIDE_BY_SIDE = ("op:compare", "attr:worse", "both", "know:similar", "compare")
_MARKS = ("moment", "ref", "that", "talk", "shift", "drop", "list_of", "item", "relative", "add", "pick", "sorted")
"""Types of words that lean on what came before, and mean nothing more once they are bound."""
_WEAK = frozenset({*SILENT, "add", "moment"})
"""Types of words that may mean nothing: "also", "then"."""
_LINKS = frozenset({"yes", "no", "instead", "again", "back", "anew", "adjust"})
_TOGETHER = ("op:count", "op:top", "op:average", "op:share", "op:trend", "by", "group")
"""What is asked of rows together, and not of each."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Ways to take a sentence, the likeliest first: the first that can be answered is taken. With `ask` each that is
    answered otherwise is offered; so it is where a question back is open that the sentence does not answer."""

    frames: tuple[Frame, ...]
    said: Frame
    """The sentence as it stands."""
    ask: bool = False
    leans: bool = False
    """Whether a word of the sentence leans on what came before."""
    open_question: Decision | None = None
    same: tuple[Frame, ...] = ()
    """The stored query of before with what is said in its parameters; one that takes it comes before all readings."""


Done = Frame | Decision | Option | Readings


class FrameCompletion:
    """One frame on its way to be whole."""

    def __init__(self, talk: Context, frame: Frame, now: datetime) -> None:
        self.talk, self.frame, self.now = talk, frame, now
        self.correcting = False
        if self.first and frame.all("ref") == ["them"] and frame.has(*_TOGETHER) and LISTED & set(frame.all("that")):
            # "How many of these cases" are those that there are, where none was shown.
            frame.tell("kind", frame.all("that")[0])
            frame.features["ref"] = frame.features["that"] = []

    @property
    def first(self) -> bool:
        """True where nothing was said or shown that a sentence can lean on."""
        return self.talk.before is None and not self.talk.lists and self.talk.waiting is None

    def settled(self) -> Frame:
        """The frame without words that only link it to what came before."""
        self.frame.items = tuple(item for item in self.frame.items if not item.sense("talk", _LINKS))
        return self.frame

    @property
    def items(self) -> list[Item]:
        """What was read, without what means nothing by itself."""
        return [item for item in self.frame.items if not {type_ for type_, _ in item.senses} <= _WEAK]

    def only(self, *senses: str) -> bool:
        """True if every word that means something has one of `senses`, each a type or type:value."""
        wanted = [sense.partition(":")[::2] for sense in senses]
        return bool(self.items) and all(
            any(type_ == name and value in ("", told) for type_, told in item.senses for name, value in wanted)
            for item in self.items
        )

    def pointed_list(self, noun: str = "") -> ShownList | None:
        """The list that is pointed into."""
        talk, lists = self.talk, [shown for shown in self.talk.lists if shown.items]
        wanted = self.frame.one("list_of")
        if wanted == "first":
            return lists[0] if lists and not talk.dropped else None
        if wanted == "before":
            return lists[-2] if len(lists) > 1 else None
        if wanted is not None:
            return next((shown for shown in reversed(lists) if shown.items[0].of_kind == wanted), None)
        if noun and noun != "thing":
            rows = [shown for shown in lists if shown.items[0].of_kind == noun]
            told = self.row(noun)
            if told is not None and (not rows or rows[-1].turn < told.turn):
                return told
            return rows[-1] if rows else None
        if self.correcting and lists and lists[-1].beside:
            # The list beside an answer came with what is taken back now.
            own = next((shown for shown in reversed(lists) if not shown.beside), lists[-1])
            return talk.lists[talk.pointed_into - talk.dropped - 1] if talk.pointed_into > talk.dropped else own
        return self.last_list()

    def last_list(self) -> ShownList | None:
        """The newest list, unless another was asked for since of which no line was shown."""
        shown = self.talk.lists[-1] if self.talk.lists else None
        return None if shown is None or self.talk.unlisted > shown.turn else shown

    def row(self, kind: str) -> ShownList | None:
        """Things of a kind that were told of together, or the one that was told of alone."""
        row = next((shown for shown in self.talk.rows if shown.items[0].of_kind == kind), None)
        return row or self.told_row(kind)

    def told_row(self, kind: str) -> ShownList | None:
        """Things of a kind that one answer told of without numbers."""
        told = [each for each in self.talk.told if each.item.of_kind == kind]
        newest = [each.item for each in told if each.turn == told[-1].turn]
        return ShownList(tuple(newest), told[-1].turn) if newest else None

    def it(self, kind: str) -> tuple[ListItem | None, tuple[ListItem, ...]]:
        """The one thing that is spoken of, or those of which it may be one."""
        talk = self.talk
        owns = self.frame.has("rel:owned_by") or (talk.before is not None and OWNER in talk.before.aspects)
        if kind == "account" and owns:
            owner = self.told_row(OWNER)
            if owner is not None and owner.turn == talk.turn and len(owner.items) == 1:
                return owner.items[0], ()
        wants_incident = not kind and self.frame.has(*types_of("of_incidents")) and not self.frame.has(*LISTED_KINDS)
        kinds = (kind, OWNER) if kind == "account" else (kind,)
        spoken = [
            each
            for each in talk.spoken
            if (not kind or each.item.of_kind in kinds) and (not wants_incident or each.item.kind in (INCIDENT, ALERT))
        ]
        focus = spoken[-1] if spoken else None
        told = self.told_row(kind) if kind else None
        shown = next((each for each in reversed(talk.lists) if not kind or each.items[0].of_kind == kind), None)
        since = focus.turn if focus is not None else -1
        if told is not None and told.turn > since and (shown is None or shown.turn <= told.turn):
            return (told.items[0], ()) if len(told.items) == 1 else (None, told.items)
        fresh = shown is not None and shown.turn > since and not (shown.beside and not kind)
        if shown is not None and fresh:
            lines = tuple(line for line in shown.items if line.value)
            return (lines[0], ()) if len(lines) == 1 else (None, lines)
        if focus is None:
            return None, () if told is None else told.items
        # A thing that was told of with others since is no longer the one that is spoken of.
        if told is not None and told.turn >= since and len(told.items) > 1 and focus.item.key not in keys(told.items):
            return None, told.items
        return (None, (focus.item,)) if focus.doubted else (focus.item, ())

    def bound(self, items: list[ListItem], *, leans: bool = False) -> Done | None:
        """The frame about these things; what is asked of them comes from before where the sentence leans on it."""
        self.talk.pointed = (*self.talk.pointed, Pointed(self._said_of_pointing(), tuple(items)))
        frame = self.frame
        if frame.has("rel:after") and frame.around is None and items[0].kind == ALERT:
            return replace(ask(unmarked(frame), Unclear.HOW_LONG), frame=about(unmarked(frame), items[0]))
        beside = frame.all("incident") if frame.has(*SIDE_BY_SIDE) else []
        if frame.has(*SIDE_BY_SIDE) and len(items) == 1 and frame.has("ref:it") and self.it("")[0] != items[0]:
            other, candidates = self.it("")
            if other is None:
                return ask_which(frame, candidates, self.talk)
            items = [other, *items]
        leans = leans or frame.has("follow") or self.correcting
        told = unmarked(frame)
        if items[0].kind == INCIDENT and beside:
            told.features["incident"] = []
        if len(items) > 1 and not frame.has("op:compare", "attr:worse", "compare"):
            told.features.pop("both", None)
        for item in items:
            told = about(told, item)
        for number in beside:
            told.tell("incident", number)
        if told.around is not None and items[0].kind == ALERT:
            told.window = _around(items[0].time, told.around)
            told.features["kind"] = [ALERT]
            for type_ in ("incident", "alert_id", "alert_time"):
                told.features.pop(type_, None)
        if frame.has("whois") and items[0].of_kind in ("account", OWNER) and not told.has("topic"):
            told.tell("topic", "identity")  # "and who is she" asks for the person, whatever was asked before
            return told
        before = self.talk.before
        if before is not None and leans and not asks_of_a_thing(told) and not told.has(*LISTED_KINDS):
            again = merged(self._asked_before(items[0]), told)
            named = [before.frame.whole.get(name, name) for name in before.frame.all("name")]
            same = items[0].value in (*named, *before.frame.all("incident"))
            unchanged = same and not self.correcting and self.only("ref", "that", "follow", "person", "kind")
            return ask(told, Unclear.WHICH_THING) if unchanged else again  # "and him?" is of another
        return told

    def _asked_before(self, item: ListItem) -> Frame:
        """The last question whose kind of thing is that of `item`; the thing alone where the last was of another."""
        before = self.talk.before
        assert before is not None
        frame = before.frame
        of_incident, is_incident = frame.has("incident"), item.kind in (INCIDENT, ALERT)
        of_name = frame.has("name") and not of_incident
        fits = of_incident if is_incident else of_name or is_list(frame)
        return frame if fits else Frame("")

    def _said_of_pointing(self) -> str:
        """The words of the sentence that point."""
        said = [
            item.text
            for item in self.frame.items
            if any(type_ in ("ref", "that", "both") and value != "definite" for type_, value in item.senses)
            or item.sense("lit", frozenset({"item"}))
            or item.sense("digits")
            or item.sense("one")
        ]
        return " ".join(said)

    # --- What is left out

    def base(self, *, lists: bool) -> Decision | None:
        """The decision that a sentence leans on: the last, or the one behind the list where only a list is meant."""
        talk = self.talk
        before = talk.before
        if lists and before is not None and not is_list(before.frame):
            shown = [each.by for each in talk.lists if each.by is not None and is_list(each.by.frame)]
            return shown[-1] if shown else before
        return before


def ask_which(frame: Frame, items: Sequence[ListItem], talk: Context) -> Decision:
    """A question back with the things that may be meant, under their numbers on the screen where they stand there."""
    items = items if len(items) <= MOST_AT_ONCE else ()
    on_screen = [line.key for line in talk.lists[-1].items] if talk.lists else []
    all_there = all(item.key in on_screen for item in items)
    numbers = [on_screen.index(item.key) + 1 for item in items] if all_there else []
    plain = unmarked(frame)
    return replace(ask(plain, Unclear.WHICH_OF_THESE), options=things(plain, items, numbers))


def unmarked(frame: Frame, marks: Sequence[str] = _MARKS) -> Frame:
    """The frame without the words that lean: what they mean is bound."""
    plain = frame.copy()
    plain.items = tuple(item for item in frame.items if not any(type_ in marks for type_, _ in item.senses))
    for type_ in marks:
        plain.features.pop(type_, None)
    return plain


def keys(items: Iterable[ListItem]) -> set[tuple[str, str, str]]:
    return {item.key for item in items}


def _around(moment: str, width: timedelta) -> dict[str, str]:
    at = datetime.fromisoformat(moment)
    return {"start_time": format_time(at - width), "end_time": format_time(at + width)}
