"""The texts of the knowledge base's hits as words and passages, against which a claim about them is held.

A claim is compared by the stems of its telling words. How much of it a passage holds is a number; what follows from it
is for the judging modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sentinel_rag.agent.grounding.records import Leaf
from sentinel_rag.agent.knowledge_hits import KnowledgeHit

_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3
_PREFIX = 5
_LITTLE = """
    the and for with from that this these those they them their there then than which who whom whose what when where how
    why are was were been being has have had does did done not but its his her our your you she him into onto upon over
    under also only just very such same other another each every any all some more most both per via out off about
    would could should shall must may might can cannot will one first next after before while during until once here
    says say said tell tells told according recommend recommends recommended recommend suggest suggests suggested advise
    advises advised require requires required describe describes mention mentions mentioned name names named list lists
    listed ask asks warn warns warned note notes state states stated call calls let lets playbook playbooks runbook
    runbooks section sections step steps file document procedure guide incident incidents past case cases alert alerts
    question questions fit fits here's it's isn't
"""
_SAYS_LITTLE = frozenset(_LITTLE.split())
_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")
_DECIDES = re.compile(r"\b(?:decid\w*|approv\w*|authori[sz]\w*|owner|responsib\w*)\b", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:not|never|cannot|no)\b|n['’]t\b)(?P<what>(?:\W+\w+){1,4})", re.IGNORECASE)
_FORBIDDEN = re.compile(r"\b(?:do\s+not|don['’]t|never)\b(?P<what>(?:\W+\w+){1,3})", re.IGNORECASE)
_NEGATES = re.compile(r"\b(?:not|never|no|nothing|none|cannot|without|avoid|against)\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence, a list item or a row of a table. `decider` is who may decide it, where a column of the table says."""

    text: str
    decider: str = ""

    def contradicts(self, said: str) -> bool:
        """True if `said` denies what the passage says, or says what the passage forbids."""
        denied = _denied(said, _DENIED) & _stated(self.text)
        forbidden = _denied(self.text, _FORBIDDEN) & _stated(said)
        return bool(denied or forbidden)


class HitText:
    """A hit with its words; `leaf` is its text in the result."""

    def __init__(self, hit: KnowledgeHit, leaf: Leaf) -> None:
        self.hit = hit
        self.leaf = leaf

    @cached_property
    def stems(self) -> frozenset[str]:
        """Of its text, its title and its headings."""
        return stems_of(" ".join((self.hit.text, self.hit.title, *self.hit.path)))

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(_passages(self.hit.text))

    def coverage(self, claim: frozenset[str]) -> float:
        """How much of a claim the whole hit holds, from 0 to 1; 1 for a claim of no words."""
        return share(claim, self.stems)

    def best_passage(self, claim: frozenset[str]) -> tuple[Passage | None, float]:
        """The passage that holds most of the claim, and how much."""
        best: tuple[Passage | None, float] = (None, 0.0)
        for passage in self.passages:
            held = share(claim, stems_of(f"{passage.text} {passage.decider}"))
            if held > best[1]:
                best = (passage, held)
        return best


def stems_of(text: str) -> frozenset[str]:
    """The stems of the telling words of a text."""
    return frozenset(stem(word) for word in _WORD.findall(text.lower()) if word not in _SAYS_LITTLE)


def stem(word: str) -> str:
    """A word without its ending: "revoking" and "revokes" become one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word


def share(claim: frozenset[str], held: Iterable[str]) -> float:
    """How much of a claim stands in `held`; words with five letters in common at their beginning are the same."""
    if not claim:
        return 1.0
    held = frozenset(held)
    beginnings = {each[:_PREFIX] for each in held if len(each) >= _PREFIX}
    return sum(word in held or word[:_PREFIX] in beginnings for word in claim) / len(claim)


def _denied(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    """The stems right behind a "not"."""
    return frozenset(each for match in pattern.finditer(text) for each in stems_of(match["what"]))


def _stated(text: str) -> frozenset[str]:
    """The stems of the clauses without a negation."""
    clauses = re.split(r"[;,.():]\s*|\b(?:and|but|unless|while)\b", text)
    return stems_of(" ".join(clause for clause in clauses if not _NEGATES.search(clause)))


def _passages(text: str) -> Iterator[Passage]:
    lines = text.splitlines()
    deciding: int | None = None
    for place, line in enumerate(lines):
        if "|" in line and place + 1 < len(lines) and _RULE.match(lines[place + 1]):
            cells = _cells(line)
            deciding = next((column for column, cell in enumerate(cells) if _DECIDES.search(cell)), None)
        elif _RULE.match(line):
            continue
        elif line.strip().startswith("|"):
            cells = _cells(line)
            decider = cells[deciding] if deciding is not None and deciding < len(cells) else ""
            yield Passage(" ".join(cell for column, cell in enumerate(cells) if column != deciding), decider)
    prose = " ".join(line for line in lines if not line.strip().startswith("|"))
    for part in re.split(r"(?<=[.!?:])\s+|\s+(?=[-*]\s)", prose):
        if part.strip():
            yield Passage(part.strip())


def _cells(line: str) -> list[str]:
    row = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)]
