"""The reading of the planner over frames, in front of the older one.

A content word that nothing read is no reason to answer without it: a list or a count asks back, an answer about one
thing says so first. Where a question was read whole and the older planner did not understand it, or reads it otherwise,
the frame decides. What the frame declines is left to the older planner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from sentinel_rag.agent.offline import directory, follow_up, vocabulary
from sentinel_rag.agent.offline.plan import Ask, Decision, Plan, PlannedCall, Reply, View
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner import Decision as Framed
from sentinel_rag.agent.planner import Kind, Planner, Reason, StoredQueries
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame, Names, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

_LISTS = frozenset(
    {View.INCIDENTS, View.INCIDENT_COUNT, View.ALERTS, View.ALERT_COUNT, View.TREND, View.TOP, View.SUMMARY}
)
"""Views of which a word that was not read may change every row."""
_PLAIN = frozenset({*_LISTS, View.KQL})
"""Views that a frame gives as well; every other one shows more than a call alone."""
_VIEWS = {
    "query_incidents": View.INCIDENTS,
    "query_alerts": View.ALERTS,
    "get_incident_detail": View.INCIDENT,
    "get_top_entities": View.TOP,
    "get_alert_trend": View.TREND,
    "get_threat_summary": View.SUMMARY,
    "run_kql_query": View.KQL,
    "list_kql_templates": View.TEMPLATES,
    "list_tables": View.TABLES,
    "describe_table": View.COLUMNS,
}
_COUNTS = {View.INCIDENTS: View.INCIDENT_COUNT, View.ALERTS: View.ALERT_COUNT}
_ASPECTS = {
    "owner": "owner", "severity": "severity", "status": "status", "created": "created", "duration": "duration",
    "closed_time": "closed", "updated": "updated", "tactics": "tactics", "techniques": "techniques",
    "comments": "comments", "bookmarks": "bookmarks", "timeline": "timeline", "ids": "ids", "reason": "reason",
    "classification": "classification", "product": "products",
}  # fmt: skip
_OTHERWISE = ("List the incidents still open, newest first", "Show the newest alerts", "What can you do?")
_LONGEST_UNKNOWN = 40


async def weighed(
    turn: Turn, reading: Reading, decision: Decision, templates: Sequence[Mapping[str, JsonValue]] | None
) -> Decision:
    """`decision`, or what the frame of the same words says instead."""
    if isinstance(decision, Reply) or follow_up.refine(reading, turn.conversation) is not None:
        return decision
    framed = _framed(turn, reading, templates)
    if framed.reason is Reason.UNREAD and _leaves_out(decision, framed):
        await _learn_names(turn)
        framed = _framed(turn, reading, templates)
    match decision:
        case Plan():
            return _beside_plan(turn, reading, decision, framed)
        case Ask(lost=True) if framed.kind is Kind.CALL and _whole(framed.frame):
            return _plan_of(framed, reading) or decision
        case _:
            return decision


def _beside_plan(turn: Turn, reading: Reading, plan: Plan, framed: Framed) -> Decision:
    left_out = _left_out(plan, framed)
    if left_out and plan.view in _LISTS and framed.kind is Kind.ASK:
        return Ask(
            f"I did not understand {_quoted(left_out)}, and an answer would leave that out. Say it in other words, or "
            "ask without it.",
            _OTHERWISE,
        )
    if left_out and plan.view is View.INCIDENT:
        return replace(plan, opening=(f"I did not understand {_quoted(left_out)}; this is without it.", *plan.opening))
    if framed.kind is not Kind.CALL or plan.view not in _PLAIN or not _whole(framed.frame):
        return plan
    if _same(plan, framed) or turn.conversation.last is not None or plan.without or len(plan.calls) > 1:
        return plan
    return _plan_of(framed, reading) or plan


def _framed(turn: Turn, reading: Reading, templates: Sequence[Mapping[str, JsonValue]] | None) -> Framed:
    names = Names.of(turn.conversation.names or {})
    reader = Reader(lambda text: read_time_in_its_zone(text, turn.now), names)
    queries = _queries(json.dumps(list(templates or ())))
    return Planner(queries, names).decide(reader.read(reading.text), turn.now.moment)


@lru_cache(maxsize=8)
def _queries(rows: str) -> StoredQueries:
    """The stored queries as the reader reads them; words of time in their questions mean nothing here."""
    clock = Now(datetime(2024, 1, 1, tzinfo=UTC), UTC)
    return StoredQueries(json.loads(rows), Reader(lambda text: read_time_in_its_zone(text, clock)))


@lru_cache(maxsize=1)
def _no_queries() -> StoredQueries:
    return StoredQueries(
        (), Reader(lambda text: read_time_in_its_zone(text, Now(datetime(2024, 1, 1, tzinfo=UTC), UTC)))
    )


async def _learn_names(turn: Turn) -> None:
    """The names of the workspace, before a word is called unknown."""
    if turn.conversation.names is None:
        fetched = await turn.run(directory.CALLS)
        if all(run.result is not None for run in fetched):
            turn.conversation.names = directory.names_of(fetched)


def _leaves_out(decision: Decision, framed: Framed) -> bool:
    return isinstance(decision, Plan) and decision.view in _LISTS and bool(_left_out(decision, framed))


def _left_out(plan: Plan, framed: Framed) -> list[str]:
    """The unread words that no call of the plan holds and that the older planner does not know either."""
    if framed.reason is not Reason.UNREAD and not framed.frame.unread:
        return []
    asked = json.dumps([dict(call.arguments) for call in plan.calls]).lower()
    words = [word for text in framed.frame.unread for word in text.split()]
    return [
        word
        for word in words
        if word.lower() not in asked and not vocabulary.is_known(word.lower()) and word in plan.reading.text
    ]


def _whole(frame: Frame) -> bool:
    """Whether every word was read, and none was taken for a title because nothing else knew it."""
    doubtful = frame.has("guess") or (frame.has("title") and frame.has("name"))
    return not frame.unread and not doubtful and frame.around is None


def _same(plan: Plan, framed: Framed) -> bool:
    made = [(call.tool, _plain(call.arguments)) for call in plan.calls]
    return made == [(call.tool, _plain(call.arguments)) for call in framed.calls]


def _plain(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments without those that say what is so anyway."""
    kept = {name: value.lower() if isinstance(value, str) else value for name, value in arguments.items()}
    if kept.get("order") == "newest":
        del kept["order"]
    return kept


def _plan_of(framed: Framed, reading: Reading) -> Plan | None:
    """The plan of a frame, if an answer is composed from its call alone."""
    if not framed.calls or any(call.tool not in _VIEWS for call in framed.calls):
        return None
    frame, view = framed.frame, _VIEWS[framed.calls[0].tool]
    if frame.has("op:count"):
        view = _COUNTS.get(view, view)
    aspects: tuple[str, ...] = ()
    if view is View.INCIDENT and not frame.has("attr:detail"):
        aspects = tuple(_ASPECTS[attr] for attr in frame.all("attr") if attr in _ASPECTS)
        aspects += tuple(f"entities:{kind}" for kind in frame.all("kind") if kind not in ("incident", "thing"))
    return Plan(
        view=View.COMPARISON if view is View.INCIDENT and len(framed.calls) > 1 else view,
        calls=tuple(PlannedCall(call.tool, dict(call.arguments)) for call in framed.calls),
        reading=reading,
        aspects=aspects,
        whole=True,
    )


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"“{word[:_LONGEST_UNKNOWN]}”" for word in words[:3])
