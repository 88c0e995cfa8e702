"""Lists and counts that leave something out: "alerts not in incident 39", "incidents except the low ones".

No tool leaves a named thing out, so two questions are asked: for everything that the rest of the question means, and
for what is to be left out of it. The answer is the first without the second, by the ids of the rows. Words that are not
understood to the last are asked back and never left out by guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.arguments import alert_filters, incident_filters, unused_words
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.filters import read_order
from sentinel_rag.agent.offline.qualifiers import older_product_name
from sentinel_rag.agent.offline.query_plans import alerts_plan, incidents_plan, top_plan
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.planner.plan import WITHOUT, Ask, Plan, PlannedCall, View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.zone_words import read_time_in_its_zone

_CUE = re.compile(
    r"\b(?:(?:but\s+|and\s+)?(?:that\s+|which\s+|who\s+)?(?:(?:is|are|was|were|do|does|did|has|have)\s+)?"
    r"(?:not|isn['’]?t|aren['’]?t|wasn['’]?t|weren['’]?t|don['’]?t|doesn['’]?t|didn['’]?t)"
    r"(?!\s+(?:yet\s+|been\s+|only\s+)*(?:clos|resolv|done|open|active|only))"
    r"|except(?:ing)?(?:\s+for)?|excluding|exclude|apart\s+from|aside\s+from|other\s+than|without|leaving\s+out)\b",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(r"\W*(?:why|is|are|was|were|did|does|has)\b(?!\s+there)", re.IGNORECASE)
_JOINT = re.compile(r"\s*,\s*(?:and|or|nor)?\s+|\s+(?:and|or|nor)\s+", re.IGNORECASE)
_FILLERS = frozenset(
    word_list(
        """
        the a an any of in on to by for with from at one ones those these them part belong belongs belonging name names
        naming named mention mentions mentioning involve involves involving contain contains severity status state
        incident incidents alert alerts host hosts user users account accounts machine machines address ip owner owned
        assigned product products tactic tactics about is are have has be been yet that which where rated already level
        case cases please
        """
    )
)
_LEANS = frozenset({"and", "but", "only", "now", "same", "show", "list"})
"""Words before the cue of a question that changes the last list."""
_LISTS = {View.INCIDENTS, View.INCIDENT_COUNT, View.ALERTS, View.ALERT_COUNT}
_LEAVES = ("order", "limit", "offset", "time_window", "start_time", "end_time", "time_field")
"""Arguments that say which rows come or when, not which of them are meant."""
MOST_LEFT_OUT = 4
_NOT_SURE = (
    "I am not sure what to leave out. Ask for everything, or leave out what a filter can name, such as a severity, a "
    "status, an incident, a host, an owner or a product."
)


def exclusion_plan(reading: Reading, conversation: Conversation, now: Now) -> Plan | Ask | None:
    """The plan for a list that leaves something out; None for any other question.

    `calls` are everything first, then what each of the parts leaves out; `without` tells that they belong together.
    """
    match = _CUE.search(reading.text)
    if match is None or reading.time_question is not None or reading.other_time or reading.owner.nobody:
        return None
    behind = read_question(reading.text[match.end() :], now)
    before = reading.text[: match.start()]
    # The time and the order that stand behind belong to the whole question.
    meant = replace(
        read_question(before, now), window=reading.window, order=reading.order, limit=reading.limit, text=reading.text
    )
    parts = [part for part in _JOINT.split(_undated(reading.text[match.end() :], behind, now)) if part.strip()]
    if meant.has(cues.TOP) and cues.kinds_named(meant) and not meant.names:
        return _ranking_without(meant, [read_question(part, now) for part in parts])
    whole = _everything(meant, conversation)
    if whole is None or _QUESTION_WORD.match(before):
        return None
    # "Other than phishing" names words of a title, "that are not interesting" does not.
    by_words = not match[0].lower().endswith(("not", "n't", "n’t", "nt"))
    left_out = [_left_out(read_question(part, now), whole, by_words=by_words) for part in parts]
    left_out = [each for call in left_out for each in _under_every_name(call)]
    known = tuple(call for call in left_out if call is not None)
    if not 1 <= len(known) <= MOST_LEFT_OUT or len(known) < len(left_out):
        return Ask(_NOT_SURE)
    return _by_filter(whole, known) or replace(whole, calls=(_all_rows(whole.calls[0]), *known), without=True)


def _under_every_name(call: PlannedCall | None) -> tuple[PlannedCall | None, ...]:
    """The call, and the same one for the older name of a product: rows carry either."""
    product = "" if call is None else older_product_name(str(call.arguments.get("product", "")))
    if call is None or not product:
        return (call,)
    return (call, replace(call, arguments={**call.arguments, "product": product}))


def _ranking_without(meant: Reading, parts: Sequence[Reading]) -> Plan | Ask:
    """A ranking of which named rows are left out when they are shown; as many more of them are asked for."""
    named = [name.value for part in parts for name in part.names] + [
        word for part in parts if not part.names for word in part.unknown_words
    ]
    if not named or any(
        word not in _FILLERS and word not in part.unknown_words for part in parts for word in part.words
    ):
        return Ask(_NOT_SURE)
    plan = top_plan(meant, cues.kinds_named(meant)[0])
    assert isinstance(plan, Plan)
    (call,) = plan.calls
    limit = min(MAX_LIMIT, (meant.limit or DEFAULT_LIMIT) + len(named))
    aspects = tuple(f"{WITHOUT}{name}" for name in named)
    return replace(plan, calls=(replace(call, arguments={**call.arguments, "limit": limit}),), aspects=aspects)


_OTHER_STATUS = {"Closed": "Open", "Open": "Closed"}


def _by_filter(whole: Plan, left_out: tuple[PlannedCall, ...]) -> Plan | None:
    """The plan with a filter that says the same, where there is one: all but the closed incidents are the open ones."""
    (everything, *_), first = whole.calls, left_out[0]
    more = {name: value for name, value in first.arguments.items() if everything.arguments.get(name) != value}
    status = _OTHER_STATUS.get(str(more.get("status")))
    if everything.tool != "query_incidents" or len(left_out) > 1 or status is None or set(more) - {"status", "limit"}:
        return None
    if "status" in everything.arguments:
        return None
    return replace(whole, calls=(replace(everything, arguments={**everything.arguments, "status": status}),))


def _everything(meant: Reading, conversation: Conversation) -> Plan | None:
    """What the question is about before something is left out: a list that it names, or the last one."""
    incidents, alerts = meant.has(cues.INCIDENT), meant.has(cues.ALERT)
    if meant.has(f"{cues.TREND}|{cues.TOP}|{cues.GROUPED}|{cues.COMPARE}"):
        return None
    if not incidents and not alerts:
        return _last_list(meant, conversation)
    plan = alerts_plan(meant) if alerts else incidents_plan(meant)
    if not isinstance(plan, Plan) or plan.view not in _LISTS or len(plan.calls) != 1:
        return None
    if unused_words(meant, str(dict(plan.calls[0].arguments))):
        return None
    if alerts and meant.incidents:
        if len(meant.incidents) > 1:
            return None
        call = plan.calls[0]
        plan = replace(plan, calls=(replace(call, arguments={"incident": meant.incidents[0], **call.arguments}),))
    elif meant.incidents or meant.guids:
        return None
    return plan


def _last_list(meant: Reading, conversation: Conversation) -> Plan | None:
    """ "Without the low ones" after a list: that list, asked again."""
    last = conversation.last
    words = set(meant.words) - _FILLERS - _LEANS
    if last is None or View(last.view) not in _LISTS or words or meant.names or meant.window or meant.status:
        return None
    arguments = {name: value for name, value in last.arguments.items() if name not in ("offset", "limit")}
    return Plan(view=View(last.view), calls=(PlannedCall(last.tool, arguments),), reading=meant)


def _all_rows(call: PlannedCall) -> PlannedCall:
    return replace(call, arguments={**call.arguments, "limit": MAX_LIMIT})


def _undated(text: str, behind: Reading, now: Now) -> str:
    """The words behind the cue without a time and an order, which are read with the whole question."""
    if behind.window is not None:
        text = read_time_in_its_zone(text, now).rest
    return read_order(text)[1] if behind.order is not None else text


def _left_out(part: Reading, whole: Plan, *, by_words: bool) -> PlannedCall | None:
    """The call that asks for what `part` names, within `whole`; None if not every word of it is understood. `by_words`
    takes words that the grammar does not know for words of a title or a name."""
    tool, everything = whole.calls[0].tool, whole.calls[0].arguments
    filters: dict[str, JsonValue] = dict(alert_filters(part) if tool == "query_alerts" else incident_filters(part))
    points = re.search(r"\[\d+\]", part.text) is not None or bool(part.guids) or part.that == "it"
    if points or part.severity.question or part.limit or part.owner.mine:
        return None
    references = part.incidents or (part.numbers if tool == "query_incidents" else ())
    if len(references) > 1:
        return None
    if references and tool == "query_incidents":
        return None if filters else PlannedCall("get_incident_detail", {"incident": references[0]})
    if references:
        filters["incident"] = references[0]
    filters = {name: value for name, value in filters.items() if name not in _LEAVES}
    if not filters and by_words and part.unknown_words:
        name = "name_contains" if tool == "query_alerts" else "title_contains"
        filters = {name: " ".join(part.unknown_words)}
    used = " ".join(map(str, filters.values())).lower().split()
    if not filters or any(word not in _FILLERS and word not in used for word in part.words):
        return None
    kept = {name: value for name, value in everything.items() if name not in ("order", "limit")}
    return _all_rows(PlannedCall(tool, {**kept, **filters}))
