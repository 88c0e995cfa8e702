"""What a question wants of playbooks and past incidents, read from its words: like an incident, by words, what to do.

Reads the question and what its references stand for; it knows no tool and no result. The words "playbook", "similar"
and "before" alone decide nothing: alerts, hosts and lists of the workspace keep their questions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.knowledge.first_steps import asks_where_to_begin, without_asking
from sentinel_rag.agent.offline.knowledge.phases import phase_asked
from sentinel_rag.agent.offline.knowledge.said_otherwise import as_playbooks_say
from sentinel_rag.agent.offline.knowledge.topics import filters_of, topic_of
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.references.wording import INCIDENT_SAID, mask
from sentinel_rag.agent.things import INCIDENT
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.times.kinds import Now


class Sought(StrEnum):
    """What is looked for."""

    PAST = "past"
    CLOSED = "closed"
    PLAYBOOK = "playbook"
    STEPS = "steps"
    CATALOGUE = "catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeWish:
    """`incident` is what PAST, CLOSED and STEPS are about, empty for a `topic` in words; `phase` is the phase of the
    response that is asked for. `filters` are arguments of the search; `remarks` say what it cannot filter by. `whole`
    asks which playbook is for it, and not for one thing in it; `done` asks what was done about the incident; `names`
    are the hosts, accounts and the like that past incidents must name; `still_open` wants those that are not closed."""

    sought: Sought
    topic: str = ""
    incident: str = ""
    phase: str = ""
    filters: Mapping[str, JsonValue] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    whole: bool = False
    done: bool = False
    names: tuple[str, ...] = ()
    still_open: bool = False


_INC = r"(?:incidents?|incs?|cases?|tickets?)"
_PLAYBOOK = re.compile(
    r"\b(?:play\s?books?|run\s?books?|sops?|(?:operating|response|handling|incident)\s+(?:procedures?|guides?|plans?|"
    r"instructions)|procedures?(?=\s+(?:for|to|when|if|on|about|in\s+case|say|tell|recommend)\b)|"
    r"(?<=the\sprocedure\s)for)\b",
    re.IGNORECASE,
)
_AUTOMATION = re.compile(
    r"\b(?:play\s?books?|run\s?books?|procedures?)\s+(?:(?:that|which|have|has|was|were|been|did|already)\s+)*"
    r"(?:ran|run|runs|executed?|triggered|fired|started|attached|failed)\b|"
    r"\b(?:run|ran|runs|running|trigger\w*|execut\w*|start\w*|attach\w*)\s+(?:(?:an?|the|any|this|that|which|what|all|our)\s+)*"
    r"(?:[\w-]+\s+)?(?:play\s?books?|run\s?books?)\b|\b(?:automation|logic\s*apps?|azure\s+automation|stored)\b",
    re.IGNORECASE,
)
"""Playbooks that Azure runs, and procedures of a database; nothing of them is in the knowledge base."""
_LISTS = re.compile(
    rf"^\W*(?:(?:please|and|now|ok)\W+)*(?:how\s+many|list|show|count|any|which|newest|latest|top|are\s+there|get|give)\W+"
    rf"(?:(?!like\b|similar\b|past\b|previous\b|play|run)\w+\W+){{0,5}}?(?:alerts?|{_INC}|hosts?|accounts?|users?|events?|logs?|"
    rf"sign-?ins?|detections?|process(?:es)?|files?|connections?|tables?|templates?|queries)\b",
    re.IGNORECASE,
)
_CATALOGUE = re.compile(
    r"^\W*(?:(?:please|and|ok)\W+)*(?:(?:which|what|list|show|name|how\s+many|give)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:(?:the|our|your|my)\s+)?"
    r"(?:available\s+|known\s+|response\s+)?(?:play\s?books?|run\s?books?)|"
    r"(?:do|have)\s+(?:we|you|i)\s+(?:have\s+|got\s+)?(?:any\s+)?(?:play\s?books|run\s?books))"
    r"(?:\s+(?:do|are|is|have|we|you|i|there|got|available|know|in\s+the\s+knowledge\s+base))*\W*$",
    re.IGNORECASE,
)
_PAST = re.compile(
    rf"\b(?:past|historic(?:al)?|bygone)\s+(?:(?:closed|resolved|similar|high|medium|low|severity|security|phishing|"
    rf"ransomware|related|true|false|benign|positive)[\s-]+)*{_INC}\b|\b{_INC}\s+(?:of|in|from)\s+the\s+past\W*$",
    re.IGNORECASE,
)
_FORMER = re.compile(
    rf"\b(?:previous|prior|earlier|former|older|old)\s+(?:(?:closed|resolved|similar|high|medium|low|severity)\s+)*{_INC}\s+"
    r"(?:that\s+|which\s+)?(?:(?:is|are|was|were|look\w*)\s+)?(?:like|similar|with|about|involv\w+|on|where|were|was|had|resembl\w+|comparable)\b",
    re.IGNORECASE,
)
_SIMILAR = re.compile(
    rf"\b(?:similar|comparable|such|the\s+same\s+(?:kind|sort|type)\s+of|related\s+past)\s+(?:(?:past|previous|prior|earlier|older|old|closed|"
    rf"resolved|known|security|high|medium|low|severity)\s+)*{_INC}\b|"
    rf"\b{_INC}\s+(?:(?:that|which)\s+(?:are|were|is|was|look\w*)\s+)?(?:similar\s+to|resembl\w+|comparable\s+(?:to|with)|"
    rf"just\s+like|like\s+(?=this\b|that\b|it\b|these\b|{_INC}|#|\d|\[|the\s))|"
    rf"\b(?:anything|something|one|ones|what|everything|cases?|more)\s+(?:(?:is|was|are|else|that\s+(?:is|was|looks))\s+)*(?:similar\s+to|like)\s+(?:{_INC}\s*#?\d|#\d|this\b|that\b|it\b)|"
    rf"\blooks?\s+(?:much\s+|a\s+lot\s+)?like\s+(?:{_INC}\s*#?\d|#\d)|"
    rf"\bsimilar\s+to\s+(?:{_INC}\s*#?\d|#\d)|\bresembl\w+\s+(?:{_INC}\s*#?\d|#\d)|"
    rf"^\W*(?:and\s+|or\s+)?(?:(?:ones?|something|anything)\s+)?(?:like|similar\s+to)\s+(?:{_INC}\s*#?\d|#\d)",
    re.IGNORECASE,
)
_SEEN = re.compile(
    rf"\b(?:have|has|had|did|do|was|were|are)\b.{{0,40}}\b(?:seen|see|had|have|happen\w*|occur\w*|encountered?|handled?|dealt|deal|come\s+across|"
    rf"experienced?|know|there)\b.{{0,60}}\b(?:(?:something|anything|one|ones|an?\s+(?:incident|case))\s+(?:like|similar)|similar|like\s+(?:this|that|it|{_INC}))\b|"
    r"\b(?:have|had|did)\s+we\s+(?:ever\s+|already\s+)?(?:had|have|seen|see|handled?|encountered?|dealt|deal)\b.{1,80}\b(?:before|in\s+the\s+past|previously)\W*$|"
    rf"\b(?:have|had)\s+(?:we|you)\b.{{0,60}}\b(?:{_INC}|this|that|it|such)\b.{{0,40}}\b(?:before|in\s+the\s+past|previously)\W*$|"
    rf"\b(?:has|did|have)\s+(?:this|that|it|such\s+(?:a\s+thing|things)|{_INC}\s*#?\d+)\b.{{0,20}}\b(?:happen\w*|occur\w*|been\s+seen)\b.{{0,20}}\b(?:before|in\s+the\s+past|previously)\W*$",
    re.IGNORECASE,
)
_ENDED = (
    r"(?:clos(?:e|ed|ing)|resolv(?:e|ed)|handled?|dealt|deal|solved?|classif(?:y|ied)|respond(?:ed)?|end(?:ed)?|do(?:ne)?|did|fix(?:ed)?|"
    r"contain(?:ed)?|settled?|finish(?:ed)?|turn(?:ed)?\s+out)"
)
_LAST_TIME = (
    r"(?:(?:the\s+)?last\s+times?|(?:the\s+)?previous\s+times?|before|in\s+the\s+past|previously|back\s+then|earlier)"
)
_CLOSED = re.compile(
    rf"\b(?:how|what)\b.{{0,60}}\b{_ENDED}\b.{{0,60}}\b{_LAST_TIME}\b|\b{_LAST_TIME}\b.{{0,60}}\b(?:how|what)\b.{{0,40}}\b{_ENDED}\b|"
    rf"\bhow\b.{{0,40}}\b(?:such|similar|these\s+kinds?\s+of|this\s+kind\s+of|past)\b.{{0,40}}\b{_ENDED}\b|"
    rf"\bhow\b.{{0,30}}\b{_ENDED}\b.{{0,20}}\b(?:such|similar|these\s+kinds?\s+of|this\s+kind\s+of|past)\s+(?:\w+\s+)?{_INC}\b",
    re.IGNORECASE,
)
_RESPONDS = (
    r"(?:contain|respond\s+to|handle|react\s+to|deal\s+with|eradicate|remediate|recover\s+from|recover|isolate|mitigate|stop|triage|proceed|"
    r"clean\s+up|scope|preserve|collect|treat|tackle|approach|go\s+about|investigate|restore|revoke|quarantine)"
)
_STEPS = re.compile(
    r"\bwhat\s+(?:(?:should|shall|must|do|would|can|could)\s+(?:i|we|one)(?:\s+have\s+to)?|to|needs\s+to\s+be|has\s+to\s+be|are\s+we\s+supposed\s+to)\s+(?:do|done)\b"
    r"(?=\s+(?:\w+\s+)?(?:about|with|for|against|when|if|in\s+case|on|after|to)\b|\s*(?:now|next)?\W*$)(?!\s+first)|"
    r"\bnext\s+steps?\b(?!\s+(?:page|rows?))|\b(?:response|containment|eradication|recovery|triage|recommended|suggested)\s+(?:steps?|actions?|measures?|response)\b|"
    rf"\bhow\s+(?:(?:do|should|shall|can|could|would|must)\s+(?:i|we|one|you)|to)\s+(?:best\s+)?{_RESPONDS}\b|\bsteps?\s+(?:to|for)\s+{_RESPONDS}\b|"
    r"\bsteps\s+(?:for|on|against)\b|"
    r"\bwhat\s+(?:do|should|must|shall)\s+(?:i|we)\s+do\s+first\s+"
    r"(?!(?:in|on|at)\s+(?:the|my|this|our)\s+(?:morning|shift|night|day|evening|list|queue)\b)(?:about|with|for|against|when|if|in|on|after|to|during)\b|"
    r"\bshould\s+(?:i|we)\s+(?:pay|isolate|disconnect|shut\s*down|switch\s+off|turn\s+off|power\s+off|unplug|reboot|restart|reimage|rebuild|wipe|negotiate|"
    r"restore|inform|notify|call)\b|"
    r"[,;:.!–-]\s*what\s+(?:now|next|do\s+(?:i|we)\s+do(?:\s+now)?)\W*$|"
    r"\bwhat\s+(?:evidence|traces?|proof|logs?)\s+(?:(?:should|must|shall|do|can)\s+(?:i|we|one)\s+|(?:needs?|has|have)\s+to\s+be\s+|to\s+)(?:keep|kept|preserve\w*|save\w*|secure\w*|collect\w*)\b|"
    rf"^\W*{_RESPONDS}\b.{{0,60}}[\s:,;–-]+how(?:\s+exactly)?\W*$|^\W*(?:and\s+)?how\s+(?:do|should|can)\s+(?:i|we)\s+{_RESPONDS}\b",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"\bwho\s+(?:(?:may|can|must|should|has\s+to|is\s+allowed\s+to|gets?\s+to|needs?\s+to|will|is\s+to)\s+)?(?:decides?|approves?|authori[sz]es?|"
    r"signs?\s+off)\b|\bwho\s+(?:may|can|must|should|is\s+allowed\s+to|gets?\s+to|is\s+to)\s+(?:isolate|disable|block|reset|contain|shut|take|cut|"
    r"delete|revoke|switch|quarantine|pay|tell|inform)\b|\bwhose\s+(?:decision|call)\b|\bwho\s+(?:do|should|must)\s+(?:i|we)\s+(?:inform|tell|notify)\b",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"^\W*(?:(?:and|but|so|ok)\W+)?(?:should|shall|must)\s+(?:i|we)\s+"
    r"(?!(?:close|reopen|assign|escalate|resolve|dismiss|ignore|worry|lower|raise|downgrade|look|see|check|start|begin|know|go|be|have|expect|care|use|ask|run)\b)",
    re.IGNORECASE,
)
"""Words that ask whether to do something; of incidents and alerts their own records tell more."""
_COMPARED = re.compile(
    r"\b(?:compar\w*\b.{0,60}\b(?:with|to|against|and)|similar\s+to|like|resembl\w*)\s+(?:(?:the|our|all|any|some)\s+)*"
    r"(?:past|previous|earlier|older|former|historic\w*|closed|other|similar)\s+(?:[a-z-]+\s+){0,2}?(?:ones|incidents|incs|cases|tickets)\b",
    re.IGNORECASE,
)
"""Words that hold an incident against those that were."""
_COMPARES = re.compile(r"\b(?:compar\w*|is)\s+#?(\d{1,9})\b", re.IGNORECASE)
_SIDE_BY_SIDE = re.compile(rf"^\W*(?:is|are|does|do|was|were|how)\s+(?:{_INC}\s+)?#?\d", re.IGNORECASE)
"""How a question begins that holds two incidents against each other."""
_WHICH_ONE = re.compile(
    r"\b(?:is|are)\s+there\b|\b(?:do|have)\s+(?:we|you|i)\s+(?:have|got)\b|\b(?:which|what)\s+(?:play\s?book|run\s?book|procedure)\b|"
    r"\b(?:got|have)\s+an?\s+(?:play|run)",
    re.IGNORECASE,
)
"""Words that ask whether there is a playbook, and which."""
_WAS_DONE = re.compile(
    r"\bhow\s+(?:(?:did|have|had)\s+(?:we|you|they|i|somebody|someone|people|the\s+team|the\s+soc)\s+|(?:was|were|has|have|is)\s+.{0,40}?)"
    r"(?:been\s+)?(?:contain(?:ed)?|isolated?|eradicated?|remediated?|mitigated?|handled?|dealt?|clean(?:ed)?\s+up|fix(?:ed)?|respond(?:ed)?|stop(?:ped)?)\b|"
    r"\bwhat\s+(?:did\s+(?:we|you|they|people)\s+do|(?:was|has\s+been|have\s+(?:we|they))\s+(?:already\s+)?done)\s+(?:about|with|against|for|on|to)\b",
    re.IGNORECASE,
)
"""Words that ask for what people did about an incident."""
_CLOSED_AS = re.compile(
    rf"\b{_INC}\s+(?:(?:that|which)\s+)?(?:(?:was|were|got|have\s+been|we)\s+)?(?:closed|resolved|dismissed|classified)\s+(?:as\s+[\w\s-]{{4,20}}?\s+)?"
    r"(?:because|due\s+to|owing\s+to|for\s+being)\b",
    re.IGNORECASE,
)
"""Words that look for closed incidents by the reason that people wrote."""
_OPEN_ONES = re.compile(rf"\b(?:open|active|unresolved|ongoing|new)\s+{_INC}\b", re.IGNORECASE)
_SHOULD_I = re.compile(r"\bshould\s+(?:i|we)\s+(?!do\b|proceed\b|respond\b|react\b|handle\b)\w+", re.IGNORECASE)
"""Words that ask for one decision, which one section tells."""
_OF_ALERTS = re.compile(
    r"\b(?:similar|such|past|previous)\s+(?:\w+\s+)?(?:alerts?|detections?|alarms?|events?|sign-?ins?|logs?)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:named|called|titled|name|title)\W+(?:play|run)", re.IGNORECASE)
_OURS = re.compile(rf"\b(?:we|us|this|that|such|similar|it|{_INC})\b", re.IGNORECASE)
_LONGEST = 600
"""Characters; a longer text is a story that was pasted."""
_FIRST = re.compile(r"\bfirst\b", re.IGNORECASE)


def asks_how(question: str) -> bool:
    """True for "contain it: how?" and "how do I isolate a host": it begins or ends as a wish to act, and asks how."""
    masked = mask(question[: _LONGEST + 1])
    return (
        len(masked) <= _LONGEST
        and _STEPS.search(masked) is not None
        and re.search(r"\bhow\b", masked, re.IGNORECASE) is not None
    )


def read_wish(reading: Reading, focused: str, now: Now) -> KnowledgeWish | None:
    """What the question wants of the knowledge base; None if it wants something else. `focused` is the number of the
    incident that is talked about, empty if none is."""
    text = mask(reading.text)
    if len(text) > _LONGEST:
        return None
    if _AUTOMATION.search(text) or _OF_ALERTS.search(text) or _NAMED.search(text):
        return None
    if _CATALOGUE.match(text):
        return KnowledgeWish(sought=Sought.CATALOGUE)
    incident = _incident_of(reading)
    if _CLOSED.search(text) and not _PLAYBOOK.search(text) and (_OURS.search(text) or not reading.names):
        return _about_past(Sought.CLOSED, reading, incident, focused, now, closed=True)
    compared = incident or (said[1] if (said := _COMPARES.search(text)) else focused)
    if _COMPARED.search(text) and compared and len(reading.incidents) < 2:
        return _about_past(Sought.PAST, reading, compared, focused, now)
    if _PAST.search(text) or _FORMER.search(text):
        return _about_past(Sought.PAST, reading, incident, focused, now, closed=True)
    if len(set(reading.incidents)) > 1 and _SIDE_BY_SIDE.match(text):
        return None
    if _SIMILAR.search(text) or (
        _SEEN.search(text) and not (reading.names and not incident and not re.search(r"like|similar", text))
    ):
        return _about_past(Sought.PAST, reading, incident, focused, now)
    if _CLOSED_AS.search(text) and not incident:
        return _about_past(Sought.CLOSED, reading, incident, focused, now, closed=True)
    of_alert = re.search(rf"\b(?:{cues.ALERT})\b", text, re.IGNORECASE) is not None and not incident
    if asks_where_to_begin(text) and not incident and not of_alert and not reading.names:
        begun = _about_playbooks(reading, text, "", "", now)
        if begun is not None and (topic := without_asking(begun.topic)):
            return replace(begun, topic=topic, whole=True, phase="")
    if _LISTS.match(text) and not incident:
        return None
    if _WAS_DONE.search(text) and (incident or focused):
        told = _about_playbooks(reading, text, incident, focused, now)
        return None if told is None else replace(told, done=True)
    if (
        _DECIDES.match(text)
        and not of_alert
        and reading.unknown_words
        and not reading.names
        and (not incident or _STEPS.search(text))
    ):
        return _about_playbooks(reading, text, incident, focused, now)
    if _PLAYBOOK.search(text) or ((_STEPS.search(text) or _WHO.search(text)) and not of_alert):
        return _about_playbooks(reading, text, incident, focused, now)
    return None


def _about_past(
    sought: Sought, reading: Reading, incident: str, focused: str, now: Now, *, closed: bool = False
) -> KnowledgeWish:
    """`closed`: the words mean incidents that are over; "seen before" may also mean one that is still open."""
    filters = filters_of(reading, now, past=True)
    topic = topic_of(reading)
    if not incident and not topic and not filters.arguments:
        incident = focused
    narrowed = dict(filters.arguments)
    if closed and (incident or topic or narrowed):
        narrowed["status"] = "Closed"
    names = tuple(name.value for name in reading.names if not name.quoted)
    return KnowledgeWish(
        sought=sought,
        topic=topic,
        incident=incident,
        filters=narrowed,
        remarks=filters.remarks,
        names=names,
        still_open=not closed and _OPEN_ONES.search(mask(reading.text)) is not None,
    )


def _about_playbooks(reading: Reading, text: str, incident: str, focused: str, now: Now) -> KnowledgeWish | None:
    topic = as_playbooks_say(topic_of(reading), text)
    phase = phase_asked(text)
    names_playbook = _PLAYBOOK.search(text) is not None
    if not incident and not topic:
        incident = focused
    if not incident and not names_playbook and not topic and _FIRST.search(text):
        return None
    filters = filters_of(reading, now, past=False)
    return KnowledgeWish(
        sought=Sought.STEPS if incident else Sought.PLAYBOOK,
        topic=topic,
        incident=incident,
        phase=phase,
        filters=filters.arguments,
        remarks=filters.remarks,
        whole=not phase
        and (
            _WHICH_ONE.search(text) is not None
            or (_STEPS.search(text) is not None and _SHOULD_I.match(text.strip()) is None)
        ),
    )


def _incident_of(reading: Reading) -> str:
    """The incident that the question names, or that its references stand for."""
    if reading.incidents:
        return reading.incidents[0]
    said = INCIDENT_SAID.search(mask(reading.text))
    if said is not None:
        return said[1]
    things = [thing for thing in reading.things if thing.kind == INCIDENT and thing.value]
    if things:
        return things[0].value
    behind = re.search(
        r"\b(?:like|similar\s+to|about|for|with|on|against|to|contain)\s+#?(\d{1,9})\b(?![.:/-]\d|\s+(?:days?|hours?|weeks?|months?|minutes?))",
        reading.core,
    )
    return behind[1] if behind else ""
