"""From a reading and the conversation to a decision: which tool with which arguments, or a question back.

Cues propose an intent, constraints decide: an incident's number, a named thing, an entity kind without a value. A
reading that fits two intents, or none, is asked back with the alternatives. Nothing that a row says reaches this code:
it sees the person's words, the conversation's references and the templates' own descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.conversation import Conversation, ListItem
from sentinel_rag.agent.offline import cues, filters, follow_up, names, outside, subjects, template_match
from sentinel_rag.agent.offline.arguments import alert_filters, entity_argument, incident_filters, window_arguments
from sentinel_rag.agent.offline.attributes import attribute_of, attributes_asked, is_search
from sentinel_rag.agent.offline.moments import Now
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.plan import Ask, Decision, NeedTemplates, Plan, PlannedCall, View
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.offline.template_match import Template
from sentinel_rag.contracts.json_values import JsonValue

_RUNS = re.compile(r"\W*(?:please\s+|pls\s+|can\s+you\s+)?(?:run|execute|start|use)\b", re.IGNORECASE)
SURE = 0.45
"""Score from which a template is preferred to looking through alerts, where the words fit both."""

ALTERNATIVES = (
    "List the incidents still open, newest first",
    "Show the newest alerts",
    "What happened in the last 24 hours?",
    "What can you do?",
)


def decide(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None, now: Now) -> Decision:
    """The decision for one question. `templates` is None while their list was not fetched."""
    fixed = outside.outside_reply(reading, turn=conversation.turns)
    if fixed is not None:
        return fixed
    if reading.time_question is not None:
        question = reading.time_question
        return Ask(
            question.sentence,
            tuple(reading.text.replace(question.said, other) for other in question.replacements if question.said),
        )
    if reading.severity.question:
        return Ask(reading.severity.question)
    if outside.wants_sample(reading.text):
        return _sample(reading, conversation, templates, now)
    accepted = follow_up.accepted_offer(reading, conversation)
    if accepted is not None:
        return accepted
    search = is_search(reading) and not reading.has(cues.TEMPLATES)
    subject = subjects.subject_of(reading, conversation)
    if search and (isinstance(subject, Ask) or not subject.kind):
        if reading.has(cues.LOGS) and templates is None:
            return NeedTemplates()
        logs = _template(reading, templates, floor=SURE) if templates and reading.has(cues.LOGS) else None
        return logs or _search(reading)
    if isinstance(subject, Ask):
        return subject
    if search and subject.kind == "incident" and _describes(reading):
        return _search(reading, subject.incidents)
    refined = follow_up.refine(reading, conversation)
    if refined is not None:
        return refined
    if _foreign(reading):
        return Ask("I understand questions in English only. Did you mean one of these?", ALTERNATIVES)
    return _plan(reading, conversation, subject, templates)


def _foreign(reading: Reading) -> bool:
    """True if most of a question is words that the grammar does not know: its sense would be guessed."""
    if reading.has(rf"{cues.SUMMARY}|{cues.TREND}|{cues.TOP}|{cues.TABLES}"):
        return False
    unknown = len(reading.unknown_words)
    return unknown >= 3 and unknown >= 0.6 * len(reading.words) and not any(name.quoted for name in reading.names)


def _describes(reading: Reading) -> bool:
    """True if words tell one alert of an incident from the others ("which URL was clicked"), False for "which URLs are
    involved"."""
    attribute = attribute_of(reading)
    acts = reading.has(
        r"click\w*|ran|run|launch\w*|execut\w*|download\w*|drop\w*|used|open\w*|access\w*|sent|creat\w*|visit\w*"
    )
    return bool((attribute is not None and attribute.deep) or reading.unknown_words or acts)


def _sample(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None, now: Now) -> Decision:
    """Asked for invented data: says why not, then asks the same of the real rows."""
    real = read_question(outside.without_sample_words(reading.text), now)
    decision = decide(real, conversation, templates, now) if not outside.wants_sample(real.text) else None
    if not isinstance(decision, Plan):
        decision = Plan(view=View.INCIDENTS, calls=(PlannedCall("query_incidents"),), reading=real)
    return replace(decision, opening=(outside.SAMPLE_SENTENCE, *decision.opening))


def _plan(
    reading: Reading, conversation: Conversation, subject: Subject, templates: Sequence[Template] | None
) -> Decision:
    incident_noun, alert_noun = reading.has(cues.INCIDENT), reading.has(cues.ALERT)
    if subject.kind == "around":
        return _around(reading, subject)
    if not subject.kind and not reading.names:
        if reading.has(cues.TEMPLATES) and not alert_noun and not _RUNS.match(reading.text):
            return Plan(view=View.TEMPLATES, calls=(PlannedCall("list_kql_templates"),), reading=reading)
        if reading.has(cues.EXTENT) or (reading.has(cues.TABLES) and not alert_noun and not incident_noun):
            return Plan(view=View.TABLES, calls=(PlannedCall("list_tables"),), reading=reading)
    if reading.has(cues.COMPARE) and len(subject.incidents) < 2:
        return _summary(reading)
    if subject.kind == "incident":
        return _about_incident(reading, subject)
    if subject.kind == "alert":
        return _about_alert(reading, subject)
    if subject.kind == "entity":
        return _alerts(reading, entity=subject.item)
    trend = reading.has(cues.TREND)
    kinds = cues.kinds_named(reading)
    counted_kind = reading.has(cues.COUNT) and kinds and not incident_noun and not alert_noun
    if (
        (reading.has(cues.TOP) or counted_kind)
        and kinds
        and not reading.names
        and not (incident_noun and reading.order == "severity")
    ):
        return _top(reading, kinds[0])
    if trend and not (reading.names and not alert_noun):
        return _trend(reading, incident_noun=incident_noun and not alert_noun)
    if not incident_noun and not alert_noun:
        early = _by_logs(reading, templates)
        if early is not None:
            return early
        if reading.has(cues.SUMMARY) and not reading.names:
            return _summary(reading)
    if reading.has(cues.GROUPED):
        if templates is None:
            return NeedTemplates()
        grouped = _template(reading, templates, floor=SURE)
        if grouped is not None:
            return grouped
    if alert_noun and not (
        incident_noun and reading.has(rf"(?:{cues.INCIDENT})\s+(?:with|that|which|has|have|holds?)")
    ):
        return _alerts(reading)
    if incident_noun:
        return _incidents(reading)
    if reading.names:
        return _alerts(reading)
    if reading.tactic:
        return _alerts(reading)
    return _last_resort(reading, conversation, templates)


def _about_incident(reading: Reading, subject: Subject) -> Decision:
    asked = cues.aspects_of(reading)
    attribute = attribute_of(reading)
    lists_alerts = reading.has(cues.ALERT) and "alert_count" not in asked
    if reading.has(cues.ANALYSIS):
        return _details(reading, subject, View.ANALYSIS, ())
    describing = [word for word in reading.unknown_words if len(word) > 3]
    if attribute is not None and (attribute.deep or reading.names or describing):
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in subject.incidents
        )
        return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))
    if reading.tactic is not None or (lists_alerts and not reading.has(r"(?:which|what|whose)\s+incident")):
        filters_ = alert_filters(reading)
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, **filters_}) for reference in subject.incidents
        )
        view = View.ALERT_COUNT if reading.has(cues.COUNT) else View.ALERTS
        return Plan(view=view, calls=calls, reading=reading)
    if reading.names and attribute is None:
        calls = tuple(
            PlannedCall("query_alerts", {"incident": reference, **entity_argument(reading)})
            for reference in subject.incidents
        )
        return Plan(view=View.ALERTS, calls=calls, reading=reading)
    if attribute is not None and not asked:
        return _details(reading, subject, View.INCIDENT, tuple(f"entities:{kind}" for kind in attribute.kinds))
    if not asked and reading.has(rf"{cues.ENTITIES}|involved|affected"):
        return _details(reading, subject, View.INCIDENT, ("entities:",))
    if subject.reference_asked:
        asked = ("ids",)
    elif reading.has(r"about|explain|describe|details?|more|summar\w+"):
        asked = ()
    return _details(reading, subject, View.INCIDENT, asked)


def _details(reading: Reading, subject: Subject, view: View, aspects: tuple[str, ...]) -> Plan:
    calls = tuple(PlannedCall("get_incident_detail", {"incident": reference}) for reference in subject.incidents)
    return Plan(view=view, calls=calls, reading=reading, aspects=aspects)


def _about_alert(reading: Reading, subject: Subject) -> Decision:
    attribute = attribute_of(reading)
    item = subject.item
    assert item is not None
    reference = item.incident or item.value
    aspects: tuple[str, ...] = ()
    if reading.has(cues.BELONGS):
        aspects = ("incident",)
    elif attribute is not None and not reading.has(r"when|what\s+time|severity|status"):
        aspects = (f"attribute:{attribute.label}",)
    if reading.has(cues.BELONGS):
        reference = item.value
    return Plan(
        view=View.ALERT,
        calls=(PlannedCall("get_incident_detail", {"incident": reference}),),
        reading=reading,
        aspects=aspects,
        alert_id=item.value,
    )


def _around(reading: Reading, subject: Subject) -> Decision:
    assert subject.window is not None
    around = replace(reading, window=subject.window, around=None, items=(), that="")
    if reading.has(cues.INCIDENT) and not reading.has(cues.ALERT):
        return _incidents(around)
    return _alerts(around)


def _alerts(reading: Reading, entity: ListItem | None = None) -> Decision:
    arguments: dict[str, JsonValue] = dict(alert_filters(reading))
    if entity is not None:
        arguments["entity"] = entity.value
        if entity.entity_kind:
            arguments["entity_kind"] = entity.entity_kind
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    calls: tuple[PlannedCall, ...] = (PlannedCall("query_alerts", arguments),)
    if reading.status in ("open", "active"):
        opening += ("Alerts have no status Open. New and InProgress are not settled yet, so I asked for both.",)
        calls = tuple(PlannedCall("query_alerts", {**arguments, "status": status}) for status in ("New", "InProgress"))
    view = View.ALERT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.ALERTS
    return Plan(view=view, calls=calls, reading=reading, opening=opening)


def _incidents(reading: Reading) -> Decision:
    if reading.owner.mine:
        return Ask(
            "I do not know your name in Sentinel. Whose incidents do you want, for example by the owner's address?"
        )
    arguments = dict(incident_filters(reading))
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    if reading.tactic is not None:
        opening += ("Incidents cannot be filtered by tactic, so I looked for its name in their titles.",)
    title = arguments.get("title_contains")
    if title and reading.has(r"the\s+(?:\S+\s+){0,4}(?:incident|case)") and not reading.has(cues.COUNT):
        return Plan(
            view=View.INCIDENT,
            calls=(PlannedCall("query_incidents", arguments),),
            reading=reading,
            aspects=cues.aspects_of(reading),
            opening=opening,
        )
    if reading.names and not title:
        return _alerts(reading)
    if reading.has(r"(?:the\s+)?(?:most|highest\s+number\s+of|many)\s+alerts"):
        call = PlannedCall("query_incidents", {**arguments, "limit": 100})
        return Plan(view=View.INCIDENTS, calls=(call,), reading=reading, aspects=("most_alerts",))
    view = View.INCIDENT_COUNT if reading.has(cues.COUNT) and not reading.limit else View.INCIDENTS
    if reading.owner.nobody:
        arguments["limit"] = 100
    return Plan(
        view=view,
        calls=(PlannedCall("query_incidents", arguments),),
        reading=reading,
        opening=opening,
        unowned=reading.owner.nobody,
    )


def _trend(reading: Reading, *, incident_noun: bool) -> Decision:
    arguments: dict[str, JsonValue] = {**window_arguments(reading), **reading.severity.arguments()}
    interval = cues.interval_of(reading)
    if interval is not None:
        arguments["interval"] = interval
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    if incident_noun:
        return Ask(
            "I can count alerts over time, not incidents. Which of these do you want?",
            ("Show the trend of alerts per day", "List the incidents, newest first"),
        )
    if reading.names:
        opening += ("The trend counts all alerts; it cannot be narrowed to one name.",)
    return Plan(view=View.TREND, calls=(PlannedCall("get_alert_trend", arguments),), reading=reading, opening=opening)


def _top(reading: Reading, kind: str) -> Decision:
    arguments: dict[str, JsonValue] = {"kind": kind, **window_arguments(reading), **reading.severity.arguments()}
    if reading.limit is not None:
        arguments["limit"] = reading.limit
    opening: tuple[str, ...] = (reading.severity.note,) if reading.severity.note else ()
    return Plan(view=View.TOP, calls=(PlannedCall("get_top_entities", arguments),), reading=reading, opening=opening)


def _summary(reading: Reading) -> Decision:
    call = PlannedCall("get_threat_summary", window_arguments(reading))
    return Plan(view=View.SUMMARY, calls=(call,), reading=reading)


def _by_logs(reading: Reading, templates: Sequence[Template] | None) -> Decision | None:
    """A template, if the question is about raw logs; None if it is not, or none fits."""
    if not reading.has(cues.LOGS) and not reading.has(r"run|templates?|who\s+changed|resources?"):
        return None
    if templates is None:
        return NeedTemplates()
    return _template(reading, templates, floor=template_match.THRESHOLD)


def _search(reading: Reading, incidents: Sequence[str] = ()) -> Plan:
    """Look for the alert that the words describe: in the incidents named, else among the newest and oldest alerts."""
    calls = tuple(PlannedCall("query_alerts", {"incident": reference, "limit": 100}) for reference in incidents) or (
        PlannedCall("query_alerts", {**window_arguments(reading), "limit": 100}),
        PlannedCall("query_alerts", {**window_arguments(reading), "order": "oldest", "limit": 100}),
    )
    return Plan(view=View.ATTRIBUTE, calls=calls, reading=reading, aspects=_labels(reading))


def _labels(reading: Reading) -> tuple[str, ...]:
    return tuple(attribute.label for attribute in attributes_asked(reading))


def _template(reading: Reading, templates: Sequence[Template], *, floor: float) -> Decision | None:
    matches = template_match.rank(reading, templates)
    if not matches or matches[0].score < floor:
        return None
    best = matches[0]
    close = [match for match in matches[1:3] if best.score < 1 and best.score - match.score < template_match.MARGIN]
    filled = template_match.fill(best.template, reading)
    if close:
        fitting = [match for match in (best, *close) if not template_match.fill(match.template, reading).missing]
        if len(fitting) == 1:
            best, filled = fitting[0], template_match.fill(fitting[0].template, reading)
        else:
            return Ask(
                "More than one query could answer that. Which one do you want?",
                tuple(f"Run the template {match.name} on: {reading.text}" for match in (best, *close)),
            )
    if filled.missing:
        wanted = " and ".join(str(spec.get("name", "")).replace("_", " ") for spec in filled.missing)
        described = " ".join(str(spec.get("description", "")) for spec in filled.missing)
        sentence = f"The query {best.name} needs a value for {wanted}. {described} Which one?".replace("  ", " ")
        return Ask(sentence, pending=f"run the template {best.name} on {reading.text}")
    others = []
    for match in matches[:6]:
        if match.name != best.name and match.score >= max(floor, 0.6 * best.score):
            parameters = template_match.fill(match.template, reading)
            if not parameters.missing and match.template.get("tables") != best.template.get("tables"):
                others.append(_kql_call(match.name, parameters, reading))
    call = _kql_call(best.name, filled, reading)
    return Plan(view=View.KQL, calls=(call,), reading=reading, others=tuple(others[:2]))


def _kql_call(name: str, filled: template_match.Filled, reading: Reading) -> PlannedCall:
    arguments: dict[str, JsonValue] = {"template": name}
    if filled.parameters:
        arguments["parameters"] = dict(filled.parameters)
    arguments |= window_arguments(reading)
    if reading.limit is not None:
        arguments["limit"] = reading.limit
    return PlannedCall("run_kql_query", arguments)


def _last_resort(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None) -> Decision:
    if reading.numbers and reading.has(cues.ENTITIES):
        return _details(reading, Subject("incident", reading.numbers[:1]), View.INCIDENT, ("entities:",))
    if reading.numbers and cues.aspects_of(reading):
        return _details(reading, Subject("incident", reading.numbers[:1]), View.INCIDENT, cues.aspects_of(reading))
    attribute = attribute_of(reading)
    if attribute is not None and len(reading.words) >= 4:
        return _search(reading)
    if len(reading.words) == 1 and reading.unknown_words and len(reading.words[0]) >= 4:
        return _alerts(replace(reading, names=(NameSlot(reading.words[0], shaped=False),), words=()))
    late = names.read_name_after_preposition(reading.rest)
    if late.names:
        return _alerts(replace(reading, names=late.names, rest=late.rest, words=()))
    if len(reading.words) >= 2 or reading.has(cues.LOGS):
        if templates is None:
            return NeedTemplates()
        found = _template(reading, templates, floor=template_match.THRESHOLD)
        if found is not None:
            return found
    if reading.numbers:
        number = reading.numbers[0]
        return Ask(
            "What do you want to know about that number?",
            (
                f"What is incident {number} about?",
                f"Show the alerts of incident {number}",
                f"Show the newest {number} alerts",
            ),
        )
    if reading.severity.arguments() or reading.status or reading.window or reading.order or reading.limit:
        said = reading.text.rstrip("?.! ")
        return Ask("Do you mean incidents or alerts?", (f"Incidents: {said}", f"Alerts: {said}"))
    kinds = cues.kinds_named(reading)
    if kinds:
        return Ask(
            "What do you want to know about them?",
            (f"Top {kinds[0]}s by distinct alerts", *ALTERNATIVES[:2]),
        )
    return Ask("I did not understand that well enough to query anything. Did you mean one of these?", ALTERNATIVES)


def filters_note(reading: Reading) -> str:
    """The older product name, for a second look when the present one finds nothing."""
    return filters.older_product_name(reading.product) if reading.product else ""
