"""How a sentence leans on the conversation: what it points at, what it does with the last answer, what it leaves out.

A sentence is read first; here its frame is filled from the typed state. What cannot be bound with certainty is asked
back with the candidates. No word of a language stands here: the reader tells what points, takes back or goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from sentinel_rag.agent.planner.context import Context, Pointed, ShownList
from sentinel_rag.agent.planner.decisions import Call, Decision, Kind, Option, Reason, ask
from sentinel_rag.agent.planner.merging import (
    LISTED,
    asks_of_a_thing,
    is_fragment,
    is_list,
    merged,
    moved,
    without,
)
from sentinel_rag.agent.planner.questions_back import about, things
from sentinel_rag.agent.things import ALERT, ENTITY, INCIDENT, ListItem
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, MOST_SKIPPED, SEVERITIES, TOOLS_BY_NAME
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.phrases import Item
from sentinel_rag.language.lexicon import fold

MOST_AT_ONCE = 10
"""Things that one sentence may ask about together."""
_CORRECTS = "instead"
_AROUND = "+- "
"""Before a length of time alone, where how long before and after was asked."""
_SAYS_WHICH = (
    "name", "incident", "op", "tactic", "title", "severity", "status", "know", "topic", "all", "order",
)  # fmt: skip
_SIDE_BY_SIDE = ("op:compare", "attr:worse", "both", "know:similar", "compare")
_MARKS = ("moment", "ref", "that", "talk", "shift", "drop", "list_of", "item", "relative")
"""Types of words that lean on what came before, and mean nothing more once they are bound."""
_FILTERED = ("status", "severity", "owner", "classification")
"""Fields by which a list is narrowed, too."""
_PEAK = "peak_"
_LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
_SUMMER_TIME = timedelta(hours=1)
"""A day of the clock is an hour longer or shorter twice a year."""
_LINKS = frozenset({"yes", "no", "instead", "again", "back"})
_OF_INCIDENTS = (
    "attr:owner", "attr:status", "attr:classification", "attr:comments", "attr:reason", "attr:duration",
    "attr:closed_time", "attr:bookmarks",
)  # fmt: skip
"""Fields that only incidents have."""
_ENTITIES = ("account", "host", "ip", "url", "file", "process", "mailbox", "filehash", "malware", "domain")

Done = Frame | Decision | Option


def read(talk: Context, reader: Reader, text: str) -> Frame:
    """The frame of a sentence. What stands behind "no," is read alone: it denies nothing, it says what is meant. A
    length of time alone answers how long before and after."""
    frame = reader.read(text)
    meant = _behind_a_correction(frame)
    if meant:
        frame = reader.read(meant)
        frame.tell("talk", _CORRECTS)
    if talk.waiting is not None and talk.waiting.reason is Reason.HOW_LONG and frame.around is None:
        around = reader.read(_AROUND + text)
        return around if around.around is not None else frame
    return frame


def _behind_a_correction(frame: Frame) -> str:
    """The rest of the sentence behind words that take back what was said; empty if there are none, or no rest."""
    end = 0
    items = [item for item in frame.items if not item.silent]
    if len(items) > 2 and items[0].sense("not") and _is_place(items[1]) and _is_place(items[2]):
        return frame.text[items[2].start :]  # "not [1], [2]"
    for item in items:
        said_no = item.sense("talk", frozenset({"no"})) is not None and _breaks_after(frame.text, item)
        between = any(other.start < item.start and other.start >= end for other in frame.items if not other.silent)
        if between or (not said_no and item.sense("talk", frozenset({_CORRECTS})) is None):
            break
        end = item.end
    return frame.text[end:].strip(" ,.;:!-") if end else ""


def _is_place(item: Item) -> bool:
    return any(type_ in ("ref", "digits") or (type_, value) == ("lit", "item") for type_, value in item.senses)


def complete(talk: Context, frame: Frame, now: datetime) -> Done:
    """The frame with what it points at and leaves out, what was offered and is picked, or a question back."""
    asked = _Sentence(talk, frame.copy(), now)
    for step in _STEPS:
        done = step(asked)
        if done is not None:
            return done
    return asked.settled()


def pointed_at(talk: Context, frame: Frame, now: datetime) -> tuple[Pointed, ...]:
    """What a sentence points at, as far as that is certain: a hint for who reads the sentence itself."""
    asked = _Sentence(talk, frame.copy(), now)
    talk.pointed, talk.pointing = (), 0
    for step in (_Sentence.corrected, _Sentence.placed, _Sentence.chosen, _Sentence.described, _Sentence.pointed):
        done = step(asked)
        if isinstance(done, Decision):
            talk.pointed = ()
        if done is not None:
            break
    return talk.pointed


def picked(talk: Context, frame: Frame, now: datetime) -> Option | None:
    """What was offered and is picked by the sentence alone."""
    done = _Sentence(talk, frame.copy(), now).picked()
    return done if isinstance(done, Option) else None


def for_each(decision: Decision) -> Decision:
    """One call for each incident that is meant, where the call takes one."""
    numbers = decision.frame.all("incident")
    if decision.kind is not Kind.CALL or len(decision.calls) != 1 or not 1 < len(numbers) <= MOST_AT_ONCE:
        return decision
    made = decision.calls[0]
    if "incident" not in made.arguments:
        return decision
    calls = tuple(Call(made.tool, {**made.arguments, "incident": number}) for number in numbers)
    return replace(decision, calls=calls)


class _Sentence:
    """One frame on its way to be whole."""

    def __init__(self, talk: Context, frame: Frame, now: datetime) -> None:
        self.talk, self.frame, self.now = talk, frame, now
        self.correcting = False

    def settled(self) -> Frame:
        """The frame without words that only link it to what came before."""
        self.frame.items = tuple(item for item in self.frame.items if not item.sense("talk", _LINKS))
        return self.frame

    @property
    def items(self) -> list[Item]:
        """What was read, without what means nothing by itself."""
        return [item for item in self.frame.items if not item.silent]

    def only(self, *senses: str) -> bool:
        """True if every word that means something has one of `senses`, each a type or type:value."""
        wanted = [sense.partition(":")[::2] for sense in senses]
        return bool(self.items) and all(
            any(type_ == name and value in ("", told) for type_, told in item.senses for name, value in wanted)
            for item in self.items
        )

    # --- Picking what was offered

    def picked(self) -> Done | None:
        """What was offered, by its words, its number or a yes; a value that was asked for."""
        talk = self.talk
        said = fold(self.frame.said).strip(" .?!")
        for option in talk.offers:
            if said == fold(option.text).strip(" .?!"):
                return option
        if talk.offers and self.only("talk:yes", "meta:small_talk") and self.frame.has("talk:yes"):
            if talk.waiting is not None and len(talk.offers) > 1:
                return talk.waiting
            return talk.offers[0]
        if talk.waiting is None:
            return self._by_number() if any(option.number for option in talk.offers) else None
        return self._by_number() or self._by_words() or self._fills(talk.waiting)

    def _by_number(self) -> Option | None:
        """The option under the number that is all that is said."""
        if not self.talk.offers or not self.only("num", "digits", "ref", "lit:item", "talk:instead"):
            return None
        offers = self.talk.offers
        ordinals = [int(ref) for ref in self.frame.all("ref") if ref.lstrip("-").isdecimal()]
        if len(ordinals) == 1 and abs(ordinals[0]) <= len(offers):
            return offers[ordinals[0] - 1 if ordinals[0] > 0 else ordinals[0]]
        numbers = [*self.frame.all("num"), *(each.strip("[]") for each in self.frame.all("item"))]
        wanted = int(numbers[0]) if len(numbers) == 1 else 0
        return next((option for option in offers if option.number == wanted), None)

    def _by_words(self) -> Option | None:
        """The one option whose thing is what the words tell."""
        asks = asks_of_a_thing(self.frame) and self.frame.all("attr") != ["detail"]
        if not self.talk.offers or asks or self.frame.has("kind:alert", "op:count", "ref:them"):
            return None
        named = {*self.frame.all("incident"), *self.frame.all("name"), *self.frame.all("num")}
        fitting = [
            option
            for option in self.talk.offers
            if option.item is not None
            and ({option.item.value, option.item.incident} & named or self._fits(option.item))
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _fills(self, waiting: Decision) -> Frame | None:
        """The frame that waits for a value, with what is said now."""
        told, said = waiting.frame, self.frame
        if waiting.reason not in _WAIT or not is_fragment(said) or said.has("talk", "follow", "ref"):
            return None
        if waiting.reason is Reason.HOW_LONG and said.around is None:
            return None
        if waiting.reason in (Reason.WHICH_THING, Reason.WHICH_OF_THESE) and not said.has("name", "incident", "digits"):
            return None
        filled = merged(told, said)
        filled.around = said.around or told.around
        if waiting.reason is Reason.WHO_ARE_YOU:
            filled.features["owner"] = said.all("name") or list(said.unread)
            filled.features["name"], filled.unread = [], []
        if waiting.reason in (Reason.WHICH_THING, Reason.WHICH_OF_THESE) and said.has("digits"):
            filled.features["incident"] += [n for n in said.all("digits") if n not in filled.all("incident")]
            filled.features["num"], filled.features["digits"] = [], []
        if waiting.reason is Reason.COMPARED_WITH_WHAT:
            filled.features["incident"] = [*told.all("incident"), *said.all("incident"), *said.all("digits")]
        return _unmarked(filled)

    # --- Going on with the last answer

    def acted(self) -> Done | None:
        """What is done with the last answer: more of it, as before, without a filter, drawn, written to a file."""
        frame = self.frame
        if frame.has("talk:export") and not frame.has("kind:template", "know", "name"):
            return Decision(Kind.EXPORT, frame)
        if frame.has("talk:more", "talk:rest") and self.only("talk", "op:list", "ref:them", "limit", "num", "digits"):
            return self._next_page()
        if frame.has("talk:undo") and self.only("talk", "ref", "relative"):
            return self._earlier(self.talk.decisions[:-1])
        if frame.has("talk:back") and self.only("talk", "kind", "ref", "op:list", "status"):
            return self._back()
        if frame.has("talk:again") and self.only("talk", "ref", "relative", "op:list"):
            return self._earlier(self.talk.decisions)
        if frame.has("talk:draw", "attr:draw") and not frame.has("name", "incident", "digits", "kind"):
            return self._drawn()
        if frame.has("drop") and is_fragment(frame):
            base = self._base(lists=True)
            return None if base is None else _unmarked(merged(without(base.frame, frame.all("drop")), frame))
        if frame.has("shift") and not frame.window:
            fragment = is_fragment(without_compare(frame))
            moved = self._moved() if fragment else None
            return moved or (None if fragment else self._beside_a_moment())
        return None

    def _drawn(self) -> Done | None:
        """A list over time; a thing as it is drawn itself."""
        frame, before = self.frame, self.talk.before
        if before is None or not is_list(before.frame):
            frame.tell("attr", "draw")
            return None
        frame.features["op"], frame.features["attr"] = ["trend"], []
        return _unmarked(merged(before.frame, _unmarked(frame)))

    def _next_page(self) -> Done:
        before = self.talk.before
        if before is None or not before.calls:
            return ask(self.frame, Reason.NOTHING_SHOWN)
        made = before.calls[0]
        total = self.talk.lists[-1].total if self.talk.lists else None
        whole = total is not None and self.talk.shown >= total
        if len(before.calls) > 1 or "offset" not in TOOLS_BY_NAME[made.tool].parameter_schemas() or whole:
            return ask(self.frame, Reason.NO_MORE)
        shown = self.talk.shown or int(str(made.arguments.get("limit", DEFAULT_LIMIT)))
        if shown > MOST_SKIPPED:
            return ask(self.frame, Reason.NO_MORE)
        arguments = {**made.arguments, "offset": shown}
        limit = next(iter(self.frame.all("limit") or self.frame.all("num")), None)
        if limit is not None or self.frame.has("talk:rest"):
            arguments["limit"] = MAX_LIMIT if limit is None else int(limit)
        return replace(before, calls=(Call(made.tool, arguments),))

    def _earlier(self, decisions: Sequence[Decision]) -> Done:
        """The last of these decisions once more."""
        return _from_the_top(decisions[-1]) if decisions else ask(self.frame, Reason.NOTHING_BEFORE)

    def _back(self) -> Done:
        kinds = [kind for kind in self.frame.all("kind") if kind in LISTED]
        lists = [shown for shown in reversed(self.talk.lists) if shown.by is not None]
        before = self.talk.before
        fitting = [shown for shown in lists if not kinds or shown.items[0].kind in kinds]
        own = [shown for shown in fitting if not shown.beside] or fitting
        found = next((shown for shown in own if before is None or shown.by != before), own[0] if own else None)
        if found is None or found.by is None:
            return ask(self.frame, Reason.NOTHING_BEFORE)
        return _from_the_top(found.by)

    def _moved(self) -> Done | None:
        """The last question for the stretch of time before or after its own."""
        base = self._base(lists=True)
        if base is None or not base.frame.window:
            return None
        window = moved(base.frame.window, self.now, back=self.frame.has("shift:earlier"), unit=self._unit())
        frame = merged(base.frame, without_compare(self.frame))
        frame.window = window
        return _unmarked(frame)

    def _beside_a_moment(self) -> Decision | None:
        """A question back about rows "before that", where what is spoken of is no stretch of time."""
        said = [item.text for item in self.items if item.sense("shift")]
        beside = self.frame.has("op:compare", "op:trend", "unit", "previous") or self.talk.before is None
        return None if beside else ask(_unmarked(self.frame), Reason.NOT_EXPRESSIBLE, *said)

    def _unit(self) -> str:
        return next((value for item in self.items for type_, value in item.senses if type_ == "unit"), "")

    # --- Corrections

    def corrected(self) -> Done | None:
        """Take note that this is meant instead of what was said."""
        self.correcting = self.frame.has(f"talk:{_CORRECTS}")
        before = self.talk.before
        if self.correcting and before is not None and len(before.frame.window) == 1 and len(self.frame.window) == 2:
            # "Since 5 July", "no, 1 July": the open end stays open.
            kept = [name for name in before.frame.window if name != "time_window"]
            self.frame.window = dict.fromkeys(kept, self.frame.window["start_time"]) or self.frame.window
        return None

    def timed(self) -> Done | None:
        """Bind "that day" and "on the busiest day" to the time that the last answer told of."""
        frame = self.frame
        told = frame.one("moment")
        if told is None or frame.window:
            return None
        ranked, unit = told.startswith(_PEAK), told.removeprefix(_PEAK)
        window = self._told_time(unit, ranked=ranked)
        if window:
            frame.window = window
            self.frame = _unmarked(frame)
            return None
        back = ask(_unmarked(frame), Reason.WHICH_MOMENT)
        focus = self.talk.focus(INCIDENT, ALERT)
        if unit != "day" or ranked or focus is None or not focus.item.time:
            return back
        day = datetime.fromisoformat(focus.item.time).astimezone(self.now.tzinfo).replace(hour=0, minute=0, second=0)
        dated = back.frame.copy()
        dated.window = {"start_time": format_time(day), "end_time": format_time(day + _LENGTHS["day"])}
        return replace(back, options=(Option(f"{day:%Y-%m-%d}", dated, 1),))

    def _told_time(self, unit: str, *, ranked: bool) -> dict[str, str]:
        """The window of that unit that the last answer told of, else the one that it was about."""
        before = self.talk.before
        windows = [dict(self.talk.moment)]
        windows += [before.frame.window] if before is not None and not ranked and not self.talk.moment else []
        for window in windows:
            if len(window) == 2 and unit in _LENGTHS:
                length = datetime.fromisoformat(window["end_time"]) - datetime.fromisoformat(window["start_time"])
                if abs(length - _LENGTHS[unit]) <= (_SUMMER_TIME if unit != "hour" else timedelta(0)):
                    return window
        return {}

    # --- Pointing

    def placed(self) -> Done | None:
        """Bind places of a list: "[2]", "the second host", "2"."""
        frame = self.frame
        places = self._places()
        if not places and frame.has("ref:next", "ref:previous"):
            return self._beside_the_last()
        if not places:
            return self._bare_number()
        noun = self._noun_of_a_place() or self._noun_of_before()
        shown = self._list(noun)
        if shown is None:
            if len(places) == 1 and places[0][0] == 1 and frame.has("kind:alert", "kind:incident", "alert_id"):
                last = places[0][1]
                frame.tell("order", "oldest")
                frame.tell("singular" if last == 1 else "limit", "one" if last == 1 else str(last))
                frame.features.pop("ref", None)
                return None
            return ask(frame, Reason.NO_SUCH_ROW if self.talk.lists and not noun else Reason.WHICH_THING)
        found: list[ListItem] = []
        for first, last in places:
            lines = shown.items[first - 1 : last] if first > 0 else shown.items[first : first + 1 or None]
            if len(lines) != last - first + 1 or not all(line.value for line in lines):
                return self._beyond(shown)
            found += lines
        if noun:
            frame.features["kind"] = [kind for kind in frame.all("kind") if kind != noun]
        own = [place for place, each in enumerate(self.talk.lists, start=1) if each is shown]
        self.talk.pointing = self.talk.dropped + own[0] if own else 0
        return self._bound(found)

    def _beyond(self, shown: ShownList) -> Decision:
        """A question back about a place that the list does not have; things told of in a line are offered."""
        in_a_line = shown not in self.talk.lists and len(shown.items) <= MOST_AT_ONCE
        plain = _unmarked(self.frame)
        plain.features["kind"] = [kind for kind in plain.all("kind") if kind != shown.items[0].of_kind]
        return replace(ask(plain, Reason.NO_SUCH_ROW), options=things(plain, shown.items) if in_a_line else ())

    def _beside_the_last(self) -> Done:
        """The line behind or before the one that is spoken of."""
        spoken = self.talk.spoken[-1].item.key if self.talk.spoken else None
        step = 1 if self.frame.has("ref:next") else -1
        for shown in reversed(self.talk.lists):
            keys = [line.key for line in shown.items]
            if spoken in keys:
                place = keys.index(spoken) + step
                if 0 <= place < len(keys) and shown.items[place].value:
                    return self._bound([shown.items[place]], leans=True) or self.frame
                break
        return ask(self.frame, Reason.NO_SUCH_ROW if self.talk.lists else Reason.WHICH_THING)

    def _places(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for value in self.frame.all("ref"):
            first, _, last = value.lstrip("-").partition("-")
            if first.isdecimal():
                start = -int(first) if value.startswith("-") else int(first)
                found.append((start, int(last) if last else start))
        found += [(place, place) for place in (int(each.strip("[]")) for each in self.frame.all("item"))]
        return found

    def _noun_of_a_place(self) -> str:
        """The kind right behind a place: "the second host"."""
        items = self.items
        for item, behind in pairwise(items):
            if any(type_ == "ref" and value[-1:].isdecimal() for type_, value in item.senses):
                kind = behind.sense("kind")
                if kind is not None and behind.start - item.end <= 1:
                    return kind[1]
        return ""

    def _noun_of_before(self) -> str:
        """The kind of the entity that was asked about, where "and the second?" asks the same of another."""
        before = self.talk.before
        if before is None or not self.frame.has("follow") or not before.frame.has("name"):
            return ""
        kinds = before.frame.name_kinds(before.frame.all("name")[0])
        return kinds[0] if kinds else ""

    def _list(self, noun: str = "") -> ShownList | None:
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
            told = self._row(noun)
            if told is not None and (not rows or rows[-1].turn < told.turn):
                return told
            return rows[-1] if rows else None
        if self.correcting and lists and lists[-1].beside:
            # The list beside an answer came with what is taken back now.
            own = next((shown for shown in reversed(lists) if not shown.beside), lists[-1])
            return talk.lists[talk.pointed_into - talk.dropped - 1] if talk.pointed_into > talk.dropped else own
        return lists[-1] if lists else None

    def _row(self, kind: str) -> ShownList | None:
        """Things of a kind that were told of together, or the one that was told of alone."""
        row = next((shown for shown in self.talk.rows if shown.items[0].of_kind == kind), None)
        return row or self._told_row(kind)

    def _told_row(self, kind: str) -> ShownList | None:
        """Things of a kind that one answer told of without numbers."""
        told = [each for each in self.talk.told if each.item.of_kind == kind]
        newest = [each.item for each in told if each.turn == told[-1].turn]
        return ShownList(tuple(newest), told[-1].turn) if newest else None

    def _bare_number(self) -> Done | None:
        """Bind a number alone: a line of the list, or an incident; asked back where it may be either."""
        frame, talk = self.frame, self.talk
        numbers = [(item, sense[1]) for item in self.items if (sense := item.sense("digits")) is not None]
        about_incident = frame.has("incident")
        screen = self._list()
        of_a_ranking = screen is not None and screen.items[0].kind == ENTITY and frame.has(*LISTED_KINDS)
        about_incident |= of_a_ranking
        if len(numbers) != 1 or (not about_incident and frame.has("kind", "name", "cmp", "unit", "group", "limit")):
            return None
        item, value = numbers[0]
        if frame.has("incident") and (frame.all("incident") != [value] or self._called_incident(item)):
            return None
        place, shown = int(value), self._list()
        known = value in talk.known_incidents()
        in_list = shown is not None and place <= len(shown.items) and bool(shown.items[place - 1].value)
        here = shown.items[place - 1] if in_list and shown is not None else None
        leans = talk.before is not None and (
            frame.has("follow") or not frame.has("attr", "op", "topic") or about_incident
        )
        if not leans:
            return None
        frame.features["num"], frame.features["digits"] = [], []
        frame.features["incident"] = []
        incident = ListItem(INCIDENT, value, incident=value)
        if here is not None and known and here.value != value:
            return ask_which(frame, (here, incident), talk)
        return self._bound([here if here is not None and not known else incident])

    def _called_incident(self, number: Item) -> bool:
        items = self.items
        place = items.index(number)
        return place > 0 and items[place - 1].sense("kind", frozenset({"incident"})) is not None

    def described(self) -> Done | None:
        """Bind one line by what it says: "the high one", "the one assigned to m.keller", "the phishing incident"."""
        found = self._description()
        if found is None:
            return None
        kind, forced = found
        lines: list[ListItem] = []
        fitting: list[ListItem] = []
        like = kind or (self.talk.lists[-1].items[0].of_kind if self.talk.lists[-1].items else "")
        for shown in (each for each in reversed(self.talk.lists) if each.items and each.items[0].of_kind == like):
            lines = [line for line in shown.items if line.value]
            fitting = [line for line in lines if self._fits(line)]
            if fitting:
                break
        extreme = self.frame.one("order")
        if extreme in ("newest", "oldest") and fitting and all(line.time for line in fitting):
            best = (max if extreme == "newest" else min)(line.time for line in fitting)
            fitting = [line for line in fitting if line.time == best]
        if not forced and len(fitting) != 1:
            return None
        if not lines:
            return ask(self.frame, Reason.WHICH_THING)
        for type_ in ("severity", "status", "title", "guess", "maybe_title", "owner", "order", "singular", "min"):
            self.frame.features[type_] = []
        self.frame.features["kind"] = [each for each in self.frame.all("kind") if each != kind]
        self.frame.window, self.frame.unread = {}, []
        if len(fitting) == 1:
            return self._bound(fitting)
        return ask_which(self.frame, fitting or lines, self.talk)

    def _description(self) -> tuple[str, bool] | None:
        """The kind of the line that is described, and whether nothing else can be meant; None if none is."""
        frame = self.frame
        tells = (
            frame.has("severity", "status", "title", "maybe_title", "owner", "order") or frame.window or frame.unread
        )
        if not tells or not self.talk.lists:
            return None
        items = frame.items
        for place, item in enumerate(items):
            opened = any(before.sense("definite") or before.sense("ask") for before in items[max(0, place - 6) : place])
            if item.sense("one") is not None and opened:
                return "", True
            kind = item.sense("kind", LISTED)
            between = items[place - 1] if place else None
            if kind is None or between is None or item.sense("plural") is not None or between.sense("definite"):
                continue
            told = (
                between.sense("severity") or between.sense("threat") or between.sense("owner") or between.type == "text"
            )
            if told and opened and not frame.has("order") and not frame.window:
                return kind[1], False
        return None

    def _fits(self, line: ListItem) -> bool:
        """Whether a line is what the frame describes."""
        f = self.frame
        words = [word for text in (*f.all("title"), *f.all("maybe_title"), *f.unread) for word in fold(text).split()]
        severities = {*f.all("severity"), *_at_least(f.one("min"))}
        owners = [fold(owner) for owner in f.all("owner")]
        status = f.one("status")
        tells = words or severities or owners or status or f.window
        return (
            bool(tells or f.has("order"))
            and all(word in fold(line.title) for word in words)
            and (not severities or line.severity in severities)
            and (not status or line.status == status or (status == "Open" and line.status in ("New", "Active")))
            and all((owner == "unassigned" and not line.owner) or owner in fold(line.owner) for owner in owners)
            and (not f.window or _within(line.time, f.window))
        )

    def chosen(self) -> Done | None:
        """Bind the first or last of the lines that were shown: "which one is the oldest?"."""
        frame = self.frame
        order = frame.one("order")
        points = frame.has("ref:them", "ref:ones") or any(item.sense("one") for item in frame.items)
        alone = points or self.only("ask", "order", "follow")
        if order not in ("newest", "oldest") or not frame.has("ask:what") or not alone or frame.has("kind"):
            return None
        noun = frame.one("that") or ""
        shown = next((each for each in reversed(self.talk.lists) if len(each.items) > 1), None)
        lines = () if shown is None else tuple(line for line in shown.items if line.value)
        if not lines or (noun and noun != lines[0].of_kind):
            return ask(frame, Reason.WHICH_THING)
        if not all(line.time for line in lines):
            return ask_which(frame, lines, self.talk)
        best = (max if order == "newest" else min)(lines, key=lambda line: line.time)
        for type_ in ("order", "singular", "attr", "window"):
            frame.features.pop(type_, None)
        frame.tell("among", "shown")
        return self._bound([best])

    def pointed(self) -> Done | None:
        """Bind pronouns and "that host"."""
        frame = self.frame
        kinds = frame.all("that")
        refs = [value for value in frame.all("ref") if not value[-1:].isdecimal()]
        if "other" in refs:
            return self._other()
        if (frame.has("ref:them", "both") or "ones" in refs) and not frame.has("know:similar"):
            named = frame.has("name", "incident") or len(frame.all("digits")) > 1
            # "Both high and medium alerts" joins levels.
            named |= frame.has("both") and frame.has(*LISTED_KINDS) and len(frame.all("severity")) > 1
            return None if named else self._several()
        if frame.has("know:similar") and not frame.has("name", "incident") and refs:
            kinds = [INCIDENT]
        if not kinds and not {"it", "its"} & set(refs):
            return None
        beside = frame.has(*_SIDE_BY_SIDE)
        if frame.has("name", "incident") and not beside:
            return None
        loose = set(refs) <= {"definite"}
        noun = kinds[0] if kinds else ""
        item, candidates = self._it(noun)
        if item is None and loose and (not candidates or not frame.has("attr", "kind", "topic")):
            return None
        if item is None and candidates:
            return ask_which(frame, candidates, self.talk)
        if item is None:
            says = frame.window or frame.has(*_SAYS_WHICH) or frame.has("follow")
            return None if says and not kinds else ask(frame, Reason.WHICH_THING)
        if noun in LISTED:
            self._forget_noun(noun)
        return self._bound([item])

    def _forget_noun(self, kind: str) -> None:
        """The noun of "that incident" asks for no incidents, unless it is said twice."""
        said = [item for item in self.items if item.sense("kind", frozenset({kind})) and not item.sense("that")]
        if not said:
            self.frame.features["kind"] = [each for each in self.frame.all("kind") if each != kind]

    def _it(self, kind: str) -> tuple[ListItem | None, tuple[ListItem, ...]]:
        """The one thing that is spoken of, or those of which it may be one."""
        talk = self.talk
        wants_incident = not kind and self.frame.has(*_OF_INCIDENTS) and not self.frame.has("kind:alert")
        spoken = [
            each
            for each in talk.spoken
            if (not kind or each.item.of_kind == kind) and (not wants_incident or each.item.kind in (INCIDENT, ALERT))
        ]
        focus = spoken[-1] if spoken else None
        told = self._told_row(kind) if kind else None
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
        if told is not None and told.turn >= since and len(told.items) > 1 and focus.item.key not in _keys(told.items):
            return None, told.items
        return focus.item, ()

    def _other(self) -> Done:
        talk, frame = self.talk, self.frame
        kinds = [kind for kind in (*frame.all("that"), *frame.all("kind")) if kind in (*LISTED, *_ENTITIES)]
        noun = next((kind for kind in kinds if self._right_behind_other(kind)), "")
        lines = next((shown.items for shown in reversed(talk.lists) if not shown.beside), ())
        pool = talk.together if len(talk.together) == 2 else tuple(line for line in lines if line.value)
        if noun and noun not in {item.of_kind for item in pool}:
            row = self._row(noun)
            pool = () if row is None else row.items
        spoken = talk.spoken[-1].item.key if talk.spoken else None
        left = tuple(item for item in pool if item.key != spoken)
        if noun:
            frame.features["kind"] = [kind for kind in frame.all("kind") if kind != noun]
        if len(pool) == 2 and len(left) == 1:
            return self._bound(list(left), leans=True) or frame
        return ask_which(frame, left, talk) if left else ask(frame, Reason.WHICH_THING)

    def _right_behind_other(self, kind: str) -> bool:
        items = self.items
        return any(
            item.sense("ref", frozenset({"other"})) and behind.sense("kind", frozenset({kind}))
            for item, behind in pairwise(items)
        )

    def _several(self) -> Done | None:
        """Several things at once, or the list that they stand in."""
        talk, frame = self.talk, self.frame
        lines = talk.lists[-1] if talk.lists else None
        pair = talk.together if lines is None or talk.together_turn >= lines.turn else ()
        if frame.has("status", "severity", "min", "owner", "class"):
            # "Which ones are still open" asks for those, and not for the state of each.
            frame.features["attr"] = [each for each in frame.all("attr") if each not in _FILTERED]
        asks = asks_of_a_thing(frame) or frame.has("both", "op:compare", "kind:alert", "compare")
        asks |= frame.has("kind:incident") and lines is not None and lines.items[0].kind == ENTITY
        if not asks or (frame.has("both") and not pair and (lines is None or len(lines.items) != 2)):
            if frame.has("both") and not pair:
                return ask(frame, Reason.WHICH_THING)
            return None
        found = pair or (() if lines is None else tuple(line for line in lines.items if line.value))
        noun = frame.one("that") or ""
        many = next((int(number) for number in frame.all("num") if int(number) > 1), 0)
        if many and many != len(found):
            spoken = [each.item for each in talk.spoken if each.item.kind == INCIDENT]
            found = tuple(spoken[-many:]) if len(spoken) >= many else ()
        if many:
            for type_ in ("num", "digits", "limit", "counted"):
                frame.features.pop(type_, None)
        if not found or (noun and noun != found[0].of_kind):
            return ask(frame, Reason.WHICH_THING)
        if len({item.kind for item in found}) > 1 or len(found) > MOST_AT_ONCE:
            return ask_which(frame, found, talk)
        if found[0].kind != INCIDENT:
            return ask_which(frame, found, talk) if len(found) > 1 else self._bound(list(found))
        return self._bound(list(found))

    def _bound(self, items: list[ListItem], *, leans: bool = False) -> Done | None:
        """The frame about these things; what is asked of them comes from before where the sentence leans on it."""
        self.talk.pointed = (*self.talk.pointed, Pointed(self._said_of_pointing(), tuple(items)))
        frame = self.frame
        if frame.has("rel:after") and frame.around is None and items[0].kind == ALERT:
            return replace(ask(_unmarked(frame), Reason.HOW_LONG), frame=about(_unmarked(frame), items[0]))
        beside = frame.all("incident") if frame.has(*_SIDE_BY_SIDE) else []
        if frame.has(*_SIDE_BY_SIDE) and len(items) == 1 and frame.has("ref:it") and self._it("")[0] != items[0]:
            other, candidates = self._it("")
            if other is None:
                return ask_which(frame, candidates, self.talk)
            items = [other, *items]
        leans = leans or frame.has("follow") or self.correcting
        told = _unmarked(frame)
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
        self.frame = told
        before = self.talk.before
        if before is not None and leans and not asks_of_a_thing(told) and not told.has(*LISTED_KINDS):
            return merged(self._asked_before(items[0]), told)
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

    def leaned(self) -> Done | None:
        """Fill what the sentence leaves out from the question before."""
        frame = self.frame
        if self.talk.before is None and not self.talk.lists:
            lost = frame.has("ref") and not frame.window and not frame.has(*_SAYS_WHICH)
            return ask(frame, Reason.WHICH_THING) if lost else None
        of_the_list = frame.has("ref:them", "ref:ones") and not frame.has("name", "incident")
        if of_the_list and self.talk.lists:
            noun, strange = frame.one("that"), [*frame.unread, *frame.all("guess")]
            if noun is not None and self.talk.lists[-1].items and noun != self.talk.lists[-1].items[0].of_kind:
                return ask(frame, Reason.WHICH_THING)
            if strange:
                return ask(frame, Reason.UNREAD, *strange)
        whole = not is_fragment(frame) and not frame.has("follow") and not of_the_list and not self._switches()
        if whole and not (frame.has("ref:its", "ref:it", "ref:definite") and not frame.has("name", "incident", "know")):
            return None
        if not is_fragment(frame) and frame.has("name", "incident") and not self.correcting:
            return None
        if frame.has("attr:events") and not frame.has("name", "incident", "alert_id", "kind:alert"):
            alert, _ = self._it(ALERT)
            if alert is not None:
                return self._bound([alert])
        implied = frame.has("attr") and not frame.has("name", "incident", "by", "group", "kind:alert", "kind:incident")
        base = self._base(lists=of_the_list or _narrows_a_list(frame))
        if of_the_list and base is not None:
            self._look_at_all(base)
        if implied and not of_the_list and (base is None or not base.frame.has("incident", "name")):
            item, candidates = self._it("")
            if item is not None:
                return self._bound([item])
            if candidates and frame.has(*_OF_INCIDENTS):
                return ask_which(frame, candidates, self.talk)
        return self._merged_with(base)

    def _look_at_all(self, base: Decision) -> None:
        """Note that the list showed a part of its rows, where it is narrowed now."""
        shown = next((each for each in reversed(self.talk.lists) if each.by == base), None)
        part = shown is not None and shown.total is not None and shown.total > len(shown.items)
        if part and _narrows_a_list(self.frame):
            self.frame.tell("among", "all")

    def _switches(self) -> bool:
        """True for a noun alone, which asks for other rows of the same: "only incidents", "alerts?"."""
        before = self.talk.before
        return (
            before is not None
            and self.only("kind:incident", "kind:alert", "plural", "cmp:only")
            and not before.frame.has(*(f"kind:{kind}" for kind in self.frame.all("kind")))
        )

    def _merged_with(self, base: Decision | None) -> Done:
        return ask(self.frame, Reason.NOTHING_SHOWN) if base is None else _unmarked(merged(base.frame, self.frame))

    def _base(self, *, lists: bool) -> Decision | None:
        """The decision that a sentence leans on: the last, or the one behind the list where only a list is meant."""
        talk = self.talk
        waits = talk.waiting is not None and talk.waiting.reason is Reason.UNREAD
        before = talk.before
        if lists and before is not None and not is_list(before.frame) and not waits:
            shown = [each.by for each in talk.lists if each.by is not None and is_list(each.by.frame)]
            return shown[-1] if shown else before
        return before


LISTED_KINDS = tuple(f"kind:{kind}" for kind in sorted(LISTED))
_WAIT = frozenset(
    {
        Reason.WHICH_THING, Reason.WHICH_OF_THESE, Reason.WHICH_NAME, Reason.WHO_ARE_YOU, Reason.HOW_LONG,
        Reason.MOST_OF_WHAT, Reason.COMPARED_WITH_WHAT, Reason.ONE_TIME, Reason.TIME, Reason.INCIDENTS_OR_ALERTS,
        Reason.NEAR_NAME, Reason.UNKNOWN_NAME, Reason.AMBIGUOUS_NAME, Reason.ONE_NAME, Reason.ONE_SEVERITY,
    }
)  # fmt: skip
"""Reasons to ask back that one value answers."""
_STEPS: tuple[Callable[[_Sentence], Done | None], ...] = (
    _Sentence.picked,
    _Sentence.corrected,
    _Sentence.timed,
    _Sentence.acted,
    _Sentence.placed,
    _Sentence.chosen,
    _Sentence.described,
    _Sentence.pointed,
    _Sentence.leaned,
)


def ask_which(frame: Frame, items: Sequence[ListItem], talk: Context) -> Decision:
    """A question back with the things that may be meant, under their numbers on the screen where they stand there."""
    items = items if len(items) <= MOST_AT_ONCE else ()
    on_screen = [line.key for line in talk.lists[-1].items] if talk.lists else []
    all_there = all(item.key in on_screen for item in items)
    numbers = [on_screen.index(item.key) + 1 for item in items] if all_there else []
    plain = _unmarked(frame)
    return replace(ask(plain, Reason.WHICH_OF_THESE), options=things(plain, items, numbers))


def without_compare(frame: Frame) -> Frame:
    """The frame without the comparison that the words of a shift may be, too."""
    shifts = [item for item in frame.items if item.sense("shift")]
    others = [item for item in frame.items if item.sense("op", frozenset({"compare"})) and item not in shifts]
    if not shifts or others:
        return frame
    plain = frame.copy()
    plain.features["op"] = [op for op in plain.all("op") if op != "compare"]
    for type_ in ("unit", "ref", "relative"):
        plain.features[type_] = []
    return plain


def _narrows_a_list(frame: Frame) -> bool:
    """True for filters and orders that only a list takes."""
    return frame.has(
        "severity", "min", "status", "order", "limit", "owner", "class", "all", "tactic", "product", "cmp:only"
    ) and not asks_of_a_thing(frame)


def _unmarked(frame: Frame) -> Frame:
    """The frame without the words that lean: what they mean is bound."""
    plain = frame.copy()
    plain.items = tuple(item for item in frame.items if not any(type_ in _MARKS for type_, _ in item.senses))
    for type_ in _MARKS:
        plain.features.pop(type_, None)
    return plain


def _from_the_top(decision: Decision) -> Decision:
    calls = (
        Call(call.tool, {name: value for name, value in call.arguments.items() if name != "offset"})
        for call in decision.calls
    )
    return replace(decision, calls=tuple(calls))


def _breaks_after(text: str, item: Item) -> bool:
    """Whether a comma or a full stop follows an item."""
    return text[item.end :].lstrip()[:1] in (",", ".", ";", ":", "!", "-")


def _keys(items: Iterable[ListItem]) -> set[tuple[str, str, str]]:
    return {item.key for item in items}


def _at_least(severity: str | None) -> Sequence[str]:
    return SEVERITIES[SEVERITIES.index(severity) :] if severity in SEVERITIES else ()


def _within(time: str, window: dict[str, str]) -> bool:
    start, end = window.get("start_time", ""), window.get("end_time", "~")
    return bool(time) and bool(start or "end_time" in window) and start <= time < end


def _around(moment: str, width: timedelta) -> dict[str, str]:
    at = datetime.fromisoformat(moment)
    return {"start_time": format_time(at - width), "end_time": format_time(at + width)}
