"""Questions that lean on the one before: "only the high ones", "same for last week", "show more", "yes".

A refinement takes the last query and changes the slots that are said again; it queries anew, it never filters what was
shown. It applies only to text that could not stand alone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from sentinel_rag.agent.offline import arguments as slots
from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.conversation import AskedCall, Conversation
from sentinel_rag.agent.offline.filters import COUNTED_BY
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.template_match import kind_of
from sentinel_rag.agent.offline.vocabulary import is_known
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.planner.plan import PAGED, Ask, Plan, PlannedCall, View, asked_anew, counted, listed
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, MOST_SKIPPED, TOOLS_BY_NAME

_YES = re.compile(
    r"^\W*(?:yes|yep|yeah|yup|y|sure|ok(?:ay)?|please(?:\s+do)?|do\s+(?:it|that|so)|go\s+ahead|of\s+course|show\s+(?:me\s+)?(?:those|them|that|it)|"
    r"show\s+(?:me\s+)?the\s+(?:others|rest)|yes,?\s+please|widen(?:\s+(?:it|the\s+window))?)\W*$",
    re.IGNORECASE,
)
_NO = re.compile(r"^\W*(?:no|nope|nah|never\s*mind|no\s+thanks?)\W*$", re.IGNORECASE)
_LEAN = re.compile(
    r"^\W*(?:and|only|just|but|what\s+about|how\s+about|same|now|also|then|instead|ok|again|with|without|except|for|in|on|since|from|between|of\s+(?:them|those|these))\b",
    re.IGNORECASE,
)
_LIST_THEM = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can\s+you\s+)?(?:list|show|display|print|give|tell)\s+(?:me\s+)?(?:them|those|these)(?:\s+all)?|which(?:\s+ones?)?(?:\s+are\s+(?:they|those|these))?|"
    r"what\s+are\s+(?:they|those)|details)\W*$",
    re.IGNORECASE,
)
_PAGED = ("List the incidents, newest first", "Show the newest alerts")
_MORE = re.compile(rf"^\W*(?:please\s+)?(?:{cues.NEXT})\W*$", re.IGNORECASE)
_ALL = re.compile(
    r"^\W*(?:please\s+)?(?:(?:show|list|give|display)\s+(?:me\s+)?)?(?:all(?:\s+of)?(?:\s+(?:them|those|it))?|everything|them\s+all|the\s+full\s+list)\W*$",
    re.IGNORECASE,
)


def accepted_offer(reading: Reading, conversation: Conversation) -> Decision | None:
    """ "yes", "show those" or the words of the offer after an answer that offered something."""
    text = reading.text
    if conversation.offers:
        place = 0 if _YES.match(text) else -1
        questions = [offer.question.lower() for offer in conversation.offers]
        if text.lower() in questions:
            place = questions.index(text.lower())
        if 0 <= place < len(conversation.offers):
            call = conversation.offers[place].call
            return _again(call, reading, dict(call.arguments))
    goes_on = conversation.last is not None and (reading.that == "them" or _MORE.match(text))
    if _YES.match(text) and not goes_on:
        return Ask("Yes to what? I have no open offer. Ask the whole question, please.")
    if _NO.match(text):
        return Ask("All right. What would you like to know instead?")
    return None


def agrees(question: str) -> bool:
    """True for "yes" and the like."""
    return _YES.match(question) is not None


def completed(question: str, conversation: Conversation) -> str:
    """The question that `question` stands for: a pending one with its missing value, else itself."""
    text = question.strip()
    words = re.findall(r"[^\W\d_][\w'’-]*", text)
    is_question = len(words) > 1 and all(map(is_known, words))  # "incidents by owner" is a wish, no value
    short = len(text.split()) <= 3 and not is_question
    if conversation.pending and short and not _YES.match(text) and not _NO.match(text):
        value = text.strip(" .?!\"'")
        return f'{conversation.pending} "{value}"' if value else question
    return question


def refine(reading: Reading, conversation: Conversation) -> Decision | None:
    """The last query with the slots that are said again; None if the question stands alone."""
    last = conversation.last
    if last is None:
        if _MORE.match(reading.text) or _LIST_THEM.match(reading.text):
            return Ask(
                "There is no list to go on with yet. What do you want to see?", ("List the incidents, newest first",)
            )
        if _LEAN.match(reading.text) and _leans(reading) and not reading.names:
            said = reading.text.rstrip("?.! ")
            return Ask(
                "The last answer was no list that I could narrow. Do you mean incidents or alerts?",
                (f"Incidents: {said}", f"Alerts: {said}"),
            )
        return None
    if View(last.view) in PAGED and (_MORE.match(reading.text) or _ALL.match(reading.text)):
        return _again(last, replace(reading, everything=True), _from_the_top(last))
    if _MORE.match(reading.text):
        if "offset" not in TOOLS_BY_NAME[last.tool].parameter_schemas():
            return Ask("That answer was whole: there is no next page of it. What do you want to see?", _PAGED)
        if conversation.shown > MOST_SKIPPED:
            return Ask("The list goes on, but no further page of it. Narrow it by time, severity or status, please.")
        limit = MAX_LIMIT if reading.has("rest") else reading.limit or _limit_of(last)
        page = {"limit": limit, "offset": conversation.shown}
        return _again(last, reading, {**last.arguments, **page}, first=conversation.shown, as_list=True)
    if _ALL.match(reading.text):
        return _again(last, reading, {**_from_the_top(last), "limit": MAX_LIMIT}, as_list=True)
    if _LIST_THEM.match(reading.text):
        return _again(last, reading, _from_the_top(last), as_list=True)
    if COUNTED_BY.search(reading.text) and counts_the_last(conversation) and not reading.unknown_words:
        plan = None if reading.has(f"{cues.INCIDENT}|{cues.ALERT}") else _changed(reading, last)
        if plan is not None:
            return replace(plan, view=counted(listed(plan.view)))
    peak = _peak_of_the_same(reading, last)
    if peak is not None:
        return peak
    other = _same_of_another(reading, last)
    if other is not None:
        return other
    if not _leans(reading):
        return None
    return _changed(reading, last)


def counts_the_last(conversation: Conversation) -> bool:
    """True if the last answer was a list or a count, whose totals a count by a field can be of."""
    return conversation.last is not None and conversation.last.tool in ("query_incidents", "query_alerts")


def repeated(reading: Reading, last: AskedCall) -> Plan:
    """The last query once more, as it was."""
    return replace(_again(last, reading, _from_the_top(last)), aspects=last.aspects)


_PEAK = r"busiest|quietest|calmest|peaks?|(?:which|what)\s+(?:day|hour|week)"
_COUNTED_ALERTS = frozenset({"get_alert_trend", "query_alerts", "get_threat_summary", "get_top_entities"})


def _peak_of_the_same(reading: Reading, last: AskedCall) -> Plan | None:
    """ "What was the busiest day?" behind an answer about a window asks of that window."""
    if not reading.has(_PEAK) or last.tool not in _COUNTED_ALERTS or reading.window is not None:
        return None
    if reading.names or reading.unknown_words or reading.has(cues.INCIDENT) or cues.kinds_named(reading):
        return None
    kept = {k: v for k, v in last.arguments.items() if k in ("time_window", "start_time", "end_time")}
    if last.tool == "get_alert_trend":
        kept |= {k: v for k, v in last.arguments.items() if k in ("severity", "min_severity")}
    if not kept:
        return None
    kept |= reading.severity.arguments()
    interval = cues.interval_of(reading) or last.arguments.get("interval")
    if interval is not None:
        kept["interval"] = interval
    opening = ("This is of the same alerts as the answer before; name a time for another window.",)
    call = PlannedCall("get_alert_trend", kept)
    return Plan(view=View.TREND, calls=(call,), reading=reading, opening=opening)


def narrowed(reading: Reading, query: AskedCall) -> Plan | None:
    """`query` with the slots that are said on top of it; None if its tool cannot take one of them."""
    return _changed(reading, query)


def _same_of_another(reading: Reading, last: AskedCall) -> Plan | None:
    """ "And 18?" asks the same of another incident, "and accounts?" the same ranking of another kind."""
    if not _LEAN.match(reading.text) or len(reading.text.split()) > 5:
        return None
    references = reading.incidents or reading.numbers
    asks_else = reading.has(f"{cues.ALERT}|{cues.ENTITIES}|{cues.ANALYSIS}|{cues.EVENTS}") or cues.kinds_named(reading)
    says_more = asks_else or cues.aspects_of(reading) or reading.unknown_words
    if last.tool == "get_incident_detail" and len(references) == 1 and not says_more:
        plan = _again(last, reading, {"incident": references[0]})
        return replace(plan, aspects=last.aspects)
    kinds = cues.kinds_named(reading)
    if last.tool == "get_top_entities" and kinds and not reading.names:
        return _again(last, reading, {**last.arguments, "kind": kinds[0]})
    return None


def _leans(reading: Reading) -> bool:
    """True if the text says only what to change."""
    if reading.has(rf"{cues.INCIDENT}|{cues.ALERT}|{cues.SUMMARY}|{cues.TREND}|{cues.TABLES}|{cues.TEMPLATES}"):
        return False
    if reading.incidents or reading.guids or reading.things or reading.unknown_words or reading.that == "it":
        return False
    if cues.kinds_named(reading) and not reading.names:
        return False
    says_slot = bool(
        reading.window or reading.severity.arguments() or reading.status or reading.names or reading.limit
        or reading.order or reading.tactic or reading.product or reading.owner.nobody
    )  # fmt: skip
    if not says_slot:
        return False
    left_over = [word for word in reading.words if len(word) > 2 and word not in _FILLERS]
    return not left_over or (_LEAN.match(reading.text) is not None and len(left_over) <= 2)


_FILLERS = frozenset(
    word_list(
        """
    the and only just but what about how same now also then instead again with for please ones one those these them
    show list give last from since between too well high low medium new open closed first sort sorted order host
    user account file machine device address ip server computer more than per are were was there any many count
    number severe which that
    """
    )
)


def _changed(reading: Reading, last: AskedCall) -> Plan | None:
    known = TOOLS_BY_NAME[last.tool].parameter_schemas()
    changes: dict[str, Any] = {}
    if reading.window is not None:
        changes |= slots.window_arguments(reading)
    changes |= reading.severity.arguments()
    fresh = slots.incident_filters(reading) if last.tool == "query_incidents" else slots.alert_filters(reading)
    changes |= {
        name: value
        for name, value in fresh.items()
        if name in ("status", "order", "limit", "tactic", "product", "owner", "time_field")
    }
    if reading.names and last.tool == "run_kql_query":
        parameters = _of_another_thing(reading, last)
        if parameters is None:
            return None
        changes["parameters"] = parameters
    elif reading.names:
        changes |= slots.entity_argument(reading)
    if any(name not in known for name in changes):
        return None
    arguments = _from_the_top(last)
    if reading.window is not None:
        arguments = {k: v for k, v in arguments.items() if k not in _OF_THE_WINDOW}
    if reading.severity.arguments():
        arguments = {k: v for k, v in arguments.items() if k not in ("severity", "min_severity")}
    if reading.names:
        arguments = {k: v for k, v in arguments.items() if k not in ("entity", "entity_kind", "incident")}
    plan = _again(last, reading, {**arguments, **changes})
    return slots.unsettled(plan) if last.tool == "query_alerts" and reading.status in ("open", "active") else plan


def _of_another_thing(reading: Reading, last: AskedCall) -> dict[str, Any] | None:
    """The parameters of a stored query for another thing of the same shape: "same for 203.0.113.9"."""
    parameters = last.arguments.get("parameters")
    if not isinstance(parameters, dict) or len(reading.names) != 1:
        return None
    texts = [name for name, value in parameters.items() if isinstance(value, str)]
    if len(texts) != 1:
        return None
    before, now = NameSlot(str(parameters[texts[0]])), reading.names[0]
    if kind_of(replace(before, shaped=now.shaped)) != kind_of(replace(now, kind=None)):
        return None
    return {**parameters, texts[0]: now.value}


_OF_THE_WINDOW = frozenset({"time_window", "start_time", "end_time", "time_field"})


def _again(
    last: AskedCall, reading: Reading, arguments: dict[str, Any], *, first: int = 0, as_list: bool = False
) -> Plan:
    view = asked_anew(View(last.view), last.tool)
    if reading.has(cues.COUNT):
        view = counted(view)
    return Plan(
        view=listed(view) if as_list else view,
        calls=(PlannedCall(last.tool, arguments),),
        reading=reading,
        first=first,
        aspects=last.aspects if view in PAGED else (),
    )


def _from_the_top(last: AskedCall) -> dict[str, Any]:
    """The arguments of the last call for its first page."""
    return {name: value for name, value in last.arguments.items() if name != "offset"}


def _limit_of(last: AskedCall) -> int:
    limit = last.arguments.get("limit")
    return limit if isinstance(limit, int) else DEFAULT_LIMIT
