"""From the alerts that a text tells of to the one value that it asks for: calls, the alerts meant, the choice.

`story_plan` starts at what is named, `next_calls` reads the alerts that fit the words, `choose` says whether they
single out one value, and by which reason: a value that merely stands first or near is never proposed. Rows are text to
be compared and nothing else: nothing that an attacker wrote into one becomes an argument of a call.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from sentinel_rag.agent.offline.attributes import Attribute, attribute_of, things_at, values_of
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.planner.tools import ALERT_ID, asked_properties, label_of
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS, MAX_LIMIT
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.frame import NAMES, shaped_tokens
from sentinel_rag.language.frames.orders import read_order
from sentinel_rag.language.frames.phrases import phrase_book
from sentinel_rag.language.text import toml_beside

WITH_PROPERTIES = 20
"""Rows of an answer of query_alerts up to which its entities carry their properties."""
NEAR_BEST, CLEARLY = 0.8, 0.9
"""Shares of the best score from which on a name may be meant as well, and from which on it is no clear second."""
_NAME_WEIGHT = 2.0
_SHORTEST_NAME = 4
_NAMING = (
    "name", "account_name", "display_name", "upn", "sid", "aad_user_id", "host_name", "aad_device_id", "device_id",
    "address", "url", "image_file", "command_line", "value", "sender", "recipient", "sender_ip", "app_id",
)  # fmt: skip
"""Properties by which a person may call an entity."""
OF_ANY_ALERT = frozenset({"account", "host", "file", "process", "incident", "alert", "entity", "thing"})
TELL_NOTHING = ("f", "definite", "ask", "relative", "ref", "of", "by", "bound")
"""Types of words that stand in any sentence."""
_WORD = re.compile(r"[^\W\d_][^\W_]+")


@dataclass(frozen=True, slots=True)
class RelatedAlert:
    """One alert: a row of a result. `whole` if it tells all its entities with their properties."""

    run: ToolRun
    place: int
    whole: bool

    @property
    def row(self) -> Mapping[str, JsonValue]:
        """The row as the tool gave it."""
        return self.run.rows[self.place]

    @property
    def name(self) -> str:
        """What the alert is called."""
        return str(self.row.get("name") or "")

    @property
    def alert_id(self) -> str:
        """Its SystemAlertId."""
        return str(self.row.get("alert_id"))

    @property
    def incident(self) -> str:
        """The number of its incident; empty if it is in none."""
        number = self.row.get("incident_number")
        return str(number) if isinstance(number, int) else ""

    @property
    def pointer(self) -> str:
        """Where the row stands in its result."""
        return f"/rows/{self.place}"

    @property
    def entities(self) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
        """(JSON pointer in the result, entity) of each thing that the alert names."""
        return things_at(self.run, f"{self.pointer}/entities")

    def said_in(self, text: str, *, without: Sequence[str] = ()) -> frozenset[str]:
        """The names of its entities that `text` (in lower case) says, but for some kinds."""
        return frozenset(
            name
            for _, entity in self.entities
            if entity.get("kind") not in without
            for name in names_of(entity)
            if says(text, name)
        )


def alerts_in(runs: Sequence[ToolRun]) -> list[RelatedAlert]:
    """Every alert once, in the order in which it came first; a whole row takes the place of a part."""
    found: dict[str, RelatedAlert] = {}
    for run in runs:
        if run.call.tool_name != "query_alerts":
            continue
        for place, row in enumerate(run.rows):
            shown, count = row.get("entities"), row.get("entity_count")
            few = isinstance(count, int) and isinstance(shown, list | tuple) and count > len(shown)
            whole = "alert_id" in run.call.arguments or not (len(run.rows) > WITH_PROPERTIES or few)
            alert = RelatedAlert(run, place, whole)
            if alert.alert_id not in found or (whole and not found[alert.alert_id].whole):
                found[alert.alert_id] = alert
    return list(found.values())


def began(alert: RelatedAlert) -> datetime:
    """When what the alert tells of began, which may be days before it was raised."""
    return parse_time(str(alert.row.get("start_time") or alert.row.get("time")))


def names_of(entity: Mapping[str, JsonValue]) -> Iterator[str]:
    """What an entity may be called, in lower case; a path also by its last part."""
    for key in _NAMING:
        value = entity.get(key)
        if isinstance(value, str) and len(value) >= _SHORTEST_NAME:
            yield value.lower()
            if key in ("name", "image_file") and entity.get("kind") in ("file", "process"):
                yield base_name(value).lower()


def says(text: str, name: str) -> bool:
    """True if `text` holds `name` by itself and not as a part of a longer one."""
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def base_name(path: str) -> str:
    """The last part of a Windows or Unix path."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


@dataclass(frozen=True, slots=True)
class Fit:
    """`cover` is how much of the name's own words is said, 0 to 1; `shared` the weight of words said and told."""

    name: str
    score: float
    cover: float
    shared: float


def fits(
    words: Iterable[str], alerts: Iterable[RelatedAlert], *, among: Iterable[RelatedAlert] | None = None
) -> list[Fit]:
    """The names of alerts with how well stems of words fit them, best first. How rare a word is goes by `among`."""
    stories = _stories(alerts)
    known = stories if among is None else _stories(among)
    frequency = Counter(word for name, told in known.values() for word in name | told)
    weight = {word: math.log(1 + len(known) / count) for word, count in frequency.items()}
    asked = set(words) & set(weight)
    found = []
    for name, (in_name, in_story) in stories.items():
        shared = sum(weight[word] for word in asked & (in_name | in_story))
        score = shared + sum((_NAME_WEIGHT - 1) * weight[word] for word in asked & in_name)
        own = sum(weight[word] for word in in_name)
        cover = sum(weight[word] for word in asked & in_name) / own if own else 0.0
        found.append(Fit(name, score * (0.5 + cover), cover, shared))
    return sorted(found, key=lambda fit: -fit.score)


def near_best(fitting: Sequence[Fit]) -> tuple[str, ...]:
    """The names that the words may mean; none if no word fits any."""
    best = fitting[0].score if fitting else 0.0
    return tuple(fit.name for fit in fitting if best > 0 and fit.score >= NEAR_BEST * best)


def clearly_best(fitting: Sequence[Fit]) -> str:
    """The name that fits better than any other by a tenth; empty if there is none."""
    if not fitting or fitting[0].score <= 0:
        return ""
    second = fitting[1].score if len(fitting) > 1 else 0.0
    return fitting[0].name if second < CLEARLY * fitting[0].score else ""


def stems(text: str) -> frozenset[str]:
    """The telling words of a text without their endings, so that forms of one word are the same."""
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if not _tells_nothing(word))


@lru_cache(maxsize=4096)
def _tells_nothing(word: str) -> bool:
    """True for function words, for verbs of seeing, and for kinds of things that every alert names."""
    senses = phrase_book("en").senses(word)
    return any(type_ in TELL_NOTHING or (type_ == "kind" and value in OF_ANY_ALERT) for type_, value in senses)


def _stem(word: str) -> str:
    for ending in relation_data()["words"]["endings"]:
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    return word


def relation_data() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """What `relations.toml` tells."""
    return toml_beside(__package__, "relations.toml")


def _stories(alerts: Iterable[RelatedAlert]) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """(words of the name, words of the longest description) for each name."""
    longest: dict[str, str] = {}
    for alert in alerts:
        told = str(alert.row.get("description") or "")
        if len(told) >= len(longest.get(alert.name, "")):
            longest[alert.name] = told
    return {name: (stems(name), stems(told)) for name, told in longest.items()}


# --- the values of a property in an alert


_NO_PERSON = re.compile(
    r"s-\d+(?:-\d+)+|(?:nt authority\\)?(?:local ?system|system|local service|network service)|.*\$", re.IGNORECASE
)
"""Names of accounts that belong to a machine or to nobody."""
_BY_NAME = {"host": ("host", "host_name"), "file": ("file", "name"), "process": ("process", "image_file")}
"""Labels of whole things: their kind, and the property by which an answer calls them."""


@dataclass(frozen=True, slots=True)
class RelatedValue:
    """`text` as the answer says it, `others` what the same thing is called too; `pointer` leads to it in the result."""

    key: str
    text: str
    alert: RelatedAlert
    pointer: str
    entity: Mapping[str, JsonValue]
    at: str
    others: tuple[tuple[str, str], ...] = ()


def values_in(wanted: Attribute, alert: RelatedAlert) -> list[RelatedValue]:
    """The values of a property that the alert tells, each once."""
    found: dict[str, RelatedValue] = {}
    for at, entity in alert.entities:
        for value in _of_entity(wanted, alert, at, entity):
            found.setdefault(value.key, value)
    return list(found.values())


def told_elsewhere(
    wanted: Attribute, alerts: Sequence[RelatedAlert], others: Sequence[RelatedAlert]
) -> list[RelatedValue]:
    """The property of the things that `alerts` name without it, from other alerts that name the same things."""
    if wanted.thing:
        return []
    named = {_identity(each) for alert in alerts for _, each in alert.entities if each.get("kind") in wanted.kinds}
    return [value for alert in others for value in values_in(wanted, alert) if _identity(value.entity) in named]


def _identity(entity: Mapping[str, JsonValue]) -> tuple[object, str]:
    return entity.get("kind"), str(entity.get("name")).lower()


def is_person(value: RelatedValue) -> bool:
    """False for an account of a machine, a service or nobody."""
    return _NO_PERSON.fullmatch(value.text) is None


def _of_entity(
    wanted: Attribute, alert: RelatedAlert, at: str, entity: Mapping[str, JsonValue]
) -> Iterator[RelatedValue]:
    kind = entity.get("kind")
    if wanted.label == "account":
        if kind == "account":
            yield _account(alert, at, entity)
    elif wanted.label == "malware" and kind in ("malware", "file"):
        yield _named(alert, at, entity, "name")
    elif wanted.label in _BY_NAME:
        if kind == _BY_NAME[wanted.label][0]:
            yield _named(alert, at, entity, _BY_NAME[wanted.label][1])
    else:
        for pointer, leaf in values_of(wanted, entity):
            text = str(leaf)
            shown = entity.get("display_name") if wanted.address else None
            others = ((str(shown), f"{at}/display_name"),) if shown else ()
            yield RelatedValue(_folded(text), text, alert, at + pointer, entity, at, others)


def _named(alert: RelatedAlert, at: str, entity: Mapping[str, JsonValue], key: str) -> RelatedValue:
    """A thing by the property `key`, else by its name: a host without its domain, of a path the last part."""
    key = key if entity.get(key) else "name"
    text = str(entity.get(key) or "")
    host = entity.get("kind") == "host"
    text = text.partition(".")[0] if host and key == "name" else text if host else base_name(text)
    return RelatedValue(_folded(text), text, alert, f"{at}/{key}", entity, at)


def _account(alert: RelatedAlert, at: str, entity: Mapping[str, JsonValue]) -> RelatedValue:
    key = "account_name" if entity.get("account_name") else "name"
    text = str(entity.get(key) or "")
    identity = str(entity.get("aad_user_id") or entity.get("upn") or text)
    named = (("display_name", entity.get("display_name")), ("upn", entity.get("upn")))
    others = tuple((str(told), f"{at}/{name}") for name, told in named if told and str(told).lower() != text.lower())
    return RelatedValue(_folded(identity), text, alert, f"{at}/{key}", entity, at, others)


def _folded(text: str) -> str:
    text = re.sub(r"^https?://", "", text.strip().casefold()).rstrip("/.")
    return re.sub(r"\\+", r"\\", text)


# --- the incident and the alerts that are meant, and what to ask for next


MOST_ROUNDS = 4
"""Rounds of calls after the first."""
MOST_LISTED = 300
"""Alerts of one incident that are listed at most; of a larger one no value is singled out."""
MOST_READ, MOST_NAMED, MOST_INCIDENTS = 8, 4, 2
MOST_BEFORE = 2
"""Sentences before the last that may belong to the question."""
LEAST_WORDS = 18
"""Words from which on several sentences tell a story; fewer are a question with a greeting."""
LEAST_TELLING = 9
"""Words from which on a question about an incident tells of one alert of it, rather than of all."""
CLEAR, TELLING = 0.5, 6.0
"""How much of an alert's name a question says at least, or the weight of words that it shares with its story, to be
read without the sentences before it."""
_NEAR, _STORY_WEIGHT = 0.9, 0.7
"""Incidents that fit this share of the best one stay side by side. A story tells of another alert of the incident."""
_OF_ASKING = ("modal", "op")
_SENTENCE = re.compile(r"(?<=[.?!])[\"'”`)]*\s+(?=[^\W\d_a-zà-ÿ]|[\"'`“(])|(?<=[}\]])\s+(?=[^\W\d_a-zà-ÿ])|\s*\n\s*")
_NUMBER_OF_LIST = re.compile(r"\[\d{1,3}\]")


def story_plan(text: str, reader: Reader) -> Plan | None:
    """A plan for a text that tells what happened and asks for one thing of it, or for a question about one alert of a
    named incident in words that name no field; None for any other text."""
    sentences = [each.strip() for each in _SENTENCE.split(text.replace("__", " ").strip()) if each.strip()]
    if not sentences or _NUMBER_OF_LIST.search(text):
        return None
    question, told = reader.read(sentences[-1]), sentences[:-1]
    properties = asked_properties(question)
    if not properties or question.has("op:count", "op:trend", "all") or read_order(sentences[-1]):
        return None
    tells = bool(question.unread) or question.has("title", "maybe_title")
    tells |= len(sentences[-1].split()) >= LEAST_TELLING and question.has("topic", "tactic", "claim")
    tells |= question.has("kind:alert") and question.has("order:oldest", "order:newest", "relation")
    is_story = bool(told) and len(text.split()) >= LEAST_WORDS
    if not (_incidents(question) and tells) and not is_story:
        return None
    before = reader.read(" ".join(told)) if told else Frame("")
    incidents = tuple(dict.fromkeys((*_incidents(question), *_incidents(before))))
    named = () if incidents else _names_in(text)
    calls = [PlannedCall("query_alerts", {"incident": each, "limit": MAX_LIMIT}) for each in incidents] or [
        PlannedCall("query_alerts", {"limit": MAX_LIMIT}),
        PlannedCall("query_alerts", {"order": "oldest", "limit": MAX_LIMIT}),
    ]
    calls += [PlannedCall("query_alerts", {"entity": name, "limit": MAX_LIMIT}) for name in named]
    return Plan(
        view=View.ATTRIBUTE, calls=tuple(calls), frame=question, aspects=properties, told=tuple(told), story=before
    )


def _incidents(frame: Frame) -> tuple[str, ...]:
    """Numbers that stand behind a word for an incident; a story holds other numbers and ids."""
    found = []
    for place, item in enumerate(frame.items):
        before = frame.items[place - 1] if place else None
        numeric = item.text.lstrip("#").isdecimal() and before is not None
        if numeric and before is not None and before.sense("kind", frozenset({"incident"})) is not None:
            found.append(item.text.lstrip("#"))
    return tuple(found)


def _names_in(text: str) -> tuple[str, ...]:
    """Names that tell things apart: with a digit, a dot or a path in them, each once."""
    found = [token.value for token in shaped_tokens(text) if token.shape in NAMES]
    telling = [name for name in found if any(letter.isdigit() or letter in ".\\@" for letter in name)]
    return tuple({name.lower(): name for name in reversed(telling)}.values())[::-1][:MOST_NAMED]


@dataclass(frozen=True, slots=True)
class Focus:
    """`incidents` in question, the `alerts` of them, and `meant`: those whose name fits. `question` is the text that
    was taken for the question; `best` the one name that fits it clearly better than any other, or empty."""

    incidents: tuple[str, ...]
    alerts: tuple[RelatedAlert, ...]
    meant: tuple[RelatedAlert, ...]
    question: str
    best: str = ""


def focus_of(plan: Plan, runs: Sequence[ToolRun]) -> Focus:
    """The incident and the alerts that the question means, as far as the results so far tell."""
    alerts = alerts_in(runs)
    told = _told_incidents(plan)
    numbers = told
    if not told:
        numbers = _likely(plan, runs, alerts)
        alerts = [alert for alert in alerts if not numbers or alert.incident in numbers]
    else:
        listed = {str(row.get("alert_id")): row for run in runs if "incident" in run.call.arguments for row in run.rows}
        numbers = tuple(dict.fromkeys(str(row.get("incident_number")) for row in listed.values()))
        alerts = [alert for alert in alerts if alert.alert_id in listed]
    kinds = {kind for label in plan.aspects[:1] for kind in attribute_of(label).kinds}
    telling = {
        alert.name
        for alert in alerts
        if not alert.whole or any(entity.get("kind") in kinds for _, entity in alert.entities)
    }
    question, fitting = _best_reading(plan, [each for each in alerts if each.name in telling] or alerts, alerts)
    names = near_best(fitting)
    meant = tuple(alert for alert in alerts if alert.name in names)
    if plan.frame.has("kind:alert") and not plan.told:
        meant = _in_time(plan.frame, meant, alerts)
    return Focus(numbers, tuple(alerts), meant, question, clearly_best(fitting))


def _in_time(frame: Frame, meant: tuple[RelatedAlert, ...], alerts: Sequence[RelatedAlert]) -> tuple[RelatedAlert, ...]:
    """The alert beside those that are meant, or the first or last of them, where the question says so."""
    for side in ("before", "after"):
        if frame.has(f"relation:{side}") and meant:
            return tuple(neighbours(meant, alerts, side)[1])
    for order, best in (("oldest", min), ("newest", max)):
        if frame.has(f"order:{order}") and (those := meant or tuple(alerts)):
            wanted = best(map(began, those))
            return tuple(alert for alert in those if began(alert) == wanted)
    return meant


def neighbours(
    meant: Sequence[RelatedAlert], alerts: Sequence[RelatedAlert], side: str
) -> tuple[RelatedAlert, list[RelatedAlert]]:
    """The earliest or latest of the alerts that are meant, and those that began right before or right after it."""
    names = {alert.name for alert in meant}
    pivot = min(meant, key=began) if side == "before" else max(meant, key=began)
    beyond = [
        alert
        for alert in alerts
        if alert.name not in names
        and began(alert) != began(pivot)
        and (began(alert) < began(pivot)) == (side == "before")
    ]
    nearest = (max if side == "before" else min)(map(began, beyond), default=None)
    return pivot, [alert for alert in beyond if began(alert) == nearest]


def _best_reading(plan: Plan, alerts: Sequence[RelatedAlert], every: Sequence[RelatedAlert]) -> tuple[str, list[Fit]]:
    """The last sentence and how it fits, or with it those before where alone it hardly tells of an alert."""
    words, text = _words(plan.frame, plan.aspects[0]), plan.frame.said
    for before in range(min(len(plan.told), MOST_BEFORE) + 1):
        if before:
            text = " ".join([*plan.told[len(plan.told) - before :], plan.frame.said])
            words |= stems(plan.told[len(plan.told) - before]) & _words(plan.story)
        fitting = fits(words, alerts, among=every)
        second = fitting[1].score if len(fitting) > 1 else 0.0
        stands_out = fitting and fitting[0].shared >= 0.75 * TELLING and fitting[0].score >= 2.0 * second
        if fitting and (fitting[0].cover >= CLEAR or fitting[0].shared >= TELLING or stands_out):
            break
    return text, fitting


def _words(frame: Frame, asked: str = "") -> frozenset[str]:
    """The words of a text that tell of an alert, by their stems; those of what is asked for tell of none."""
    told = [
        item.text
        for item in frame.items
        if not any(item.sense(type_) for type_ in (*TELL_NOTHING, *_OF_ASKING))
        and item.sense("kind", OF_ANY_ALERT) is None
        and item.sense("that", OF_ANY_ALERT) is None
        and not (asked and any(label_of(sense) == asked for sense in item.senses))
    ]
    return stems(" ".join(told))


def _told_incidents(plan: Plan) -> tuple[str, ...]:
    """Incidents that the first calls were about: the person named them."""
    return tuple(dict.fromkeys(str(call.arguments["incident"]) for call in plan.calls if "incident" in call.arguments))


def _likely(plan: Plan, runs: Sequence[ToolRun], alerts: Sequence[RelatedAlert]) -> tuple[str, ...]:
    """Numbers of the incidents that fit best."""
    score: dict[str, float] = defaultdict(float)
    _, asked = _best_reading(plan, alerts, alerts)
    for fitting, weight in ((asked, 1.0), (fits(_words(plan.story), alerts), _STORY_WEIGHT)):
        if not fitting or fitting[0].score <= 0:
            continue
        of_name = {fit.name: weight * fit.score / fitting[0].score for fit in fitting}
        best: dict[str, float] = defaultdict(float)
        for alert in alerts:
            best[alert.incident] = max(best[alert.incident], of_name[alert.name])
        for incident, value in best.items():
            score[incident] += value
    named = [run for run in runs if "entity" in run.call.arguments]
    for run in named:
        for incident in {str(row.get("incident_number")) for row in run.rows}:
            score[incident] += 1.0 / len(named)
    for nothing in ("", "None"):
        score.pop(nothing, None)
    near = [incident for incident, value in score.items() if value >= _NEAR * max(score.values())]
    return tuple(sorted(near, key=lambda incident: -score[incident])[:MOST_INCIDENTS])


def next_calls(plan: Plan, runs: Sequence[ToolRun]) -> tuple[PlannedCall, ...]:
    """The calls of the next round: the incident's alerts, then those in full that are meant; none when all was read."""
    focus = focus_of(plan, runs)
    made = [
        (run.call.tool_name, {name: value for name, value in run.call.arguments.items() if name != "workspace"})
        for run in runs
    ]
    calls = [call for each in _told_incidents(plan) or focus.incidents for call in _listing(each, runs)]
    new = [call for call in calls if (call.tool, dict(call.arguments)) not in made]
    if not new:
        calls = _reading([alert for alert in focus.meant if not alert.whole])
        new = [call for call in calls if (call.tool, dict(call.arguments)) not in made]
    return tuple(new)


def all_listed(runs: Sequence[ToolRun]) -> bool:
    """False if an incident has more alerts than were listed: what was not seen may tell another value."""
    return all(_total(run) <= MOST_LISTED for run in runs if _lists(run, str(run.call.arguments.get("incident"))))


def _listing(reference: str, runs: Sequence[ToolRun]) -> list[PlannedCall]:
    """All alerts of an incident, a page at a time."""
    total = next((_total(run) for run in runs if _lists(run, reference)), 0)
    whole = {"incident": reference, "limit": MAX_LIMIT}
    pages = range(MAX_LIMIT, min(total, MOST_LISTED), MAX_LIMIT)
    return [PlannedCall("query_alerts", {**whole, **more}) for more in ({}, *({"offset": at} for at in pages))]


def _lists(run: ToolRun, reference: str) -> bool:
    arguments = run.call.arguments
    return arguments.get("incident") == reference and arguments.get("limit") == MAX_LIMIT and "offset" not in arguments


def _total(run: ToolRun) -> int:
    total = run.at("/coverage/rows_total")
    return total if isinstance(total, int) else len(run.rows)


def _reading(alerts: Sequence[RelatedAlert]) -> list[PlannedCall]:
    """These alerts in full: by the pages of their incident where that is fewer calls, else one by one."""
    pages: dict[tuple[str, int], None] = {}
    alone: list[PlannedCall] = []
    for alert in alerts:
        arguments = alert.run.call.arguments
        paged = "incident" in arguments and set(arguments) <= {"incident", "limit", "offset", "workspace"}
        if paged and len(alert.run.rows) > WITH_PROPERTIES:
            first = arguments.get("offset")
            place = alert.place + (first if isinstance(first, int) else 0)
            pages[str(arguments["incident"]), place // WITH_PROPERTIES * WITH_PROPERTIES] = None
        elif ALERT_ID.fullmatch(alert.alert_id):
            alone.append(PlannedCall("query_alerts", {"alert_id": alert.alert_id}))
    calls = [
        PlannedCall("query_alerts", {"incident": incident, "limit": WITH_PROPERTIES, **({"offset": at} if at else {})})
        for incident, at in pages
    ]
    return (calls + alone)[:MOST_READ]


# --- the choice


PROCESSES = frozenset({"process", "command line", "process id"})
_FILES = frozenset({"file", "malware"})
_INSTEAD = {"sender IP": "IP address", "recipient": "email address"}
"""What may stand for a property where no alert tells it."""
_OF_THE_SYSTEM = re.compile(r"(?:^|\\)windows\\|\\program files(?: \(x86\))?\\|^/(?:usr/)?s?bin/", re.IGNORECASE)
_PROGRAM = re.compile(r"[\w-]\.(?:exe|com|scr|elf|ps1|dll)\b", re.IGNORECASE)
_DETAILS = (("process id", "process_id", "prop:process_id"), ("command line", "command_line", "prop:command_line"),
            ("creation time", "created_time", "attr:created", "ask:when"))  # fmt: skip
"""Further properties of a process: label, name in the entity, and the features that ask for it."""


class SelectionReason(StrEnum):
    """Why one value is the answer."""

    ONLY = "only"
    ONLY_WITH_NAMES = "only_with_names"
    NOT_YET_TOLD = "not_yet_told"
    ROLE = "role"
    FITS_BEST = "fits_best"
    ANOTHER_ALERT = "another_alert"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True)
class Choice:
    """`values` that fit, the one that is singled out alone if `reason` is set; `alerts` are those that were compared.

    `beside` are further properties of the same process that the question asks for, each with its label.
    """

    wanted: Attribute
    values: tuple[RelatedValue, ...]
    reason: SelectionReason | None
    alerts: tuple[RelatedAlert, ...]
    beside: tuple[tuple[str, RelatedValue], ...] = ()


def choose(plan: Plan, runs: Sequence[ToolRun]) -> Choice | None:
    """The choice, or None where no alert fits the words or none of those tells the property."""
    focus = focus_of(plan, runs)
    frame, told, question = plan.frame, " ".join(plan.told).lower(), focus.question.lower()
    for label in (plan.aspects[0], _INSTEAD.get(plan.aspects[0])):
        if label is None:
            continue
        wanted = attribute_of(label)
        alerts = _naming_most(focus.meant, question, wanted.kinds)
        if frame.has("same:host"):
            others = tuple(kind for kind in ENTITY_KINDS if kind != "host")
            alerts = tuple(alert for alert in alerts if alert.said_in(told, without=others)) or alerts
        values = _values(wanted, alerts, focus.alerts, frame)
        if not values:
            continue
        kept, reason = _singled_out(wanted, values, frame, question, told)
        if reason is SelectionReason.ONLY and len(alerts) < len(focus.meant):
            reason = SelectionReason.ONLY_WITH_NAMES
        if reason is None and label not in PROCESSES:
            kept, reason = _by_its_alert(kept, focus.best, told)
        beside = [_details_beside(frame, wanted, value) for value in kept]
        several_processes = len({tuple(part.text for _, part in each) for each in beside}) > 1
        if several_processes or not all(alert.whole for alert in alerts) or not all_listed(runs):
            reason = None
        return Choice(wanted, _distinct(kept), reason, alerts, beside[0])
    return None


def _naming_most(alerts: Sequence[RelatedAlert], question: str, without: Sequence[str]) -> tuple[RelatedAlert, ...]:
    """The alerts that name the most of the things that the question names, apart from things of the kind asked for."""
    said = [alert.said_in(question, without=without) for alert in alerts]
    most = max(map(len, said), default=0)
    return tuple(alert for alert, names in zip(alerts, said, strict=True) if len(names) == most)


def _values(
    wanted: Attribute, alerts: Sequence[RelatedAlert], others: Sequence[RelatedAlert], frame: Frame
) -> list[RelatedValue]:
    """What `alerts` tell of the property, in the sort that the question says; else what `others` tell of their
    things."""
    values = [value for alert in alerts for value in values_in(wanted, alert)] or told_elsewhere(wanted, alerts, others)
    endings = tuple(ending for sort in frame.all("sort") for ending in relation_data()["endings"].get(sort, ()))
    if wanted.label in _FILES and endings:
        of_sort = [value for value in values if value.text.lower().rpartition(".")[2] in endings]
        return of_sort or _files_of_commands(alerts, endings)
    if frame.has("kind:mailbox"):
        return [value for value in values if value.entity.get("kind") == "mailbox"] or values
    return values


def _files_of_commands(alerts: Sequence[RelatedAlert], endings: tuple[str, ...]) -> list[RelatedValue]:
    """Files of that sort that the alerts' command lines name."""
    pattern = re.compile(rf"[^\s\"'=:;,|<>(){{}}]+\.(?:{'|'.join(endings)})\b", re.IGNORECASE)
    found = []
    for alert in alerts:
        for at, entity in alert.entities:
            for match in pattern.finditer(str(entity.get("command_line") or "")):
                name = base_name(match[0])
                found.append(RelatedValue(name.casefold(), name, alert, f"{at}/command_line", entity, at))
    return found


def _singled_out(
    wanted: Attribute, values: Sequence[RelatedValue], frame: Frame, question: str, told: str
) -> tuple[Sequence[RelatedValue], SelectionReason | None]:
    """The values that the first rule leaves alone, or all of them and no reason."""
    if _one(values):
        plain_system_file = wanted.label in _FILES | PROCESSES and not _not_of_the_system(values)
        return values, None if plain_system_file else SelectionReason.ONLY
    if wanted.label == "account" and frame.has("person", "ask:who"):
        persons = [value for value in values if is_person(value)]
        if _one(persons):
            return persons, SelectionReason.ROLE
    if wanted.label in PROCESSES:
        return _of_processes(wanted, values, frame, question)
    if wanted.label in _FILES:
        foreign = _not_of_the_system(values)
        return (foreign, SelectionReason.ROLE) if _one(foreign) and not frame.has("kind:process") else (values, None)
    untold = [value for value in values if not says(f"{told} {question}", value.text.lower())]
    return (untold, SelectionReason.NOT_YET_TOLD) if _one(untold) else (values, None)


def _by_its_alert(
    values: Sequence[RelatedValue], best: str, told: str
) -> tuple[Sequence[RelatedValue], SelectionReason | None]:
    """The value that the alerts called `best`, those that share nothing with the story, or a description leave alone.

    A story tells of one alert and its question of another, so an alert that names nothing told of is the likelier one.
    """
    for kept, reason in (
        ([value for value in values if value.alert.name == best], SelectionReason.FITS_BEST),
        ([value for value in values if told and not value.alert.said_in(told)], SelectionReason.ANOTHER_ALERT),
        ([value for value in values if _described(value)], SelectionReason.DESCRIBED),
    ):
        if _one(kept):
            return kept, reason
    return values, None


def _described(value: RelatedValue) -> bool:
    return says(str(value.alert.row.get("description") or "").lower(), value.text.lower())


def _of_processes(
    wanted: Attribute, values: Sequence[RelatedValue], frame: Frame, question: str
) -> tuple[Sequence[RelatedValue], SelectionReason | None]:
    """Of processes, those that are named by id or program, else those at the end of a chain."""
    if frame.has("starter"):
        return values, None
    if wanted.label != "process":
        said = set(re.findall(r"\d{1,7}", question))
        named = [value for value in values if str(value.entity.get("process_id")) in said] or [
            value
            for value in values
            if any(says(question, name) for name in names_of(value.entity) if "." in name or " " in name)
        ]
        if _one(named):
            return named, SelectionReason.ONLY_WITH_NAMES
        if _PROGRAM.search(question):
            return values, None
    started = {
        (value.alert.alert_id, str(parent))
        for value in values
        for _, entity in value.alert.entities
        if (parent := entity.get("parent_process_id"))
    }
    last = [value for value in values if (value.alert.alert_id, str(value.entity.get("process_id"))) not in started]
    return (last, SelectionReason.ROLE) if _one(last) else (values, None)


def _not_of_the_system(values: Sequence[RelatedValue]) -> list[RelatedValue]:
    """Files and processes whose image did not come with the operating system."""

    def own(value: RelatedValue) -> bool:
        path = str(value.entity.get("image_file") or value.entity.get("name") or "")
        return _OF_THE_SYSTEM.search(path) is None and value.text.lower() not in relation_data()["system"]["names"]

    return [value for value in values if own(value)]


def _details_beside(frame: Frame, wanted: Attribute, value: RelatedValue) -> tuple[tuple[str, RelatedValue], ...]:
    """(label, value) of each further property of its process that the question asks for and the alert tells."""
    if wanted.label not in PROCESSES:
        return ()
    asked = [(label, key) for label, key, *senses in _DETAILS if label != wanted.label and frame.has(*senses)]
    told = [(label, key, str(value.entity[key])) for label, key in asked if value.entity.get(key)]
    return tuple(
        (label, replace(value, key=text, text=text, pointer=f"{value.at}/{key}", others=()))
        for label, key, text in told
    )


def _one(values: Sequence[RelatedValue]) -> bool:
    return len({value.key for value in values}) == 1


def _distinct(values: Sequence[RelatedValue]) -> tuple[RelatedValue, ...]:
    return tuple({value.key: value for value in reversed(values)}.values())[::-1]
