"""The reading of the planner over frames, in front of the older one.

A content word that nothing read is no reason to answer without it: a list or a count asks back, an answer about one
thing says so first. Where a question was read whole, the frame decides. What the frame declines, and what the older
planner shows as no single call does, is left to that one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from sentinel_rag.agent.knowledge_hits import SEARCH_TOOL
from sentinel_rag.agent.offline import directory, follow_up, outside, subjects, vocabulary
from sentinel_rag.agent.offline.action_guard import guard_reply
from sentinel_rag.agent.offline.knowledge import KnowledgeWish, Sought
from sentinel_rag.agent.offline.plan import Decision
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.template_match import ALL_TEMPLATES
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner import Decision as Framed
from sentinel_rag.agent.planner import Kind, Planner, Reason, StoredQueries, Talk, frame_of
from sentinel_rag.agent.planner.plan import WITHOUT, Ask, Plan, PlannedCall, Reply, View
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame, Names, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

_LISTS = frozenset(
    {View.INCIDENTS, View.INCIDENT_COUNT, View.ALERTS, View.ALERT_COUNT, View.TREND, View.TOP, View.SUMMARY}
)
"""Views of which a word that was not read may change every row."""
_PLAIN = frozenset({*_LISTS, View.KQL, View.KEYWORD})
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
_STANDS = (Reason.CANNOT_LEAVE_OUT, Reason.ONE_SEVERITY)
"""Reasons to ask back that hold whatever the older planner would do; the others it may know better."""
_OTHERWISE = ("List the incidents still open, newest first", "Show the newest alerts", "What can you do?")
_SOUGHT = ("entity", "title_contains", "name_contains")
_LONGEST_UNKNOWN = 40
_LONGEST_QUESTION = 400

Templates = Sequence[Mapping[str, JsonValue]]


@dataclass(slots=True)
class _Weighing:
    """One question under both planners."""

    turn: Turn
    reading: Reading
    templates: Templates | None
    follows: bool = False
    """Whether what the sentence leaves out is taken from the last query."""

    def frame_decision(self) -> Framed:
        """What the frame of the question becomes, with what is known of the workspace by now."""
        names = Names.of(self.turn.conversation.names or {})
        reader = Reader(lambda text: read_time_in_its_zone(text, self.turn.now), names)
        planner = Planner(_queries(json.dumps(list(self.templates or ()))), names)
        last = self.turn.conversation.last
        if last is None or not self.follows:
            return planner.decide(reader.read(self.reading.text), self.turn.now.moment)
        talk = Talk(before=frame_of(last.tool, last.arguments))
        return talk.decide(planner, reader, self.reading.text, self.turn.now.moment)

    async def learn_names(self) -> None:
        """The names of the workspace, before a word is called unknown."""
        conversation = self.turn.conversation
        if conversation.names is None:
            fetched = await self.turn.run(directory.CALLS)
            if all(run.result is not None for run in fetched):
                conversation.names = directory.names_of(fetched)

    async def learn_templates(self) -> None:
        """The stored queries, before none is said to answer."""
        if self.templates is None:
            (fetched,) = await self.turn.run((PlannedCall("list_kql_templates", ALL_TEMPLATES),))
            self.templates = list(fetched.rows)


async def weighed(
    turn: Turn, reading: Reading, decision: Decision, templates: Templates | None
) -> Decision | KnowledgeWish:
    """`decision`, or what the frame of the same words says instead."""
    offered_before = reading.text.lower() in {offer.question.lower() for offer in turn.conversation.offers}
    follows = offered_before or follow_up.refine(reading, turn.conversation) is not None
    if isinstance(decision, Reply) or follows or len(reading.text) > _LONGEST_QUESTION:
        return decision
    weighing = _Weighing(turn, reading, templates, follows=_lost(decision))
    framed = weighing.frame_decision()
    plain = isinstance(decision, Plan) and decision.view in _PLAIN
    if isinstance(decision, Plan) and plain and _left_out(decision, framed.frame):
        await weighing.learn_names()
        framed = weighing.frame_decision()
    if framed.reason is Reason.NO_STORED_QUERY and (plain or _lost(decision)) and templates is None:
        await weighing.learn_templates()
        framed = weighing.frame_decision()
    if framed.calls and framed.calls[0].tool == SEARCH_TOOL:
        offered = SEARCH_TOOL in await turn.gateway.offered_tools()
        advice = framed.frame.has("op:advise", "know:similar")
        sure = advice or (framed.frame.has("know") and not framed.frame.unread)
        instead = plain or _lost(decision) or (advice and isinstance(decision, Plan))
        return _wish(framed) if offered and sure and instead else decision
    match decision:
        case Plan():
            return _beside_plan(turn, reading, decision, framed)
        case Ask(lost=True) if framed.kind is Kind.CALL and _whole(framed.frame):
            return _plan_of(framed, reading) or decision
        case Ask() if framed.kind is Kind.CALL and _points_at_nothing(turn, reading, decision, framed.frame):
            return _plan_of(framed, reading) or decision
        case Ask(lost=True):
            return _reply(framed, reading) or decision
        case _:
            return decision


def _points_at_nothing(turn: Turn, reading: Reading, decision: Ask, frame: Frame) -> bool:
    """True where the older planner asks what a word points at that points at nothing: "it gives alerts"."""
    if turn.conversation.references.lists:
        return False
    asks_for_it = subjects.subject_of(reading, turn.conversation) == decision
    return asks_for_it and _whole(frame) and not frame.has("ref", "item")


def _reply(framed: Framed, reading: Reading) -> Reply | None:
    """What is said where no row is asked for."""
    match framed.kind:
        case Kind.CHANGE:
            return guard_reply(reading)
        case Kind.HELP:
            return outside.HELP
        case Kind.OUT_OF_SCOPE:
            return outside.ELSEWHERE
        case _:
            return None


def _lost(decision: Decision) -> bool:
    return isinstance(decision, Ask) and decision.lost


def _wish(framed: Framed) -> KnowledgeWish:
    """The search of playbooks or of past incidents that the frame asks for."""
    arguments = framed.calls[0].arguments
    like = str(arguments.get("like_incident", ""))
    past = framed.frame.has("know:similar")
    return KnowledgeWish(
        sought=Sought.PAST if past else Sought.PLAYBOOK, topic=str(arguments.get("query", "")), incident=like
    )


def _beside_plan(turn: Turn, reading: Reading, plan: Plan, framed: Framed) -> Decision:
    left_out = _left_out(plan, framed.frame)
    if left_out and plan.view in _LISTS and framed.kind is Kind.ASK:
        return Ask(
            f"I did not understand {_quoted(left_out)}, and an answer would leave that out. Say it in other words, or "
            "ask without it.",
            _OTHERWISE,
        )
    if left_out and plan.view is View.INCIDENT:
        return replace(plan, opening=(f"I did not understand {_quoted(left_out)}; this is without it.", *plan.opening))
    leaves_out = plan.without or any(aspect.startswith(WITHOUT) for aspect in plan.aspects)
    if plan.view not in _PLAIN or leaves_out or framed.frame.around is not None:
        return plan
    reply = _reply(framed, reading)
    if reply is not None and (
        plan.view is View.KQL or framed.kind is Kind.OUT_OF_SCOPE or framed.frame.language != "en"
    ):
        return reply
    if framed.calls and _misses_the_subject(plan, framed.frame):
        return _plan_of(framed, reading) or plan
    unknown = tuple(word for text in framed.frame.unread for word in text.split())
    if unknown or framed.frame.has("guess"):
        return replace(plan, unknown=unknown, guessed=True)
    if _misreads(plan, framed.frame) and turn.conversation.last is None:
        instead = _plan_of(framed, reading) if framed.calls else None
        return instead or (Ask(framed.sentence, _OTHERWISE) if framed.sentence else plan)
    if turn.conversation.last is not None or len(plan.calls) > 1:
        return plan
    if framed.kind is Kind.ASK and framed.reason in _STANDS:
        return Ask(framed.sentence, _OTHERWISE)
    if framed.kind is not Kind.CALL or not _whole(framed.frame) or _same(plan, framed):
        return plan
    return _plan_of(framed, reading) or plan


@lru_cache(maxsize=8)
def _queries(rows: str) -> StoredQueries:
    """The stored queries as the reader reads them; words of time in their questions mean nothing here."""
    clock = Now(datetime(2024, 1, 1, tzinfo=UTC), UTC)
    return StoredQueries(json.loads(rows), Reader(lambda text: read_time_in_its_zone(text, clock)))


def _left_out(plan: Plan, frame: Frame) -> list[str]:
    """The unread words that no call of the plan holds and that the older planner does not know either."""
    asked = json.dumps([dict(call.arguments) for call in plan.calls]).lower()
    words = [word for text in frame.unread for word in text.split()]
    return [
        word
        for word in words
        if word.lower() not in asked and not vocabulary.is_known(word.lower()) and word in plan.reading.text
    ]


def _misses_the_subject(plan: Plan, frame: Frame) -> bool:
    """True for an answer about everything where one incident is asked about."""
    asked = json.dumps([dict(call.arguments) for call in plan.calls])
    return bool(frame.all("incident")) and not any(f'"{number}"' in asked for number in frame.all("incident"))


def _misreads(plan: Plan, frame: Frame) -> bool:
    """True if the plan looks for a word as a name or a title that the frame read as something else."""
    read = " ".join((*frame.all("name"), *frame.all("title"), *frame.whole.values())).lower()
    sought = [str(call.arguments[name]).lower() for call in plan.calls for name in _SOUGHT if name in call.arguments]
    return bool(sought) and not any(text in read or (read and read in text) for text in sought)


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
