"""Questions that no tool can answer as they stand: of the future, of alerts without an incident, of who closed most, of
rows of the logs that leave something out, of "she" or "before that" where nothing is meant.

Each is asked back with what comes near. To answer one by the words that are left of it would answer another question.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline import cues, follow_up
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.filters import COUNTED_BY
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Ask
from sentinel_rag.agent.references.wording import mask
from sentinel_rag.language.times.kinds import NUMBER

_UNIT = r"(?:minutes?|hours?|hrs?|days?|weeks?|weekend|months?|years?)"
_FUTURE = re.compile(
    rf"\b(?:in|over|during|within|for|of)\s+the\s+(?:next|coming)\s+(?:(?:{NUMBER})\s+)?{_UNIT}\b"
    rf"|\bnext\s+(?:{_UNIT}|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b(?!\s+after)"
    r"|\btomorrow\b|\bin\s+(?:the\s+)?future\b|\bwill\s+(?:there\s+)?(?:be|happen|come)\b",
    re.IGNORECASE,
)
_ORPHANS = re.compile(
    rf"\b(?:{cues.ALERT})\b.*\b(?:(?:have|has|with|in|of|belong(?:s|ing)?\s+to)\s+no|without(?:\s+any?)?|"
    rf"not\s+(?:part\s+of|in|linked\s+to|assigned\s+to)\s+any?|lack(?:s|ing)?(?:\s+an)?)\s+"
    rf"(?:{cues.INCIDENT})\b(?!\s*#?\d)|\borphan(?:ed)?\s+(?:{cues.ALERT})\b",
    re.IGNORECASE,
)
_WHO_CLOSED_MOST = re.compile(
    r"\bwho\s+(?:has\s+)?(?:clos|resolv|dismiss|reopen|handl)\w+\s+(?:the\s+)?(?:most|fewest|least|more)\b"
    r"|\b(?:most|fewest)\s+(?:\w+\s+)?(?:incidents?|cases?)\s+(?:were\s+)?(?:closed|resolved)\s+by\s+(?:who|which)",
    re.IGNORECASE,
)
_LEAVES_OUT = re.compile(
    r"\W*\b(?:(?:but|and)\s+)?(?:(?:that|which|who)\s+)?(?:(?:is|are|was|were|do|does|did|has|have)\s+)?"
    r"(?:(?:not|isn['’]?t|aren['’]?t|wasn['’]?t|weren['’]?t|don['’]?t|doesn['’]?t|didn['’]?t)"
    r"(?!\s+(?:success|succeed|work))|except(?:ing)?(?:\s+for)?|excluding|exclude|apart\s+from|aside\s+from|other\s+than|"
    r"leaving\s+out|outside|without)\b",
    re.IGNORECASE,
)
_HOURS_OF_EVERY_DAY = re.compile(
    r"(?<!last )(?<!last)(?<!over )(?<!that )(?<!same )(?<!this )\bnights?\b"
    r"|\b(?:business|office|working|work)\s+hours\b|\b(?:after|out\s+of|off)[\s-]+hours\b|\b(?:on|at|over|during)\s+weekends\b",
    re.IGNORECASE,
)
_OF_NEWEST_INCIDENTS = re.compile(
    rf"\b(?:{cues.ALERT}|{cues.ENTITIES}|hosts?|accounts?|users?|ips?)\b.*?\b(?:of|for|in|from|behind)\s+(?:all\s+)?"
    rf"(?:the\s+|my\s+)?(?P<which>(?:last|latest|newest|oldest|top|first|most\s+recent)\s+(?:\d{{1,2}}|two|three|four|five|ten|few)\s+(?:\w+\s+)?"
    r"(?:incidents|cases|tickets))\b",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:between|from)\s+#?(?P<first>\d{1,6})\s*(?:and|to|-|–|—)\s*#?\d{1,6}\b"
    r"|(?:\b(?:since|after|before|until|above|below)\s+|[<>]=?\s*)#?(?P<one>\d{1,6})\b(?!\s+alerts?\b)",
    re.IGNORECASE,
)
_BELONGS_TO_WHICH = re.compile(
    rf"\b(?:which|what|whose)\s+(?:{cues.INCIDENT})\s+(?:is|was|are|were|does|do|did|has|holds?)\s+"
    r"(?:that|this|it|these|those|they)\b|\b(?:is|was|are|were)\s+(?:that|this|it|these|those|they)\s+"
    rf"(?:in|part\s+of)\s+(?:an?|any|some|which)\s+(?:{cues.INCIDENT})\b",
    re.IGNORECASE,
)
_CLOSED_BY = re.compile(
    r"\b(?:closed|resolved|dismissed)\s+(?:\w+\s+)?by\s+(?P<who>(?!who\b|whom\b|what\b)[\w.@-]+)", re.I
)
_WITH_A_FIELD = re.compile(
    rf"\b(?:{cues.INCIDENT})\s+(?:with|having|that\s+have|which\s+have)\s+(?:an?\s+|any\s+)?"
    r"(?P<field>comments?|notes?|bookmarks?|tags?|labels?|tasks?)\b",
    re.IGNORECASE,
)
_BY_LENGTH = re.compile(
    rf"\b(?:longest|shortest|fastest|slowest|quickest)\b.*\b(?:{cues.INCIDENT}|clos\w+|resolv\w+)\b"
    rf"|\b(?:{cues.INCIDENT})\b.*\b(?:longest|shortest|fastest|slowest|quickest)\b",
    re.IGNORECASE,
)
_WE_CLOSED = re.compile(r"^\W*how\s+many\s+(?:did|have)\s+(?:we|they|i)\s+(?:close|resolve)d?\b", re.IGNORECASE)
_THAT_THING = re.compile(
    r"\b(?:that|this|the\s+same)\s+(?P<noun>sender|recipient|subnet|country|city|group|client)\b", re.IGNORECASE
)
_SOMEONE = re.compile(r"\b(?:she|he)\b", re.IGNORECASE)
_OF_NO_KIND = re.compile(
    r"^\W*how\s+many\s+(?:are|were)\s+(?:still\s+|now\s+)?(?P<state>closed|open|new|active|unassigned)\W*$",
    re.IGNORECASE,
)
_OF_THEM = re.compile(r"^\W*(?:do|did|are|were|have)\s+they\b", re.IGNORECASE)
_RELATIVE_TIME = re.compile(
    r"\b(?P<side>before|after|since|until|prior\s+to)\s+(?P<what>that|this|it|then|(?:incident|alert)\s+[\w{}:._-]+)\W*$",
    re.IGNORECASE,
)


def unanswerable(reading: Reading, conversation: Conversation) -> Ask | None:
    """The question back; None for a question that can be answered or is not understood for another reason."""
    said = mask(reading.text)
    if _FUTURE.search(said) and not _RELATIVE_TIME.search(said):
        return Ask(
            "Sentinel holds what has happened and nothing of the time to come. Name a time in the past.",
            ("What happened in the last 24 hours?",),
        )
    if _ORPHANS.search(said):
        return Ask(
            "I cannot filter alerts by having no incident. The list of alerts has a column with the incident of each.",
            ("Show the newest alerts",),
        )
    if _WHO_CLOSED_MOST.search(said):
        return Ask(
            "Who closed an incident is not recorded in its row, so I cannot count by that. Its owner is recorded.",
            ("Incidents by owner", "Closed incidents, newest first"),
        )
    if _HOURS_OF_EVERY_DAY.search(said):
        return Ask(
            "I filter by one stretch of time, not by hours of every day. Name the night or the hours, such as last "
            "night, or between 22:00 and 06:00 on a date."
        )
    newest = _OF_NEWEST_INCIDENTS.search(said)
    if newest is not None:
        return Ask(
            "That takes two questions: the incidents first, then what you want of them (“their alerts”, “[1]”).",
            (f"List the {newest['which']}",),
        )
    bound = _BOUND.search(reading.core)
    if bound is not None and (bound["first"] or bound["one"]) in reading.numbers and not _asks_rows(reading):
        return Ask(
            f"I do not know what “{bound[0].strip()}” counts. I can filter by times, such as since 06:00, and by how "
            "many alerts an incident has, such as more than 3 alerts."
        )
    belongs = _BELONGS_TO_WHICH.search(said)
    if belongs is not None and not (reading.things or reading.names or reading.incidents or reading.unclear):
        return Ask(
            "Which one do you mean? Name the host, the account, the address or the alert: an incident is found by what "
            "its alerts name. Rows of the logs name no incident themselves."
        )
    left_out = _LEAVES_OUT.search(said)
    if left_out is not None and _asks_rows(reading):
        return _leaves_out(reading, left_out)
    if _WE_CLOSED.match(said) and not _has_a_noun(reading):
        rest = _WE_CLOSED.sub("", reading.text.strip(" ?.!"))
        return Ask("Of incidents?", (f"How many incidents were closed{rest}",))
    unknown_thing = _THAT_THING.search(said)
    if unknown_thing is not None and not (reading.things or reading.names or reading.incidents):
        return Ask(f"Which {unknown_thing['noun'].lower()} do you mean? Name it, please.")
    about_one = reading.incidents or reading.guids or reading.numbers or reading.things
    closer = _CLOSED_BY.search(said)
    if closer is not None:
        one = (*reading.incidents, *reading.numbers)[:1]
        options = (f"Who owns incident {one[0]}?",) if one else (f"Closed incidents assigned to {closer['who']}",)
        return Ask(
            "Who closed an incident is not recorded in its row, so I cannot tell by that. Its owner is recorded.",
            options,
        )
    field = _WITH_A_FIELD.search(said)
    if field is not None and not about_one:
        return Ask(
            f"Incidents cannot be filtered by their {field['field']}; those of one incident I can show.",
            ("List the incidents, newest first",),
        )
    if _BY_LENGTH.search(said) and not about_one and not reading.has("open|oldest"):
        return Ask(
            "I cannot sort incidents by how long they took. Which of these do you want?",
            ("What is our mean time to close?", "Closed incidents, newest first"),
        )
    if conversation.last is None and conversation.references.screen is None:
        without_kind = _OF_NO_KIND.match(said)
        if without_kind is not None:
            state = without_kind["state"].lower()
            return Ask(
                "Of incidents, or of alerts?", (f"How many incidents are {state}?", "How many alerts are there?")
            )
        if _OF_THEM.match(said) and not reading.things:
            return Ask("Whom or what do you mean by them? Name it, please.")
    counted = COUNTED_BY.search(said)
    if counted is not None and not _has_a_noun(reading) and not follow_up.counts_the_last(conversation):
        rest = re.sub(r"^\W*how\s+many\s+", "", reading.text.strip(" ?.!"), flags=re.IGNORECASE)
        return Ask("Of incidents, or of alerts?", (f"How many incidents {rest}", f"How many alerts {rest}"))
    named = reading.names or any(thing.kind == "entity" for thing in reading.things)
    if _SOMEONE.search(said) and not named:
        return Ask("Whom do you mean? Name the account, please.")
    before = _RELATIVE_TIME.search(said)
    if before is not None and reading.window is None and reading.around is None:
        return _relative_time(reading, before, conversation)
    return None


def _has_a_noun(reading: Reading) -> bool:
    nouns = f"{cues.INCIDENT}|{cues.ALERT}|{cues.LOGS}|{cues.RAW}"
    return reading.has(nouns) or bool(cues.kinds_named(reading) or reading.things or reading.incidents)


def _asks_rows(reading: Reading) -> bool:
    """True for a question of rows of the logs, which stored queries give whole."""
    about_lists = reading.has(f"{cues.INCIDENT}|{cues.ALERT}|{cues.TEMPLATES}|{cues.TABLES}")
    return reading.has(f"{cues.LOGS}|{cues.RAW}") and not about_lists


def _leaves_out(reading: Reading, match: re.Match[str]) -> Ask:
    """What is to be left out cannot be; the same question without it is offered, where there is one."""
    whole = reading.text[: match.start()].strip(" ,;")
    options = (whole,) if len(whole.split()) > 1 or cues.LOGS_ALONE.fullmatch(whole) else ()
    return Ask(
        "A stored query gives its rows whole: it can be narrowed to what it names, but leaves nothing out. Ask for "
        "everything and read past it, or name what you do want.",
        (*options, "What queries can you run?"),
    )


def _relative_time(reading: Reading, match: re.Match[str], conversation: Conversation) -> Ask:
    """Before or after a thing: its time is offered where it is known, never left out."""
    focus = conversation.references.focus("incident", "alert")
    sentence = f"{match['side'].capitalize()} which time? Give it in the question."
    if focus is None or not focus.item.time:
        return Ask(sentence)
    return Ask(sentence, (f"{reading.text[: match.start()]}{match['side']} {focus.item.time}",))
