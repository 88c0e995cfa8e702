"""Questions about a thing that has to be found first: "what triggered the newest alert of incident 55?".

The inner words ("the newest alert of incident 55") are one query for one row; then the question is asked again with
the id of that row in their place. Only an id of a fixed shape takes that place, so nothing that a row says becomes a
word of the question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.arguments import alert_filters, incident_filters
from sentinel_rag.agent.offline.compositions.scope import event_time
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.vocabulary import is_known
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.zone_words import read_time_in_its_zone

_NEWEST = r"newest|latest|most\s+recent|last"
_OLDEST = r"oldest|earliest|first"
_QUALITY = r"(?:(?:high|medium|low|informational|open|new|active|closed|resolved|unassigned|severity)\s+)*"
_THING = r"#?\d{1,9}|\"[^\"]+\"|[\w$][\w.@$\\:-]*[\w$]"
_INNER = re.compile(
    rf"(?:\b(?:the|its)\s+)?(?:(?P<whose>{_THING})['’]s\s+)?\b(?:very\s+)?(?P<order>{_NEWEST}|{_OLDEST})\s+"
    rf"(?P<quality>{_QUALITY})(?P<noun>alert|detection|incident|case)\b(?!['’]s\b)"
    rf"(?P<link>\s+(?:of|in|on|for|from|naming|involving|that\s+names)\s+(?:the\s+)?"
    rf"(?P<kind>(?:incident|case|host|machine|device|user|account|ip|address)\s+)?(?:#\s?)?(?P<thing>{_THING}))?",
    re.IGNORECASE,
)
_INCIDENT_OF = re.compile(
    r"\b(?:the\s+)?(?:incident|case)\s+(?:of|for|behind|with|holding|that\s+(?:holds|has|contains))\s+(?:the\s+)?alert\s+"
    r"(?P<id>[0-9a-z{}-]{8,60})",
    re.IGNORECASE,
)
_SHOWS_IT = frozenset(
    word_list("show list give me us what which is was the a an please display tell see get whats are there of in s any")
)
_ALERT_ID = re.compile(r"(?:[a-z]{2})?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2}\d{6,24}_-?\d{1,12}", re.I)
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class FirstStep:
    """`plan` finds the thing that stands at `[begin, end)` of `text`, the question without its time."""

    plan: Plan
    text: str
    begin: int
    end: int

    @property
    def finds_alert(self) -> bool:
        """True for an alert, False for an incident."""
        return self.plan.view is View.ALERTS

    def then(self, found: ToolRun) -> str | None:
        """The question about the row that was found; None if there is none, or one whose id has another shape."""
        row = found.rows[0] if found.rows else {}
        reference = str(row.get("alert_id" if self.finds_alert else "number") or "")
        if not (_ALERT_ID if self.finds_alert else _NUMBER).fullmatch(reference):
            return None
        kind = "alert" if self.finds_alert else "incident"
        return of_its_incident(f"{self.text[: self.begin]}{kind} {reference}{self.text[self.end :]}")


def of_its_incident(text: str) -> str:
    """ "The incident of alert X" is the incident X: an alert's id names its incident too."""
    return _INCIDENT_OF.sub(lambda match: f"incident {match['id']}", text)


def first_step(reading: Reading, now: Now) -> FirstStep | None:
    """What has to be found before the question can be asked; None if the question is about nothing such."""
    text = reading.text
    if reading.window is not None:
        text = read_time_in_its_zone(text, now).rest
    match = _INNER.search(text)
    if match is None or reading.time_question is not None or reading.other_time:
        return None
    linked = match["thing"] is not None and not _is_word(match["thing"])
    end = match.end() if linked else match.start("link") if match["link"] else match.end()
    around = re.findall(r"[a-z]+", f"{text[: match.start()]} {text[end:]}".lower())
    if all(word in _SHOWS_IT for word in around) or (match["whose"] and _is_word(match["whose"])):
        return None
    inner = replace(read_question(_spelled(match, linked=linked), now), window=reading.window)
    order = "newest" if re.fullmatch(_NEWEST, match["order"], re.IGNORECASE) else "oldest"
    if match["noun"].lower() in ("alert", "detection"):
        arguments = dict(alert_filters(inner))
        if inner.incidents:
            arguments["incident"] = inner.incidents[0]
        view, tool = View.ALERTS, "query_alerts"
    else:
        arguments = dict(incident_filters(inner))
        view, tool = View.INCIDENTS, "query_incidents"
    call = PlannedCall(tool, {**arguments, "order": order, "limit": 1})
    return FirstStep(Plan(view=view, calls=(call,)), text, match.start(), end)


def say_found(writer: AnswerWriter, step: FirstStep, found: ToolRun) -> None:
    """Which row was found, before the answer about it."""
    if step.finds_alert:
        writer.say(
            "The alert that is meant: {}, at {}, of incident {}, id {}.",
            writer.name(found, "/rows/0/name"),
            writer.time(found, event_time(found, "/rows/0")),
            writer.number(found, "/rows/0/incident_number"),
            writer.exact(found, "/rows/0/alert_id"),
        )
    else:
        writer.say(
            "The incident that is meant: {}, {}, created {}.",
            writer.number(found, "/rows/0/number"),
            writer.name(found, "/rows/0/title"),
            writer.time(found, "/rows/0/created_time"),
        )


def _is_word(thing: str) -> bool:
    """True for a word of the grammar, which names nothing ("of last week", "in detail")."""
    return not thing.startswith(('"', "#")) and not thing.isdigit() and is_known(thing)


def _spelled(match: re.Match[str], *, linked: bool) -> str:
    """The inner words as a list would be asked for: "high alerts of incident 55", "alerts on host web-03"."""
    thing = match["whose"] or (match["thing"] if linked else "") or ""
    kind = (match["kind"] or "") if linked else ""
    number = thing.lstrip("#")
    if number.isdigit():
        kind = "incident "
    plural = "alerts" if match["noun"].lower() in ("alert", "detection") else "incidents"
    of = f" {'of' if kind.strip() in ('incident', 'case') else 'naming'} {kind}{number}" if thing else ""
    return f"{match['quality']}{plural}{of}"
