"""Stored queries, found by the frames of their own names and example questions.

Nothing about a single query stands here, so an operator's own are found as those that ship. Below a floor none is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sentinel_rag.agent.planner.decisions import Decision, Unclear, ask, call, told_of
from sentinel_rag.agent.planner.tools import lost
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.phrases import SILENT, settings, words_of
from sentinel_rag.language.lexicon import fold

NEAR, SURE = 0.08, 0.5
_LEAST_OFFERED, _FAR, _MOST_OFFERED = 0.2, 0.2, 3
_LEAST, _MOST = "min_", "max_"
"""How a parameter that is a bound begins."""
_BOUNDS = {"bound_min": (_LEAST, 0), "bound_more": (_LEAST, 1), "bound_max": (_MOST, 0), "bound_less": (_MOST, -1)}
"""Bounds that were said, with the parameters that take them and what "more than" adds."""
_COMPARED = ("topic", "attr", "class", "kind", "prop", "unit", "grouped")
_OF_EVERYTHING = {"kind:data", "kind:thing", "kind:template", "attr:detail"}
_OF_CHANGES = {"topic:change", "topic:fileevent", "topic:mailrule", "topic:role", "topic:consent"}
"""What is said of a query whose rows are changes, so that "created" says nothing more."""
_ALSO_SAID = ("kind", "product", "prop")
"""What is also said where the query's own texts say its English word, whatever the language of the question."""
_COMPARE = frozenset({"compare"})
_UNITS = ("hour", "day", "week")
_ALSO_CARRIED = ("status", "severity", "class", "owner")
"""What a query tells beside what it is found by."""
_TOLD_APART = ("topic:", "unit:", "prop:", "word:", "op:average")
_NEAR_TOPICS = {"topic:signin": "topic:logon", "topic:logon": "topic:signin"}
"""What people say for one another: who "logged in" to a host has a logon, not a sign-in."""
_CHANGED = frozenset({"change"})
_NEARLY = 0.9
_WORD_BY_WORD = 9.0
_NOTHING_COMMON = 2.0
_OTHER_PART = 0.85
_BY_WHOM, _TO_WHOM = ("actor", "caller"), ("target",)
"""Parameters for who did something, and for what it was done to."""
_FARTHEST = 3
"""Words between a name and the one that says its part."""
_LESS = {"ask": 0.4, "word": 0.4}
"""What tells less: who or where, and words that no language file holds."""
_MISSING_NAME, _ANOTHER_TOPIC, _LACKS_TOPIC = 0.55, 0.6, 0.9
_SHORTEST_STEM, _LONGEST_ENDING = 4, 3
_FITTING, _FILLING = 0.2, 0.05


def features(frame: Frame, *, stored: bool = False) -> frozenset[str]:
    """What a frame says, as features that can be compared; of a stored query also the words that hardly narrow."""
    told = {f"{type_}:{value}" for type_ in _COMPARED for value in frame.all(type_)}
    asked = [item for item in frame.items if item.sense("topic") or (item.sense("ask") and frame.has("topic"))]
    told -= {f"attr:{sense[1]}" for item in asked if (sense := item.sense("attr"))}
    told |= {f"threat:{sense[1] or fold(item.text)}" for item in frame.items if (sense := item.sense("threat"))}
    told |= {f"op:{op}" for op in frame.all("op") if op in ("top", "average")}
    told |= {f"ask:{word}" for word in frame.all("ask") if word in ("who", "where")}
    told |= {f"{'unit' if group in _UNITS else 'group'}:{group}" for group in frame.all("group")}
    if frame.has("owner"):
        told.add("attr:owner")
    told |= {f"bound:{begins}" for said, (begins, _) in _BOUNDS.items() if frame.has("symbol") and frame.has(said)}
    told |= {f"word:{word}" for word in unread_words(frame)} | {f"word:{word}" for word in frame.loose if stored}
    if "attr:began" in told:  # "since when" says both
        told.discard("attr:duration")
    return frozenset(told - _OF_EVERYTHING)


def _also(frame: Frame) -> frozenset[str]:
    also = {f"{type_}:{value}" for type_ in _ALSO_CARRIED for value in frame.all(type_)}
    return frozenset(also | {f"attr:{group}" for group in frame.all("group")})


def sentence(frame: Frame) -> tuple[str, ...]:
    """The words of a sentence without names and times."""
    named = [name for name in frame.kinds if name in frame.text]
    text = frame.text.replace(frame.time_said, " ") if frame.time_said else frame.text
    for name in sorted(named, key=len, reverse=True):
        text = text.replace(name, " ")
    return words_of(text)


def unread_words(frame: Frame) -> list[str]:
    """The words that nothing read, without the ending of a plural: a stored query may say them."""
    return [word.rstrip("s") for text in frame.unread for word in words_of(text)]


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One stored query: the features of its questions, of all it says, and its parameters with what fills them."""

    name: str
    sentences: frozenset[tuple[str, ...]]
    """Its questions word by word, names left out."""
    questions: tuple[frozenset[str], ...]
    whole: frozenset[str]
    parameters: Mapping[str, tuple[str, ...]]
    required: frozenset[str]
    types: Mapping[str, str] = field(default_factory=dict)
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What the names of parameters say ("min_users": accounts)."""
    described: Mapping[str, str] = field(default_factory=dict)
    """What a person is told of each parameter."""
    tables: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    """All words of its own texts."""

    def says(self, words: Iterable[str]) -> bool:
        """Whether each of the words stands, in some form, in its own texts: such a word is what it is about."""
        return all(any(_alike(word, own) for own in self.words) for word in words)


class StoredQueries:
    """All stored queries of a gateway, as the same reader reads them; `unknown` until they were asked for."""

    def __init__(self, rows: Iterable[Mapping[str, JsonValue]] | None, reader: Reader) -> None:
        self.unknown = rows is None
        self.entries = [_entry(row, reader) for row in rows or () if _well_formed(row)]
        seen = Counter(feature for entry in self.entries for feature in entry.whole)
        self.words = frozenset(
            one.removeprefix("word:")
            for entry in self.entries
            for told in (*entry.questions, *entry.about.values())
            for one in told
            if one.startswith("word:")
        )
        """Words that only stored queries say."""
        self._weights = {feature: 0.3 + math.log((1 + len(self.entries)) / n) for feature, n in seen.items()}

    def named(self, name: str) -> StoredQuery | None:
        """The query of that name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def names_threat(self, frame: Frame) -> bool:
        """Whether a query is for an attack that the frame names ("is there a password spray"), and for no list."""
        lists = frame.has("kind:alert", "kind:incident")
        return not lists and any(one in self._weights for one in features(frame) if one.startswith("threat:"))

    def best(self, frame: Frame) -> tuple[float, StoredQuery] | None:
        """The query whose own questions say the same, and how much."""
        if not self.entries:
            return None
        asked, said = features(frame), sentence(frame)
        asked = frozenset(one for one in asked if not one.startswith("threat:") or one in self._weights)
        ranked = self._ranked(frame, asked, said)
        near = [pair for pair in ranked if pair[0] >= ranked[0][0] - NEAR]
        # Of near ones, the one that cannot do without the names that were said.
        return max(near, key=lambda pair: len(pair[1].required & set(filled(pair[1], frame)[0])))

    def offered(self, frame: Frame) -> list[Decision]:
        """The calls of the queries that come nearest where none is near enough, for a person to choose from."""
        made: list[Decision] = []
        ranked = self._ranked(frame, features(frame), sentence(frame))[:_MOST_OFFERED]
        least = max(_LEAST_OFFERED, (ranked[0][0] if ranked else 0.0) - _FAR)
        for score, entry in ranked:
            named = frame.copy()
            named.tell("template", entry.name)
            found = to_stored_query(named, self) if score >= least else None
            made += [found] if found is not None and found.calls else []
        return made

    def _ranked(self, frame: Frame, asked: frozenset[str], said: tuple[str, ...]) -> list[tuple[float, StoredQuery]]:
        scored = ((self._score(entry, frame, asked, said), entry) for entry in self.entries)
        return sorted(scored, key=lambda pair: -pair[0])

    def _weigh(self, told: frozenset[str]) -> float:
        return sum(self._weights.get(one, _NOTHING_COMMON) * (_LESS.get(one.partition(":")[0], 1.0)) for one in told)

    def _score(self, entry: StoredQuery, frame: Frame, asked: frozenset[str], said: tuple[str, ...]) -> float:
        values, left = filled(entry, frame)
        if said in entry.sentences and not left and entry.required <= set(values):
            return _WORD_BY_WORD
        return max(self._said(entry, frame, one) * less for one, less in _readings(frame, asked))

    def _alike(self, asked: frozenset[str], one: frozenset[str]) -> float:
        """How much two sentences say the same; less where the one leaves out what the other is above all about."""
        share = 2 * self._weigh(asked & one) / (self._weigh(asked) + self._weigh(one))
        topics = {
            feature: self._weights.get(feature, _NOTHING_COMMON) for feature in one if feature.startswith("topic:")
        }
        heaviest = max((weight for feature, weight in topics.items() if feature in asked), default=0.0)
        other = any(weight > heaviest for feature, weight in topics.items() if feature not in asked)
        lacks = any(self._weights.get(each, 0.0) > heaviest for each in asked - one if each.startswith("topic:"))
        return share * (_ANOTHER_TOPIC if other else 1.0) * (_LACKS_TOPIC if lacks else 1.0)

    def _said(self, entry: StoredQuery, frame: Frame, asked: frozenset[str]) -> float:
        # A query that never speaks of what was said ("failed", "by day") would leave it out.
        soft = {
            f"{type_}:{value}"
            for item in frame.items
            if any(one in SILENT for one, _ in item.senses) or item.sense("kind")
            for type_, value in item.senses
        }
        if not asked or any(one not in entry.whole for one in asked - soft if one.startswith(_TOLD_APART)):
            return 0.0
        best = max((self._alike(asked, one) for one in entry.questions), default=0.0)
        values, left = filled(entry, frame)
        if entry.required - set(values) or left:
            best *= _MISSING_NAME
        else:
            best += sum(
                _FITTING if frame.has(name) or {*frame.name_kinds(value)[:1]} & {*entry.parameters[name]} else _FILLING
                for name, value in values.items()
            )
        for named in frame.all("parameter"):
            best = best + _FITTING if named.partition("=")[0] in entry.parameters else best * _MISSING_NAME
        if frame.has("symbol"):
            bounds = bounded(entry, frame)
            counted = {f"kind:{what}" for what in frame.all("bounded")}
            best *= 1.0 if bounds else _MISSING_NAME
            best += _FITTING if any(entry.about[name] & counted for name in bounds) else 0.0
        if frame.has("name"):
            other = _BY_WHOM if _acted_on(frame, frame.all("name")[0]) else _TO_WHOM
            best *= _OTHER_PART if values.keys() & set(other) else 1.0
        return float(best)


def _readings(frame: Frame, asked: frozenset[str]) -> list[tuple[frozenset[str], float]]:
    """What was said by each sense of words that name several topics, and with the topic that people say for another."""
    readings = [asked]
    for item in frame.items:
        topics = {f"topic:{value}" for type_, value in item.senses if type_ == "topic"} & asked
        if len(topics) > 1:
            readings = [one - topics | {topic} for one in readings for topic in sorted(topics)]
    near = [frozenset(_NEAR_TOPICS.get(feature, feature) for feature in one) for one in readings]
    return [(one, 1.0) for one in readings] + [(one, _NEARLY) for one in near if one not in readings]


def _behind(frame: Frame, name: str, part: str) -> bool:
    """True for a name behind a word that says its part, such as "on" and "to" for what something was done to."""
    start = frame.text.find(name)
    said = settings(frame.language, part)
    for item in reversed([item for item in frame.items if item.end <= start][-_FARTHEST:]):
        if fold(item.text) in said:
            return True
        if not (item.silent or item.sense("kind") or item.sense("of")):
            return False
    return False


def _acted_on(frame: Frame, name: str) -> bool:
    """True for a name that something was done to: "who changed the account of X", "changes to X"."""
    changed = [item.end for item in frame.items if item.sense("topic", _CHANGED) and item.sense("attr")]
    by_another = frame.has("ask:who") and bool(changed) and changed[0] <= frame.text.find(name)
    return by_another or _behind(frame, name, "target")


def _in_its_part(frame: Frame, name: str, part: str) -> bool:
    """Whether the words beside a name say its part; what "was started by" another one is the child."""
    if part != "child":
        return _behind(frame, name, part)
    end, passive = frame.text.find(name) + len(name), settings(frame.language, "parent")
    behind = [item for item in frame.items if item.start >= end and not item.silent][:1]
    return _behind(frame, name, part) or any(fold(item.text) in passive for item in behind)


def contained(frame: Frame, queries: StoredQueries) -> Frame:
    """The frame with an unknown word as what rows are to contain: behind "with" or a comma, where the stored query
    that is asked for takes such a word."""
    frame = _parameters_told(frame, queries)
    text = frame.unread[0] if len(frame.unread) == 1 and frame.has("topic", "prop", "kind:file", "kind:process") else ""
    start = frame.text.find(text) if text else 0
    before = frame.text[:start].rstrip()
    word = words_of(before)[-1:]
    if not before or frame.has("title") or not (before[-1] in ",:;" or word[0] in settings(frame.language, "with")):
        return frame
    told = frame.copy()
    told.unread = []
    told.tell("title", text)
    found = queries.best(told)
    return told if found is not None and found[0] >= SURE and "contains" in found[1].parameters else frame


def _parameters_told(frame: Frame, queries: StoredQueries) -> Frame:
    """The frame with values of parameters that it says by their names ("type 2" for `logon_type`), or as the query's
    own texts write them ("NTLM")."""
    topics = {f"topic:{topic}" for topic in frame.all("topic")}
    topics |= {_NEAR_TOPICS.get(topic, topic) for topic in topics}
    told, pairs = frame.copy(), set(map(" ".join, pairwise(words_of(frame.text))))
    for entry in queries.entries if frame.unread or frame.loose or frame.has("digits") else ():
        for name, description in entry.described.items() if not topics or topics & entry.whole else ():
            what, number = name.rpartition("_")[2], next(iter(told.all("digits")), "")
            if topics and number and f"{what} {number}" in fold(told.text):
                told.tell("parameter", f"{name}={number}")
                told.features["num"] = told.features["digits"] = told.features["cmp"] = []
                told.unread = [word for word in told.unread if fold(word) != what]
            unknown = (*told.unread, *told.loose)
            named = [word for word in unknown if {f"{fold(word)} {what}", f"{what} {fold(word)}"} & pairs]
            if named and not entry.parameters[name] and entry.types[name] != "int":  # "the Finance department"
                told.tell("parameter", f"{name}={named[0]}")
                told.unread, told.loose = (
                    [one for one in all_ if one != named[0]] for all_ in (told.unread, told.loose)
                )
            examples = {fold(one.strip()): one.strip() for one in description.partition(": ")[2].split(",")}
            written = [word for word in (*told.unread, *told.loose) if fold(word) in examples]
            if written and not entry.parameters[name]:
                told.tell("parameter", f"{name}={examples[fold(written[0])]}")
                told.unread = [word for word in told.unread if word != written[0]]
                told.loose = [word for word in told.loose if word != written[0]]
                if not topics:
                    told.tell("template", entry.name)
    return told


def filled(entry: StoredQuery, frame: Frame) -> tuple[dict[str, Any], list[str]]:
    """Parameters out of the names that were said, and the names for which there is no parameter."""
    values: dict[str, Any] = {}
    left: list[str] = []
    for name, _, value in (told.partition("=") for told in frame.all("parameter")):
        if name in entry.parameters and (entry.types[name] != "int" or value.isdecimal()):
            values[name] = int(value) if entry.types[name] == "int" else value
    for place in ("table", "operation"):
        for value in frame.all(place)[:1]:
            if place in entry.parameters:
                values[place] = value
            elif value not in entry.tables:
                left.append(value)
    for name in frame.all("name"):
        kinds = set(frame.name_kinds(name))
        fit = [one for one, takes in entry.parameters.items() if one not in values and kinds & set(takes)]
        if fit:
            fit.sort(key=lambda one: not _in_its_part(frame, name, one))
            values[fit[0]] = frame.whole.get(name, name) if name.replace(" ", "").isalpha() else name
        elif "process" in kinds and "contains" in entry.parameters and "contains" not in values:
            values["contains"] = name
        else:
            left.append(name)
    return values, left


def to_stored_query(frame: Frame, queries: StoredQueries) -> Decision | None:
    """The stored query that answers the frame; None where none is near enough or one cannot hold all that was said."""
    named = frame.one("template")
    entry = queries.named(named) if named else None
    if entry is None:
        found = queries.best(frame) if not named else None
        if found is None or found[0] < SURE:
            return None
        entry = found[1]
    values, left = filled(entry, frame)
    if left or (frame.has("owner") and frame.one("owner") != "unassigned"):
        return None
    if named and frame.has("severity", "min") and not levels(entry, frame) and "attr:severity" not in entry.whole:
        return None
    if entry.required - set(values):
        asked = frame.copy()
        for type_ in ("title", "maybe_title", "guess"):
            asked.features.pop(type_, None)  # a word of a topic is none of a title once the query is chosen
        missing = [entry.described[name] for name in entry.described if name in entry.required - set(values)]
        return ask(asked, Unclear.WHICH_NAME, entry.name, *missing)
    if frame.has("not", "without", "problem"):
        return ask(frame, Unclear.CANNOT_LEAVE_OUT)
    compared = [item.text for item in frame.items if item.sense("op", _COMPARE) and not item.sense("rel")]
    if compared and frame.has("op:compare") and frame.window:
        return ask(frame, Unclear.NOT_TAKEN, *compared)
    titles = _other_titles(entry, frame)
    if titles:
        if "contains" not in entry.parameters:
            return None
        values["contains"] = " ".join(titles)
    window = dict(frame.window)
    silence = next((one for one, type_ in entry.types.items() if type_ == "timespan"), None)
    lasting = words_of(frame.time_said)[:1] and words_of(frame.time_said)[0] in settings(frame.language, "lasting")
    if silence and frame.duration and (lasting or frame.has("cmp", "symbol") or "start_time" not in window):
        values[silence], window = frame.duration, {}
    values |= levels(entry, frame)
    if frame.has("symbol"):
        bounds = bounded(entry, frame)
        if not bounds:
            return ask(frame, Unclear.NOT_EXPRESSIBLE, *frame.all("symbol"))
        values |= bounds
    carried = {*entry.whole, *(_NEAR_TOPICS.get(one, "") for one in entry.whole)}
    carried |= {"class"} if "attr:classification" in entry.whole else set()
    carried |= {"attr:created", "attr:updated"} if entry.whole & _OF_CHANGES else set()
    carried |= {"attr:created"} if frame.has("kind:alert", "kind:incident") and frame.window else set()
    carried |= {"attr:created", "attr:began", "op:exists"} if frame.has("follow:and") else set()  # "and since when"
    carried |= {"threat"} if not titles else set()
    carried |= {one for one in ("calm", "relation") if not frame.has(one)}  # the grammar took it
    carried |= {"product"} if frame.has("topic") and len(frame.all("product")) == 1 else set()  # the source of the logs
    said = {sense for item in frame.items for sense in item.senses if sense[0] in _ALSO_SAID}
    carried |= {f"{type_}:{value}" for type_, value in said if value and entry.says(words_of(value))}
    carried |= {"kind:account", "attr:actor", "attr:closer"}  # who it was is told by most rows of logs
    carried |= {f"attr:{group}" for group in frame.all("group")}
    carried |= {"lit"} if frame.has("table", "operation") else set()
    carried |= {"severity", "min"} if levels(entry, frame) or "attr:severity" in entry.whole else set()
    missed = [one for one in lost(frame, "run_kql_query", carried) if not named and not entry.says(words_of(one))]
    if missed:
        return ask(frame, Unclear.NOT_TAKEN, ", ".join(missed))
    told: dict[str, Any] = {"template": entry.name, **window}
    told |= {"parameters": values} if values else {}
    told |= {"limit": int(str(frame.one("limit")))} if frame.one("limit") else {}
    return call(frame, "run_kql_query", told)


def _other_titles(entry: StoredQuery, frame: Frame) -> list[str]:
    """Words of titles beside those that the query's own questions say ("brute force")."""
    own = {
        item.text
        for item in frame.items
        if (sense := item.sense("threat")) and f"threat:{sense[1] or fold(item.text)}" in entry.whole
    }
    return [title for title in frame.all("title") if not any(one in title for one in own)]


def levels(entry: StoredQuery, frame: Frame) -> dict[str, Any]:
    """The severity that was said, for a parameter that takes such words."""
    said = {frame.one("min") or frame.one("severity") or ""}
    return {
        name: word
        for name, words in entry.allowed.items()
        for word in words
        if word.casefold() in map(str.casefold, said)
    }


def bounded(entry: StoredQuery, frame: Frame) -> dict[str, Any]:
    """A bound that was said, in the parameter that takes it: of several the one that names what is counted."""
    for said, (begins, more) in _BOUNDS.items():
        if frame.has(said):
            fit = [name for name, type_ in entry.types.items() if type_ == "int" and name.startswith(begins)]
            counted = {f"kind:{what}" for what in frame.all("bounded")}
            fit.sort(key=lambda name: not entry.about[name] & counted)
            return {name: int(str(frame.one(said))) + more for name in fit[:1]}
    return {}


def _well_formed(row: Mapping[str, Any]) -> bool:
    questions, parameters = row.get("questions") or [], row.get("parameters") or []
    return (
        isinstance(row.get("name"), str)
        and isinstance(questions, list | tuple)
        and isinstance(parameters, list | tuple)
        and all(isinstance(one, Mapping) and {"name", "required"} <= one.keys() for one in parameters)
    )


def _entry(row: Mapping[str, Any], reader: Reader) -> StoredQuery:
    name = str(row["name"])
    said: Sequence[str] = [name.replace("_", " "), *map(str, row.get("questions") or ())]
    frames = [reader.read(text) for text in said]
    told = tuple(filter(None, (features(frame, stored=True) for frame in frames)))
    parameters = row.get("parameters") or ()
    described = reader.read(str(row.get("description", "")))
    about = {
        str(one["name"]): features(reader.read(str(one["name"]).replace("_", " ")), stored=True) for one in parameters
    }
    return StoredQuery(
        name,
        frozenset(map(sentence, frames)),
        told,
        frozenset().union(*told, features(described), *about.values(), *map(_also, (*frames, described))),
        {str(one["name"]): tuple(told_of("parameters").get(str(one["name"]), ())) for one in parameters},
        frozenset(str(one["name"]) for one in parameters if one["required"]),
        {str(one["name"]): str(one.get("type", "")) for one in parameters},
        {str(one["name"]): tuple(map(str, one.get("allowed") or ())) for one in parameters},
        about,
        {str(one["name"]): str(one.get("description") or one["name"]).rstrip(".") for one in parameters},
        tuple(map(str, row.get("tables") or ())),
        frozenset(word for text in (*said, described.said, *map(_told, parameters)) for word in words_of(text)),
    )


def _told(parameter: Mapping[str, Any]) -> str:
    return f"{parameter['name']} {parameter.get('description') or ''}".replace("_", " ")


def _alike(one: str, other: str) -> bool:
    """True for two words that differ by an ending."""
    stem = max(_SHORTEST_STEM, max(len(one), len(other)) - _LONGEST_ENDING)
    return one == other or (min(len(one), len(other)) >= stem and one[:stem] == other[:stem])
