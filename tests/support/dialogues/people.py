"""A person in a dialogue: reads the screen, keeps in mind what the talk is about, and points at things in words.

What the words mean is known because the thing is chosen first and the words for it afterwards, from what the screen
shows. The person knows nothing of the analyst's memory.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.support.dialogues.judging import Thing
from tests.support.dialogues.screen import Line, Screen

from sentinel_rag.contracts.evidence import Answer

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
OPENINGS = (
    "list incidents", "list open incidents", "list incidents of the last 7 days", "list closed incidents",
    "newest 5 alerts", "show 3 alerts", "newest 8 alerts", "top accounts", "top hosts", "high incidents",
    "what happened in the last 30 days",
)  # fmt: skip
_COMMON = frozenset("after with from several against high medium low open closed active severity".split())  # noqa: SIM905
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says. `chosen_from` is the place of the list that was pointed into among those shown so far."""

    words: str
    meant: Sequence[Thing] = ()
    kind: str = "opening"
    to_be_asked: bool = False
    may_be_asked: bool = False
    chosen_from: int = -1


@cache
def wordings(path: Path, part: str) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Kind of reference -> kind of thing -> wordings of `development` or `heldout`."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    kinds = {name: value for name, value in document.items() if name not in ("version", "first_measured")}
    return {kind: {thing: parts[part] for thing, parts in things.items()} for kind, things in kinds.items()}


@dataclass(slots=True)
class Person:
    """`focus` is the one thing that the talk is about, `pair` the things that were last spoken of together."""

    chance: random.Random
    screen: Screen
    words: Mapping[str, Mapping[str, Sequence[str]]]
    focus: Thing | None = None
    pair: tuple[Thing, ...] = ()
    last: Said | None = None
    fresh_list: bool = False
    """The last answer was a list, and nothing of it was chosen yet."""
    open_question: tuple[Said, tuple[Line, ...]] | None = None
    known_numbers: set[str] = field(default_factory=set)

    def speak(self) -> Said:
        """The next thing to say."""
        if self.open_question is not None and self.chance.random() < 0.7:
            picked = self._pick()
            if picked is not None:
                return picked
        self.open_question = None
        roll = self.chance.random()
        if roll < 0.03 and self.screen.lists:
            return Said("/clear", kind="command")
        if roll < 0.06 and self.screen.lists:
            return Said("/resume", kind="command")
        if not self.screen.lists or roll < 0.2:
            return Said(self.chance.choice(OPENINGS))
        makers: list[Callable[[], Said | None]] = [
            self._place, self._place, self._number, self._ordinal, self._ordinal, self._last_line, self._it, self._it,
            self._that, self._that, self._them, self._both, self._several, self._first_some, self._other,
            self._severity, self._title, self._owner, self._day, self._rank, self._beside, self._correction,
            self._correction, self._again, self._earlier, self._first_list, self._by_number, self._nothing,
        ]  # fmt: skip
        for _ in range(30):
            said = self.chance.choice(makers)()
            if said is not None:
                return said
        return Said(self.chance.choice(OPENINGS))

    def listen(self, said: Said, answer: Answer, *, understood: bool) -> None:
        """Take in the answer."""
        listed = self.screen.read(answer)
        if listed:
            self.known_numbers |= {
                value
                for line in self.screen.lists[-1]
                for value in (line.cells.get("Incident", ""),)
                if value.isdigit()
            }
        self.last = said if understood and said.meant else None
        if said.kind == "opening":
            self.fresh_list = listed
            lines = self.screen.lists[-1] if listed else []
            only = lines[0].thing if len(lines) == 1 else None
            self.focus = only
            self.pair = ()
            self.fresh_list = listed and only is None
        elif understood and len(said.meant) == 1:
            self.focus = said.meant[0]
            self.fresh_list = False
        elif understood and len(said.meant) > 1:
            self.focus = None
            self.pair = tuple(said.meant)
            self.fresh_list = False
        elif said.kind != "nothing":
            self.focus = None
            self.pair = ()
        if said.kind == "nothing":
            self.focus = None
            self.fresh_list = False
            self.pair = ()

    # What can be pointed at

    def _lines(self) -> list[Line]:
        return self.screen.lists[-1]

    def _some_line(self) -> tuple[int, Line, Thing] | None:
        lines = [(place, line, line.thing) for place, line in enumerate(self._lines(), start=1) if line.thing]
        return self.chance.choice(lines) if lines else None

    def _wording(self, kind: str, thing: Thing) -> str | None:
        of_kind = thing.kind if thing.kind in ("incident", "alert") else "entity"
        choices = self.words.get(kind, {}).get(of_kind)
        return self.chance.choice(choices) if choices else None

    def _say(self, kind: str, thing: Thing, **slots: str) -> Said | None:
        wording = self._wording(kind, thing)
        if wording is None:
            return None
        noun = thing.kind
        words = wording.format(**{"noun": noun, **slots})
        return Said(words, [thing], kind, chosen_from=len(self.screen.lists) - 1)

    def _place(self) -> Said | None:
        found = self._some_line()
        return None if found is None else self._say("place", found[2], n=str(found[0]))

    def _number(self) -> Said | None:
        found = self._some_line()
        if found is None:
            return None
        place, _, thing = found
        said = self._say("number", thing, n=str(place))
        both = str(place) in self.known_numbers and thing.value != str(place)
        worded = said is not None and re.search(r"(?:line|item|alert|no\.)", said.words) is not None
        return replace(said, to_be_asked=True, meant=[thing] if worded else []) if said and both else said

    def _ordinal(self) -> Said | None:
        found = self._some_line()
        if found is None or found[0] > len(ORDINALS):
            return None
        return self._say("ordinal", found[2], ord=ORDINALS[found[0] - 1])

    def _last_line(self) -> Said | None:
        thing = self._lines()[-1].thing
        return None if thing is None or len(self._lines()) < 2 else self._say("last", thing)

    def _it(self) -> Said | None:
        if self.focus is not None:
            return self._say("it", self.focus)
        if self.fresh_list and len(self._lines()) > 1 and self._lines()[0].cells.get("Title"):
            first = self._lines()[0].thing
            said = None if first is None else self._say("it", first)
            return None if said is None else replace(said, meant=[], to_be_asked=True)
        return None

    def _that(self) -> Said | None:
        return None if self.focus is None else self._say("that", self.focus)

    def _things(self) -> tuple[Thing, ...]:
        if self.pair:
            return self.pair
        things = tuple(line.thing for line in self._lines() if line.thing)
        same = len({thing.kind for thing in things}) == 1
        return things if self.fresh_list and same and 2 <= len(things) == len(self._lines()) <= 8 else ()

    def _them(self) -> Said | None:
        things = self._things()
        said = self._say("them", things[0]) if things else None
        return None if said is None else replace(said, meant=things)

    def _both(self) -> Said | None:
        things = self._things()
        said = self._say("both", things[0]) if len(things) == 2 else None
        return None if said is None else replace(said, meant=things)

    def _several(self) -> Said | None:
        first, second = self._some_line(), self._some_line()
        if first is None or second is None or first[0] == second[0] or first[2].kind != "incident":
            return None
        said = self._say("several", first[2], n=str(first[0]), m=str(second[0]))
        if said is None or ("[" not in said.words and {str(first[0]), str(second[0])} & self.known_numbers):
            return None
        return replace(said, meant=[first[2], second[2]]) if second[2].kind == "incident" else None

    def _first_some(self) -> Said | None:
        things = [line.thing for line in self._lines()]
        if not self.fresh_list or len(things) < 4 or any(each is None or each.kind != "incident" for each in things):
            return None
        known = [each for each in things if each is not None]
        said = self._say("first_some", known[0])
        if said is None:
            return None
        return replace(said, meant=known[: 3 if "three" in said.words else 2])

    def _other(self) -> Said | None:
        pair = self.pair
        if not pair and len(self._lines()) == 2:
            pair = tuple(line.thing for line in self._lines() if line.thing)
        if self.focus is None or len(pair) != 2 or self.focus not in pair or pair[0].kind != pair[1].kind:
            return None
        other = pair[1] if self.focus == pair[0] else pair[0]
        return self._say("other", other)

    def _described(self, kind: str, column: str, words: Callable[[str], str | None], slot: str) -> Said | None:
        """A line by what one of its columns says; several that say it are to be asked back."""
        found = self._some_line()
        if found is None or column not in found[1].cells or found[2].kind not in ("incident", "alert"):
            return None
        word = words(found[1].cells[column])
        if word is None:
            return None
        said = self._say(kind, found[2], **{slot: word})
        like = {line.thing for line in self._lines() if words(line.cells.get(column, "")) == word}
        if said is None or len(like) == 1:
            return said
        return replace(said, meant=[], to_be_asked=True)

    def _severity(self) -> Said | None:
        return self._described("described_severity", "Severity", str.lower, "severity")

    def _owner(self) -> Said | None:
        return self._described("described_owner", "Owner", lambda owner: None if owner == "-" else owner, "owner")

    def _day(self) -> Said | None:
        iso = self.chance.random() < 0.5

        def day(shown: str) -> str:
            _year, month, day_ = shown[:10].split("-")
            return shown[:10] if iso else f"{int(day_)} {_MONTHS[int(month) - 1]}"

        return self._described("described_day", "Created", day, "day")

    def _title(self) -> Said | None:
        found = self._some_line()
        if found is None or found[2].kind not in ("incident", "alert") or not {"Title", "Alert"} & set(found[1].cells):
            return None
        word = self._telling_word(found[1])
        return None if word is None else self._say("described_title", found[2], word=word)

    def _telling_word(self, line: Line) -> str | None:
        column = "Title" if "Title" in line.cells else "Alert"
        titles = [each.cells[column].lower() for each in self._lines() if column in each.cells]
        words = [
            word
            for word in re.findall(r"[a-z]{5,}", line.cells[column].lower())
            if word not in _COMMON and sum(word in title for title in titles) == 1
        ]
        return self.chance.choice(words) if words else None

    def _rank(self) -> Said | None:
        lines = [line for line in self._lines() if "Created" in line.cells and line.thing]
        if len(lines) < 2 or len(lines) != len(self._lines()):
            return None
        newest = max(lines, key=lambda line: line.cells["Created"])
        oldest = min(lines, key=lambda line: line.cells["Created"])
        thing = newest.thing
        said = None if thing is None else self._say("described_rank", thing)
        if said is None or oldest.thing is None:
            return None
        return replace(said, meant=[oldest.thing]) if re.search("old|earliest", said.words) else said

    def _beside(self) -> Said | None:
        things = [line.thing for line in self._lines()]
        if self.focus is None or self.focus not in things or self.focus.kind != "incident":
            return None
        place = things.index(self.focus)
        wording = self._wording("beside", self.focus)
        if wording is None:
            return None
        step = -1 if re.search("before|previous", wording) else 1
        thing = things[place + step] if 0 <= place + step < len(things) else None
        return None if thing is None else Said(wording, [thing], "beside", chosen_from=len(self.screen.lists) - 1)

    def _correction(self) -> Said | None:
        """Another line of the list from which the last thing was chosen."""
        last = self.last
        if last is None or last.chosen_from < 0 or len(last.meant) != 1 or last.meant[0].kind != "incident":
            return None
        lines = self.screen.lists[last.chosen_from]
        places = [place for place, line in enumerate(lines, start=1) if line.thing and line.thing != last.meant[0]]
        here = [place for place, line in enumerate(lines, start=1) if line.thing == last.meant[0]]
        places = [place for place in places if place <= len(ORDINALS)]
        if not places or not here:
            return None
        place = self.chance.choice(places)
        thing = lines[place - 1].thing
        if thing is None or thing.kind != "incident":
            return None
        said = self._say("correction", thing, n=str(place), ord=ORDINALS[place - 1], number=thing.value, m=str(here[0]))
        return None if said is None else replace(said, chosen_from=last.chosen_from)

    def _again(self) -> Said | None:
        last = self.last
        if last is None or last.chosen_from != len(self.screen.lists) - 1 or len(last.meant) != 1:
            return None
        found = self._some_line()
        if found is None or found[0] > len(ORDINALS) or found[2] in last.meant or last.meant[0].kind != "incident":
            return None
        return self._say("again", found[2], n=str(found[0]), ord=ORDINALS[found[0] - 1])

    def _list_of_incidents(self, lines: Sequence[Line]) -> bool:
        return all(line.thing is not None and line.thing.kind == "incident" for line in lines)

    def _earlier(self) -> Said | None:
        """A line of the newest list of incidents, which is the one right before the list on the screen."""
        lists = self.screen.lists
        if len(lists) < 2 or not self._list_of_incidents(lists[-2]) or self._list_of_incidents(lists[-1]):
            return None
        if any(line.thing is None or line.thing.kind == "incident" for line in lists[-1]):
            return None
        place = self.chance.randrange(1, min(len(lists[-2]), len(ORDINALS)) + 1)
        thing = lists[-2][place - 1].thing
        said = None if thing is None else self._say("earlier_list", thing, n=str(place), ord=ORDINALS[place - 1])
        return None if said is None else replace(said, chosen_from=len(lists) - 2)

    def _first_list(self) -> Said | None:
        lists = self.screen.lists
        if len(lists) < 2 or not self._list_of_incidents(lists[0]) or len(lists) > 20:
            return None
        place = self.chance.randrange(1, min(len(lists[0]), len(ORDINALS)) + 1)
        thing = lists[0][place - 1].thing
        said = None if thing is None else self._say("first_list", thing, n=str(place), ord=ORDINALS[place - 1])
        return None if said is None else replace(said, chosen_from=0)

    def _by_number(self) -> Said | None:
        found = self._some_line()
        if found is None or found[2].kind != "incident" or int(found[2].value) <= len(self._lines()):
            return None
        said = self._say("incident_number", found[2], number=found[2].value)
        return None if said is None else replace(said, chosen_from=-1)

    def _nothing(self) -> Said | None:
        return Said(self.chance.choice(self.words["not_a_reference"]["incident"]), kind="nothing")

    def _pick(self) -> Said | None:
        return None
