"""From a reading and the conversation to a decision: which tool with which arguments, or a question back.

Cues propose an intent, constraints decide: an incident's number, a named thing, an entity kind without a value. A
reading that fits two intents, or none, is asked back with the alternatives. Nothing that a row says reaches this code:
it sees the person's words, the conversation's references and the templates' own descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import cues, follow_up, names, outside, subjects, template_match
from sentinel_rag.agent.offline.alert_order import order_plan
from sentinel_rag.agent.offline.among_shown import among_shown
from sentinel_rag.agent.offline.attribute_catalogue import HASHES, IDENTITIES
from sentinel_rag.agent.offline.attributes import attribute_of, is_search
from sentinel_rag.agent.offline.classified import classifications_said, classified_plan
from sentinel_rag.agent.offline.comparison_plans import comparison_plan
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.dropped_filters import with_dropped_said
from sentinel_rag.agent.offline.event_plans import events_plan
from sentinel_rag.agent.offline.exclusions import exclusion_plan
from sentinel_rag.agent.offline.incident_plans import ACTS, detail_plan, incident_plan
from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.period_comparisons import period_comparison
from sentinel_rag.agent.offline.plan import Decision, NeedTemplates
from sentinel_rag.agent.offline.qualifiers import TECHNIQUES
from sentinel_rag.agent.offline.query_plans import (
    alert_plan,
    alerts_plan,
    around_plan,
    incidents_plan,
    priority_plan,
    summary_plan,
    top_plan,
    trend_plan,
)
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.sample_wishes import SAMPLE_SENTENCE, wants_sample, without_sample_words
from sentinel_rag.agent.offline.schema_plans import schema_plan
from sentinel_rag.agent.offline.search_plans import alert_field_plan, keyword_plan, property_plan, search_plan
from sentinel_rag.agent.offline.subjects import Subject
from sentinel_rag.agent.offline.template_match import ALL_TEMPLATES, Template
from sentinel_rag.agent.offline.template_plans import SURE, logs_plan, template_plan
from sentinel_rag.agent.offline.unanswerable import unanswerable
from sentinel_rag.agent.offline.vocabulary import KIND_WORDS
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.language.times.kinds import Now

_RUNS = re.compile(r"\W*(?:please\s+|pls\s+|can\s+you\s+)?(?:run|execute|start|use)\b", re.IGNORECASE)
ALTERNATIVES = (
    "List the incidents still open, newest first",
    "Show the newest alerts",
    "What happened in the last 24 hours?",
    "What can you do?",
)


_ASKS_ADVICE = re.compile(
    r"\W*(?:should|shall|do\s+you\s+think)\s+(?:i|we)?\s*(?:should\s+)?"
    r"(?:close|reopen|assign|escalate|resolve|dismiss|ignore|worry|lower|raise|downgrade)\b",
    re.IGNORECASE,
)
_NOT_MINE = "Whether to do that is for a person to decide. This is what is recorded:"


def decide(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None, now: Now) -> Decision:
    """The decision for one question. `templates` is None while their list was not fetched."""
    decision = _decide(reading, conversation, templates, now)
    return with_dropped_said(decision) if isinstance(decision, Plan) else decision


def _decide(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None, now: Now) -> Decision:
    fixed = outside.outside_reply(reading, turn=conversation.turns)
    if fixed is not None:
        return fixed
    described = schema_plan(reading)
    if described is not None:
        return described
    if reading.time_question is not None:
        question = reading.time_question
        return Ask(
            question.sentence,
            tuple(reading.text.replace(question.said, other) for other in question.replacements if question.said),
        )
    against_before = period_comparison(reading, conversation, now)
    if against_before is not None:
        return against_before
    unanswered = unanswerable(reading, conversation)
    if unanswered is not None:
        return unanswered
    compared = comparison_plan(reading)
    if compared is not None:
        return compared
    classified = classified_plan(reading, conversation)
    if classified is not None:
        return classified
    excluded = exclusion_plan(reading, conversation, now)
    if excluded is not None:
        return excluded
    among = among_shown(reading, conversation)
    if among is not None:
        return among
    if reading.severity.question:
        return Ask(reading.severity.question)
    inexpressible = _inexpressible(reading)
    if inexpressible is not None:
        return inexpressible
    if wants_sample(reading.text):
        return _sample(reading, conversation, templates, now)
    accepted = follow_up.accepted_offer(reading, conversation)
    if accepted is not None:
        return accepted
    reading = _with_plain_name(reading)
    if _ASKS_ADVICE.match(reading.text):
        numbers = reading.incidents or reading.guids or reading.numbers[:1]
        if numbers:
            facts = detail_plan(reading, Subject("incident", numbers), View.INCIDENT, ())
            return replace(facts, opening=(_NOT_MINE,))
    search = is_search(reading) and not reading.has(cues.TEMPLATES)
    subject = subjects.subject_of(reading, conversation)
    behind = None if isinstance(subject, Ask) else events_plan(reading, subject)
    if behind is not None:
        return behind
    neighbour = None if isinstance(subject, Ask) else order_plan(reading, subject.incidents)
    if neighbour is not None:
        return neighbour
    if search and (isinstance(subject, Ask) or not subject.kind) and not _plain_property(reading):
        if reading.has(cues.LOGS) and templates is None:
            return NeedTemplates()
        logs = template_plan(reading, templates, floor=SURE) if templates and reading.has(cues.LOGS) else None
        return logs or search_plan(reading)
    if isinstance(subject, Ask):
        return subject
    if search and subject.kind == "incident" and _describes(reading):
        return search_plan(reading, subject.incidents)
    if not subject.kind and _asks_priority(reading):
        return priority_plan(reading)
    refined = follow_up.refine(reading, conversation)
    if refined is not None:
        return refined
    nothing_named = not (subject.kind or reading.names or reading.things or reading.incidents)
    if nothing_named and reading.has(r"(?:for|on|from|about|naming|involving)\s+(?:those|these|them)"):
        return Ask("Which ones do you mean? Name them, or ask for a list first.", ALTERNATIVES[:2])
    if _foreign(reading):
        return Ask("I did not understand that question. Did you mean one of these?", ALTERNATIVES, lost=True)
    return _plan(reading, conversation, subject, templates)


_NO_ROWS = r"(?:top|first|last|latest|newest|oldest|only|show|list|limit(?:\s+to)?)\s+(?:me\s+)?(?:0|zero)"
_LEAVES_OUT = re.compile(
    r"\b(?:except|excluding|exclude|apart\s+from|other\s+than)\b|\bnot(?:\s{3,}|\s+(?:in|on|from|by|of|for|to|"
    r"assigned|owned|naming|involving|part)\b)|\bwithout\s{3,}",
    re.IGNORECASE,
)


def _inexpressible(reading: Reading) -> Ask | None:
    """A question back for what no tool can do: no rows at all, or everything but a named thing."""
    if reading.has(_NO_ROWS):
        return Ask("No rows would be no answer. How many do you want to see, from one up?")
    names = reading.names or reading.incidents or reading.owner.name or reading.product or reading.tactic
    if reading.other_time and not reading.has(cues.COMPARE):
        return Ask(
            f"The question names more than one time, “{plain(reading.other_time)}” beside another. Ask about one of "
            "them, or from one to the other."
        )
    if names and _LEAVES_OUT.search(reading.rest):
        return Ask(
            "The tools filter by what is there and cannot leave a named thing out. Ask for everything, or for what you "
            "do want, such as one incident, host or owner."
        )
    return None


def _foreign(reading: Reading) -> bool:
    """True if most of a question is words that the grammar does not know: its sense would be guessed."""
    if reading.has(rf"{cues.SUMMARY}|{cues.TREND}|{cues.TOP}|{cues.TABLES}|{cues.LOGS}|{cues.TEMPLATES}"):
        return False
    unknown = len(reading.unknown_words)
    if any(technique in reading.core.lower() for technique in TECHNIQUES):
        return False
    return unknown >= 3 and unknown >= 0.6 * len(reading.words) and not any(name.quoted for name in reading.names)


def _describes(reading: Reading) -> bool:
    """True if words tell one alert of an incident from the others ("which URL was clicked"), False for "which URLs are
    involved"."""
    attribute = attribute_of(reading)
    deep = attribute is not None and attribute.deep and not reading.has(rf"(?:{_ALL_OF})\b")
    told = len(reading.words) >= _TOLD and not reading.has(_ALL_OF)
    return bool(deep or told or reading.unknown_words or reading.has(ACTS))


_TOLD = 12
"""Words from which on a question tells a story, and asks for one thing of it."""
_ALL_OF = r"list|all|every|which\s+(?:file\s+)?hashes"


def _plain_property(reading: Reading) -> bool:
    """True for "which address did user X use": a property, a name and nothing that describes an alert."""
    describing = [word for word in reading.unknown_words if len(word) > 3]
    return bool(reading.names) and not describing and len(reading.words) <= 9 and property_plan(reading) is not None


def _with_plain_name(reading: Reading) -> Reading:
    """The reading with the one word that the grammar does not know as a name: "the sid of bjenkins".

    Only where a property is asked for, or alerts are counted in an incident, so that words of titles stay words.
    """
    unknown = reading.unknown_words
    counted = bool(reading.incidents) and reading.has(
        rf"{cues.COUNT}|appear\w*|touch\w*|involved|part|seen|affected|mentioned|named"
    )
    if reading.names or len(unknown) != 1 or len(reading.words) > 9 or unknown[0] in TECHNIQUES:
        return reading
    if reading.has(cues.TOP) or not (counted or attribute_of(reading) is not None):
        return reading
    late = names.read_plain_name(reading.rest)
    asked = attribute_of(reading)
    if not late.names and len(reading.words) <= 3 and asked is not None and asked.label in IDENTITIES | HASHES:
        late = names.read_word(reading.rest, unknown[0])
    if not late.names or late.names[0].value.lower() != unknown[0]:
        return reading
    words = tuple(word for word in reading.words if word != unknown[0])
    return replace(reading, names=late.names, rest=late.rest, words=words)


def _asks_priority(reading: Reading) -> bool:
    """True for "what should I look at first": neither a thing nor a list of alerts is named."""
    return reading.has(cues.PRIORITY) and not reading.names and not reading.has(cues.ALERT) and not reading.things


def _sample(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None, now: Now) -> Decision:
    """Asked for invented data: says why not, then asks the same of the real rows."""
    real = read_question(without_sample_words(reading.text), now)
    decision = decide(real, conversation, templates, now) if not wants_sample(real.text) else None
    if not isinstance(decision, Plan):
        decision = Plan(view=View.INCIDENTS, calls=(PlannedCall("query_incidents"),), reading=real)
    return replace(decision, opening=(SAMPLE_SENTENCE, *decision.opening))


def _plan(
    reading: Reading, conversation: Conversation, subject: Subject, templates: Sequence[Template] | None
) -> Decision:
    incident_noun, alert_noun = reading.has(cues.INCIDENT), reading.has(cues.ALERT)
    if subject.kind == "around":
        return around_plan(reading, subject)
    if not subject.kind and not reading.names:
        if reading.has(cues.TEMPLATES) and not alert_noun and not _RUNS.match(reading.text):
            return Plan(view=View.TEMPLATES, calls=(PlannedCall("list_kql_templates", ALL_TEMPLATES),), reading=reading)
        metered = reading.has(cues.INGESTION) and not alert_noun and not incident_noun
        ingested = logs_plan(reading, templates) if metered else None
        if ingested is not None:
            return ingested
        if reading.has(cues.EXTENT) or (reading.has(cues.TABLES) and not alert_noun and not incident_noun):
            return Plan(view=View.TABLES, calls=(PlannedCall("list_tables"),), reading=reading)
    if reading.has(cues.COMPARE) and len(subject.incidents) < 2 and not classifications_said(reading):
        return summary_plan(reading)
    if subject.kind == "incident":
        return incident_plan(reading, subject)
    if subject.kind == "alert":
        return alert_plan(reading, subject)
    if subject.kind == "entity":
        return alerts_plan(reading, entity=subject.item)
    trend = reading.has(cues.TREND)
    kinds = cues.kinds_named(reading)
    if not kinds and reading.has("who(?:m)?") and not incident_noun and not alert_noun:
        kinds = ("account",)
    of_kind = reading.has(
        rf"(?:{cues.COUNT})\s+(?:different\s+|distinct\s+|unique\s+|of\s+)*(?:{'|'.join(KIND_WORDS)})"
    )
    counted_kind = reading.has(cues.COUNT) and kinds and (of_kind or not (incident_noun or alert_noun))
    raw = reading.has(cues.RAW) and not incident_noun and not alert_noun and not reading.names
    if raw and (kinds or reading.has(cues.BY)) and not reading.has(r"(?:by|per)\s+(?:day|hour|week)"):
        # Counting alerts instead would answer another question.
        if templates is None:
            return NeedTemplates()
        return template_plan(reading, templates, floor=template_match.THRESHOLD) or Ask(
            "No stored query answers that of the raw logs. Which one comes nearest?",
            ("What queries can you run?", "Top accounts by distinct alerts"),
        )
    if (
        (reading.has(cues.TOP) or counted_kind)
        and kinds
        and not reading.names
        and not (incident_noun and reading.order == "severity")
    ):
        return top_plan(reading, kinds[0])
    if alert_noun and kinds and not reading.names and reading.has(rf"(?:{cues.FOR_EACH})\s+(?:{'|'.join(KIND_WORDS)})"):
        return top_plan(reading, kinds[0])
    if trend and raw:
        if templates is None:
            return NeedTemplates()
        return template_plan(reading, templates, floor=SURE) or Ask(
            "I can count alerts over time, not rows of the raw logs. Which of these do you want?",
            ("Show the trend of alerts per day", "What queries can you run?"),
        )
    if trend and not (reading.names and not alert_noun):
        return trend_plan(reading, incident_noun=incident_noun and not alert_noun)
    if not incident_noun and not alert_noun:
        early = logs_plan(reading, templates)
        if early is not None:
            return early
        if reading.has(_ONLY_IN_LOGS):
            return _no_query(reading)
        if reading.has(cues.SUMMARY) and not reading.names:
            return summary_plan(reading)
    if reading.has(cues.GROUPED):
        if templates is None:
            return NeedTemplates()
        by_people = reading.has(cues.BY_PEOPLE)
        grouped = template_plan(reading, templates, floor=template_match.THRESHOLD if by_people else SURE)
        if grouped is not None:
            return grouped
        if by_people:
            return Ask("No stored query counts that by people. Which of these do you want?", _BY_PEOPLE)
    if reading.has(r"incidents?\s+(?:and|&)\s+alerts?|alerts?\s+(?:and|&)\s+incidents?") and not reading.names:
        return summary_plan(reading)
    fields = alert_field_plan(reading) if not incident_noun else None
    if fields is not None:
        return fields
    asked = property_plan(reading) if not incident_noun and not alert_noun else None
    if asked is not None:
        return asked
    if alert_noun and not (
        incident_noun and reading.has(rf"(?:{cues.INCIDENT})\s+(?:with|that|which|has|have|holds?)")
    ):
        return alerts_plan(reading)
    if incident_noun:
        return incidents_plan(reading)
    if reading.names:
        return alerts_plan(reading)
    if reading.tactic:
        return alerts_plan(reading)
    return _last_resort(reading, conversation, templates)


_ONLY_IN_LOGS = (
    r"(?:sign|log)[\s-]?(?:ins?|ons?)|logged\s+(?:in|on)|signed\s+in|(?:network\s+)?connections?|dns\s+quer(?:y|ies)|failures?|"
    r"e?-?mails?\s+(?:sent|received|delivered|from|to|by)|sent\s+(?:an?\s+|any\s+)?e?-?mails?"
)
"""Rows that no alert stands for; an inbox rule may be an alert's or an incident's matter."""


def _no_query(reading: Reading) -> Ask:
    """Rows of the logs that no stored query gives: what alerts say instead would be another answer."""
    alerts = tuple(f'Show the alerts that name "{plain(name.value)}"' for name in reading.names[:2])
    return Ask(
        "No stored query of the logs answers that as it stands, and alerts would not tell it. Name the account, host "
        "or address that it is about, or choose one of these.",
        (*alerts, "What queries can you run?"),
    )


_BY_PEOPLE = ("List the incidents, newest first", "What queries can you run?")


def _are_joined(reading: Reading) -> bool:
    """True for "who owns 12, 18 and 31": numbers that stand together as a list."""
    joint = r"\s*(?:,\s*and\b|,|\band\b|&|\bor\b)\s*"
    return re.search(joint.join(map(re.escape, reading.numbers)), reading.core, re.IGNORECASE) is not None


def _says_only_a_state(reading: Reading) -> bool:
    """True for "how many closed today": a filter, no noun and no other word that could find a stored query."""
    others = f"{cues.LOGS}|{cues.RAW}|{cues.BY}|{cues.GROUPED}|{cues.TEMPLATES}|reopen\\w*"
    filters = bool(reading.status or reading.severity.arguments())
    return filters and not reading.unknown_words and not cues.kinds_named(reading) and not reading.has(others)


def _of_what(reading: Reading) -> Ask:
    said = reading.text.rstrip("?.! ")
    return Ask("Do you mean incidents or alerts?", (f"Incidents: {said}", f"Alerts: {said}"), lost=True)


def _last_resort(reading: Reading, conversation: Conversation, templates: Sequence[Template] | None) -> Decision:
    if reading.owner.nobody or reading.owner.name:
        return incidents_plan(reading)  # alerts have no owner
    if reading.has(cues.ANALYSIS) and not reading.unknown_words and not reading.has(cues.SUMMARY):
        return Ask("Which incident do you want analyzed? Give its number, or ask for a list first.", ALTERNATIVES[:1])
    if reading.numbers and reading.has(cues.ENTITIES):
        return detail_plan(reading, Subject("incident", reading.numbers[:1]), View.INCIDENT, ("entities:",))
    if reading.numbers and cues.aspects_of(reading):
        numbers = reading.numbers if _are_joined(reading) else reading.numbers[:1]
        return detail_plan(reading, Subject("incident", numbers), View.INCIDENT, cues.aspects_of(reading))
    attribute = attribute_of(reading)
    if attribute is not None and len(reading.words) >= 4:
        return search_plan(reading)
    unknown = reading.unknown_words
    if len(unknown) == 1 and len(unknown[0]) >= 4 and 2 <= len(reading.words) <= 3:
        return alerts_plan(replace(reading, names=(NameSlot(unknown[0], shaped=False),), rest="", words=()))
    by_technique = any(technique in reading.core.lower() for technique in TECHNIQUES) and len(reading.words) <= 4
    only_unknown = len(reading.words) <= 3 and len(unknown) == len(reading.words) and not reading.has(cues.LOGS)
    alone = by_technique or only_unknown
    if unknown and len(unknown[0]) >= 3 and (alone or reading.text.lower().strip(" .?!") in TECHNIQUES):
        return keyword_plan(reading)
    late = names.read_name_after_preposition(reading.rest)
    if late.names:
        return alerts_plan(replace(reading, names=late.names, rest=late.rest, words=()))
    if _says_only_a_state(reading):
        return _of_what(reading)
    if len(reading.words) >= 2 or reading.has(cues.LOGS):
        if templates is None:
            return NeedTemplates()
        found = template_plan(reading, templates, floor=template_match.THRESHOLD)
        if found is not None:
            return found
    if unknown and len(reading.words) <= 3 and not reading.has("the|an?|this|that"):
        return keyword_plan(reading)
    if reading.numbers:
        number = reading.numbers[0]
        return Ask(
            "What do you want to know about that number?",
            (
                f"What is incident {number} about?",
                f"Show the alerts of incident {number}",
                f"Show the newest {number} alerts",
            ),
            lost=True,
        )
    if reading.severity.arguments() or reading.status or reading.window or reading.order or reading.limit:
        return _of_what(reading)
    kinds = cues.kinds_named(reading)
    if kinds:
        return Ask(
            "What do you want to know about them?",
            (f"Top {kinds[0]}s by distinct alerts", *ALTERNATIVES[:2]),
        )
    return Ask(
        "I did not understand that well enough to query anything. Did you mean one of these?", ALTERNATIVES, lost=True
    )
