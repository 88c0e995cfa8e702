"""What a question wants of playbooks and past incidents: like an incident, by words, what to do, what a term means.

It reads the frame, and the words of `knowledge.toml` in the sentence as it was said; what else the sentence says is
what it is about. The words for a playbook, for being alike and for "before" alone decide nothing: alerts, hosts and
lists of the workspace keep their questions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import MAX_HITS, MAX_QUESTION_CHARACTERS
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES, TIME_WINDOWS
from sentinel_rag.language import frames
from sentinel_rag.language.attack import meant_by
from sentinel_rag.language.frames import Frame, part_with
from sentinel_rag.language.frames.frame import shaped_tokens
from sentinel_rag.language.frames.phrases import SILENT, WORD, Item, phrase_book, side_book, words_of
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.text import toml_beside

PHASES = ("triage", "scope", "containment", "eradication", "recovery", "evidence", "closing")
_DOCUMENT = ".md"
"""How the file of a playbook is called."""
_LONGEST = 600
"""Characters; a longer text is a story that was pasted."""
_LONGEST_ASIDE = 7
"""Words of a sentence that leans on a section which was shown."""
_SAYS_NOTHING = (
    *SILENT, "modal", "ask", "do", "relative", "ref", "all", "follow", "meta", "by", "status", "severity", "class",
    "cmp", "order", "plural", "answer", "not", "attr", "of", "owner", "talk", "mine",
)  # fmt: skip
"""Types of the questions' lexicon whose words are not what a search is about."""
_NO_TOPIC = (
    ("kind", "incident"), ("kind", "alert"), ("kind", "thing"), ("kind", "template"), ("op", "list"), ("op", "count"),
    ("op", "exists"), ("op", "top"), ("op", "summary"), ("op", "compare"), ("op", "advise"), ("op", "priority"),
)  # fmt: skip
_OF_LIFE = (("meta", "oos"), ("meta", "leisure"))
"""Words of no workspace, of which a playbook may still tell: a payroll, a birthday."""
_OF_A_TERM = (
    "title", "maybe_title", "tactic", "table", "of", "relative", "guess", "ask", "op", "attr", "technique", "threat",
    "polar", "topic",
)  # fmt: skip
"""Types of features that a question for the meaning of a term may have."""
_OF_ROWS = ("kind:alert", "kind:incident", "op:exists", "op:priority", "op:summary", "order")
"""What makes "should we ..." a question about rows."""
_GOES_ON = (
    "title", "maybe_title", "guess", "tactic", "technique", "threat", "follow", "ref", "add", "ask", "relative",
    "modal", "do", "all", "singular", "know", "rel",
)  # fmt: skip
"""Types of features that a sentence about a playbook may have which goes on from the one before."""


class Sought(StrEnum):
    """What is looked for."""

    PAST = "past"
    CLOSED = "closed"
    PLAYBOOK = "playbook"
    STEPS = "steps"
    CATALOGUE = "catalogue"
    TERM = "term"
    SECTION = "section"


class Further(StrEnum):
    """What a sentence wants of a section that was shown."""

    WHOLE = "whole"
    NEXT = "next"
    KQL = "kql"
    PHASE = "phase"


_OF_PLAYBOOKS = (Sought.PLAYBOOK, Sought.STEPS, Sought.CATALOGUE, Sought.SECTION)
_OF_INCIDENTS = (Sought.STEPS, Sought.PAST, Sought.CLOSED)
_ALSO_OF_ANOTHER = {"incident", "follow", "attr", "rel"}
"""Types of features of "and about 40?"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeWish:
    """What is looked for, and by what."""

    sought: Sought
    topic: str = ""
    """Words to search by."""
    incident: str = ""
    """What PAST, CLOSED and STEPS are about."""
    phase: str = ""
    """The phase of the response that is asked for."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    """What the search cannot filter by."""
    most: int = 0
    """How many incidents are wanted; 0 where that is not said."""
    whole: bool = False
    """Which playbook is for it, and not for one thing in it."""
    done: bool = False
    """What was done about the incident."""
    names: tuple[str, ...] = ()
    """Hosts, accounts and the like that past incidents must name."""
    still_open: bool = False
    of_focus: bool = False
    """About the incident that is talked about, where none is named."""
    points: bool = False
    """Whether words point at something that was shown."""
    section: str = ""
    """The citation of what SECTION is about."""
    further: Further | None = None
    """What SECTION wants of it."""

    @property
    def stands_alone(self) -> bool:
        """True if nothing that was said before changes what is meant."""
        return not self.points and not self.of_focus


def _data() -> Mapping[str, Any]:
    return toml_beside(frames.__name__, "knowledge.toml")


@cache
def words_of_documents(name: str) -> tuple[str, ...]:
    """A list of words of the documents: those that say little, endings, how sections are headed."""
    return tuple(_data()["documents"][name].split())


@cache
def begins(name: str) -> re.Pattern[str]:
    """Whether a heading begins with one of the words of a list."""
    return re.compile(rf"\W*(?:\d+[.)]?\s*)?(?:{'|'.join(words_of_documents(name))})\b", re.IGNORECASE)


def phase_of(path: Sequence[str]) -> str:
    """The phase of a section by its headings, the innermost first; empty if they name none."""
    found = (phase for heading in reversed(path) for phase in PHASES if begins(phase).match(heading))
    return next(found, "")


@dataclass(frozen=True, slots=True)
class _Words:
    """A sentence under the phrases of questions to the knowledge base."""

    items: tuple[Item, ...]
    frame: Frame

    def has(self, *values: str) -> bool:
        """True if one of the values of `sought` is said."""
        return any(item.sense("sought", frozenset(values)) for item in self.items)

    @property
    def phase(self) -> str:
        """The phase that is asked for; empty if none is."""
        told = {sense[1] for item in self.items if (sense := item.sense("phase"))}
        return next((phase for phase in PHASES if phase in told), "")

    @property
    def topic(self) -> str:
        """The words that it is about: names first, then the others in their order."""
        return self._topic(phases=True)

    @property
    def beside_phases(self) -> str:
        """The words that it is about beside the phases that it names."""
        return self._topic(phases=False)

    def _topic(self, *, phases: bool) -> str:
        said = [*self.frame.all("name"), *(value for value in self._quoted())]
        hushed = {word for item in self.frame.items if item.silent and " " in item.text for word in words_of(item.text)}
        for item in self.items:
            asked = (phases and item.sense("phase")) or item.sense("sought", frozenset({"deed"})) or item.type == "text"
            if sense := item.sense("say"):
                said += sense[1].split()
            elif asked:
                said += [word for word in WORD.findall(item.text) if self._tells(word) and fold(word) not in hushed]
        return " ".join(dict.fromkeys(said))[:MAX_QUESTION_CHARACTERS]

    def _quoted(self) -> list[str]:
        return [token.value for token in shaped_tokens(self.frame.said) if token.shape == "quoted"]

    def _tells(self, word: str) -> bool:
        """True for a word that is neither silent, nor a filter, nor of the time that is asked for."""
        folded = fold(word)
        if folded.isdigit() or folded in words_of(self.frame.time_said):
            return False
        senses = phrase_book(self.frame.language).senses(folded)
        return not senses or any(
            (type_ not in _SAYS_NOTHING and (type_, value) not in _NO_TOPIC) or (type_, value) in _OF_LIFE
            for type_, value in senses
        )


def _words(frame: Frame) -> _Words:
    text = frame.said
    taken = [t for t in shaped_tokens(text) if t.shape in ("quoted", "number", "item", "guid", "portal", "url")]
    names = frame.all("name")
    found = [
        match
        for match in WORD.finditer(text)
        if not any(token.start <= match.start() < token.end for token in taken)
        and not any(at <= match.start() < at + len(name) for name in names if (at := text.find(name)) >= 0)
    ]
    book, mend = side_book("knowledge", frame.language), phrase_book(frame.language).mend
    words, spans = [fold(match[0]) for match in found], [match.span() for match in found]
    words = [word if book.senses(word) else mend(word) for word in words]
    return _Words(tuple(book.cover(words, spans, text)[1]), frame)


def read_wish(frame: Frame, now: datetime) -> KnowledgeWish | None:
    """What a question wants of the knowledge base; None if it wants something else."""
    words = _words(frame)
    if len(frame.said) > _LONGEST or any(item.sense("never") for item in words.items):
        return None
    incidents, count = _counted_out([*frame.all("incident"), *frame.all("digits")], frame)
    if not incidents and frame.has("op:compare"):
        incidents = frame.all("limit")  # "compare 31 with other incidents"
    if len(set(incidents)) > 1 or (frame.has("op:compare") and frame.window and not incidents):
        return None
    incident = incidents[0] if incidents else ""
    wish = _past(words, incident, now) or _term(words) or _playbook(words, incident)
    if wish is None:
        return None
    pointed = set(frame.all("ref")) - {"definite", "they", "ones"} or frame.has("item")
    return replace(wish, most=count, points=bool(pointed) and not words.has("begin") and not incident)


def _counted_out(numbers: list[str], frame: Frame) -> tuple[list[str], int]:
    """The numbers of incidents without the one that says how many are wanted ("the 5 closest matches to 44102"), and
    that one; 0 where none does."""
    like = next((item for item in frame.items if item.sense("know", frozenset({"similar"}))), None)
    before = [int(item.text) for item in frame.items if like and item.end <= like.start and item.sense("num")]
    count = before[-1] if before and before[-1] <= MAX_HITS else int(frame.one("limit") or 0)
    return [each for each in numbers if each != str(count)] if count else numbers, min(count, MAX_HITS)


# --- past incidents


def _past(words: _Words, incident: str, now: datetime) -> KnowledgeWish | None:
    frame = words.frame
    if frame.has("kind:alert"):
        return None
    ours = words.has("like", "before", "past", "former", "ours") or incident or not frame.has("name")
    asked = words.has("done") or (words.has("ended") and words.has("asks", "how"))
    ended = asked and words.has("lasttime", "like", "past", "former")
    if ended and ours and not words.has("playbook", "playbooks"):
        return _about_past(Sought.CLOSED, words, incident, now, closed=True)
    if words.has("because") and not incident and not frame.has("ask"):
        return _about_past(Sought.CLOSED, words, incident, now, closed=True)
    if incident and frame.has("op:compare") and words.has("others", "past", "former"):
        return _about_past(Sought.PAST, words, incident, now)
    about = words.topic or words.has("like", "others") or incident
    over = words.has("past") or (words.has("pastword") and frame.has("kind:incident") and not frame.window)
    if over or (words.has("former") and about):
        return _about_past(Sought.PAST, words, incident, now, closed=True)
    if frame.has("op:count"):
        return None
    again = words.has("happened") and frame.polar
    if (
        words.has("like")
        or again
        or (words.has("before") and words.has("lasttime", "before") and (incident or not frame.has("name")))
    ):
        return _about_past(Sought.PAST, words, incident, now)
    return None


def _about_past(sought: Sought, words: _Words, incident: str, now: datetime, *, closed: bool = False) -> KnowledgeWish:
    """`closed`: the words mean incidents that are over; "seen before" may also mean one that is still open."""
    frame = words.frame
    filters, remarks = _filters(frame, now)
    named = words_of(str(filters.get("technique", "")))
    topic = " ".join(word for word in words.topic.split() if fold(word) not in named)
    if closed and (incident or topic or filters):
        filters["status"] = "Closed"
    return KnowledgeWish(
        sought=sought,
        topic=topic,
        incident=incident,
        filters=filters,
        remarks=remarks,
        names=tuple(frame.all("name")),
        still_open=not closed and frame.has("status:Open", "status:Active", "status:New"),
        of_focus=not incident and not topic and not filters,
    )


def _filters(frame: Frame, now: datetime) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """What the question narrows the search of past incidents to, and what it cannot be narrowed to."""
    told: dict[str, JsonValue] = _technique(frame)
    remarks: tuple[str, ...] = ()
    severities = frame.all("severity")
    if frame.one("min") == SEVERITIES[-1] or (len(severities) == 1 and not frame.has("min")):
        told["severity"] = str(frame.one("min") or severities[0])
    elif severities or frame.has("min"):
        remarks = ("The search of past incidents takes one severity and no threshold, so all severities are here.",)
    tactic = next((one for one in frame.all("tactic") if not _is_technique(one)), None)
    told |= {"tactic": tactic} if tactic else {}
    told |= {"classification": frame.one("class")} if frame.has("class") else {}
    window = frame.window
    if relative := window.get("time_window"):
        hours = TIME_WINDOWS.get(relative)
        since = None if hours is None else now.replace(microsecond=0) - timedelta(hours=hours)
        told |= {} if since is None else {"since": format_time(since)}
    for side, name in (("start_time", "since"), ("end_time", "until")):
        if side in window:
            told[name] = format_time(datetime.fromisoformat(window[side]).replace(microsecond=0))
    return told, remarks


def _technique(frame: Frame) -> dict[str, JsonValue]:
    found = next((one for one in frame.all("tactic") if _is_technique(one)), None)
    return {"technique": found.upper()} if found else {}


def _is_technique(text: str) -> bool:
    return any(token.shape == "technique" and token.value == text for token in shaped_tokens(text))


# --- playbooks and terms


def _term(words: _Words) -> KnowledgeWish | None:
    """The meaning of a word of the trade, where the question is for nothing else."""
    frame = words.frame
    if not words.has("means") or words.has("playbook", "playbooks", "steps", "how", "who") or frame.window:
        return None
    asked = [item for item in words.items if item.sense("sought", frozenset({"means"}))]
    # What is said beside the words that ask ("I never understood what token theft is").
    frame = part_with(
        frame, [item for item in frame.items if not any(a.start < item.end and item.start < a.end for a in asked)]
    )
    classes = [item.text for item in frame.items if item.sense("class") and words.has("one", "mean")]
    named = (frame.one(type_) for type_ in ("tactic", "title", "maybe_title", "table") if frame.has(type_))
    known = next(iter(classes), None) or next(named, None)  # "what is a false positive"
    known = None if frame.has("table") and not meant_by(known or "") else known
    features = {type_ for type_, values in frame.features.items() if values}
    one_of_them = frame.has("op:summary") or any(item.sense("one") for item in frame.items)  # "the state of the one"
    more = features - {*_OF_A_TERM, *(["class"] if classes else [])}
    if not known or more or frame.has("guess", "kind") or frame.unread or one_of_them:
        return None
    book = side_book("knowledge", frame.language)
    told = [word for word in known.split() if not any(value == "means" for _, value in book.senses(fold(word)))]
    return KnowledgeWish(sought=Sought.TERM, topic=" ".join(told), filters=_technique(frame))


def _playbook(words: _Words, incident: str) -> KnowledgeWish | None:
    frame, topic, phase = words.frame, words.topic, words.phase
    document = next(
        (name for name in frame.all("name") if name.endswith(_DOCUMENT) and f"/{name}" not in frame.text), ""
    )
    if document and not frame.has("kind", "topic"):
        called = document.removesuffix(_DOCUMENT).replace("-", " ")
        return KnowledgeWish(sought=Sought.PLAYBOOK, topic=called, whole=True)
    names_playbook = words.has("playbook", "playbooks")
    if frame.has("op:count") and frame.has("kind:incident", "kind:alert") and not names_playbook:
        return None
    if words.has("playbooks") and not topic and not incident:
        return KnowledgeWish(sought=Sought.CATALOGUE)
    named = frame.has("name") and not incident
    begins = words.has("begin") and not incident and not named
    if begins:
        return (
            KnowledgeWish(sought=Sought.PLAYBOOK, topic=topic, filters=_technique(frame), whole=True) if topic else None
        )
    if words.has("done") and (incident or not topic):
        return _about_playbooks(words, incident, done=True)
    threat = frame.has("title", "maybe_title") and not frame.has(*_OF_ROWS, "op:count", "op:list", "name", "incident")
    how = words.has("steps") or (bool(phase) and threat) or (words.has("how") and words.has("act", "deed"))
    asked = words.has("decide") or (words.has("polar") and frame.polar)
    decides = asked and not words.has("leave") and bool(topic) and not incident and not named
    if decides and not how and not names_playbook and frame.has(*_OF_ROWS):
        return None
    no_response = frame.has("attr:response") and (incident or not topic or frame.has("op:average"))
    if not names_playbook and (no_response or (frame.has("attr:remediation") and frame.has("kind:alert"))):
        return None
    if not (names_playbook or how or decides or (words.has("who") and topic)) or (named and not names_playbook):
        return None
    if not names_playbook and not topic and frame.has("op:priority"):
        return None
    return _about_playbooks(words, incident)


def _about_playbooks(words: _Words, incident: str, *, done: bool = False) -> KnowledgeWish:
    topic, phase = words.topic, words.phase
    return KnowledgeWish(
        sought=Sought.STEPS if incident else Sought.PLAYBOOK,
        topic=topic,
        incident=incident,
        phase=phase,
        filters=_technique(words.frame),
        whole=not phase and words.has("which", "steps", "how") and not words.has("decide"),
        done=done,
        of_focus=not incident and not topic,
    )


# --- what leans on an answer


def wish_after(
    frame: Frame,
    wish: KnowledgeWish | None,
    before: KnowledgeWish | None,
    section: str,
    now: datetime,
    *,
    pointed: bool,
) -> KnowledgeWish | None:
    """What a sentence wants that leans on an answer from the knowledge base: more of the section that it points at or
    that was told last, past incidents of other filters, the same of another incident, the playbook for what it names.
    `wish` is what the sentence wants by itself, `before` what the last answer was for; None where it leans on none."""
    if section and (more := _further(frame, phase_of(section.split(" > ")), pointed=pointed)) is not None:
        return KnowledgeWish(sought=Sought.SECTION, section=section, further=more[0], phase=more[1])
    if before is None:
        return None
    if before.sought in (Sought.PAST, Sought.CLOSED) and (filters := _narrowing(frame, now)):
        return replace(before, sought=Sought.PAST, filters={**before.filters, **filters})
    named, said = frame.all("incident"), {type_ for type_, values in frame.features.items() if values}
    if before.sought in _OF_INCIDENTS and len(named) == 1 and frame.has("follow") and said <= _ALSO_OF_ANOTHER:
        return KnowledgeWish(sought=before.sought, incident=named[0])
    return (
        _another_playbook(frame, before) if wish is None or (wish.sought is Sought.PLAYBOOK and wish.points) else None
    )


def _another_playbook(frame: Frame, before: KnowledgeWish) -> KnowledgeWish | None:
    """More of the playbook that is pointed at, else the one for what is named; None where anything of the workspace is
    said."""
    said = {
        type_
        for type_, values in frame.features.items()
        if {(type_, value) for value in values} - {("op", "list"), ("attr", "detail")}
    }
    words = _words(frame)
    if before.sought not in _OF_PLAYBOOKS or not said <= {*_GOES_ON} or frame.window or not words.topic:
        return None
    points = frame.has("ref:it", "ref:its", "ref:there")
    if points and before.incident:
        return None  # the incident is meant, and no playbook
    same = points or not words.beside_phases
    topic = f"{before.topic} {words.topic}" if same else words.topic
    return KnowledgeWish(sought=Sought.PLAYBOOK, topic=topic, phase=words.phase, filters=_technique(frame))


def _further(frame: Frame, shown: str, *, pointed: bool) -> tuple[Further, str] | None:
    """What a sentence wants of a section of the phase `shown`, with the phase; None if it wants something else."""
    words = _words(frame)
    asks_kql = words.has("kql") and not any(item.sense("never") for item in words.items)
    about = words.beside_phases
    if asks_kql and (pointed or not about):
        return Further.KQL, ""
    only_next = all(item.sense("sought", frozenset({"next"})) or item.sense("drop") for item in words.items)
    if words.has("next", "steps") and (only_next or words.has("next")) and not about and not frame.has("incident"):
        return Further.NEXT, ""
    phase = words.phase
    if pointed:
        return (Further.PHASE, phase) if phase and phase != shown else (Further.WHOLE, "")
    short = len(frame.said.split()) <= _LONGEST_ASIDE and not frame.has("name", "incident")
    leans = frame.has("follow") or len(words.items) <= 2 or words.has("who")
    return (Further.PHASE, phase) if phase and short and leans and not about else None


def _narrowing(frame: Frame, now: datetime) -> dict[str, JsonValue]:
    """The filters of a sentence that says only filters of past incidents; none for any other."""
    if frame.has("name", "incident", "kind", "attr", "topic") or frame.unread or _words(frame).topic:
        tactics = {word for one in frame.all("tactic") for word in words_of(one)}
        if not tactics or frame.has("name", "incident", "kind"):
            return {}
    return _filters(frame, now)[0]
