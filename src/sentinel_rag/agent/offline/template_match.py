"""Which KQL template answers a question.

Templates describe themselves (`list_kql_templates`): the question is compared with their names, descriptions and
example questions by tf-idf and cosine, values masked by their kind. One that counts by another noun than the question
or knows too little of its words loses half of its score; `template_parameters` fills what it needs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.offline.names import NameSlot
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.vocabulary import KIND_WORDS
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.tool_schemas import MOST_TEMPLATES

THRESHOLD = 0.30
MARGIN = 0.04

ALL_TEMPLATES: JsonObject = {"detail": "full", "limit": MOST_TEMPLATES}
"""Arguments of list_kql_templates, for their example questions too."""

Template = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Match:
    """A template with its score from 0 to 1."""

    name: str
    score: float
    template: Template


def rank(reading: Reading, templates: Sequence[Template]) -> list[Match]:
    """All templates, best first. A question that says a template's exact name scores 1."""
    documents = [_tokens(_document(template)) for template in templates]
    frequency = Counter(token for document in documents for token in set(document))
    count = len(documents) or 1
    weights = {token: math.log(1 + count / seen) for token, seen in frequency.items()}
    core = reading.core
    for slot in reading.names:
        # Parts of names ("srv-file-01") are no words of the question; a single plain word may well be one.
        if len(reading.names) == 1 and not re.search(r"[\d_.-]", slot.value):
            continue
        core = re.sub(rf"(?<![\w.-]){re.escape(slot.value)}(?![\w-])", " ", core, flags=re.IGNORECASE)
    masked = core + " " + " ".join(kind_of(name) for name in named(reading))
    question = _vector(_tokens(masked), weights)
    of_names = {token for name in named(reading) for token in _tokens(f"{kind_of(name)} {name.value}")}
    asks_no_word = set(question) <= of_names
    said = {word.lower().replace("-", "_") for word in re.findall(r"[\w-]+", reading.text)}
    ranked = []
    for template, document in zip(templates, documents, strict=True):
        name = str(template.get("name", ""))
        best = _cosine(question, _vector(document, weights))
        for example in _examples(template):
            best = max(best, _cosine(question, _vector(_tokens(_masked_example(example)), weights)))
        if asks_no_word and best < _SAME:
            best = 0.0  # "what did X do" is about an account, and so is much else
        best *= (
            _grouping(reading, template)
            * _outcome(reading, template)
            * _agreement(reading, name, document)
            * _coverage(question, document, weights, math.log(1 + count))
        )
        spelled = rf"(?<!\w){re.escape(name.lower().replace('_', ' '))}(?!\w|\s+and\s)"
        if name.lower() in said or re.search(spelled, reading.text.lower()):
            ranked.append((math.inf, Match(name, 1.0, template)))
        else:
            ranked.append((best, Match(name, min(0.99, best), template)))
    return [match for _, match in sorted(ranked, key=lambda each: (-each[0], each[1].name))]


_COVERED = 0.34
_SAME = 0.9


def _coverage(
    question: Mapping[str, float], document: Sequence[str], weights: Mapping[str, float], rarest: float
) -> float:
    """1, or less where the template knows less than a third of what the question says, rare words counting more."""
    total = sum(weights.get(token, rarest) for token in question)
    known = sum(weights.get(token, rarest) for token in question if token in set(document))
    return 1.0 if not total or known >= _COVERED * total else _DISAGREES


_HEAD = re.compile(
    r"\W*(?:(?:which|what|show|list|give|me|the|top|all|any|\d+)\s+)*(?P<noun>[a-z]+)\s+"
    r"(?:(?:with|having|(?:that\s+|who\s+)?(?:have|has|had|show(?:ed)?))\s+(?:the\s+)?(?:most|more|at\s+least|over)|by)\b",
    re.IGNORECASE,
)
"""A kind of thing that a list is of: "ips with more than 5 failed sign-ins"."""


def _grouping(reading: Reading, template: Template) -> float:
    """More than 1 for a query that counts by what the question groups by, less for one that wants one value of it."""
    if reading.names:
        return 1.0
    found = re.finditer(r"\b(?:by|per|each)\s+([a-z]+)(?:\s+and\s+([a-z]+))?\b", reading.core.lower())
    asked = {_singular(word) for match in found for word in match.groups() if word}
    head = _HEAD.match(reading.core)
    if head is not None and head["noun"].lower() in KIND_WORDS:
        asked = {_singular(head["noun"])}  # "top users by failures": what stands behind "by" is no group
    if not asked:
        return 1.0
    name = str(template.get("name", "")).lower()
    counted = (
        {_singular(word) for word in name.rpartition("_by_")[2].split("_") if word != "and"}
        if "_by_" in name
        else set()
    )
    if head is not None and counted and not counted & asked and asked <= {_singular(word) for word in KIND_WORDS}:
        return 0.35
    if counted & asked:
        return 1.5 if counted == asked else 1.3
    return 0.5 if any(item.get("required") for item in specifications(template)) else 0.7


OUTCOMES = (
    (r"failed|failures?|failing|unsuccessful", "fail", "failed"),
    (r"successful|succeeded", "success", "successful"),
)
"""How a question says an outcome, how a template that knows it is described, and the word for an answer."""


def other_outcomes(reading: Reading, template: Template) -> list[str]:
    """The outcomes that the question wants and the template does not tell apart."""
    told = f"{template.get('name')} {template.get('description')}".lower()
    return [word for cue, stem, word in OUTCOMES if reading.has(cue) and stem not in told and "denied" not in told]


def _outcome(reading: Reading, template: Template) -> float:
    """Less than 1 where the rows would have every outcome and the question wants one."""
    return 0.8 if other_outcomes(reading, template) else 1.0


def _singular(word: str) -> str:
    word = word.lower().removesuffix("s")
    return _SYNONYMS.get(word, word).replace("addres", "ip")


_SIGNINS = frozenset({"signin", "login"})
_SUBJECTS = frozenset(
    word_list("technique tactic name product owner classification provider country application title subject")
)
_DISAGREES = 0.5


def _agreement(reading: Reading, name: str, document: Sequence[str]) -> float:
    """1, or less where question and template count by different things: "techniques" is no query by name."""
    words = {word.removesuffix("s") for word in re.findall(r"[a-z]+", reading.core.lower())}
    if _SIGNINS & set(_tokens(reading.core)) and not _SIGNINS & set(document):
        return _DISAGREES
    asked = words & _SUBJECTS
    if not asked:
        return 1.0
    counted = set(name.lower().rpartition("_by_")[2].split("_")) if "_by_" in name.lower() else set()
    counted = {word.removesuffix("s") for word in counted} & _SUBJECTS
    if (counted and not counted & asked) or not {_stem(word) for word in asked} & set(document):
        return _DISAGREES
    return 1.0


def named(reading: Reading) -> tuple[NameSlot, ...]:
    """The names of the question; a bare one behind "on" is a host ("what ran on web-03")."""
    return tuple(
        replace(name, kind="host")
        if name.kind is None and not name.shaped and re.search(rf"\bon\s+{re.escape(name.value)}", reading.core, re.I)
        else name
        for name in reading.names
    )


_STOP = frozenset(
    word_list(
        """
    a an the of in on for to and or by with is are was were be do does did has have what which who how show me list
    give all any from at this that it there their as per us our my please can you tell find get been between during
    anyone anybody someone somebody doing done top last past recent day days week weeks hour hours today yesterday kind
    """
    )
)
_KIND_PATTERNS = (
    ("ip", r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:]+"),
    ("url", r"https?://.*"),
    ("hash", r"[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64}"),
    ("account", r"[^@\s]+@[^@\s]+|[\w.-]+\\[\w.$-]+|S-1-[\d-]+"),
    ("file", r"[A-Za-z]:\\.*|.*\.(?:exe|dll|ps1|bat|cmd|vbs|js|docx?|xlsx?|pdf|zip|msi|lnk)"),
)


def words_of(templates: Sequence[Template]) -> frozenset[str]:
    """Every word that the templates say of themselves, in one case; the values of their examples are none."""
    return frozenset(word for each in templates for word in re.findall(r"[a-z][a-z0-9'-]+", _document(each).lower()))


def _document(template: Template) -> str:
    parts = [str(template.get("name", "")).replace("_", " "), str(template.get("description", ""))]
    parts += [str(item.get("name", "")).replace("_", " ") for item in specifications(template)]
    return " ".join([*parts, *(_masked_example(example) for example in _examples(template))])


def _examples(template: Template) -> list[str]:
    return [str(question) for question in items(template.get("questions"))]


def items(value: JsonValue) -> list[JsonValue]:
    """The elements of a list; nothing of any other value."""
    return list(value) if isinstance(value, list | tuple) else []


def specifications(template: Template) -> list[Mapping[str, JsonValue]]:
    """The template's parameters as list_kql_templates tells them."""
    return [item for item in items(template.get("parameters")) if isinstance(item, Mapping)]


def _masked_example(example: str) -> str:
    for kind, whole in _KIND_PATTERNS:
        pattern = whole.replace(".*", r"\S*")  # within a sentence a value ends with its word
        example = re.sub(
            rf"(?<![\w.])(?:{pattern})(?![\w.])" if kind != "url" else r"https?://\S+", f" {kind} ", example
        )
    return example


def _tokens(text: str) -> list[str]:
    joined = re.sub(r"(sign|log)[\s-]?(ins?|ons?)\b", r"\1in", text.lower())
    joined = re.sub(r"\buser[\s-]?agents?\b", "useragent", joined)
    words = re.findall(r"[a-z][a-z0-9]+", joined)
    return [_SYNONYMS.get(_stem(word), _stem(word)) for word in words if word not in _STOP]


_SYNONYMS = {
    "program": "process",
    "executabl": "process",
    "binary": "process",
    "launch": "ran",
    "start": "ran",
    "execut": "ran",
    "machine": "host",
    "computer": "host",
    "device": "host",
    "server": "host",
    "user": "account",
    "mail": "email",
    "noisy": "noisiest",
    "cas": "incident",
    "ticket": "incident",
    "analyst": "owner",
    "loudest": "noisiest",
    "ips": "ip",
    "address": "ip",
    "addres": "ip",
}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _vector(tokens: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    unknown = 1.5
    counts = Counter(tokens)
    return {token: (1 + math.log(seen)) * weights.get(token, unknown) for token, seen in counts.items()}


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    dot = sum(value * right.get(token, 0.0) for token, value in left.items())
    size = math.sqrt(sum(value * value for value in left.values())) * math.sqrt(
        sum(value * value for value in right.values())
    )
    return dot / size if size else 0.0


def kind_of(name: NameSlot) -> str:
    """The kind that was said or that the value's form shows; empty for a bare name."""
    if name.kind is not None:
        return name.kind
    for kind, pattern in _KIND_PATTERNS:
        if re.fullmatch(pattern, name.value):
            return kind
    if name.quoted:
        return "quoted"
    return "domain" if re.fullmatch(r"(?:[\w-]+\.)+[A-Za-z]{2,}", name.value) and name.shaped else ""
