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
from sentinel_rag.language.text import toml_beside

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


def _sentences() -> Mapping[str, str]:
    return toml_beside(__package__, "questions_back.toml")


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
        return _sentences()[self.reason].format(value=first, values=", ".join(quoted), rest=" or ".join(quoted[1:]))


def ask(frame: Frame, reason: Unclear, *values: str) -> Decision:
    """A question back."""
    return Decision(DecisionKind.ASK, frame, reason=reason, values=values)


def call(frame: Frame, tool: str, arguments: Mapping[str, JsonValue]) -> Decision:
    """One call that answers the frame."""
    return Decision(DecisionKind.CALL, frame, calls=(Call(tool, arguments),))
