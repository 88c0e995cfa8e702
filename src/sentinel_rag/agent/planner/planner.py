"""From a frame to a decision: what is outside, what is in doubt, then the table of kinds of questions.

A frame is sure only if every content word was read and every feature that narrows it has a place in the call. Nothing
that a row says reaches this code: it sees the person's words, names of the workspace and the stored queries' own texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, pairwise, takewhile

from sentinel_rag.agent.planner.assistant import about_assistant
from sentinel_rag.agent.planner.computing import computed, periods
from sentinel_rag.agent.planner.decisions import (
    Call,
    Decision,
    DecisionKind,
    DecisionRow,
    Unclear,
    View,
    ask,
    call,
    rows,
    settlings,
    told_of,
)
from sentinel_rag.agent.planner.knowledge import KnowledgeWish, Sought, read_wish
from sentinel_rag.agent.planner.leaning import offering
from sentinel_rag.agent.planner.merging import reasons_of
from sentinel_rag.agent.planner.stored import StoredQueries, contained, to_stored_query, unread_words
from sentinel_rag.agent.planner.tools import RANKED, lost, named_by, own_rows, profiled, shown, to_tool
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import INCIDENTS, PLAYBOOKS, SEARCH_TOOL
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, SEVERITIES
from sentinel_rag.language.frames import Frame, WorkspaceNames
from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.frames.clauses import ordinary
from sentinel_rag.language.frames.frame import Token, shaped_tokens
from sentinel_rag.language.frames.orders import read_order
from sentinel_rag.language.frames.phrases import settings, words_of
from sentinel_rag.language.frames.reader import part_of, part_with
from sentinel_rag.language.lexicon import fold

_ALSO_IN_ALERTS = {"activity", "run", "proc", "click", "signin", "logon", "history", "change"}
"""Topics of which the alerts of a named thing tell something too, where no stored query does."""
_ALERTS_ONLY = "I looked at alerts only."
_LEFT_OUT = "I did not understand {} and left it out."
_SAME_PART = "The later period is not over, so both are compared up to the same point of it."
_ONE_SENTENCE = "I answered “{}”."
_SHIFT_REPORT = (
    "`sentinel report` writes the hand-over of a shift as a page to hand on, the web page under Dashboard. In short:"
)
_INCIDENT_REPORT = "`sentinel report {}` writes this as a page to hand on, and so does the incident on the web page."
_A_SHIFT = timedelta(hours=12)
_SENTENCE = re.compile(r"[.?!]\s+(?=\S)|\s-\s|:\s")
"""Between the sentences of a question, or between what tells why and what asks."""
_FIELDS_OF_ALERTS = ("tactics", "techniques", "product")
"""What is asked of alerts together, and counted by."""
_UPDATED, _LOGON = frozenset({"updated"}), frozenset({"logon"})
_AN_INCIDENT = "an incident"
_IN_INCIDENTS = {"reopen", "change", "activity", "history", "parent"}
"""Topics of which the row of an incident tells something; of the others only logs do, and they know no incident."""
_OF_LOGS = {"topic", "prop"}
_MAY_POINT = (["definite"], ["within"])
"""What points at something that was said, unless its own sentence says which."""
_MOST_LEFT_OUT = 3
"""Words that nothing read and that an answer may still leave out."""
_SEARCHES_NO_TITLES = ("get_threat_summary", "get_alert_trend", "get_top_entities", "list_tables", "run_kql_query")
_LISTS = ("query_incidents", "query_alerts")
"""Tools whose rows have titles, so that an unread word may be of one."""
_SURELY_LOGS = 2
"""Topics of logs beside which they are as well ("consents of third-party applications")."""
_OF_ROWS = (View.INCIDENT, View.NEIGHBOUR)
"""Views that tell of the rows of a call what its arguments do not say."""
_RUN = frozenset({"run"})
_OF_A_TABLE_SIZE = {"table", "op", "plural", "of", "rel", "act", "ask", "relative", "all", "attr", "kind"}
"""What a question for the size of a table may say and still ask for the whole of it."""
_UNITS = {"hour", "day", "week"}

_TYPES = told_of("types")
"""Types of words that are asked for together."""


@dataclass(frozen=True)
class Planner:
    """Decides over the stored queries and the names of one workspace."""

    queries: StoredQueries
    names: WorkspaceNames = field(default_factory=WorkspaceNames)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What is known of the columns of tables of people's own."""

    def decide(self, frame: Frame, now: datetime) -> Decision:
        """What becomes of a frame."""
        asked = contained(_settled(frame), self.queries)
        if next(asides(frame.said, "report", "shift"), None) is not None and not asked.has("incident"):
            shift = {"start_time": format_time(now - _A_SHIFT), "end_time": format_time(now)}
            asked.unread = []
            situation = call(asked, "get_threat_summary", asked.window or shift)
            return _shown(replace(situation, opening=(_SHIFT_REPORT,)), None)
        own = own_rows(asked, self.columns)
        decision, row = self._decide(asked, now) if own is None else (own, None)
        if decision.reason in reasons_of("of_words") and (apart := self._one_sentence(asked, now)) is not None:
            return apart
        narrowed = decision.reason is Unclear.NOT_TAKEN and not asked.has("owner")
        if (narrowed or decision.reason is Unclear.NOT_EXPRESSIBLE) and not decision.options:
            decision = self._offered_without(decision, asked, now)
        if decision.reason is Unclear.NO_STORED_QUERY and not decision.options:
            decision = offering(asked, self.queries.offered(asked), Unclear.NO_STORED_QUERY)
        if decision.kind is DecisionKind.CALL and decision.frame.loose:
            if _subject_unread(decision.frame):
                return ask(asked, Unclear.UNREAD, *decision.frame.loose)
            left_out = _LEFT_OUT.format(", ".join(f"“{plain(word)}”" for word in decision.frame.loose))
            decision = replace(decision, opening=(left_out, *decision.opening))
        number = decision.frame.one("incident") if decision.view is None and decision.calls else None
        if number is not None and next(asides(frame.said, "report", "incident"), None) is not None:
            decision = replace(decision, opening=(*decision.opening, _INCIDENT_REPORT.format(plain(number))))
        if decision.frame.has("compared:part") and len(decision.calls) > 1:
            decision = replace(decision, opening=(*decision.opening, _SAME_PART))
        return profiled(_shown(decision, row))

    def _decide(self, asked: Frame, now: datetime) -> tuple[Decision, DecisionRow | None]:
        """What becomes of a frame, and the row of the table that says so."""
        decided = self._outside(asked, now) or self._doubt(asked)
        if decided is not None and decided.reason is Unclear.UNREAD:
            return self._left_out(decided, now)
        if decided is not None:
            return decided, None
        if asked.listed_times and (both := self._for_each_time(asked, now)) is not None:
            return both
        if (things := named_by(asked)) is not None:
            return things, None
        told = _features(asked)
        borrowed = [word for word in unread_words(asked) if word in self.queries.words]
        if borrowed or ((asked.polar or asked.has("name")) and self.queries.names_threat(asked)):
            told |= {"is:stored"}
        unstored: tuple[Decision, DecisionRow] | None = None
        for row in rows():
            if row.fits(told) and (unstored is None or (row.compute and not self.queries.unknown)):
                decision = self._by(row, asked, told, now)
                if decision is not None and decision.reason is Unclear.NO_STORED_QUERY and unstored is None:
                    unstored = (replace(decision, row=row.kind), row)  # rows may be counted instead
                    continue
                if decision is not None and decision.kind is DecisionKind.CALL and borrowed and not row.stored:
                    decision = ask(asked, Unclear.UNREAD, *asked.unread)
                if decision is not None:
                    return replace(self._whole(decision, row), row=row.kind), row
        return unstored or (_no_row(asked), None)

    def _for_each_time(self, f: Frame, now: datetime) -> tuple[Decision, DecisionRow | None] | None:
        """The same asked of two times that stand beside each other: "in May, and how many in June"."""
        if f.has("op:compare", "op:trend"):
            return None
        once = [
            replace(f.copy(), window=window, other_window=False, listed_times=False)
            for window in (f.window, f.second_window)
        ]
        (first, row), (second, _) = (self._decide(one, now) for one in once)
        both = _together(f, [first, second])
        if both is None or first.then or first.calls == second.calls:
            return None
        return replace(first, frame=f, calls=both.calls), row

    def _one_sentence(self, asked: Frame, now: datetime) -> Decision | None:
        """The answer to the one sentence of several that asks for rows, where the others only tell why; the last
        first. A pronoun in it is the thing that the others name."""
        ends = [match.end() for match in _SENTENCE.finditer(asked.text)]
        for start, end in reversed(list(zip([0, *ends], [*ends, len(asked.text)], strict=True))) if ends else ():
            apart = [item for item in asked.items if not start <= item.start < end]
            part = part_of(asked, start, end)
            named = [name for name in asked.all("name") if name not in part.all("name")]
            pointed = part.has("ref")
            if not part.has("moment") and not set(words_of(asked.time_said)) <= set(words_of(asked.text[start:end])):
                continue  # the time is of another sentence
            narrowed = any(item.type in _TYPES["filters"] and not item.sense("name") for item in apart)
            if not _all_said(asked) or narrowed or bool(named) != pointed:
                continue
            asks = part.has("kind", "topic", "incident") or not set(part.all("op")) <= {"list", "exists"}
            if part.unread or not asks:
                continue
            part.features["name"] += named
            part.features["ref"], part.features["moment"], part.features["that"], part.loose = [], [], [], []
            made, row = self._decide(contained(_settled(part), self.queries), now)
            if made.kind is DecisionKind.CALL:
                said = _ONE_SENTENCE.format(plain(asked.text[start:end].strip(" -:")))
                return _shown(replace(made, opening=(said, *made.opening)), row)
        return None

    def _offered_without(self, refused: Decision, asked: Frame, now: datetime) -> Decision:
        """The question back, with the answer without the words that the call has no place for."""
        words = {word for value in refused.values for word in words_of(value)}
        less = part_with(asked, [item for item in asked.items if not words & set(words_of(item.text))])
        less.loose = [*asked.loose, *refused.values]
        less.features["relation"] = []
        made, _ = self._decide(_settled(less), now)
        return offering(refused.frame, [made], refused.reason, *refused.values) if made.calls else refused

    def _left_out(self, unread: Decision, now: datetime) -> tuple[Decision, DecisionRow | None]:
        """The answer without the unread words where they cannot narrow it, else the question back that offers it."""
        plain_frame = unread.frame.copy()
        plain_frame.unread, plain_frame.loose = [], [*unread.frame.loose, *unread.frame.unread]
        made, row = self._decide(plain_frame, now)
        if made.kind is not DecisionKind.CALL:
            return unread, None
        if made.calls[0].tool == "run_kql_query" and not made.frame.has("template"):
            rivals = self.queries.offered(plain_frame)
            if len(rivals) > 1 and unread.frame.unread:  # a word that nothing read may be what tells them apart
                return offering(unread.frame, rivals, Unclear.UNREAD, *unread.values), None
        if _holds_all(made) or _untouched(made, unread.frame):
            return made, row
        query = self.queries.named(str(made.calls[0].arguments.get("template", "")))
        if query is not None and not made.frame.has("template") and query.says(unread_words(unread.frame)):
            made.frame.loose = unread.frame.loose
            return made, row
        searched = unread.frame.copy()
        searched.unread = []
        searched.tell("title", " ".join(unread.frame.unread))
        named, _ = self._decide(searched, now) if made.calls[0].tool in _LISTS else (made, None)
        made = replace(made, frame=plain_frame)
        other = [replace(named, frame=searched)] if named.calls and named.calls != made.calls else []
        return offering(unread.frame, [made, *other], Unclear.UNREAD, *unread.values), None

    def _whole(self, decision: Decision, row: DecisionRow) -> Decision:
        """The decision, or a question back where its call would leave out some of what was said."""
        f = decision.frame
        logs = [
            item.text for item in f.items if item.sense("topic") and {type_ for type_, _ in item.senses} <= _OF_LOGS
        ]
        asks_which = f.has("ask:what") and f.has("kind", "prop", "attr") and not f.polar
        if row.kind == _AN_INCIDENT and logs and not asks_which and not {*f.all("topic")} & _IN_INCIDENTS:
            return ask(f, Unclear.NOT_TAKEN, *logs)
        bounded = [made.arguments for made in decision.calls if f.window.items() <= made.arguments.items()]
        if f.other_window and bounded and not any(f.second_window.items() <= each.items() for each in bounded):
            both = any("is:two_periods" in need for need in row.needs)
            return decision if both else ask(f, Unclear.ONE_TIME)
        if (
            decision.kind is not DecisionKind.CALL
            or decision.then
            or row.view in _OF_ROWS
            or decision.calls[0].tool == "run_kql_query"
        ):
            return decision
        more = {one for need in row.needs for one in need} | ({"kind:incident"} if f.has("incident") else set())
        if f.has("name"):
            more |= {"prop", "op:summary", "attr:duration", "attr:reason"}
            more |= {f"kind:{kind}" for kind in (*RANKED, "domain")}
            more |= {f"topic:{topic}" for topic in _ALSO_IN_ALERTS}
        missed = lost(f, decision.calls[0].tool, more)
        if missed:
            return ask(f, Unclear.NOT_TAKEN, *missed)
        beside = decision.calls[0].tool == "query_alerts" and f.has("name") and f.has("topic") and not f.has("kind")
        return replace(decision, opening=(*decision.opening, _ALERTS_ONLY)) if beside else decision

    def _outside(self, f: Frame, now: datetime) -> Decision | None:
        """Orders, talk, help and what no workspace records."""
        order = read_order(f.said)
        if order is not None:
            return Decision(DecisionKind.CHANGE, f, order=order)
        if about_assistant(f):
            return Decision(DecisionKind.HELP, f)
        if f.has("meta:sample") and not f.has("table", "attr:columns"):
            return _sample(f)
        if f.has("meta:steering"):
            return Decision(DecisionKind.OUT_OF_SCOPE, f)
        wish = read_wish(f, now)
        if wish is not None and (f.has("know") or not f.has("op:summary")):  # "what does the week look like"
            return searched(f, wish)
        if f.has("meta:oos") and not f.has("incident", "name"):
            return Decision(DecisionKind.OUT_OF_SCOPE, f)
        if f.has("meta:leisure") and not f.has(*_TYPES["of_work"]) and len(f.all("topic")) < _SURELY_LOGS:
            return Decision(DecisionKind.OUT_OF_SCOPE, f)
        if f.has("meta:no_answer") and not f.has("kind:table", "topic:ingest", "name"):
            return Decision(DecisionKind.OUT_OF_SCOPE, f)
        rows_too = f.has("kind:incident", "kind:alert") and (
            f.window or f.has(*_TYPES["narrowed"])
        )  # "help me find the oldest"
        rows_too = rows_too or (f.has("meta:templates") and f.has("topic"))
        if f.has("meta:help") and not f.has("title", "name", "incident", "digits") and not rows_too:
            return Decision(DecisionKind.HELP, f)
        told = [item for item in f.items if not item.silent]
        if len(told) > 1 and all(("meta", "small_talk") in item.senses for item in told):
            return Decision(DecisionKind.SMALL_TALK, f)  # "hello! how is it going?"
        if (
            f.has("meta:small_talk")
            and not f.unread
            and not f.window
            and not f.has(*_TYPES["content"], *_TYPES["narrowing"])
        ):
            return Decision(DecisionKind.SMALL_TALK, f)
        return None

    def _doubt(self, f: Frame) -> Decision | None:
        """A question back where the frame is not sure, whatever it asks for."""
        if "|" in f.text:
            return ask(f, Unclear.OWN_QUERY)
        if f.time_problem:
            return ask(f, Unclear.TIME, f.time_problem)
        if f.has("bound:future"):
            return ask(f, Unclear.FUTURE, _words_of_type(f, "bound"))
        if f.has("problem"):
            return ask(f, Unclear.NOT_EXPRESSIBLE, str(f.one("problem")))
        alert = f.has("kind:alert")
        told = f.has("title") and not f.has("name") if alert else f.has("topic")
        if f.has("relation") and not f.has("incident") and not told:
            return ask(f, Unclear.NOT_EXPRESSIBLE, _words_of_type(f, "relation"))
        if len(f.all("title")) > 1 and not f.has("kind"):
            return ask(f, Unclear.TITLE_OR_LOGS, *f.all("title"))
        if f.has("both") and len(f.all("name")) > 1 and not f.has("kind:alert", "kind:incident"):
            return ask(f, Unclear.ONE_NAME, *f.all("name"))
        for name in f.all("name"):
            meant = self.names.meant(name)
            if len({one.name for one in meant}) > 1 and "@" not in name:
                return ask(f, Unclear.AMBIGUOUS_NAME, name, *sorted({one.name for one in meant})[:4])
            if meant or not {"host", "account"} & set(f.name_kinds(name) or ("host",)) or "@" in name:
                continue
            near = self.names.near(name)
            if near:
                return ask(f, Unclear.NEAR_NAME, name, *near[:4])
            if (self.names.whole or f.has("plural")) and name not in f.kinds and name.lower() not in f.kinds:
                return ask(f, Unclear.UNKNOWN_NAME, name)
        for word in f.loose:
            if near := self.names.near(word):
                return ask(f, Unclear.NEAR_NAME, word, *near[:4])
        # "Show me the incident" tells of one that is not named, "show the incidents" of all.
        bare = f.all("op") == ["list"] and not f.has("plural", "order", "title") and not f.window
        pointing = f.has("ref") and (f.all("ref") not in _MAY_POINT or bare) and not _points_inside(f)
        which = f.has(*_TYPES["says_which"]) or f.window
        if f.has("ref") and not f.has(*_TYPES["known_things"]) and (pointing or not which):
            return ask(f, Unclear.WHICH_THING)
        logs = f.has("topic", "kind:ip", "kind:account")
        beyond = [
            type_
            for type_ in _TYPES["beyond"]
            if f.has(type_)
            and not (type_ == "bound" and (f.has("topic", "op:compare") or f.window))
            and not (type_ == "symbol" and logs)
            and not (type_ == "extreme" and f.has("extreme:longest", "extreme:shortest") and f.has("kind:incident"))
        ]
        if beyond and not _of_one_record(f):
            return ask(
                f, Unclear.NOT_EXPRESSIBLE, *((_words_of_type(f, type_) or str(f.one(type_))) for type_ in beyond)
            )
        if "0" in (*f.all("num"), *f.all("limit")):
            return ask(f, Unclear.NUMBER_OF_WHAT, "0")
        described = f.has("relation") and f.has("incident")  # words of an alert among those of the incident
        if not described and any(word not in self.queries.words for word in unread_words(f)):
            return ask(f, Unclear.UNREAD, *f.unread)
        return None

    def _by(self, row: DecisionRow, f: Frame, told: frozenset[str], now: datetime) -> Decision | None:
        """The decision of a row; None where it holds no answer after all."""
        if row.reason is not None:
            values = f.all("name")[:1] or f.all("num")[:1]
            if row.reason is Unclear.NUMBER_OF_WHAT and self.queries.unknown and f.has("topic"):
                return ask(f, Unclear.NO_STORED_QUERY)  # it may be the value of a parameter
            if row.reason is Unclear.NOT_EXPRESSIBLE:
                values = [item.text for item in f.items if item.sense("op", frozenset({"share"}))]
            return ask(f, row.reason, *values)
        if row.view is View.NEIGHBOUR:
            f.unread = []
            which = {"incident": f.one("incident")} if f.has("incident") else {"name_contains": f.one("title")}
            return call(f, row.tool, {**which, "limit": MAX_LIMIT})
        counted = row.tool == "query_incidents" and {"class", "op:count"} <= told and "when" not in told
        fields = {str(each) for each in f.all("group")} - _UNITS
        if counted or row.compute == "classified" or (row.compute == "group" and fields):
            if self.queries.unknown and not counted:
                return ask(f, Unclear.NO_STORED_QUERY)
            stored = to_stored_query(f.copy(), self.queries)
            if stored is not None and stored.kind is DecisionKind.CALL:
                # A query that counts by the field takes the filter too; one by another field is near and wrong.
                query = str(stored.calls[0].arguments.get("template", ""))
                if row.compute != "group" or counted or any(each.rstrip("s") in query for each in fields):
                    return stored
        if row.compute:
            made = computed(row.compute, f, now)
            # What a part of the question raises is answered for the whole of it.
            return replace(made, frame=f) if made is not None and made.kind is DecisionKind.ASK else made
        if row.stored or row.tool == "run_kql_query":
            return self._stored(f, named=row.tool == "run_kql_query")
        match row.tool:
            case "describe_table":
                examples = {"examples": True} if f.has("meta:sample") else {}
                return call(f, row.tool, {"table": f.one("table"), **examples})
            case "get_alert_events":
                limit = {"limit": int(str(f.one("limit")))} if f.has("limit") else {}
                return call(f, row.tool, {"alert_id": f.one("alert_id"), **limit})
            case "list_kql_templates":
                words = [
                    item.text
                    for item in f.items
                    if (item.sense("topic") and not item.sense("topic", _RUN)) or item.text in f.all("tactic")
                ]
                return call(f, row.tool, {"search": " ".join(words)} if words else {})
            case "get_threat_summary" if "is:two_periods" in told:
                return _compared(f, now)
        if row.fixed is not None:
            planned = to_tool(f, row.tool)
            if not planned.calls:
                return planned
            # What comes first is asked of all that is open now, whenever it came.
            window = f.window if "status" in row.fixed else ()
            kept = {name: value for name, value in planned.calls[0].arguments.items() if name not in window}
            return call(f, row.tool, {**kept, **row.fixed})
        if row.view is View.KEYWORD:
            found, named = to_tool(f, "query_incidents"), to_tool(f, "query_alerts")
            return found if not found.calls else replace(found, calls=(*found.calls, *named.calls))
        if "is:two_incidents" in told and row.tool == "get_incident_detail":
            return Decision(
                DecisionKind.CALL, f, tuple(Call(row.tool, {"incident": each}) for each in f.all("incident"))
            )
        if row.tool in ("query_incidents", "query_alerts") and len(f.all("name")) > 1 and not f.has("both", "not"):
            return _for_each_name(f, row.tool)
        return to_tool(f, row.tool)

    def _stored(self, f: Frame, *, named: bool) -> Decision | None:
        """The stored query that says the same. Topics of the logs that none answers are asked back."""
        if not self.queries.entries:
            return ask(f, Unclear.NO_STORED_QUERY)
        found = to_stored_query(f, self.queries)
        if found is None and len(f.all("name")) > 1:
            found = self._stored_for_each_name(f)
        if found is not None or named:
            return found or ask(f, Unclear.NO_SUCH_QUERY)
        topics = _topics(f)
        if f.has("maybe_title"):
            f.features["title"] += f.features.pop("maybe_title")
            topics = topics[1:]
        lists = f.has("kind:alert", "kind:incident")
        also = _ALSO_IN_ALERTS if any(name in f.text for name in f.all("name")) or f.has("of_kind") else set()
        elsewhere = bool(set(topics) - also) and not lists
        sure = [item for item in f.items if {type_ for type_, _ in item.senses} == {"topic"}]
        lost = (bool(topics) and (not lists or bool(sure)) and not f.has("name")) or {*f.all("group")} - _UNITS - {
            "severity"
        }
        if f.has("op:average", "op:share") or elsewhere or lost or len(topics) > 1:
            return ask(f, Unclear.NO_STORED_QUERY)
        return None

    def _stored_for_each_name(self, f: Frame) -> Decision | None:
        """The one stored query that answers for each of the names alone."""
        made = [to_stored_query(_with_name(f, name), self.queries) for name in sorted(f.all("name"), key=f.text.find)]
        templates = {str(one.calls[0].arguments["template"]) for one in made if one is not None and one.calls}
        return _together(f, made) if len(templates) == 1 else None


def _together(f: Frame, made: Sequence[Decision | None]) -> Decision | None:
    """The calls of several decisions as one; None where one of them calls nothing."""
    calls = [one.calls for one in made if one is not None and one.kind is DecisionKind.CALL and one.calls]
    return Decision(DecisionKind.CALL, f, tuple(chain(*calls))) if len(calls) == len(made) else None


def _all_said(f: Frame) -> bool:
    """True for a frame that holds only what its own sentence says, and nothing of the conversation."""
    senses = {sense for item in f.items for sense in item.senses}
    told = {(type_, value) for type_ in ("kind", "topic", "op") for value in f.all(type_)}
    return told <= senses and all(name in f.text for name in f.all("name")) and not (f.window and not f.time_said)


def _with_name(f: Frame, name: str) -> Frame:
    one = f.copy()
    one.features["name"] = [name]
    return one


def _holds_all(made: Decision) -> bool:
    """True where no word could have narrowed the answer: the whole record of an incident that is asked about."""
    f = made.frame
    told = f.has("ask", "attr", "op")
    return told and all(each.tool == "get_incident_detail" for each in made.calls)


def _untouched(made: Decision, said: Frame) -> bool:
    """True where a few ordinary words that nothing read cannot be a filter of the call, so that the first line may
    tell of them instead: its tool searches no titles, or they stand where nothing is said of its rows."""
    searches = any(each.tool not in _SEARCHES_NO_TITLES for each in made.calls)
    if said.has("template") or len(said.unread) > _MOST_LEFT_OUT or (searches and _told_of_rows(said)):
        return False
    return ordinary(said.items, said.text, said.language)


def _told_of_rows(said: Frame) -> bool:
    """True unless each unread word stands before the noun of the rows and apart from it, as a verb of asking does."""
    noun = next((place for place, item in enumerate(said.items) if item.sense("kind")), -1)
    told = [place for place, item in enumerate(said.items) if item.type in ("text", "qualifier")]
    asked = [place for place, item in enumerate(said.items) if item.sense("ask")]
    return any(place > noun or not said.items[place + 1].silent or place - 1 in asked for place in told)


def _subject_unread(f: Frame) -> bool:
    """True where a word that nothing read tells of what a number, a trend or a report is: "are sales going up"."""
    told = f.has("op:summary") and any(a.sense("definite") and b.text in f.loose for a, b in pairwise(f.items))
    return (told or f.has("counted_kind", "op:trend")) and not f.has(*_TYPES["counted_by"])


def _points_inside(f: Frame) -> bool:
    """True where what is pointed at was named before in the same sentence: "T1003, any detections on that one"."""
    named = [item.end for item in f.items if item.sense("lit") or item.sense("tactic") or item.sense("product")]
    points = [item.start for item in f.items if item.sense("ref") and not item.sense("definite")]
    return bool(named and points) and min(named) <= min(points)


def _of_one_record(f: Frame) -> bool:
    """True where a field of one incident is asked for: its whole record is shown, which no bound narrows."""
    return len(f.all("incident")) == 1 and f.has("attr") and not f.has("kind:alert", "plural", "topic", "relation")


def _no_row(f: Frame) -> Decision:
    """The question back where no row of the table fits: what a list cannot say, or of what it shall be."""
    lists = [kind for kind in ("incident", "alert") if f.has(f"kind:{kind}")]
    missed = lost(f, f"query_{lists[0]}s") if len(lists) == 1 else []
    return ask(f, Unclear.NOT_TAKEN, *missed) if missed else ask(f, Unclear.INCIDENTS_OR_ALERTS)


def _shown(decision: Decision, row: DecisionRow | None) -> Decision:
    """The decision with how its answer is told."""
    if not decision.calls or decision.view is not None:
        return decision
    tools = [call.tool for call in decision.calls]
    view, aspects = shown(decision.frame, tools, None if row is None else row.view)
    return replace(decision, view=view, aspects=aspects)


def _for_each_name(f: Frame, tool: str) -> Decision:
    """A call for each of the names, or the question back that one of them raises."""
    made = [to_tool(_with_name(f, name), tool) for name in f.all("name")]
    return _together(f, made) or next(one for one in made if not one.calls)


def _settled(frame: Frame) -> Frame:
    """The frame with what only its kind decides: numbers that are incidents, words that are a title or a topic."""
    f = frame.copy()
    f.features.pop("compared", None)
    _lowest_left_out(f)
    _picture_apart(f)
    f = _of_whole_table(f)
    shape = _shape(f)
    for row in settlings():
        row.settle(f, shape)
    return f


def _shape(f: Frame) -> frozenset[str]:
    """What rows that settle a frame ask of it beside its features."""
    names, topics = f.all("name"), f.all("topic")
    updated = [item for item in f.items if item.sense("attr", _UPDATED)]
    holds = {
        "window": f.window,
        "starts": "start_time" in f.window,
        "ends": "end_time" in f.window,
        "length": f.duration,
        "unread": f.unread,
        "classes": len(set(f.all("class"))) > 1,
        "topics": len(topics) > 1,
        "logon_said": any(item.sense("topic", _LOGON) for item in f.items),
        "one_number": len(f.all("digits")) == 1,
        "two_numbers": len(f.all("digits")) > 1,
        "fraction": re.search(r"\d/\d", f.text),
        "two_incidents": len(f.all("incident")) > 1,
        "high_limit": f.has("limit") and int(f.all("limit")[0]) > DEFAULT_LIMIT,
        "asks_state": _asks_for_state(f),
        "untouched": any(item.sense("owner") or item.sense("status") for item in updated),
        "owner_untouched": any(item.sense("owner") for item in updated),
        "person": len(names) == 1
        and f.name_kinds(names[0])[:1] == ("account",)
        and not f.has("of_kind")
        and shaped_tokens(names[0])[:1] != (Token("service", names[0], 0, len(names[0])),),
        "asks_each": (f.has("ask:what", "op:count") and f.has("kind:alert"))
        or not (f.has(*_TYPES["of_others"]) or {*f.all("talk")} - {"draw"}),
    }
    return frozenset(f"is:{name}" for name, held in holds.items() if held)


def _of_whole_table(f: Frame) -> Frame:
    """The frame without words that its table's name says ("sign-ins in SigninLogs"), where those are all it says."""
    name = fold(f.one("table") or "")

    def repeats(text: str) -> bool:
        return all(word.rstrip("s") in name for word in words_of(text.replace("-", "")))

    if not name or not any(repeats(text) for text in (*(item.text for item in f.items), *f.unread)):
        return f
    less = part_with(f, [item for item in f.items if item.sense("lit") or not repeats(item.text)])
    less.loose = [word for word in f.loose if not repeats(word)]
    return less if _asks_table_size(less) else f


def _asks_table_size(f: Frame) -> bool:
    """Whether it asks how many rows a table holds, or whether any, and narrows them by nothing."""
    listed = f.has("op:list") or not f.has("op:exists", "attr:row_count", "kind:data", "kind:thing")
    whole = {*f.all("attr")} <= {"row_count", "events", "detail"} and {*f.all("kind")} <= {"data", "thing", "table"}
    narrowed = any(values for type_, values in f.features.items() if type_ not in _OF_A_TABLE_SIZE)
    return f.has("table") and whole and not narrowed and not f.has("op:top") and (f.has("op:count") or not listed)


def _asks_for_state(f: Frame) -> bool:
    """True where a state stands behind the one incident that it is asked of, and does not say which one is meant."""
    nouns = [item.start for item in f.items if item.sense("kind", frozenset({"incident"}))]
    states = [item.start for item in f.items if item.type == "status"]
    return bool(nouns and states) and min(states) > max(nouns)


def _picture_apart(f: Frame) -> None:
    """Tell that a picture of the answer is wanted, where the words for it stand beside what it is to be of: they ask
    for no counts over time, which a picture of nothing else is."""
    said = settings(f.language, "chart")
    words = [item for item in f.items if {*words_of(item.text)} & said and not item.sense("kind")]
    unread = [item.text for item in words if item.type == "text"]
    of = ({*f.all("group")} - _UNITS) or f.has("topic", "op:top", *(f"attr:{field}" for field in _FIELDS_OF_ALERTS))
    others = [item for item in f.items if item not in words and item.sense("op", frozenset({"trend"}))]
    if not words or not of or others or f.has("incident") or {*f.all("group")} & _UNITS:
        return
    for type_, value in (("op", "trend"), ("attr", "draw")):
        f.features[type_] = [one for one in f.all(type_) if one != value]
    f.unread, f.loose = ([one for one in told if one not in unread] for told in (f.unread, f.loose))
    f.items = tuple(item for item in f.items if item not in words)
    f.tell("talk", "draw")


def _lowest_left_out(f: Frame) -> None:
    """Tell a lowest severity where those below it are left out: "all but the informational ones"."""
    left_out = set(f.all("without"))
    lowest = list(takewhile(left_out.__contains__, SEVERITIES))
    if lowest and len(lowest) == len(left_out) < len(SEVERITIES):
        f.features["without"] = []
        f.tell("min", SEVERITIES[len(lowest)])


def _words_of_type(f: Frame, type_: str) -> str:
    """The words of the sentence that are of a type."""
    return " ".join(item.text for item in f.items if item.sense(type_))


def _topics(f: Frame) -> list[str]:
    """What is asked of the logs; a word that is a state too ("resolved") is that state where a list is asked for."""
    lists = f.has("kind:alert", "kind:incident")
    states = {
        value for item in f.items if item.sense("status") for type_, value in item.senses if lists and type_ == "topic"
    }
    return [
        topic for topic in f.all("topic") if topic not in states and not (f.has("kind:incident") and topic == "change")
    ]


def _features(f: Frame) -> frozenset[str]:
    """What a frame says, each feature as its type and as type:value, with what follows from several of them."""
    told = {type_ for type_, values in f.features.items() if values}
    told |= {f"{type_}:{value}" for type_, values in f.features.items() for value in values}
    alerts, incidents = f.has("kind:alert"), f.has("kind:incident")
    lists, one = alerts or incidents, f.has("name", "incident")
    topics = _topics(f)
    groups = [group for group in f.all("group") if group != "severity"]
    ranked_kinds = [kind for kind in (*f.all("kind"), *f.all("group")) if kind in RANKED]
    by_count = set(f.all("order")) <= {"top"}
    person = f.has("name") and f.name_kinds(f.all("name")[0])[:1] == ("account",)
    derived = {
        "lists": lists,
        "one": one,
        "topics": set(topics) - {"run"},
        "people": f.has("attr:owner", "attr:status", "attr:severity"),
        "window": f.window,
        "length": f.duration and topics,
        "both_lists": alerts and incidents and f.has("follow:and") and not one and not topics,
        "everywhere": f.has("meta:everywhere") and (not topics or (topics == ["activity"] and not person)),
        "unlike": f.has("attr:comments", "attr:timeline", "attr:bookmarks", "attr:events", "attr:columns"),
        # Each with a word for its kind, and none that joins them: "of user X on host Y".
        "joined": len(f.all("name")) > 1 and len({*f.all("of_kind")}) > 1 and not f.has("follow"),
        "two_incidents": len(f.all("incident")) > 1,
        "fields": f.has("attr") or any(kind not in ("incident", "alert", "thing") for kind in f.all("kind")),
        "things": any(kind not in ("incident", "alert", "thing") for kind in f.all("kind")),
        "two_periods": f.other_window or (f.has("op:compare") and f.window),
        "table_size": _asks_table_size(f),
        "trend": (f.has("op:trend") or {*f.all("group")} & _UNITS) and not f.has("topic", "name", "kind:table"),
        # Topics of the logs, groups, means, rankings of what is no entity.
        "stored": (
            groups
            or topics
            or f.has("op:average")
            or (f.has("class") and f.has("op:count", "op:share"))
            or (
                f.has("op:top")
                and (f.has("attr", "kind:rule", "kind:table") or lists)
                and not f.has("name")
                and by_count
            )
        )
        and not (f.has("title") and lists),
        "ranks": ranked_kinds
        and (
            f.has("op:top")
            or {*f.all("group")} & set(RANKED)
            or f.has("counted_kind")
            or (f.has("op:count") and (not lists or (f.all("kind")[0] in RANKED and f.has("plural"))))
            or (lists and f.has("plural", "all") and f.all("kind")[0] in RANKED and f.has("ask:what", "op:list"))
        )
        and not one
        and set(f.all("topic")) <= ({"proc"} if ranked_kinds == ["process"] else set())
        and not (incidents and f.has("order:severity")),
        # Incidents are meant though no word for them stands there: "anything closed today", "open highs".
        "unlisted": (f.has("kind:thing", "ask:what", "op:exists") and f.has("status:Open") and f.window)
        or (f.has("status:Closed") and f.has("op:count", "kind:thing"))
        or f.has("owner", "class", "title")
        or (f.has("status") and f.has("severity"))
        or (
            f.has("severity", "min", "status")
            and (f.window or f.has(*_TYPES["wants_rows"]))
            and (not f.has("attr") or (f.has("kind:thing") and set(f.all("attr")) <= {"status", "severity"}))
            and not f.has("topic", "incident", "kind:account", "kind:host", "op:compare", "op:average", "meta")
        ),
        # "How many incidents has m.keller": as owner, or as one of those involved?
        "whose": person
        and f.has("op:count")
        and not f.has("rel:involve")
        and not alerts
        and (incidents or f.has("status")),
    }
    return frozenset(told | {f"is:{name}" for name, holds in derived.items() if holds})


def _sample(f: Frame) -> Decision:
    """Real rows in the place of invented ones, narrowed as those were to be."""
    tool = "query_alerts" if f.has("kind:alert") else "query_incidents"
    rows = f.copy()
    rows.features = {type_: values for type_, values in f.features.items() if type_ in _TYPES["of_a_sample"]}
    narrowed = to_tool(rows, tool)
    return replace(narrowed if narrowed.calls else call(f, tool, {}), kind=DecisionKind.SAMPLE, frame=f)


def searched(f: Frame, wish: KnowledgeWish) -> Decision:
    """The search of the knowledge base that a wish asks for."""
    return replace(call(f, SEARCH_TOOL, _search(wish)), wish=wish)


def _search(wish: KnowledgeWish) -> dict[str, JsonValue]:
    past = wish.sought in (Sought.PAST, Sought.CLOSED)
    told: dict[str, JsonValue] = {"collection": INCIDENTS if past else PLAYBOOKS}
    if wish.sought is Sought.CATALOGUE:
        return told
    if wish.sought is Sought.SECTION:
        return {"document": wish.section.partition(" > ")[0]}
    told |= {name: value for name, value in wish.filters.items() if name in _TYPES["searched_by"]} if past else {}
    if past and (wish.incident or (told.keys() & {"technique"} and not wish.topic)):
        return told | ({"like_incident": wish.incident} if wish.incident else {})
    return told | {"query": wish.topic}


def _compared(f: Frame, now: datetime) -> Decision:
    """The reports of two periods; said as "than last week", the later one is the one after that."""
    if not f.has("op:compare", "op:trend"):
        return ask(f, Unclear.ONE_TIME)
    f.features["compared"] = ["whole"]
    later, earlier = periods(f, now)
    f.window = later or f.window
    decision = to_tool(f, "get_threat_summary")
    if not decision.calls or not earlier:
        return decision
    return replace(decision, calls=(*decision.calls, Call("get_threat_summary", earlier)))
