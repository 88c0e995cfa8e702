"""What the planner decides: calls, a question back with its reason, or that it is no question about Sentinel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sentinel_rag.agent.planner.knowledge import KnowledgeWish
from sentinel_rag.agent.planner.plan import PlannedCall, View
from sentinel_rag.agent.things import ListItem
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.orders import Order

Call = PlannedCall


class DecisionKind(StrEnum):
    """What becomes of a question."""

    CALL = "call"
    ASK = "ask"
    CHANGE = "change"
    HELP = "help"
    SMALL_TALK = "small_talk"
    SAMPLE = "sample_data"
    EXPORT = "export"
    OUT_OF_SCOPE = "out_of_scope"


class Unclear(StrEnum):
    """Why a question is asked back. The values beside it fill the sentence."""

    UNREAD = "unread"
    TIME = "time"
    FUTURE = "future"
    NEAR_NAME = "near_name"
    UNKNOWN_NAME = "unknown_name"
    AMBIGUOUS_NAME = "ambiguous_name"
    ONE_NAME = "one_name"
    NOT_TAKEN = "not_taken"
    NOT_EXPRESSIBLE = "not_expressible"
    ONE_SEVERITY = "one_severity"
    NUMBER_OF_WHAT = "number_of_what"
    NO_TREND_OF_INCIDENTS = "no_trend_of_incidents"
    WHICH_THING = "which_thing"
    COMPARED_WITH_WHAT = "compared_with_what"
    ONE_TIME = "one_time"
    WHICH_TABLE = "which_table"
    CANNOT_LEAVE_OUT = "cannot_leave_out"
    TITLE_OR_LOGS = "title_or_logs"
    MOST_OF_WHAT = "most_of_what"
    OWNER_OR_INVOLVED = "owner_or_involved"
    WHO_ARE_YOU = "who_are_you"
    NO_STORED_QUERY = "no_stored_query"
    NO_SUCH_QUERY = "no_such_query"
    WHICH_NAME = "which_name"
    OWN_QUERY = "own_query"
    NO_SUCH_ROW = "no_such_row"
    HOW_LONG = "how_long"
    INCIDENTS_OR_ALERTS = "incidents_or_alerts"
    WHICH_OF_THESE = "which_of_these"
    NOTHING_SHOWN = "nothing_shown"
    NO_MORE = "no_more"
    WHICH_MOMENT = "which_moment"
    NOTHING_BEFORE = "nothing_before"
    SAME_OR_ALL = "same_or_all"
    NOTHING_NEW = "nothing_new"


SENTENCES: Mapping[Unclear, str] = {
    Unclear.UNREAD: "I did not understand {values}. Say it in other words, or leave it out.",
    Unclear.FUTURE: "Only what has happened is recorded. Which time do you mean instead of {value}?",
    Unclear.TIME: "{value}",
    Unclear.NEAR_NAME: "Nothing is called {value}. Did you mean {rest}?",
    Unclear.UNKNOWN_NAME: "I know no {value}. Is it a name, or a word of a title? Put a word of a title in quotes.",
    Unclear.AMBIGUOUS_NAME: "{value} may be {rest}. Which one do you mean?",
    Unclear.ONE_NAME: "A query takes one name. Ask for each of {values}.",
    Unclear.NOT_TAKEN: "That query cannot be narrowed by {value}. Ask for the rows, or name another filter.",
    Unclear.NOT_EXPRESSIBLE: "No query can say {value}. What do you want to see instead?",
    Unclear.ONE_SEVERITY: "A query takes one severity or a lowest one. Which one do you want?",
    Unclear.NUMBER_OF_WHAT: "What is the number {value}: an incident, a length of time, or how many rows?",
    Unclear.NO_TREND_OF_INCIDENTS: "A trend is counted over alerts, not over incidents. Do you want that of alerts?",
    Unclear.WHICH_THING: "Which one do you mean? Name the account, host or address.",
    Unclear.COMPARED_WITH_WHAT: "Compared with what? Name both incidents or both periods.",
    Unclear.ONE_TIME: "A question takes one time. Which one do you mean, or are both to be compared?",
    Unclear.WHICH_TABLE: "Of which table? Name it.",
    Unclear.CANNOT_LEAVE_OUT: "The queries filter by what is there and cannot leave that out. What do you want to see?",
    Unclear.TITLE_OR_LOGS: "Do you mean a word in titles, or rows of the logs?",
    Unclear.MOST_OF_WHAT: "The most of what? Name accounts, hosts, addresses, or rules.",
    Unclear.OWNER_OR_INVOLVED: "Incidents that {value} owns, or those that {value} is involved in?",
    Unclear.WHO_ARE_YOU: "Who are you? Name the owner whose incidents you want.",
    Unclear.NO_STORED_QUERY: "No stored query answers that.",
    Unclear.NO_SUCH_QUERY: "There is no stored query of that name.",
    Unclear.WHICH_NAME: "Which name is it about? The stored query {value} needs one: {rest}.",
    Unclear.OWN_QUERY: "A query of your own goes to the KQL tool.",
    Unclear.NO_SUCH_ROW: "There is no such row on the screen.",
    Unclear.HOW_LONG: "How long before and after?",
    Unclear.INCIDENTS_OR_ALERTS: "Do you mean incidents or alerts?",
    Unclear.WHICH_OF_THESE: "Which one do you mean?",
    Unclear.NOTHING_SHOWN: "There is no list to go on with yet. What do you want to see?",
    Unclear.WHICH_MOMENT: "Which time do you mean? Give its date in the question.",
    Unclear.NO_MORE: "That answer was whole: there is no next page of it. What do you want to see?",
    Unclear.SAME_OR_ALL: "Do you go on with the question before, or is that a new one?",
    Unclear.NOTHING_NEW: "The last answer is all that I can say to {value}. What else do you want to see?",
    Unclear.NOTHING_BEFORE: "There is no earlier answer to go back to. What do you want to see?",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One way to go on, as it is offered under its number. Picking it parses nothing."""

    text: str
    frame: Frame
    number: int = 0
    """Under which it stands on the screen; 0 where it has none."""
    calls: tuple[Call, ...] = ()
    """Empty where the planner still decides what answers the frame."""
    view: View | None = None
    aspects: tuple[str, ...] = ()
    item: ListItem | None = None
    """The thing that it is about, so that it can be picked by its words."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a frame, by which row of the table."""

    kind: DecisionKind
    frame: Frame
    calls: tuple[Call, ...] = ()
    reason: Unclear | None = None
    values: tuple[str, ...] = ()
    row: str = ""
    view: View | None = None
    """How the answer is told; None where no call is made."""
    aspects: tuple[str, ...] = ()
    """What is asked of the thing, as `Plan.aspects`."""
    then: tuple[Mapping[str, Any], ...] = ()
    """Calculations over the rows of the calls: arguments of `compute`, where $1 stands for the rows of the first."""
    opening: tuple[str, ...] = ()
    """Fixed sentences that come first."""
    wish: KnowledgeWish | None = None
    """What is looked for in the knowledge base, where the call is a search of it."""
    order: Order | None = None
    """What is to be changed, for CHANGE."""
    options: tuple[Option, ...] = ()
    """Ways to answer a question back."""

    @property
    def sentence(self) -> str:
        """The question back, with its values."""
        if self.reason is None:
            return ""
        quoted = [f"“{value}”" for value in self.values] or [""]
        first = self.values[0] if self.reason is Unclear.TIME else quoted[0]
        return SENTENCES[self.reason].format(value=first, values=", ".join(quoted), rest=" or ".join(quoted[1:]))


def ask(frame: Frame, reason: Unclear, *values: str) -> Decision:
    """A question back."""
    return Decision(DecisionKind.ASK, frame, reason=reason, values=values)


def call(frame: Frame, tool: str, arguments: Mapping[str, JsonValue]) -> Decision:
    """One call that answers the frame."""
    return Decision(DecisionKind.CALL, frame, calls=(Call(tool, arguments),))
