"""The alerts that calls brought, each once and in its fullest form, and how well words fit their names and stories.

Rows are text to be compared and nothing else. A list of many alerts tells only some entities of each; one of few all.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.language.frames.phrases import phrase_book

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
class Alert:
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
        found = self.row.get("entities")
        for index, entity in enumerate(found if isinstance(found, list | tuple) else ()):
            if isinstance(entity, Mapping):
                yield f"{self.pointer}/entities/{index}", entity

    def said_in(self, text: str, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> frozenset[str]:
        """The names of its entities that `text` (in lower case) says, of some kinds."""
        return frozenset(
            name
            for _, entity in self.entities
            if entity.get("kind") not in without and (not only or entity.get("kind") in only)
            for name in names_of(entity)
            if says(text, name)
        )


def alerts_in(runs: Sequence[ToolRun]) -> list[Alert]:
    """Every alert once, in the order in which it came first; a whole row takes the place of a part."""
    found: dict[str, Alert] = {}
    for run in runs:
        if run.call.tool_name != "query_alerts":
            continue
        for place, row in enumerate(run.rows):
            shown, count = row.get("entities"), row.get("entity_count")
            few = isinstance(count, int) and isinstance(shown, list | tuple) and count > len(shown)
            whole = "alert_id" in run.call.arguments or not (len(run.rows) > WITH_PROPERTIES or few)
            alert = Alert(run, place, whole)
            if alert.alert_id not in found or (whole and not found[alert.alert_id].whole):
                found[alert.alert_id] = alert
    return list(found.values())


def began(alert: Alert) -> datetime:
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


def fits(words: Iterable[str], alerts: Iterable[Alert], *, among: Iterable[Alert] | None = None) -> list[Fit]:
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


@cache
def relation_data() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """What `relations.toml` tells."""
    return tomllib.loads(files(__package__).joinpath("relations.toml").read_text(encoding="utf-8"))


def _stories(alerts: Iterable[Alert]) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """(words of the name, words of the longest description) for each name."""
    longest: dict[str, str] = {}
    for alert in alerts:
        told = str(alert.row.get("description") or "")
        if len(told) >= len(longest.get(alert.name, "")):
            longest[alert.name] = told
    return {name: (stems(name), stems(told)) for name, told in longest.items()}
