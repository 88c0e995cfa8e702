"""Which hits fit what was asked, and why: shared techniques, tactics, entities, and the words of the question.

A search always finds something that is nearest. Whether that fits is told from what the hit says it shares, never from
its score, which compares hits of one search only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.hit_texts import share, stems_of
from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.knowledge.phases import phase_of

_OF_EVERY_TITLE = """
    incident alert suspicious suspected unusual possible potential multiple several activity detected event events tools
    account user host device machine microsoft defender azure sentinel security
"""
"""Words that titles of all kinds have."""


@dataclass(frozen=True, slots=True)
class About:
    """What hits are held against: words of the question or of an incident's title, its tactics and techniques, and the
    phase of the response that is asked for."""

    words: str = ""
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    phase: str = ""


def telling(text: str) -> frozenset[str]:
    """The stems of the telling words of a text, so that "isolating" is "isolate"."""
    return stems_of(text) - stems_of(_OF_EVERY_TITLE)


def held(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Those of `wanted` that a text holds."""
    own = stems_of(text)
    return frozenset(word for word in wanted if share(frozenset({word}), own))


def shared_techniques(hit: KnowledgeHit, techniques: Sequence[str]) -> tuple[str, ...]:
    """Techniques of the hit that are among `techniques`, itself or by their parent."""
    parents = {each.upper().partition(".")[0] for each in techniques}
    wanted = {each.upper() for each in techniques}
    return tuple(
        each
        for each in hit.techniques
        if each.upper() in wanted
        or (each.upper().partition(".")[0] in parents and ("." not in each or _bare(each, wanted)))
    )


def _bare(technique: str, wanted: set[str]) -> bool:
    """True if the parent of `technique` is wanted as a whole."""
    return technique.upper().partition(".")[0] in wanted


def fits(hit: KnowledgeHit, about: About) -> bool:
    """True if the hit shares something that tells: a technique, an entity, or words that stand in it."""
    if (
        shared_techniques(hit, about.techniques)
        or (not hit.is_playbook and hit.shared_techniques)
        or hit.shared_entities
    ):
        return True
    wanted = telling(about.words)
    if not wanted:
        return True
    named = held(wanted, f"{hit.title} {' '.join(hit.path)}")
    of_all = named | held(wanted, hit.text)
    tactics = set(about.tactics) & set(hit.tactics)
    return (
        len(of_all) >= 2 or (bool(named) and len(wanted) <= 2) or (bool(of_all) and (len(wanted) == 1 or bool(tactics)))
    )


def by_fit(hits: Sequence[KnowledgeHit], about: About) -> list[KnowledgeHit]:
    """Playbook hits, best first: its title's and headings' words, techniques and the phase before its place."""

    def weight(place: int, hit: KnowledgeHit) -> float:
        wanted = telling(about.words)
        title = len(held(wanted, f"{hit.title} {hit.source}"))
        headings = len(held(wanted, " ".join(hit.path[1:])))
        words = len(held(wanted, hit.text))
        techniques = min(len(shared_techniques(hit, about.techniques)), 2)
        phase = 2.0 if about.phase and phase_of(hit.path) == about.phase else 0.0
        tactics = 0.3 * len(set(about.tactics) & set(hit.tactics))
        return 1.6 * title + headings + 0.4 * words + 1.8 * techniques + phase + tactics + 1.5 / (place + 1)

    weights = [weight(place, hit) for place, hit in enumerate(hits)]
    order = sorted(range(len(hits)), key=lambda place: (-weights[place], place))
    return [hits[place] for place in order]


def sections_of(hits: Sequence[KnowledgeHit], source: str) -> list[list[KnowledgeHit]]:
    """The sections of one document among the hits, each with its chunks, in the order in which they were found."""
    found: dict[str, list[KnowledgeHit]] = {}
    for hit in hits:
        if hit.source == source and all(hit.text != other.text for other in found.get(hit.citation, ())):
            found.setdefault(hit.citation, []).append(hit)
    return list(found.values())


def by_incident(hits: Sequence[KnowledgeHit]) -> list[list[KnowledgeHit]]:
    """Past incidents among the hits, each with its chunks, best first."""
    found: dict[str, list[KnowledgeHit]] = {}
    for hit in hits:
        if not hit.is_playbook:
            found.setdefault(hit.number, []).append(hit)
    return list(found.values())
