"""A question decided by its frame: the names and stored queries of the workspace are learnt where they are missing, a
decision becomes a plan that is carried out, a question back its numbered offers, each with its call.

Above it is the analyst, below `execution`, which makes the calls of a plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sentinel_rag.agent.offline import directory, outside
from sentinel_rag.agent.offline.conversation import AskedCall, Conversation, Offer
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.knowledge import KnowledgeWish, Sought, answer_wish
from sentinel_rag.agent.offline.sample_wishes import SAMPLE_SENTENCE
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner import Decision, Kind, Planner, Reason, StoredQueries, View, frame_of
from sentinel_rag.agent.planner.plan import Plan, PlannedCall
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, ENTITY, INCIDENT, ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import MOST_TEMPLATES
from sentinel_rag.language.frames import Frame, Names, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

SEARCH_TOOL = "search_knowledge_base"
ALL_TEMPLATES: Mapping[str, JsonValue] = {"detail": "full", "limit": MOST_TEMPLATES}
"""Arguments of list_kql_templates, for their example questions too."""
_NEED_QUERIES = (Reason.NO_STORED_QUERY, Reason.NO_SUCH_QUERY, Reason.UNREAD)
_SAY_ANOTHER_NAME = (Reason.NEAR_NAME, Reason.AMBIGUOUS_NAME)
_OTHERWISE = (
    Offer(
        "List the incidents still open, newest first",
        AskedCall("query_incidents", {"status": "Open", "order": "newest"}, View.INCIDENTS.value),
    ),
    Offer("Show the newest alerts", AskedCall("query_alerts", {"order": "newest"}, View.ALERTS.value)),
)
_OPEN_FIRST = "These are the incidents still open, the most severe first."
_NOT_MINE = "Whether to do that is for a person to decide. This is what is recorded:"
_HELLO = "Ask me about incidents, alerts or the data in this workspace."


@dataclass(slots=True)
class QuestionTurn:
    """One question on its way from words to a decision. `rows` are the stored queries, None until they are fetched."""

    turn: Turn
    rows: Sequence[Mapping[str, JsonValue]] | None = None
    failed: ToolRun | None = field(default=None)
    """The call for the stored queries, if it failed."""

    @property
    def planner(self) -> Planner:
        """The planner with what is known of the workspace by now."""
        return Planner(_queries(json.dumps(list(self.rows or ()))), self._names)

    @property
    def reader(self) -> Reader:
        """The reader of the workspace's names, at the time of the turn."""
        return Reader(lambda text: read_time_in_its_zone(text, self.turn.now), self._names)

    @property
    def _names(self) -> Names:
        return _names_of(json.dumps(self.turn.conversation.names or {}))

    async def decide(self, text: str) -> Decision:
        """What becomes of the sentence; what is not known of the workspace is asked for first."""
        decision = self._decide(text)
        if self.turn.conversation.names is None and _strange(decision.frame):
            await self._learn_names()
            decision = self._decide(text)
        if self.rows is None and decision.reason in _NEED_QUERIES:
            await self._learn_queries()
            decision = self._decide(text)
        return decision

    def _decide(self, text: str) -> Decision:
        talk = self.turn.conversation.talk
        talk.rows = _rows_on_screen(self.turn.conversation)
        return talk.decide(self.planner, self.reader, text, self.turn.now.moment)

    async def _learn_names(self) -> None:
        fetched = await self.turn.run(directory.CALLS)
        if all(run.result is not None for run in fetched):
            self.turn.conversation.names = directory.names_of(fetched)

    async def _learn_queries(self) -> None:
        (fetched,) = await self.turn.run((PlannedCall("list_kql_templates", ALL_TEMPLATES),))
        self.rows = list(fetched.rows)
        self.failed = fetched if fetched.result is None else None


async def answer_question(turn: Turn, text: str) -> Answer:
    """The answer to a sentence that orders no change and asks for nothing outside the workspace."""
    asked = QuestionTurn(turn)
    decision = await asked.decide(text)
    match decision.kind:
        case Kind.CALL if decision.calls[0].tool == SEARCH_TOOL:
            return await answer_wish(turn, _wish(decision), decision.frame)
        case Kind.CALL | Kind.SAMPLE:
            return await _carried_out(turn, decision)
        case Kind.ASK:
            if asked.failed is not None and decision.reason in _NEED_QUERIES:
                # Without the stored queries the question could not be understood; the reason is the failure.
                return turn.failed_answer([asked.failed])
            return turn.asked_back(decision.sentence, offers=_offers(asked.planner, decision, turn))
        case _:
            return _fixed(turn, decision)


async def _carried_out(turn: Turn, decision: Decision) -> Answer:
    answer = await carry_out(turn, plan_of(decision, turn.conversation))
    talk = turn.conversation.talk
    talk.remember(decision.frame, _rows_on_screen(turn.conversation), found=answer.outcome is Outcome.ANSWERED)
    return answer


def picked_offer(turn: Turn, frame: Frame) -> Offer | None:
    """The offer that the sentence takes: by its words, by its number, or by a plain yes for the first one."""
    offers = turn.conversation.offers
    said = turn.question.strip().casefold()
    for offer in offers:
        if said in (offer.question.casefold(), plain(offer.question).casefold()):
            return offer
    said_places = (*frame.all("item"), *frame.all("num"), *frame.all("ref"))
    places = [int(value.strip("[]")) for value in said_places if value.strip("[]").isdecimal()]
    if turn.conversation.numbered and len(places) == 1 and 0 < places[0] <= len(offers) and not frame.unread:
        return None if frame.has("kind", "name", "attr", "topic", "op") else offers[places[0] - 1]
    return offers[0] if offers and frame.has("answer:yes") and not frame.has("kind", "name", "attr") else None


async def answer_offer(turn: Turn, offer: Offer) -> Answer:
    """The answer to something that was proposed. Nothing is read again: the offer carries its call."""
    call = offer.call
    frame = frame_of(call.tool, call.arguments)
    view = View(call.view)
    plan = Plan(view=view, calls=(PlannedCall(call.tool, dict(call.arguments)),), frame=frame, aspects=call.aspects)
    answer = await carry_out(turn, plan)
    turn.conversation.talk.remember(frame, _rows_on_screen(turn.conversation))
    return answer


def plan_of(decision: Decision, conversation: Conversation) -> Plan:
    """What is carried out for a decision that makes calls."""
    frame = decision.frame
    opening: tuple[str, ...] = ()
    if decision.kind is Kind.SAMPLE:
        opening += (SAMPLE_SENTENCE,)
    if frame.unread:
        words = ", ".join(f"“{plain(word, limit=40)}”" for word in frame.unread[:3])
        opening += (f"I did not understand {words}; this is without it.",)
    if frame.has("op:priority") and decision.calls[0].tool == "query_incidents":
        opening += (_OPEN_FIRST,)
    if frame.has("op:advise") and frame.has("incident"):
        opening += (_NOT_MINE,)
    calls, view, alert = decision.calls, decision.view or View.INCIDENTS, ""
    item = _alert_on_screen(conversation, str(calls[0].arguments.get("incident", "")))
    if view is View.INCIDENT and item is not None:
        calls = (replace(calls[0], arguments={"incident": item.incident or item.value}),)
        view, alert = View.ALERT, item.value
    offset = calls[0].arguments.get("offset")
    return Plan(
        view=view,
        calls=calls,
        frame=frame,
        aspects=decision.aspects,
        opening=opening,
        first=offset if isinstance(offset, int) else 0,
        alert_id=alert or str(frame.one("alert") or ""),
        then=decision.then,
        unknown=tuple(frame.all("guess")),
    )


def _offers(planner: Planner, decision: Decision, turn: Turn) -> tuple[Offer, ...]:
    """What could be meant instead, each with the call that answers it."""
    if decision.reason not in _SAY_ANOTHER_NAME:
        return _OTHERWISE if decision.reason in (Reason.UNREAD, Reason.INCIDENTS_OR_ALERTS) else ()
    said, *names = decision.values
    offers = []
    for name in names:
        frame = decision.frame.copy()
        frame.features["name"] = [name if each == said else each for each in frame.all("name")]
        frame.kinds[name] = frame.kinds.get(said, ())
        meant = planner.decide(frame, turn.now.moment)
        if meant.kind is Kind.CALL and len(meant.calls) == 1 and meant.view is not None:
            call = AskedCall(meant.calls[0].tool, dict(meant.calls[0].arguments), meant.view.value, meant.aspects)
            offers.append(Offer(decision.frame.said.replace(said, name), call))
    return tuple(offers)


def _fixed(turn: Turn, decision: Decision) -> Answer:
    """What is said where no row is asked for."""
    conversation = turn.conversation
    conversation.offers, conversation.numbered = (), False
    match decision.kind:
        case Kind.HELP:
            reply = outside.HELP
        case Kind.SMALL_TALK:
            return turn.plain_answer(Outcome.ANSWERED, _HELLO)
        case _:
            reply = outside.ELSEWHERE
    return turn.plain_answer(reply.outcome, reply.text, reply.suggestions)


def _wish(decision: Decision) -> KnowledgeWish:
    """The search of playbooks or of past incidents that the frame asks for."""
    arguments = decision.calls[0].arguments
    past = decision.frame.has("know:similar")
    return KnowledgeWish(
        sought=Sought.PAST if past else Sought.PLAYBOOK,
        topic=str(arguments.get("query", "")),
        incident=str(arguments.get("like_incident", "")),
    )


def _strange(frame: Frame) -> bool:
    """True if a word may be a name that only the workspace knows."""
    return bool(frame.unread) or frame.has("guess")


def _rows_on_screen(conversation: Conversation) -> list[dict[str, Any]]:
    """The numbered list that was shown last, as rows that places point at."""
    screen = conversation.references.screen
    return [] if screen is None else [_row(item) for item in screen.items]


def _row(item: ListItem) -> dict[str, Any]:
    match item.kind:
        case kind if kind == INCIDENT:
            return {"number": item.value}
        case kind if kind == ENTITY:
            return {"name": item.value, "kind": item.entity_kind}
        case kind if kind == ALERT:
            return {"alert_id": item.value, "time": item.time, "incident_number": item.incident}
        case _:
            return {"question": item.value}


def _alert_on_screen(conversation: Conversation, reference: str) -> ListItem | None:
    """The alert of that id, if one was shown."""
    shown = [item for each in conversation.references.lists for item in each.items]
    return next((item for item in shown if item.kind == ALERT and item.value == reference), None)


@lru_cache(maxsize=8)
def _queries(rows: str) -> StoredQueries:
    """The stored queries as the reader reads them; words of time in their questions mean nothing here."""
    clock = Now(datetime(2024, 1, 1, tzinfo=UTC), UTC)
    return StoredQueries(json.loads(rows), Reader(lambda text: read_time_in_its_zone(text, clock)))


@lru_cache(maxsize=32)
def _names_of(names: str) -> Names:
    return Names.of(json.loads(names))
