"""Slots as arguments of tools. A slot that was not filled gives no argument: omit, never invent."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from sentinel_rag.agent.offline.qualifiers import TECHNIQUES
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.planner.plan import Plan, PlannedCall
from sentinel_rag.contracts.json_values import JsonValue

_INCIDENT_STATUS = {
    "open": "Open", "new": "New", "active": "Active", "in progress": "Active", "closed": "Closed", "resolved": "Closed",
    "dismissed": "Closed",
}  # fmt: skip
_ALERT_STATUS = {
    "new": "New", "in progress": "InProgress", "closed": "Resolved", "resolved": "Resolved", "dismissed": "Dismissed",
}  # fmt: skip
_TITLE_STOP = frozenset(
    word_list(
        """
    and with about title titled involving involve like similar called named regarding concerning
    """
    )
)

_NOUN = r"(?:incidents?|incs?|cases?|tickets?|alerts?|detections?|alarms?|activity|events?)"
_CLOSED_THEN = (
    r"(?:incidents?|cases?|tickets?|ones?|many)\s+(?:(?:that|which|we|they|i|were|was|got|been|have|has|had|did|get)\s+)*"
    r"(?:closed?|resolved?|dismiss(?:ed)?)"
)
_INTRODUCES = frozenset(
    word_list(
        """
    about involving involve involves regarding concerning like named called titled mention mentioning mentions
    containing contain contains matching match related to on with
    """
    )
)


def window_arguments(reading: Reading) -> dict[str, JsonValue]:
    """The window, if one was said."""
    return dict(reading.window.arguments()) if reading.window is not None else {}


def incident_filters(reading: Reading) -> dict[str, JsonValue]:
    """Arguments of query_incidents."""
    arguments: dict[str, JsonValue] = {**window_arguments(reading), **reading.severity.arguments()}
    if reading.status is not None:
        arguments["status"] = _INCIDENT_STATUS[reading.status]
    if reading.window is not None:
        arguments |= _time_field(reading)
    title = title_words(reading)
    if reading.tactic is not None and not re.fullmatch(r"T\d{4}(\.\d{3})?", reading.tactic):
        # Incidents have no tactic to filter by; their titles often say it in words.
        title = f"{title} {re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', reading.tactic).lower()}".strip()
    if title:
        arguments["title_contains"] = title
    elif reading.owner.name is None:
        arguments |= entity_argument(reading)
    if reading.owner.nobody:
        arguments["owner"] = "unassigned"
    elif reading.owner.name is not None:
        arguments["owner"] = reading.owner.name
    order, limit = order_and_limit(reading, "incident")
    if order is not None:
        arguments["order"] = order
    if limit is not None:
        arguments["limit"] = limit
    return arguments


def _time_field(reading: Reading) -> dict[str, JsonValue]:
    """Which of an incident's times a window is about: "closed in July" is not "created in July and closed now"."""
    if reading.has(_CLOSED_THEN) and not reading.has(r"not|never|nobody|created|opened"):
        return {"time_field": "closed"}
    if reading.has(r"updated|changed|modified|touched") and reading.order != "updated":
        return {"time_field": "updated"}
    return {}


def alert_filters(reading: Reading) -> dict[str, JsonValue]:
    """Arguments of query_alerts, without `incident`."""
    arguments: dict[str, JsonValue] = {**window_arguments(reading), **reading.severity.arguments()}
    if reading.status in _ALERT_STATUS:
        arguments["status"] = _ALERT_STATUS[reading.status]
    named = alert_name(reading)
    if named:
        arguments["name_contains"] = named
    else:
        arguments |= entity_argument(reading)
        words = title_words(reading) if not reading.names and reading.tactic is None else ""
        if reading.names and not words:
            # "ransomware alerts of host X": the name of an attack narrows beside the thing.
            words = " ".join(word for word in placed_words(reading) if word in TECHNIQUES)
        if words:
            arguments["name_contains"] = words
    if reading.product is not None:
        arguments["product"] = reading.product
    if reading.tactic is not None:
        arguments["tactic"] = reading.tactic
    order, limit = order_and_limit(reading, "alert")
    if order in ("newest", "oldest", "severity"):
        arguments["order"] = order
    if limit is not None:
        arguments["limit"] = limit
    return arguments


_UNSETTLED = "Alerts have no status Open. New and InProgress are not settled yet, so I asked for both."


def unsettled(plan: Plan) -> Plan:
    """The plan for alerts that are still open: one call for each status that says so."""
    calls = tuple(
        replace(call, arguments={**call.arguments, "status": status})
        for call in plan.calls
        for status in ("New", "InProgress")
    )
    return replace(plan, calls=calls, opening=(*plan.opening, _UNSETTLED))


def entity_argument(reading: Reading) -> dict[str, JsonValue]:
    """`entity` and, if the person said it, `entity_kind`."""
    if not reading.names:
        return {}
    name = reading.names[0]
    return {"entity": name.value} if name.kind is None else {"entity": name.value, "entity_kind": name.kind}


def for_each_name(reading: Reading, call: PlannedCall) -> tuple[PlannedCall, ...]:
    """`call`, or one call for each thing that the question names where it filters by one of several."""
    named = {name.value.lower(): name for name in reading.names if not name.quoted}
    first = call.arguments.get("entity")
    if not isinstance(first, str) or first.lower() not in named or not 2 <= len(named) <= MOST_NAMES:
        return (call,)
    kept = {key: value for key, value in call.arguments.items() if key not in ("entity", "entity_kind")}
    return tuple(
        replace(call, arguments={**kept, **entity_argument(replace(reading, names=(name,)))}) for name in named.values()
    )


MOST_NAMES = 4
"""Things that one question is answered for; more of them are told as left out."""
_LISTED = re.compile(
    r"(?:\s|,|;|&|/|\+|\b(?:and|or|also|then|the|on|of|for|from|as|well|vs|versus|hosts?|users?|accounts?|ips?|machines?"
    r"|devices?|servers?|addresses|address)\b)*",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"\b(?:both|together|same\s+alerts?|at\s+once)\b", re.IGNORECASE)


def are_meant_together(reading: Reading) -> bool:
    """True if one alert has to name all the things: "both A and B", "of user A on host B"; False for a list of them."""
    places = sorted(
        (reading.text.find(name.value), len(name.value)) for name in reading.names if name.value in reading.text
    )
    between = [reading.text[left + size : right] for (left, size), (right, _) in itertools.pairwise(places)]
    joined = all(re.search(r",|;|&|/|\+|\b(?:and|or|vs|versus)\b", part, re.IGNORECASE) for part in between)
    listed = joined and all(_LISTED.fullmatch(part) for part in between)
    return _TOGETHER.search(reading.text) is not None or not listed


def alert_name(reading: Reading) -> str:
    """Quoted words, or those behind "named" or "called", when they are meant as the alert's name."""
    cue = r"(?:named|called|titled|with\s+(?:the\s+)?(?:name|title)|(?:alert|its)\s+name)"
    quoted = [name.value for name in reading.names if name.quoted and name.kind is None]
    if quoted and (" " in quoted[0] or reading.has(cue)):
        return quoted[0]
    if reading.has(rf"(?:alerts?|detections?)\s+{cue}"):
        return " ".join(reading.unknown_words) or " ".join(name.value for name in reading.names if not name.shaped)
    return ""


def title_words(reading: Reading) -> str:
    """Words of a title: quoted ones, else those that the grammar does not know ("incidents about ransomware")."""
    quoted = [name.value for name in reading.names if name.quoted and name.kind is None]
    if quoted:
        return quoted[0]
    return " ".join(placed_words(reading))


def placed_words(reading: Reading) -> tuple[str, ...]:
    """Words that the grammar does not know, where they stand for a title: right before the noun ("password spray
    incidents") or behind "about", "involving", "named" and the like."""
    unknown = set(reading.unknown_words) - _TITLE_STOP
    tokens = re.findall(r"[A-Za-zÀ-ɏ][\w'’+-]*", reading.rest.lower())
    placed: list[str] = []
    for place, token in enumerate(tokens):
        if token not in unknown or len(token) < 2:
            continue
        behind = tokens[place + 1 :]
        before = tokens[:place]
        runs_to_noun = next((word for word in behind if word not in unknown), "")
        follows = next(
            (word for word in reversed(before) if word not in unknown and word not in ("the", "a", "an")), ""
        )
        if re.fullmatch(_NOUN, runs_to_noun) or follows in _INTRODUCES:
            placed.append(token)
    return tuple(placed)


def unused_words(reading: Reading, asked: str) -> tuple[str, ...]:
    """Words that were neither understood nor used in `asked`, the arguments of the calls: an answer says so."""
    if any(name.quoted for name in reading.names):
        return ()
    used = {*(word for word in placed_words(reading) if word in asked.lower() or word in TECHNIQUES), *_TITLE_STOP}
    return tuple(word for word in reading.unknown_words if word not in used and len(word) > 2)


def order_and_limit(reading: Reading, noun: str) -> tuple[str | None, int | None]:
    """ "The newest incident" is one row; "the last 5 alerts" are five, newest first."""
    order, limit = reading.order, reading.limit
    noun = "(?:incident|case|ticket)" if noun == "incident" else noun
    single = reading.has(rf"(?:\w+\s+){{0,2}}{noun}") and not reading.has(rf"{noun}s")
    if order in ("newest", "oldest", "severity") and limit is None and single and not reading.has("first|top"):
        limit = 1
    if (
        order in ("newest", "oldest")
        and limit is None
        and reading.has(
            r"(?:latest|newest|most\s+recent|oldest|earliest)\s+(?:thing|event|activity|entry|one|hit|detection)"
        )
    ):
        limit = 1
    if order is None and limit is None and reading.names:
        seen = re.search(r"\b(first|last)\s+(?:seen|appear\w*|show\w*|mention\w*|time)\b", reading.core, re.IGNORECASE)
        if seen is not None:
            return ("oldest" if seen[1].lower() == "first" else "newest"), 1
    asked = re.search(
        rf"\b{noun}\s+(?:was|is|came|fired|happened|appeared)\s+(?:the\s+)?(?:very\s+)?(first|last|latest|newest|oldest)\b",
        reading.core,
        re.IGNORECASE,
    )
    if asked is not None and limit is None:
        return ("oldest" if asked[1].lower() in ("first", "oldest") else "newest"), 1
    if order is None and single and limit is None:
        if reading.has(rf"(?:the\s+)?(?:very\s+)?last\s+(?:\w+\s+){{0,2}}{noun}"):
            return "newest", 1
        if reading.has(rf"(?:the\s+)?(?:very\s+)?first\s+(?:\w+\s+){{0,2}}{noun}"):
            return "oldest", 1
    if order is None and reading.has(r"last\s+\d+"):
        order = "newest"
    return order, limit
