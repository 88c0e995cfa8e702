"""What is carried out: tool calls with the view in which their results are shown, a question back, or a fixed reply.

A `Decision` says what becomes of a question, a `Plan` how its answer is made. `View` names a way of showing results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sentinel_rag.language.frames import Frame


class View(StrEnum):
    """How results are shown."""

    INCIDENTS = "incidents"
    INCIDENT_COUNT = "incident_count"
    INCIDENT = "incident"
    ALERTS = "alerts"
    ALERT_COUNT = "alert_count"
    ALERT = "alert"
    ATTRIBUTE = "attribute"
    PROPERTY = "property"
    KEYWORD = "keyword"
    TREND = "trend"
    TOP = "top"
    SUMMARY = "summary"
    KQL = "kql"
    TEMPLATES = "templates"
    TABLES = "tables"
    SEARCH = "search"
    WORKSPACES = "workspaces"
    COLUMNS = "columns"
    ANALYSIS = "analysis"
    COMPARISON = "comparison"
    EVENTS = "events"
    NEIGHBOUR = "neighbour"
    COMPUTED = "computed"
    WEB = "web"
    FILE = "file"
    FILES = "files"


def listed(view: View) -> View:
    """The view that shows the rows behind a count; every other view is its own."""
    return {View.ALERT_COUNT: View.ALERTS, View.INCIDENT_COUNT: View.INCIDENTS}.get(view, view)


def counted(view: View) -> View:
    """The view that counts the rows of a list; every other view is its own."""
    return {View.ALERTS: View.ALERT_COUNT, View.INCIDENTS: View.INCIDENT_COUNT}.get(view, view)


WITHOUT = "without:"
"""Begins an aspect of a ranking that names a row to leave out."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a tool. Calls of one plan do not depend on each other."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON values. Stored conversations hold calls, and what reads them takes no recursive type."""


OF_TOTALS = ("ratio", "difference", "change")
"""Calculations over how many rows there are, for which no row is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Calls and their view. `aspects` are the fields asked for; `opening` are fixed sentences that come first;
    `first` rows were on the screen already (a "next page");
    `told` are the sentences before the question;
    `section` if this is shown as one of several workspaces, where an empty one offers nothing."""

    view: View
    calls: tuple[PlannedCall, ...]
    frame: Frame = field(default_factory=lambda: Frame(""))
    """The question as it was read."""
    aspects: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    first: int = 0
    alert_id: str = ""
    told: tuple[str, ...] = ()
    story: Frame = field(default_factory=lambda: Frame(""))
    """The sentences before the question, as they were read together."""
    section: bool = False
    unknown: tuple[str, ...] = ()
    """Words that are searched for as a name or a title only because nothing else knew them."""

    then: tuple[Mapping[str, Any], ...] = ()
    """Calculations over the rows of the calls, as in `Decision`."""

    @property
    def chooses_rows(self) -> bool:
        """True if rows of every page are looked at to choose among them."""
        return any(step["op"] not in OF_TOTALS for step in self.then)
