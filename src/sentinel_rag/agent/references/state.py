"""What one conversation can be referred back to: its numbered lists, what was talked about, and the last question.

Pure memory without I/O. It holds ids and the words that tell lines apart, never an answer: a question about a state is
asked of the tools again. Bounded, and storable as JSON; nothing in it is lost when messages are trimmed or a
conversation is cleared, so that "[2]" goes on meaning what it meant on the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sentinel_rag.agent.things import ALERT, INCIDENT, LONGEST_ID, QUESTION, ListItem
from sentinel_rag.contracts.json_values import JsonValue

VERSION = 1
MAX_LISTED = 1000
"""Lines of one list."""
MAX_LISTS = 30
MAX_LINES = 1200
"""Lines of all lists together; the oldest list goes first."""
MAX_FOCUSED = 60
MAX_MENTIONED = 200


@dataclass(frozen=True, slots=True)
class ShownList:
    """A numbered list as it stood on the screen. `total` is how many there are of its kind in all, None if unknown;
    `beside` if it came with an answer about things that were pointed at, such as the alerts of an incident."""

    items: tuple[ListItem, ...]
    turn: int
    total: int | None = None
    beside: bool = False
    offered: bool = False
    """Choices of a question back: lines to pick from, which nobody has talked about yet."""

    def line(self, number: int) -> ListItem | None:
        """The line numbered `number`, from 1; a negative one counts from the end, -1 is the last."""
        if number == 0 or abs(number) > len(self.items):
            return None
        return self.items[number - 1 if number > 0 else number]


@dataclass(frozen=True, slots=True)
class Focus:
    """A thing that a question or an answer was about, and when."""

    item: ListItem
    turn: int


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with its references resolved; `spans` are where its things stand in `text`, so that a correction can
    put another thing there. `kind` is theirs, `screen` the number of the list that was on the screen, 0 for none."""

    text: str
    spans: tuple[tuple[int, int], ...] = ()
    kind: str = ""
    screen: int = 0

    def about(self, words: str) -> str | None:
        """The question with `words` in the place of its one thing; None if it has none or several."""
        if len(self.spans) != 1:
            return None
        begin, end = self.spans[0]
        return self.text[:begin] + words + self.text[end:]


@dataclass(frozen=True, slots=True)
class Choices:
    """Things between which the person was asked to choose; `question` waits for the one that is meant."""

    items: tuple[ListItem, ...]
    question: AskedQuestion
    numbers: tuple[int, ...]
    """The numbers under which they stand on the screen."""


@dataclass(slots=True)
class References:
    """The things of one conversation, numbered and otherwise. `turn` counts its questions."""

    turn: int = 0
    lists: tuple[ShownList, ...] = ()
    dropped: int = 0
    """Lists that were forgotten, so that "the first list" is not taken for one that came later."""
    focused: tuple[Focus, ...] = ()
    mentioned: tuple[Focus, ...] = ()
    """Things that answers told of without a number."""
    rows: tuple[ShownList, ...] = ()
    """Things of one kind that an answer told of in one line without numbers: the newest such line of each kind."""
    group: tuple[ListItem, ...] = ()
    group_turn: int = 0
    asked: AskedQuestion | None = None
    choices: Choices | None = field(default=None)

    @property
    def screen(self) -> ShownList | None:
        """The numbered list that was shown last."""
        return self.lists[-1] if self.lists else None

    @property
    def screen_number(self) -> int:
        """The number of that list among all that were shown, from 1; 0 for none."""
        return self.dropped + len(self.lists)

    def number_of(self, shown: ShownList) -> int:
        """The number of a list that is still kept; 0 for another one."""
        places = [place for place, each in enumerate(self.lists, start=1) if each is shown]
        return self.dropped + places[0] if places else 0

    def as_of(self, screen_number: int) -> References:
        """These references with the list of that number on the screen, as when an earlier question was asked."""
        kept = screen_number - self.dropped
        return self if kept < 1 else replace(self, lists=self.lists[:kept])

    def corrected_list(self) -> References:
        """These references as a correction of the last question reads them: with the list on the screen into which that
        question pointed. A list that came after a question that pointed nowhere is the one that is read now."""
        if self.asked is None or self.screen is None or not (self.screen.beside or self.screen.offered):
            return self
        return self.as_of(self.asked.screen)

    def begin_turn(self) -> None:
        """A new question came."""
        self.turn += 1

    def leave_open_questions(self) -> None:
        """Nothing waits for a choice any more. The last question stays: a correction still knows its list."""
        self.choices = None

    def show_list(
        self, items: Iterable[ListItem], *, first: int = 0, total: int | None = None, offered: bool = False
    ) -> None:
        """Remember a numbered list; `first` rows stood above it already and keep their numbers. `offered` for the
        choices of a question back."""
        above = self.screen.items[:first] if first and self.screen is not None else ()
        kept = tuple(self._fullest(item) if len(item.value) <= LONGEST_ID else ListItem(item.kind) for item in items)
        beside = self.asked is not None and bool(self.asked.spans)
        shown = ShownList((above + kept)[:MAX_LISTED], self.turn, total, beside, offered)
        before = self.lists[:-1] if above else self.lists
        self.lists = (*before, shown)
        while len(self.lists) > MAX_LISTS or (
            len(self.lists) > 1 and sum(len(each.items) for each in self.lists) > MAX_LINES
        ):
            self.lists = self.lists[1:]
            self.dropped += 1

    def focus_on(self, item: ListItem) -> None:
        """What is talked about from here on."""
        if item.value and len(item.value) <= LONGEST_ID and item.kind != QUESTION:
            others = tuple(each for each in self.focused if each.item.key != item.key)
            self.focused = (*others, Focus(self._fullest(item), self.turn))[-MAX_FOCUSED:]

    def _fullest(self, item: ListItem) -> ListItem:
        """The same thing as it was shown with its time and its title, if `item` does not say them."""
        if item.time or item.title or item.kind not in (INCIDENT, ALERT):
            return item
        shown = [each for shown in reversed(self.lists) for each in shown.items]
        told = [each.item for each in (*reversed(self.focused), *reversed(self.mentioned))]
        return next((each for each in (*shown, *told) if each.key == item.key and (each.time or each.title)), item)

    def mention(self, items: Iterable[ListItem]) -> None:
        """Things that an answer tells of without numbering them."""
        fresh = {item.key: Focus(item, self.turn) for item in items if item.value and len(item.value) <= LONGEST_ID}
        kept = tuple(each for each in self.mentioned if each.item.key not in fresh)
        self.mentioned = (*kept, *fresh.values())[-MAX_MENTIONED:]

    def tell_row(self, items: Sequence[ListItem]) -> None:
        """Things of one kind that stand in one line of an answer, so that "the second host" can be one of them."""
        kept = tuple(item for item in items if 0 < len(item.value) <= LONGEST_ID)[:MAX_LISTED]
        if kept:
            others = tuple(row for row in self.rows if row.items[0].of_kind != kept[0].of_kind)
            self.rows = (ShownList(kept, self.turn), *others)

    def talk_about(self, items: Sequence[ListItem]) -> None:
        """Several things at once: what "them" and "both" mean next."""
        self.group = tuple(items)[:MAX_LISTED]
        self.group_turn = self.turn

    def ask_to_choose(self, items: Sequence[ListItem], numbers: Sequence[int], question: AskedQuestion | None) -> None:
        """The next answer may pick one of `items` for `question`; they are a list of their own unless they stand under
        these `numbers` in the one on the screen."""
        if not items or question is None:
            return
        shown = self.screen
        on_screen = shown is not None and all(
            (line := shown.line(number)) is not None and line.key == item.key
            for number, item in zip(numbers, items, strict=True)
        )
        if not on_screen:
            self.show_list(items, offered=True)
        self.choices = Choices(tuple(items), question, tuple(numbers))

    def focus(self, *kinds: str) -> Focus | None:
        """The thing of one of `kinds` (any without) that was talked about last."""
        for each in reversed(self.focused):
            if not kinds or each.item.of_kind in kinds:
                return each
        return None

    def current(self, kind: str) -> ListItem | None:
        """The thing of `kind` that is talked about; None if a list of such things came after it."""
        focus = self.focus(kind)
        screen = self.screen
        if focus is None:
            return None
        newer = screen is not None and screen.turn > focus.turn and any(each.of_kind == kind for each in screen.items)
        return None if newer else focus.item

    def numbers_known(self) -> frozenset[str]:
        """Every incident number that this conversation has shown or heard."""
        seen = [item for shown in self.lists for item in shown.items]
        seen += [each.item for each in (*self.focused, *self.mentioned)]
        return frozenset(
            number
            for item in seen
            for number in (item.incident, item.value if item.kind == "incident" else "")
            if number
        )

    def to_dict(self) -> dict[str, JsonValue]:
        """The form in which a conversation is stored; fields that say nothing are left out."""
        form: dict[str, JsonValue] = _without_empty(msgspec.to_builtins(self))
        return {"version": VERSION, **form}

    @classmethod
    def from_dict(cls, data: Mapping[str, JsonValue]) -> References:
        """Inverse of `to_dict`. Raises ValueError for another version or shape."""
        if data.get("version") != VERSION:
            raise ValueError(f"The stored references are not of version {VERSION}, which this program reads.")
        return msgspec.convert({name: value for name, value in data.items() if name != "version"}, cls)


def _without_empty(value: Any) -> Any:
    """A JSON value whose objects lack the fields with an empty text."""
    if isinstance(value, dict):
        return {name: _without_empty(each) for name, each in value.items() if each != ""}
    return [_without_empty(each) for each in value] if isinstance(value, list | tuple) else value
