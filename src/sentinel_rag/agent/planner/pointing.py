"""What the words of a frame point at: things of the conversation, one of a list, and names of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from sentinel_rag.agent.planner.context import ShownList
from sentinel_rag.agent.planner.decisions import Decision, Option, Unclear, about, ask, things
from sentinel_rag.agent.planner.descriptions import fits
from sentinel_rag.agent.planner.going_on import moved_time
from sentinel_rag.agent.planner.merging import (
    LISTED,
    asks_of_a_thing,
    changes_an_answer,
    is_fragment,
    is_list,
    is_outside,
    merged,
    reasons_of,
    types_of,
)
from sentinel_rag.agent.planner.sentence import (
    LISTED_KINDS,
    MOST_AT_ONCE,
    SIDE_BY_SIDE,
    Done,
    FrameCompletion,
    ask_which,
    unmarked,
)
from sentinel_rag.agent.things import ENTITY, INCIDENT, OWNER, ListItem
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import Item
from sentinel_rag.language.lexicon import fold

_RANKED = ("kind:account", "kind:host", "kind:ip", "kind:url", "kind:file", "kind:process")
"""Kinds of things by which alerts are counted."""
_PEOPLE = ("account", "owner", "sender")
_ENTITIES = ("account", "host", "ip", "url", "file", "process", "mailbox", "filehash", "malware", "domain")


def placed(asked: FrameCompletion) -> Done | None:
    """Bind places of a list: "[2]", "the second host", "2"."""
    frame = asked.frame
    places = _places(asked)
    compared = frame.has("op:compare") and bool(frame.window)  # "this week and the one before"
    if not places and frame.has("ref:next", "ref:previous") and not compared:
        return _beside_the_last(asked)
    if not places:
        return _bare_number(asked)
    noun = _noun_of_a_place(asked) or _noun_of_before(asked)
    shown = asked.pointed_list(noun)
    if shown is None:
        anew = asked.talk.before is None and frame.has("alert_id", *LISTED_KINDS)
        first, last = places[0]
        if len(places) == 1 and abs(first) == 1 and (anew or noun in LISTED):
            frame.tell("order", "oldest" if first > 0 else "newest")
            frame.tell("singular" if abs(last) == 1 else "limit", "one" if abs(last) == 1 else str(last))
            frame.features.pop("ref", None)
            return None
        return ask(frame, Unclear.NO_SUCH_ROW if asked.talk.lists and not noun else Unclear.WHICH_THING)
    found: list[ListItem] = []
    for first, last in places:
        lines = shown.items[first - 1 : last] if first > 0 else shown.items[first : first + 1 or None]
        if len(lines) != last - first + 1 or not all(line.value for line in lines):
            return _beyond(asked, shown)
        found += lines
    if noun:
        frame.features["kind"] = [kind for kind in frame.all("kind") if kind != noun]
    own = [place for place, each in enumerate(asked.talk.lists, start=1) if each is shown]
    asked.talk.pointing = asked.talk.dropped + own[0] if own else 0
    return asked.bound(found)


def _beyond(asked: FrameCompletion, shown: ShownList) -> Decision:
    """A question back about a place that the list does not have; things told of in a line are offered."""
    in_a_line = shown not in asked.talk.lists and len(shown.items) <= MOST_AT_ONCE
    plain = unmarked(asked.frame)
    plain.features["kind"] = [kind for kind in plain.all("kind") if kind != shown.items[0].of_kind]
    return replace(ask(plain, Unclear.NO_SUCH_ROW), options=things(plain, shown.items) if in_a_line else ())


def _beside_the_last(asked: FrameCompletion) -> Done:
    """The line behind or before the one that is spoken of."""
    spoken = asked.talk.spoken[-1].item.key if asked.talk.spoken else None
    step = 1 if asked.frame.has("ref:next") else -1
    for shown in reversed(asked.talk.lists):
        keys = [line.key for line in shown.items]
        if spoken in keys:
            place = keys.index(spoken) + step
            if 0 <= place < len(keys) and shown.items[place].value:
                return asked.bound([shown.items[place]], leans=True) or asked.frame
            break
    asked.frame.tell("shift", "later" if step > 0 else "earlier")
    return moved_time(asked) or ask(asked.frame, Unclear.NO_SUCH_ROW if asked.talk.lists else Unclear.WHICH_THING)


def _places(asked: FrameCompletion) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for value in asked.frame.all("ref"):
        first, _, last = value.lstrip("-").partition("-")
        if first.isdecimal():
            start = -int(first) if value.startswith("-") else int(first)
            found.append((start, int(last) if last else start))
    found += [(place, place) for place in (int(each.strip("[]")) for each in asked.frame.all("item"))]
    return found


def _noun_of_a_place(asked: FrameCompletion) -> str:
    """The kind right behind a place: "the second host"."""
    items = asked.items
    for item, behind in pairwise(items):
        if any(type_ == "ref" and value[-1:].isdecimal() for type_, value in item.senses):
            kind = behind.sense("kind")
            if kind is not None and behind.start - item.end <= 1:
                return kind[1]
    return ""


def _noun_of_before(asked: FrameCompletion) -> str:
    """The kind of the things that were asked for last, or of the entity of which "and the second?" asks the same."""
    before, shown = asked.talk.before, asked.last_list()
    for kind in before.frame.all("kind") if before and not asked.correcting and not asked.frame.has("list_of") else ():
        row = asked.row(kind) if kind in _ENTITIES else None
        if row is not None and row.turn == asked.talk.turn and (shown is None or shown.turn < row.turn):
            return kind
    if before is None or not asked.frame.has("follow") or not before.frame.has("name"):
        return ""
    kinds = before.frame.name_kinds(before.frame.all("name")[0])
    return kinds[0] if kinds else ""


def _bare_number(asked: FrameCompletion) -> Done | None:
    """Bind a number alone: a line of the list, or an incident; asked back where it may be either."""
    frame, talk = asked.frame, asked.talk
    counted = "num" if frame.has("talk:adjust") else "digits"  # "make that six"
    numbers = [(item, sense[1]) for item in asked.items if (sense := item.sense(counted)) is not None]
    about_incident = frame.has("incident")
    screen = asked.pointed_list()
    of_a_ranking = screen is not None and screen.items[0].kind == ENTITY and frame.has(*LISTED_KINDS)
    about_incident |= of_a_ranking
    if (
        frame.has("shift", "previous", "symbol")
        or len(numbers) != 1
        or (not about_incident and frame.has("kind", "name", "cmp", "unit", "group", "limit"))
    ):
        return None
    item, value = numbers[0]
    if item.text != value and counted == "digits":
        return None  # "007" is the number of nothing
    limits = talk.before is not None and talk.before.frame.has("limit", "op:top") and frame.has("talk:adjust")
    if limits and value not in talk.known_incidents():
        for type_ in ("num", "digits", "incident"):
            frame.features[type_] = []
        frame.tell("limit", value)  # "make it 10", behind the top 5
        return None
    if frame.has("incident") and (frame.all("incident") != [value] or _called_incident(asked, item)):
        return None
    place, shown = int(value), asked.pointed_list()
    known = value in talk.known_incidents()
    in_list = shown is not None and place <= len(shown.items) and bool(shown.items[place - 1].value)
    here = shown.items[place - 1] if in_list and shown is not None else None
    if here is None and not known and not frame.has("incident") and (measures := _measures(asked, value)):
        return _by_measure(asked, measures, value)
    leans = talk.before is not None and (frame.has("follow") or not frame.has("attr", "op", "topic") or about_incident)
    if not leans:
        return None
    frame.features["num"], frame.features["digits"] = [], []
    frame.features["incident"] = []
    incident = ListItem(INCIDENT, value, incident=value)
    if here is not None and known and here.value != value:
        return ask_which(frame, (here, incident), talk)
    return asked.bound([here if here is not None and not known else incident])


def _measures(asked: FrameCompletion, value: str) -> dict[str, Frame]:
    """The last question with the number as the length of its time or as its limit, by words for each."""
    before, number = asked.talk.before, int(value)
    if before is None or number < 1 or asked.frame.has("attr", "topic", "ask"):
        return {}
    found: dict[str, Frame] = {}
    unit, length = _unit_back(before.frame.window, asked.now)
    if unit:
        frame = before.frame.copy()
        named = next((name for name, hours in TIME_WINDOWS.items() if timedelta(hours=hours) == number * length), None)
        start = format_time(asked.now - number * length)
        frame.window = {"start_time": start} if named is None else {"time_window": named}
        found[f"the last {number} {unit}"] = frame
    if before.frame.has("limit", "op:top"):
        frame = before.frame.copy()
        frame.features["limit"] = [value]
        found[f"{number} rows"] = frame
    return found


def _by_measure(asked: FrameCompletion, measures: Mapping[str, Frame], value: str) -> Done:
    """The one measure that "make it 30" changes, or a question back between the measures and an incident."""
    if asked.frame.has("talk:adjust") and len(measures) == 1:
        return next(iter(measures.values()))
    back = ask(unmarked(asked.frame), Unclear.NUMBER_OF_WHAT, value)
    incident = about(Frame(""), ListItem(INCIDENT, value, incident=value))
    frames = {**measures, f"incident {value}": incident}
    options = [Option(text, frame, number) for number, (text, frame) in enumerate(frames.items(), start=1)]
    return replace(back, options=tuple(options))


def _unit_back(window: Mapping[str, str], now: datetime) -> tuple[str, timedelta]:
    """In which unit a window reaches back from now: days or hours; nothing where it is no number of them."""
    length = timedelta(hours=TIME_WINDOWS.get(window.get("time_window", ""), 0))
    if "start_time" in window and window.get("end_time", format_time(now)) == format_time(now):
        length = now - datetime.fromisoformat(window["start_time"])
    for unit, step in (("days", timedelta(days=1)), ("hours", timedelta(hours=1))):
        if length and not length % step:
            return unit, step
    return "", timedelta()


def _called_incident(asked: FrameCompletion, number: Item) -> bool:
    items = asked.items
    place = items.index(number)
    return place > 0 and items[place - 1].sense("kind", frozenset({"incident"})) is not None


def pointed(asked: FrameCompletion) -> Done | None:
    """Bind pronouns and "that host"."""
    frame = asked.frame
    kinds = frame.all("that")
    refs = [value for value in frame.all("ref") if not value[-1:].isdecimal()]
    if is_outside(frame) or kinds == ["table"]:
        return None
    if frame.has("sorted") and not frame.has("order"):
        return ask(unmarked(frame), Unclear.NOT_EXPRESSIBLE, *(item.text for item in asked.items if item.sense("attr")))
    if frame.has("cmp:only") and not frame.has("ref", "that", "name", "incident"):
        _ask_for_no_filter(frame)
    before = asked.talk.before
    if (
        refs in (["it"], ["within"])
        and changes_an_answer(frame)
        and before is not None
        and (before.frame.window or is_list(before.frame))
    ):
        frame.features["ref"] = []  # "it" is the answer, and no thing of it
        return None
    if refs == ["within"] and frame.has("digits", "name", "incident"):
        return None
    if refs == ["within"] and frame.has("title") and before is not None and is_list(before.frame):
        return None  # a word "in it", behind rows, is in the rows
    if refs and set(refs) <= {"it", "within"} and frame.has("kind:incident") and _of_the_answer(asked):
        return unmarked(merged(before.frame, unmarked(frame))) if before is not None else None
    if "other" in refs:
        return _other(asked)
    if "there" in refs:
        return _there(asked)
    if (frame.has("ref:them", "both") or "ones" in refs) and not frame.has("know:similar"):
        named = frame.has("name", "incident") or len(frame.all("digits")) > 1
        # "Both high and medium alerts" joins levels.
        named |= frame.has("both") and frame.has(*LISTED_KINDS) and len(frame.all("severity")) > 1
        return None if named else _several(asked)
    if frame.has("know") and not frame.has("name", "incident") and refs:
        kinds = [INCIDENT]
    if not kinds and not {"it", "its", "within"} & set(refs):
        return None
    beside = frame.has(*SIDE_BY_SIDE)
    if frame.has("name", "incident") and not beside:
        return None
    loose = set(refs) <= {"definite"}
    noun = kinds[0] if kinds else ""
    item, candidates = asked.it(noun)
    waiting = asked.talk.waiting
    if item is None and loose and (not candidates or not frame.has("attr", "kind", "topic")):
        return None
    if item is not None and not kinds and waiting is not None and waiting.reason is Unclear.NOTHING_NEW:
        return ask_which(frame, (item,), asked.talk)  # what was meant before was not understood
    if item is None and candidates:
        return ask_which(frame, candidates, asked.talk)
    if item is None and frame.has("know") and not frame.has("know:similar"):
        return None
    if item is None and not kinds and before is not None and is_list(before.frame) and not before.frame.has("topic"):
        return None  # "which of that are new" is of the answer itself
    if item is None:
        says = frame.window or frame.has(*types_of("says_which")) or frame.has("follow")
        return None if says and not kinds else ask(frame, Unclear.WHICH_THING)
    if noun in LISTED:
        _forget_noun(asked, noun)
    if item.of_kind == OWNER and frame.has("talk:more") and not frame.has("kind", "topic", "attr"):
        frame.tell("kind", INCIDENT)  # "what else does she have"
    return asked.bound([item])


def _of_the_answer(asked: FrameCompletion) -> bool:
    """True where "in it" is in the answer: incidents are in no incident, but in the rows or the report before."""
    before, (item, candidates) = asked.talk.before, asked.it("")
    things = candidates if item is None else (item,)
    rows = before is not None and is_list(before.frame) and not before.frame.has("topic", "template")
    return rows and all(one.kind in LISTED for one in things)


def _there(asked: FrameCompletion) -> Done | None:
    """The place that is spoken of: whatever was spoken of last, unless that is a person."""
    frame = asked.frame
    if frame.has("name", "incident"):
        return None
    before, newest = asked.talk.before, asked.talk.spoken[-1:]
    of_rows = before is not None and before.frame.has(*LISTED_KINDS, "op:trend", "op:summary")
    if before is not None and of_rows and is_list(before.frame) and all(each.turn < asked.talk.turn for each in newest):
        if before.frame.has("kind:alert") and frame.has(*_RANKED) and not before.frame.has("name", "op:top"):
            frame.tell("op", "top")  # "machines in there"
        return unmarked(merged(before.frame, unmarked(frame)))  # "in there" is in the list
    spoken = [each.item for each in asked.talk.spoken if each.item.of_kind not in _PEOPLE]
    kind = spoken[-1].of_kind if spoken else "host"
    item, candidates = asked.it(kind)
    if item is not None:
        return asked.bound([item])
    return ask_which(frame, candidates, asked.talk) if candidates else ask(frame, Unclear.WHICH_THING)


def _forget_noun(asked: FrameCompletion, kind: str) -> None:
    """The noun of "that incident" asks for no incidents, unless it is said twice."""
    said = [item for item in asked.items if item.sense("kind", frozenset({kind})) and not item.sense("that")]
    if not said:
        asked.frame.features["kind"] = [each for each in asked.frame.all("kind") if each != kind]


def _other(asked: FrameCompletion) -> Done:
    talk, frame = asked.talk, asked.frame
    kinds = [kind for kind in (*frame.all("that"), *frame.all("kind")) if kind in (*LISTED, *_ENTITIES)]
    noun = next((kind for kind in kinds if _right_behind_other(asked, kind)), "")
    lines = next((shown.items for shown in reversed(talk.lists) if not shown.beside), ())
    pool = talk.together if len(talk.together) == 2 else tuple(line for line in lines if line.value)
    if noun and noun not in {item.of_kind for item in pool}:
        row = asked.row(noun)
        pool = () if row is None else row.items
    spoken = talk.spoken[-1].item.key if talk.spoken else None
    left = tuple(item for item in pool if item.key != spoken)
    if noun:
        frame.features["kind"] = [kind for kind in frame.all("kind") if kind != noun]
    if len(pool) == 2 and len(left) == 1:
        return asked.bound(list(left), leans=True) or frame
    return ask_which(frame, left, talk) if left else ask(frame, Unclear.WHICH_THING)


def _right_behind_other(asked: FrameCompletion, kind: str) -> bool:
    items = asked.items
    return any(
        item.sense("ref", frozenset({"other"})) and behind.sense("kind", frozenset({kind}))
        for item, behind in pairwise(items)
    )


def _ask_for_no_filter(frame: Frame) -> None:
    """ "Which ones are still open" asks for those, and not for the state of each."""
    if frame.has("status", "severity", "min", "owner", "class"):
        frame.features["attr"] = [each for each in frame.all("attr") if f"attr:{each}" not in types_of("filtered")]


def _several(asked: FrameCompletion) -> Done | None:
    """Several things at once, or the list that they stand in."""
    talk, frame = asked.talk, asked.frame
    lines = asked.last_list()
    pair = talk.together if lines is None or talk.together_turn >= lines.turn else ()
    _ask_for_no_filter(frame)
    asks = asks_of_a_thing(frame) or frame.has("both", "op:compare", "kind:alert", "compare")
    asks |= frame.has("kind:incident") and lines is not None and lines.items[0].kind == ENTITY
    if not asks or (frame.has("both") and not pair and (lines is None or len(lines.items) != 2)):
        if frame.has("both") and not pair:
            return ask(frame, Unclear.WHICH_THING)
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
        return ask(frame, Unclear.WHICH_THING)
    if len({item.kind for item in found}) > 1 or len(found) > MOST_AT_ONCE:
        return ask_which(frame, found, talk)
    if found[0].kind != INCIDENT:
        return ask_which(frame, found, talk) if len(found) > 1 else asked.bound(list(found))
    return asked.bound(list(found))


def picked(asked: FrameCompletion) -> Done | None:
    """What was offered, by its words, its number or a yes; a value that was asked for."""
    talk = asked.talk
    said = fold(asked.frame.said).strip(" .?!")
    for option in talk.offers:
        if said == fold(option.text).strip(" .?!"):
            return option
    if talk.offers and asked.only("talk:yes", "meta:small_talk") and asked.frame.has("talk:yes"):
        if talk.waiting is not None and len(talk.offers) > 1:
            return talk.waiting
        return talk.offers[0]
    if talk.waiting is None:
        return _by_number(asked) if any(option.number for option in talk.offers) else None
    return _by_number(asked) or _by_words(asked) or _fills(asked, talk.waiting)


def _by_number(asked: FrameCompletion) -> Option | None:
    """The option under the number that is all that is said."""
    if not asked.talk.offers or not asked.only("num", "digits", "ref", "lit:item", "talk:instead"):
        return None
    offers = asked.talk.offers
    ordinals = [int(ref) for ref in asked.frame.all("ref") if ref.lstrip("-").isdecimal()]
    if len(ordinals) == 1 and abs(ordinals[0]) <= len(offers):
        return offers[ordinals[0] - 1 if ordinals[0] > 0 else ordinals[0]]
    numbers = [*asked.frame.all("num"), *(each.strip("[]") for each in asked.frame.all("item"))]
    wanted = int(numbers[0]) if len(numbers) == 1 else 0
    return next((option for option in offers if option.number == wanted), None)


def _by_words(asked: FrameCompletion) -> Option | None:
    """The one option whose thing is what the words tell."""
    asks = asks_of_a_thing(asked.frame) and asked.frame.all("attr") != ["detail"]
    if not asked.talk.offers or asks or asked.frame.has("kind:alert", "op:count", "ref:them"):
        return None
    named = {*asked.frame.all("incident"), *asked.frame.all("name"), *asked.frame.all("num")}
    fitting = [
        option
        for option in asked.talk.offers
        if option.item is not None and ({option.item.value, option.item.incident} & named or fits(asked, option.item))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fills(asked: FrameCompletion, waiting: Decision) -> Frame | None:
    """The frame that waits for a value, with what is said now."""
    told, said = waiting.frame, asked.frame
    if waiting.reason not in reasons_of("one_value") or not is_fragment(said) or said.has(*types_of("leans")):
        return None
    if waiting.reason is Unclear.HOW_LONG and said.around is None:
        return None
    if waiting.reason is Unclear.WHICH_MOMENT and not said.window:
        return None
    if waiting.reason in (Unclear.WHICH_THING, Unclear.WHICH_OF_THESE) and not said.has("name", "incident", "digits"):
        return None
    filled = merged(told, said)
    filled.around = said.around or told.around
    if waiting.reason is Unclear.WHO_ARE_YOU:
        filled.features["owner"] = said.all("name") or list(said.unread)
        filled.features["name"], filled.unread = [], []
    if waiting.reason in (Unclear.WHICH_THING, Unclear.WHICH_OF_THESE) and said.has("digits"):
        filled.features["incident"] += [n for n in said.all("digits") if n not in filled.all("incident")]
        filled.features["num"], filled.features["digits"] = [], []
    if waiting.reason is Unclear.COMPARED_WITH_WHAT:
        filled.features["incident"] = [*told.all("incident"), *said.all("incident"), *said.all("digits")]
    return unmarked(filled)
