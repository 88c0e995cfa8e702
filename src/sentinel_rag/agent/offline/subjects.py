"""What a question is about: an incident, an alert, a named entity, or the time around one of them.

Resolves the references of `mentions` with the conversation: `[2]`, "the second one", "that incident", "its alerts".
A reference to something that was never shown is asked back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sentinel_rag.agent.conversation import Conversation, ListItem
from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.plan import Ask
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.window_kinds import WindowSlot
from sentinel_rag.contracts.query_results import parse_time


@dataclass(frozen=True, slots=True)
class Subject:
    """`kind` is incident, alert, entity, around (a window around a thing), or empty."""

    kind: str = ""
    incidents: tuple[str, ...] = ()
    item: ListItem | None = None
    window: WindowSlot | None = None
    reference_asked: bool = False


_COMPARED = rf"{cues.COMPARE}|(?:worse|better|newer|older|bigger|higher|more\s+\w+)\s+than|or"
_NO_LIST = "There is no such line in the last list. Ask for a list first, or name the incident by its number."
_LISTS = ("List the incidents, newest first", "Show the newest alerts")
_ORDINAL_NOUNS = {"incident": "incident", "alert": "alert"}


def subject_of(reading: Reading, conversation: Conversation) -> Subject | Ask:
    """What the question is about; an empty kind if it names nothing; `Ask` for a reference to nothing."""
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
    if len(reading.numbers) == 2 and reading.has(_COMPARED):
        return Subject("incident", reading.numbers)
    if len(reading.numbers) == 1 and _asks_inside(reading):
        return Subject("incident", reading.numbers)
    if reading.guids:
        return _by_guid(reading)
    if reading.items:
        item = _listed(reading, conversation)
        if item is not None:
            return item
    if reading.numbers and reading.text.strip(" .?!#") == reading.numbers[0]:
        line = conversation.item(int(reading.numbers[0]))
        numbers = {each.value for each in conversation.listed if each.kind == "incident"}
        if line is not None and line.kind in ("incident", "alert", "entity") and reading.numbers[0] not in numbers:
            return _listed(replace(reading, items=(int(reading.numbers[0]),)), conversation) or Subject()
    return _implied(reading, conversation)


def _asks_inside(reading: Reading) -> bool:
    """True for "which urls are in 322": a kind of entity or a field, and a bare number behind "in" or "of"."""
    number = reading.numbers[0]
    if re.search(rf"\b(?:about|alert\s+count|explain|describe)\s+{number}\b", reading.core, re.IGNORECASE):
        return True
    placed = re.search(rf"\b(?:in|of|for|inside|from)\s+{number}\s*\W*$", reading.core, re.IGNORECASE)
    asked = cues.kinds_named(reading) or cues.aspects_of(reading)
    return placed is not None and bool(asked) and not reading.has(f"{cues.TOP}|{cues.TREND}|{cues.ALERT}")


def _by_guid(reading: Reading) -> Subject:
    about_alert = reading.has(r"alert") and not reading.has(r"alerts")
    if about_alert:
        return Subject("alert", item=ListItem("alert", reading.guids[0]))
    return Subject("incident", reading.guids)


def _listed(reading: Reading, conversation: Conversation) -> Subject | Ask | None:
    items = [conversation.item(number) for number in reading.items]
    noun = reading.ordinal_noun
    wanted = _ORDINAL_NOUNS.get(noun)
    if wanted and (items[0] is None or items[0].kind != wanted):
        # "the last incident" and "the first alert" have a meaning of their own when no such list is shown.
        return None if reading.items[0] in (1, -1) else Ask(_NO_LIST, _LISTS)
    if wanted and reading.items[0] == -1:
        return None
    found = [item for item in items if item is not None]
    if len(found) < len(items):
        return Ask(_NO_LIST, _LISTS)
    if all(item.kind == "incident" for item in found):
        return Subject("incident", tuple(item.value for item in found))
    return Subject(found[0].kind, item=found[0])


def _implied(reading: Reading, conversation: Conversation) -> Subject | Ask:
    """ "that incident", "it", or a question for a field with no subject while an incident is in focus."""
    that = reading.that
    last = conversation.last
    bare_alerts = re.fullmatch(
        r"\W*(?:please\s+)?(?:and\s+)?(?:(?:show|list|give|display)\s+(?:me\s+)?)?the\s+alerts\W*", reading.text, re.I
    )
    if bare_alerts and conversation.incident is not None and last is not None and last.view == "incident":
        return Subject("incident", (conversation.incident,))
    if re.fullmatch(r"\W*the\s+(?:incident|case)\W*", reading.text, re.IGNORECASE):
        that = "incident"
    if that in ("incident", "case"):
        if conversation.incident is None:
            return Ask("Which incident do you mean? Give its number, or ask for a list first.", _LISTS[:1])
        return Subject("incident", (conversation.incident,))
    if that == "alert":
        if conversation.alert is None:
            return Ask("Which alert do you mean? Give its id, or ask for a list first.", _LISTS[1:])
        return Subject("alert", item=conversation.alert)
    if that in ("host", "machine", "device", "account", "user", "ip", "address", "one", "file"):
        if conversation.entity is not None and that != "one":
            return Subject("entity", item=conversation.entity)
        return _focus(conversation) or Ask("Which one do you mean? Name it, or ask for a list first.", _LISTS)
    if that == "it" and not reading.names:
        if re.match(r"\W*(?:is|was|has)\s*$", reading.core) or _idle_it(reading):
            return Subject()
        focus = _focus(conversation)
        if focus is None:
            return Ask("Which incident or alert do you mean? Give its number, or ask for a list first.", _LISTS)
        if focus.kind == "entity" and conversation.incident and not reading.has(cues.ALERT):
            return Subject("incident", (conversation.incident,))
        return focus
    if _asks_field_only(reading) and conversation.incident is not None and conversation.last is not None:
        return Subject("incident", (conversation.incident,))
    return Subject()


def _idle_it(reading: Reading) -> bool:
    """The "it" of "how is it going" refers to nothing."""
    return reading.has(
        r"how\s+(?:is|are)|how's|what\s+time|going|(?:does|did)\s+it\s+take|it\s+takes?|is\s+it\s+(?:possible|true)"
    )


def _focus(conversation: Conversation) -> Subject | None:
    last = conversation.last
    if conversation.alert is not None and last is not None and last.view in ("alert", "events"):
        return Subject("alert", item=conversation.alert)
    if conversation.incident is not None:
        return Subject("incident", (conversation.incident,))
    if conversation.alert is not None:
        return Subject("alert", item=conversation.alert)
    if conversation.entity is not None:
        return Subject("entity", item=conversation.entity)
    return None


def _asks_field_only(reading: Reading) -> bool:
    """ "which hosts are involved", "who owns it": a field, and no list, window, name or top."""
    if reading.names or reading.window or reading.has(f"{cues.TOP}|{cues.TREND}|{cues.TABLES}"):
        return False
    if reading.has(rf"{cues.INCIDENT}|all|any|every|alerts"):
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
    item: ListItem | None = None
    if reading.items:
        item = conversation.item(reading.items[0])
        if item is None:
            return Ask(_NO_LIST, _LISTS)
    elif conversation.alert is not None:
        item = conversation.alert
    if item is None or not item.time:
        return Ask("Around which time? Give a time, or ask for a list of alerts and say [n].", _LISTS[1:])
    moment = parse_time(item.time)
    window = WindowSlot(moment - reading.around, moment + reading.around)
    return Subject("around", item=item, window=window)
