"""The analyst without a model: read the question, decide, call, write, check.

Implements `contracts.ports.Analyst`. Deterministic: the same question in the same conversation plans the same calls,
whatever the rows say. It holds a gateway and what sentences lean on, no facts and no credential.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.renderer import RenderedView
from sentinel_rag.agent.answers.writer import Echo
from sentinel_rag.agent.offline.changes import answer_change
from sentinel_rag.agent.offline.composing import compose, compose_freeform
from sentinel_rag.agent.offline.conversation import Conversations, conversation_from_dict, conversation_to_dict
from sentinel_rag.agent.offline.elsewhere import Elsewhere, When, elsewhere_plan
from sentinel_rag.agent.offline.execution import carry_out, say_instructions
from sentinel_rag.agent.offline.knowledge import offer_steps, recall_incident
from sentinel_rag.agent.offline.questions import (
    QuestionTurn,
    answer_again,
    answer_pick,
    answer_question,
    read_named_zone,
)
from sentinel_rag.agent.offline.relations import story_plan
from sentinel_rag.agent.offline.turn import MISSHAPEN, OfflineTurn
from sentinel_rag.agent.offline.workspaces import WorkspaceWords, asks_for_workspaces, read_workspace
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.planner.tools import parts_of
from sentinel_rag.agent.row_text import plain, read_plainly, zone_named
from sentinel_rag.agent.tool_runs import FREEFORM_TOOL, RetryOnce
from sentinel_rag.contracts.conversations import CarriedFact, Remembered
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import Clock, Question, ToolGateway
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES
from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.frames.orders import asks_the_gateway, read_order
from sentinel_rag.language.text import word_list
from sentinel_rag.language.times.kinds import Now

SWITCHED_OFF = (
    "This is a KQL query, and running queries that are no named template is switched off here, so nothing was run. "
    "You can run it yourself with `sentinel kql query`; whoever operates this installation can let the agent do so by "
    "setting SENTINEL_FREEFORM_KQL=on (docs/freeform-kql.md says what that means)."
)
_FENCED = re.compile(r"```(?:kql|kusto)?[ \t]*\n(?P<kql>.*?)```", re.DOTALL | re.IGNORECASE)
_COMMENTS = re.compile(r"(?:\s*//[^\n]*\n)+")
_LETS = re.compile(r"(?:\s*let\s+\w+\s*=[^;]{1,4000};)+", re.IGNORECASE)
_NAME = r"(?:[A-Za-z_]\w{1,199}|\[\s*(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\")\s*\])"
_PIPED = re.compile(rf"\s*(?:{_NAME}|\(?\s*union\s[^|]{{1,2000}})\s*(?://[^\n]*\n\s*)*\|\s*(?P<operator>[a-z][a-z-]*)")
_OPERATORS = frozenset(
    word_list(
        """as consume count distinct evaluate extend facet find fork getschema invoke join limit lookup make-series
    mv-apply mv-expand order parse parse-kv parse-where partition project project-away project-keep project-rename
    project-reorder reduce render sample sample-distinct scan search serialize sort summarize take top top-hitters
    top-nested union where filter"""
    )
)


def kql_in(question: str) -> str | None:
    """The query that the question is or holds, as it was written; None for words."""
    fenced = _FENCED.search(question)
    if fenced is not None:
        return fenced["kql"].rstrip() if _reads_as_kql(fenced["kql"]) else None
    if _reads_as_kql(question):
        return question
    asked = next((match.end() for match in asides(question, "kql", "run", leads=True)), 0)
    return question[asked:] if asked and _reads_as_kql(question[asked:]) else None


def _reads_as_kql(text: str) -> bool:
    """A table, a pipe and an operator that KQL has, behind comments and let statements."""
    for skipped in (_COMMENTS, _LETS, _COMMENTS):
        match = skipped.match(text)
        text = text if match is None else text[match.end() :]
    match = _PIPED.match(text)
    return match is not None and match["operator"] in _OPERATORS


ANSWERED_CALLS = {
    "query_incidents": View.INCIDENTS,
    "get_incident_detail": View.INCIDENT,
    "query_alerts": View.ALERTS,
    "get_top_entities": View.TOP,
    "get_alert_trend": View.TREND,
    "get_threat_summary": View.SUMMARY,
    "list_tables": View.TABLES,
    "search_logs": View.SEARCH,
}
"""The tools of which one call alone is an answer, and how it is told."""

_BUCKETS = ("group:hour", "group:day", "group:week", "group:month")
_NOT_FOUND = frozenset({Outcome.NO_DATA, Outcome.CLARIFICATION})


class OfflineAnalyst:
    """`Analyst` over a `ToolGateway`. `timezone` is an IANA name; "today" and "yesterday" follow it.

    Raises UsageError for a time zone that is not known.
    """

    def __init__(self, gateway: ToolGateway, *, clock: Clock, timezone: str = "UTC") -> None:
        self._default_zone = zone_named(timezone)
        self._gateway = RetryOnce(gateway)
        self._clock = clock
        self._conversations = Conversations()

    async def answer(self, question: Question) -> Answer:
        """One turn; never raises for a tool. It writes the same answer in every verbosity; surfaces show more or less
        of it."""
        conversation = self._conversations.of(question.session_id)
        conversation.turns += 1
        if question.preferences.workspace is not None:
            conversation.request_workspace(question.preferences.workspace)
        # The text of a comment may hold a query or several questions; it is written as it stands.
        changes = read_order(question.text) is not None
        kql = None if changes else kql_in(question.text)
        if kql is not None:
            return await self._answer_kql(self._turn(question), kql)
        frame = QuestionTurn(self._turn(question)).read(question.text)
        parts = (question.text,) if changes else parts_of(frame)
        answers = [await self._answer_part(self._turn(replace(question, text=part))) for part in parts]
        return answers[0] if len(answers) == 1 else _joined(answers)

    def could_mean(self, question: str, answer: Answer) -> bool:
        """True if `answer` asks back about a question that a reading call could answer: it orders no change, holds no
        query, has words, and no call for it was made."""
        said = read_plainly(question) and read_order(question) is None and kql_in(question) is None
        made = {trace.name for trace in answer.tools} - {"list_kql_templates", "get_top_entities"}
        return bool(said) and not made and not question.strip().startswith("[")

    async def answer_call(self, question: Question, call: PlannedCall) -> Answer:
        """The answer to `question` from one call of ANSWERED_CALLS, chosen elsewhere. Never raises for a tool."""
        turn = self._turn(question)
        frame = QuestionTurn(turn).reader.read(question.text)
        return await carry_out(turn, Plan(view=ANSWERED_CALLS[call.tool], calls=(call,), frame=frame))

    def forget(self, session_id: str) -> None:
        """Drop what the conversation refers to."""
        self._conversations.forget(session_id)

    def clear(self, session_id: str, carried: Sequence[CarriedFact]) -> None:
        """Drop what the last question was about; what was shown keeps its number. Facts are not needed: a question
        about a state always queries again."""
        self._conversations.clear(session_id)

    def remembered(self, session_id: str) -> Remembered | None:
        """What the conversation leans on. No turns: each question is read with that alone."""
        conversation = self._conversations.find(session_id)
        return None if conversation is None else Remembered(conversation_to_dict(conversation))

    def recall(self, session_id: str, remembered: Remembered) -> None:
        """Take over a stored conversation; nothing, if it cannot be read."""
        conversation = conversation_from_dict(remembered.state)
        if conversation is not None:
            self._conversations.take(session_id, conversation)

    def _turn(self, question: Question) -> OfflineTurn:
        timezone = question.preferences.timezone
        zone = self._default_zone if timezone is None else zone_named(timezone)
        conversation = self._conversations.of(question.session_id)
        conversation.talk.pointed = ()
        now = Now(self._clock(), zone)
        return OfflineTurn(
            question.text, question.session_id, conversation, self._gateway, zone, now, progress=question.progress
        )

    async def _answer_kql(self, turn: OfflineTurn, kql: str) -> Answer:
        """The rows of a query that the person wrote, where that is switched on."""
        if FREEFORM_TOOL not in await self._gateway.offered_tools():
            return turn.plain_answer(Outcome.OUT_OF_SCOPE, SWITCHED_OFF, ("What queries can you run?",))
        runs = await turn.run((PlannedCall(FREEFORM_TOOL, {"kql": kql}),))
        writer = turn.writer()
        try:
            composed = compose_freeform(writer, runs[0])
        except MISSHAPEN:
            return turn.misshapen_answer(runs)
        say_instructions(writer, View.KQL, runs)
        turn.conversation.talk.clear()
        return turn.answer(writer, composed)

    async def _answer_part(self, turn: OfflineTurn) -> Answer:
        if not read_plainly(turn.question):
            return turn.replied("nothing_asked")
        changed = await answer_change(turn, QuestionTurn(turn).read(turn.question))
        if changed is not None:
            return changed
        if asks_the_gateway(turn.question):
            return turn.replied("gateway")
        picked = await answer_pick(turn)
        if picked is not None:
            return picked
        reader = QuestionTurn(turn).reader
        said = read_workspace(turn.question)
        told = story_plan(said.rest, reader)
        if told is not None:  # "this device" and "the same account" are of its own story, not of the conversation
            if said.name is not None:
                turn.conversation.go_to(said.name)
            return await carry_out(turn, told)
        trend = reader.read(turn.question).has("op:trend", "unit", *_BUCKETS)
        named = read_named_zone(turn.question, trend=trend)
        if named.sentence:
            return turn.asked_back(named.sentence)
        if named.zone is not None:
            turn.question, turn.zone = named.rest, named.zone
            turn.now = replace(turn.now, zone=named.zone)
        return await self._answer_words(turn, read_workspace(turn.question))

    async def _answer_words(self, turn: OfflineTurn, said: WorkspaceWords) -> Answer:
        """The answer to a question for one workspace, which its words may name."""
        if said.name is not None:
            turn.conversation.go_to(said.name)
            again = await answer_again(turn) if said.repeats else None
            if again is not None:
                return again
        if said.switches or asks_for_workspaces(turn.question):
            return await self._about_workspaces(turn, said)
        wish = elsewhere_plan(said.rest, QuestionTurn(turn).reader.read)
        if wish is None or wish.plan.calls[0].tool not in await self._gateway.offered_tools():
            return await self._from_the_workspace(turn, said.rest)
        if wish.when is When.IF_ASKED:
            answer = await self._from_the_workspace(turn, said.rest)
            offered = (wish.question,) if answer.outcome in _NOT_FOUND else ()
            return replace(answer, suggestions=(*answer.suggestions, *offered))
        found = await self._elsewhere(turn, wish)
        if wish.when is When.ONLY or found.outcome is Outcome.ANSWERED:
            return found
        answer = await self._from_the_workspace(turn, said.rest)
        refused = found.outcome is not Outcome.NO_DATA and answer.outcome is Outcome.CLARIFICATION
        return found if refused else answer

    async def _about_workspaces(self, turn: OfflineTurn, said: WorkspaceWords) -> Answer:
        """The workspaces by name, or the one that questions go to from here on, if there is such a one."""
        plan = Plan(view=View.WORKSPACES, calls=(PlannedCall("list_workspaces"),))
        if said.name is None:
            return await carry_out(turn, plan)
        (run,) = await turn.run(plan.calls)
        names = [str(row.get("name")) for row in run.rows]
        if names and said.name not in (*names, ALL_WORKSPACES):
            turn.conversation.go_to(turn.conversation.requested_workspace)
            writer = turn.writer()
            known = [writer.number(run, f"/rows/{place}/name") for place in range(len(names))]
            writer.say_none([run], "There is no workspace {}; there are: {}.", Echo(said.name, word=True), known)
            return turn.answer(writer, RenderedView(outcome=Outcome.CLARIFICATION))
        where = "every workspace" if said.name == ALL_WORKSPACES else f"the workspace {plain(said.name)}"
        return turn.plain_answer(Outcome.ANSWERED, f"Questions go to {where} from here on.")

    async def _from_the_workspace(self, turn: OfflineTurn, text: str) -> Answer:
        answer = await answer_question(turn, text)
        return await offer_steps(turn, await recall_incident(turn, answer))

    async def _elsewhere(self, turn: OfflineTurn, wish: Elsewhere) -> Answer:
        """The answer from the web or from files."""
        runs = await turn.run(wish.plan.calls)
        writer = turn.writer()
        try:
            composed = compose(writer, wish.plan, runs)
        except MISSHAPEN:
            return turn.misshapen_answer(runs)
        turn.conversation.talk.offers = ()
        return turn.answer(writer, composed)


def _joined(answers: Sequence[Answer]) -> Answer:
    """One answer from those to the parts. It is answered if a part is; else it ends as its first part did."""
    outcomes = [answer.outcome for answer in answers]
    text, sentences = "", []
    for answer in answers:
        text = f"{text}\n\n" if text else ""
        sentences += [sentence.behind(len(text)) for sentence in answer.sentences]
        text += answer.text
    return Answer(
        outcome=Outcome.ANSWERED if Outcome.ANSWERED in outcomes else outcomes[0],
        text=text,
        session_id=answers[0].session_id,
        tables=tuple(table for answer in answers for table in answer.tables),
        footnote=tuple(line for answer in answers for line in answer.footnote),
        suggestions=answers[-1].suggestions,
        tools=tuple(tool for answer in answers for tool in answer.tools),
        evidence=tuple(piece for answer in answers for piece in answer.evidence),
        results=tuple(result for answer in answers for result in answer.results),
        sentences=tuple(sentences),
        duration_ms=sum(answer.duration_ms for answer in answers),
    )
