"""What a question is about: an incident, an alert, a named entity, or the time around one of them.

References such as `[2]` and "that host" arrive resolved (`Reading.things`) or as a question back (`Reading.unclear`);
here they become the subject of the question, as do things that it names itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.conversation import Conversation, ListItem
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Ask
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.language.times.windows import WindowSlot


@dataclass(frozen=True, slots=True)
class Subject:
    """`kind` is incident, alert, entity, around (a window around a thing), or empty."""

    kind: str = ""
    incidents: tuple[str, ...] = ()
    item: ListItem | None = None
    window: WindowSlot | None = None
    reference_asked: bool = False


_COMPARED = rf"{cues.COMPARE}|(?:worse|better|newer|older|bigger|higher|more\s+\w+)\s+than|or"
_LISTS = ("List the incidents, newest first", "Show the newest alerts")


def subject_of(reading: Reading, conversation: Conversation) -> Subject | Ask:
    """What the question is about; an empty kind if it names nothing; `Ask` for a reference to nothing."""
    if reading.unclear:
        return Ask(reading.unclear)
    if reading.around is not None:
        return _around(reading, conversation)
    named = reading.incidents + reading.incident_urls
    if named:
        reference_asked = reading.defender_id or reading.has(
            r"sentinel\s+(?:incident\s+)?(?:number|id)|defender|provider|which\s+(?:kind|type)\s+of"
        )
        return Subject("incident", named, reference_asked=reference_asked)
    if reading.numbers and reading.has(r"(?:sentinel|defender|incident|provider)\s+(?:incident\s+)?(?:number|id)"):
        return Subject("incident", reading.numbers[:1], reference_asked=True)
    if reading.numbers and reading.has(cues.ANALYSIS) and not reading.names:
        return Subject("incident", reading.numbers)
    if len(reading.numbers) == 2 and reading.has(_COMPARED):
        return Subject("incident", reading.numbers)
    if len(reading.numbers) == 1 and _asks_inside(reading):
        return Subject("incident", reading.numbers)
    pointed = _pointed_at(reading)
    if pointed is not None:
        return pointed
    if reading.guids:
        return _by_guid(reading)
    return _implied(reading, conversation)


_NEWS = r"(?:latest|newest|news|story|deal|word|going\s+on|evidence|summary|recap)"


def _asks_inside(reading: Reading) -> bool:
    """True for "which urls are in 322": a kind of entity or a field, and a bare number behind "in" or "of"."""
    number = reading.numbers[0]
    if re.search(rf"\b(?:about|alert\s+count|explain|describe)\s+{number}\b", reading.core, re.IGNORECASE):
        return True
    if re.search(rf"\b{_NEWS}\s+(?:on|with|of|about|for|in)\s+{number}\b", reading.core, re.IGNORECASE):
        return True
    placed = re.search(rf"\b(?:in|of|for|inside|from)\s+{number}\s*\W*$", reading.core, re.IGNORECASE)
    asked = cues.kinds_named(reading) or cues.aspects_of(reading)
    return placed is not None and bool(asked) and not reading.has(f"{cues.TOP}|{cues.TREND}|{cues.ALERT}")


def _by_guid(reading: Reading) -> Subject:
    about_alert = reading.has(r"alert") and not reading.has(r"alerts")
    if about_alert:
        return Subject("alert", item=ListItem("alert", reading.guids[0]))
    return Subject("incident", reading.guids)


def _pointed_at(reading: Reading) -> Subject | Ask | None:
    """The subject of a question whose references stand for something else than incidents by their number."""
    alerts = [thing for thing in reading.things if thing.kind == "alert"]
    if len(alerts) > 1:
        return Ask(
            "I look at one alert at a time. Which one first?",
            tuple(f"Details of alert {each.value}" for each in alerts),
        )
    if alerts:
        return Subject("alert", item=alerts[0])
    unnamed = [thing for thing in reading.things if thing.kind == "entity" and not _is_named(thing, reading)]
    if unnamed:
        return Subject("entity", item=unnamed[0])
    return None


def _is_named(thing: ListItem, reading: Reading) -> bool:
    return any(name.value.casefold() == thing.value.casefold() for name in reading.names)


def _implied(reading: Reading, conversation: Conversation) -> Subject:
    """A question for the alerts or for a field with no subject, while an incident is in focus."""
    incident = conversation.references.current("incident")
    last = conversation.last
    if incident is None or last is None:
        return Subject()
    bare_alerts = re.fullmatch(
        r"\W*(?:please\s+)?(?:and\s+)?(?:(?:show|list|give|display)\s+(?:me\s+)?)?the\s+alerts\W*", reading.text, re.I
    )
    if (bare_alerts and last.view == "incident") or (not bare_alerts and _asks_field_only(reading)):
        return Subject("incident", (incident.value,))
    return Subject()


def _asks_field_only(reading: Reading) -> bool:
    """ "which hosts are involved", "who owns it": a field, and no list, window, name or top."""
    if reading.names or reading.window or reading.has(f"{cues.TOP}|{cues.TREND}|{cues.TABLES}"):
        return False
    if reading.has(rf"{cues.INCIDENT}|all|any|every|alerts|average|mean|median|overall|usually|typical(?:ly)?"):
        return False
    kinds = cues.kinds_named(reading)
    if kinds and len(reading.words) <= 5 and not reading.unknown_words and reading.has("which|what|who"):
        return True
    if kinds and reading.has(r"involved|affected|part|concerned|hit|touched|targeted|in\s+there"):
        return True
    aspects = set(cues.aspects_of(reading)) - {"products"}
    return bool(aspects) and len(reading.words) <= 8 and not reading.status and not reading.severity.arguments()


def _around(reading: Reading, conversation: Conversation) -> Subject | Ask:
    assert reading.around is not None
    item = reading.things[0] if reading.things else conversation.references.current("alert")
    if not reading.things and reading.incidents:
        return Subject("incident", reading.incidents)
    if item is None or not item.time:
        return Ask("Around which time? Give a time, or ask for a list of alerts and say [n].", _LISTS[1:])
    moment = parse_time(item.time)
    window = WindowSlot(moment - reading.around, moment + reading.around)
    return Subject("around", item=item, window=window)
