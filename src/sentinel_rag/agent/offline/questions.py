"""One question with what it is planned by: the names of the workspace, and the time zones that it names.

Above it is the analyst, below `execution`, which makes the calls of a plan.

Such a zone holds for the whole question: its days begin at midnight there and its times are shown there. What stands
beside one time only ("on 2 July, CEST") is read with that time, see `zone_words`. A name that is no zone, or the name
of several, is asked back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from sentinel_rag.agent.answers.renderer import Scene, tell, view_data
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.knowledge import answer_wish, told_in_playbooks
from sentinel_rag.agent.offline.turn import OfflineTurn
from sentinel_rag.agent.planner import Decision, DecisionKind, Option, Planner, StoredQueries, Unclear, View, offer
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall
from sentinel_rag.agent.planner.tools import WATCHLISTS, Steps, on_watchlist, own_table, says_watchlist, two_steps
from sentinel_rag.agent.row_text import plain, read_plainly
from sentinel_rag.agent.things import ALERT, ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import MOST_TEMPLATES
from sentinel_rag.language.frames import Frame, Reader, WorkspaceNames
from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.frames.phrases import phrase_book
from sentinel_rag.language.text import blank
from sentinel_rag.language.times import MANY, SHORT, Now, read_time_in_its_zone
from sentinel_rag.language.times.kinds import ZONES, zone_of

LONGEST_QUESTION = 4_000
ALL_TEMPLATES: Mapping[str, JsonValue] = {"detail": "full", "limit": MOST_TEMPLATES}
"""Arguments of list_kql_templates, for their example questions too."""
_NEED_QUERIES = (Unclear.NO_STORED_QUERY, Unclear.NO_SUCH_QUERY, Unclear.UNREAD)
_SUBJECTS = (
    "kind", "incident", "alert", "alert_id", "num", "name", "lit", "status", "severity", "table", "template", "ref",
    "tactic", "technique", "class",
)  # fmt: skip
"""Types of words that stand for data of the workspace."""
_OTHERWISE = (
    ("List the incidents still open, newest first", "query_incidents", {"status": "Open", "order": "newest"}),
    ("Show the newest alerts", "query_alerts", {"order": "newest"}),
)
"""What else can be asked where a question was not understood."""


@dataclass(slots=True)
class QuestionTurn:
    """One question on its way from words to a decision. `rows` are the stored queries, None until they are fetched;
    `failed` is the call for them, if it failed."""

    turn: OfflineTurn
    rows: list[Mapping[str, JsonValue]] | None = None
    failed: ToolRun | None = None
    unknown: ToolRun | None = None
    """The call for the columns of a table, if it failed."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    """The columns of tables of people's own, by table, where the question names one."""

    @property
    def planner(self) -> Planner:
        """The planner with what is known of the workspace by now."""
        return Planner(_queries(json.dumps(self.rows)), self._names, self.columns)

    @property
    def reader(self) -> Reader:
        """The reader of the workspace's names, at the time of the turn."""
        return Reader(lambda text: read_time_in_its_zone(text, self.turn.now), self._names)

    @property
    def _names(self) -> WorkspaceNames:
        return _names_of(json.dumps(self.turn.conversation.names or {}))

    @property
    def now(self) -> datetime:
        """The moment of the turn in the zone of its days."""
        return self.turn.now.moment.astimezone(self.turn.now.zone)

    def read(self, text: str) -> Frame:
        """A sentence as it is read."""
        return self.reader.read(read_plainly(text, limit=LONGEST_QUESTION))

    async def decide(self, text: str) -> Decision:
        """What becomes of the sentence; what is not known of the workspace is asked for first."""
        text = read_plainly(text, limit=LONGEST_QUESTION)
        decision = self._decide(text)
        if decision.wish is not None:
            return decision
        if (table := own_table(decision)) and table not in self.columns:
            (described,) = await self.turn.run((PlannedCall("describe_table", {"table": table}),))
            self.unknown = described if described.result is None else None
            self.columns[table] = [str(row.get("column")) for row in described.rows]
            return self._decide(text)
        if self.turn.conversation.names is None and _strange(decision):
            await self.turn.names()
            decision = self._decide(text)
        if await self.lacked_queries(decision):
            decision = self._decide(text)
        if says_watchlist(self.read(text)):
            (fetched,) = await self.turn.run((WATCHLISTS,))
            aliases = [str(row["WatchlistAlias"]) for row in fetched.rows if row.get("WatchlistAlias")]
            self.failed = fetched if fetched.result is None else self.failed
            decision = on_watchlist(self.read(text), aliases) or decision
        return decision

    async def lacked_queries(self, decision: Decision) -> bool:
        """Whether the decision was made without the stored queries and may need them; they are known then."""
        if self.rows is not None or decision.reason not in _NEED_QUERIES:
            return False
        (fetched,) = await self.turn.run((PlannedCall("list_kql_templates", ALL_TEMPLATES),))
        self.rows, self.failed = list(fetched.rows), fetched if fetched.result is None else None
        return True

    def _decide(self, text: str) -> Decision:
        return self.turn.conversation.talk.decide(self.planner, self.reader, text, self.now)


def _strange(decision: Decision) -> bool:
    """True if a word may be a name that only the workspace knows."""
    asked = decision.kind in (DecisionKind.CALL, DecisionKind.ASK) and decision.reason is not Unclear.TIME
    return asked and (bool(decision.frame.unread) or decision.frame.has("guess"))


@lru_cache(maxsize=8)
def _queries(rows: str) -> StoredQueries:
    """The stored queries as the reader reads them; words of time in their questions mean nothing here."""
    clock = Now(datetime(2024, 1, 1, tzinfo=UTC), UTC)
    return StoredQueries(json.loads(rows), Reader(lambda text: read_time_in_its_zone(text, clock)))


@lru_cache(maxsize=32)
def _names_of(names: str) -> WorkspaceNames:
    return WorkspaceNames.of(json.loads(names))


async def answer_question(turn: OfflineTurn, text: str) -> Answer:
    """The answer to a sentence that orders no change and asks for nothing outside the workspace."""
    asked = QuestionTurn(turn)
    steps = two_steps(asked.read(text))
    if steps is not None:
        return await _in_two_steps(asked, steps)
    return await _answered(asked, await asked.decide(text))


async def answer_pick(turn: OfflineTurn) -> Answer | None:
    """The answer to something that was proposed and is taken now; None if the sentence takes nothing. Nothing is read
    again: what is proposed carries its frame or its call."""
    asked, talk = QuestionTurn(turn), turn.conversation.talk
    decision = talk.pick(asked.planner, asked.reader.read(turn.question), asked.now) if talk.offers else None
    if decision is not None and await asked.lacked_queries(decision):
        decision = talk.pick(asked.planner, asked.reader.read(turn.question), asked.now)
    if decision is not None and decision.kind is DecisionKind.ASK:
        return turn.decided_back(decision)
    return None if decision is None else await _answered(asked, decision)


async def answer_again(turn: OfflineTurn) -> Answer | None:
    """The answer to the last question once more, where it is asked now; None if there was none."""
    before = turn.conversation.talk.before
    return None if before is None else await _carried_out(turn, before)


async def _answered(asked: QuestionTurn, decision: Decision) -> Answer:
    turn = asked.turn
    if asked.unknown is not None:
        return turn.failed_answer([asked.unknown])
    match decision.kind:
        case DecisionKind.CALL if decision.wish is not None:
            return await answer_wish(turn, decision.wish, decision.frame) or await _without_knowledge(turn, decision)
        case DecisionKind.CALL | DecisionKind.SAMPLE:
            return await _carried_out(turn, decision)
        case DecisionKind.ASK:
            if asked.failed is not None and decision.reason in _NEED_QUERIES:
                # Without the stored queries the question could not be understood; the reason is the failure.
                return turn.failed_answer([asked.failed])
            told = await told_in_playbooks(turn, decision.frame) if _without_subject(decision) else None
            return told or turn.decided_back(_with_other_questions(asked, decision))
        case kind:
            if kind is DecisionKind.OUT_OF_SCOPE and _without_subject(decision):
                told = await told_in_playbooks(turn, decision.frame)
                if told is not None:
                    return told
            turn.conversation.talk.remember(decision)
            return turn.replied(kind.value)


def _without_subject(decision: Decision) -> bool:
    """True if nothing in the sentence is data of the workspace, so that only documents can answer it."""
    if decision.reason in (Unclear.NO_STORED_QUERY, Unclear.NO_SUCH_QUERY):
        return False  # it means a log, if one that no query reads
    return not decision.frame.has(*_SUBJECTS) and not decision.frame.window


async def _in_two_steps(asked: QuestionTurn, steps: Steps) -> Answer:
    """The row that the question is about, then the answer about it."""
    turn, now = asked.turn, asked.turn.now.moment
    first = asked.planner.decide(steps.first, now)
    if first.kind is not DecisionKind.CALL or len(first.calls) != 1:
        return turn.decided_back(first) if first.kind is DecisionKind.ASK else await _carried_out(turn, first)
    (found,) = await turn.run(first.calls)
    if found.result is None:
        return turn.failed_answer([found])
    row = found.rows[0] if found.rows else {}
    about = steps.about(str(row.get("alert_id" if steps.finds_alert else "number") or ""))
    then = None if about is None else asked.planner.decide(about, now)
    if then is None or then.kind is not DecisionKind.CALL:
        turn.runs.clear()
        return await _carried_out(turn, first)
    writer = turn.writer()
    tell(Scene(writer, found), ["@alert_meant" if steps.finds_alert else "@incident_meant"])
    answer = await _carried_out(turn, then)
    opening = f"{writer.text}\n"
    return replace(
        answer,
        text=opening + answer.text,
        evidence=(*writer.evidence, *answer.evidence),
        sentences=(*writer.sentences(), *(each.behind(len(opening)) for each in answer.sentences)),
    )


async def _carried_out(turn: OfflineTurn, decision: Decision) -> Answer:
    return await carry_out(turn, _plan_of(turn, decision))


def _plan_of(turn: OfflineTurn, decision: Decision) -> Plan:
    """What is carried out for a decision that makes calls."""
    frame, said, opening = decision.frame, view_data()["sentence"], decision.opening
    calls, view = decision.calls, decision.view or View.INCIDENTS
    if decision.kind is DecisionKind.SAMPLE:
        opening += (said["sample"],)
    if frame.unread:
        words = ", ".join(f"“{plain(word, limit=40)}”" for word in frame.unread[:3])
        opening += (f"I did not understand {words}; this is without it.",)
    opening += tuple(said[f"among_{one}"] for one in frame.all("among"))
    if frame.has("op:priority") and calls[0].tool == "query_incidents":
        opening += (said["open_first"],)
    if frame.has("op:advise") and frame.has("incident"):
        opening += (said["not_mine"],)
    alert, offset = str(frame.one("alert") or ""), calls[0].arguments.get("offset")
    item = _alert_on_screen(turn, str(calls[0].arguments.get("incident", "")))
    if view is View.INCIDENT and item is not None:
        calls = (replace(calls[0], arguments={"incident": item.incident or item.value}),)
        view, alert = View.ALERT, item.value
    return Plan(
        view=view,
        calls=calls,
        frame=frame,
        aspects=decision.aspects,
        opening=opening,
        first=offset if isinstance(offset, int) else 0,
        alert_id=alert,
        then=decision.then,
        unknown=tuple(frame.all("guess")),
    )


def _alert_on_screen(turn: OfflineTurn, reference: str) -> ListItem | None:
    """The alert of that id, if one was shown."""
    talk = turn.conversation.talk
    shown = [item for each in talk.lists for item in each.items]
    shown += [each.item for each in (*talk.spoken, *talk.told)]
    return next((item for item in shown if item.kind == ALERT and item.value == reference), None)


def _with_other_questions(asked: QuestionTurn, decision: Decision) -> Decision:
    """The question back with what else can be asked, where it or its time was not understood."""
    options: list[Option] = []
    if decision.reason is Unclear.TIME and not decision.options:
        texts = [decision.frame.said.replace(time, other) for time, other in decision.frame.time_instead]
        options = [Option(text, asked.reader.read(text)) for text in texts]
    elif decision.reason is Unclear.UNREAD and not decision.options:
        views = (View.INCIDENTS, View.ALERTS)
        options = [offer(*each, view) for each, view in zip(_OTHERWISE, views, strict=True)]
    numbered = tuple(replace(option, number=number) for number, option in enumerate(options, start=1))
    return replace(decision, options=numbered) if numbered else decision


async def _without_knowledge(turn: OfflineTurn, decision: Decision) -> Answer:
    """What the workspace tells where the knowledge base cannot be asked: of the incident, or of titles and names."""
    wish = decision.wish
    assert wish is not None
    if wish.incident:
        call = PlannedCall("get_incident_detail", {"incident": wish.incident})
        return await _carried_out(turn, replace(decision, calls=(call,), view=View.INCIDENT, wish=None))
    in_titles = PlannedCall("query_incidents", {"title_contains": wish.topic})
    in_names = PlannedCall("query_alerts", {"name_contains": wish.topic})
    return await carry_out(turn, Plan(view=View.KEYWORD, calls=(in_titles, in_names), frame=decision.frame))


_OFFSET = "Write its offset instead, such as UTC+05:30, or an IANA name such as Europe/Berlin."


@dataclass(frozen=True, slots=True)
class NamedZone:
    """`zone` is None where none is named; `rest` is the question without it; `sentence` asks back."""

    rest: str
    zone: ZoneInfo | None = None
    sentence: str = ""


def read_named_zone(question: str, *, trend: bool) -> NamedZone:
    """The zone that `question` names for its answer, a `trend` by its days too. Total."""
    for match in asides(question, "zone", "iana"):
        if match["iana"] in available_timezones():
            return NamedZone(blank(question, match.start(), match.end()), ZoneInfo(match["iana"]))
    for match in asides(question, "zone", "city"):
        words = match["city"].split()
        for first in range(len(words)):
            name = _cities().get(" ".join(words[first:]).lower())
            if name is not None:
                begin = match.start("city") + match["city"].rindex(words[first]) if first else match.start()
                return NamedZone(blank(question, begin, match.end()), ZoneInfo(name))
    for match in asides(question, "zone", "unknown"):
        name = match["unknown"]
        if not phrase_book("en").knows(name.lower()) and name.lower() not in ZONES:
            return NamedZone(question, sentence=f"I know no time zone of the name {name}. {_OFFSET}")
    return _of_trend(question) if trend else NamedZone(question)


def _of_trend(question: str) -> NamedZone:
    """A trend has days, so an abbreviation or an offset is about them, whether or not a time is said."""
    many, match = MANY.search(question), SHORT.search(question)
    if many is not None:
        return NamedZone(question, sentence=f"{many[1]} is the name of more than one time zone. {_OFFSET}")
    if match is None:
        return NamedZone(question)
    offset = zone_of(match[1])
    shift = None if offset is None else datetime(2024, 1, 1, tzinfo=UTC).astimezone(offset).utcoffset()
    if shift is None:
        return NamedZone(question, sentence=f"{match[1]} is no offset of a time zone. {_OFFSET}")
    minutes = int(shift.total_seconds() // 60)
    if minutes % 60:
        sentence = f"Days begin at midnight of a named zone or of whole hours from UTC, not of {match[1]}. {_OFFSET}"
        return NamedZone(question, sentence=sentence)
    # The sign of the zones of the Etc area counts hours west of Greenwich.
    name = f"Etc/GMT{-minutes // 60:+d}" if minutes else "UTC"
    return NamedZone(blank(question, match.start(), match.end()), ZoneInfo(name))


@cache
def _cities() -> Mapping[str, str]:
    """The last part of each IANA name, in lower case and with blanks: "new york" -> America/New_York."""
    named = [name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))]
    named.sort(key=lambda name: (-len(name), name))
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in named}
