"""Which hits fit what was asked, and why: shared techniques, tactics, entities, and the words of the question.

A search always finds something that is nearest. Whether that fits is told from what the hit says it shares, never from
its score, which compares hits of one search only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.knowledge.phases import phase_of
from sentinel_rag.agent.offline.knowledge.stems import said_in_one_line, share, stems_of

_OF_EVERY_TITLE = """
    incident alert suspicious suspected unusual possible potential multiple several activity detected event events tools
    account user host device machine microsoft defender azure sentinel security endpoint command line process
    without
"""
"""Words that titles of all kinds have."""
_WHEN = re.compile(r"\W*(?:when|purpose|scope\s+of\s+this|about|overview|description|trigger)", re.IGNORECASE)
"""How the section is headed that says what a playbook is for."""


@dataclass(frozen=True, slots=True)
class About:
    """What hits are held against: words of the question or of an incident's title, its tactics and techniques, and the
    phase of the response that is asked for. `of_incident`: all of it is told of an incident, which
    say less than a question does; `names` are hosts, accounts and the like that the question names."""

    words: str = ""
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    phase: str = ""
    of_incident: bool = False
    names: tuple[str, ...] = ()


def telling(text: str) -> frozenset[str]:
    """The stems of the telling words of a text, so that "isolating" is "isolate"."""
    return stems_of(text) - stems_of(_OF_EVERY_TITLE)


def held(wanted: frozenset[str], text: str) -> frozenset[str]:
    """Those of `wanted` that a text holds."""
    own = stems_of(text)
    return frozenset(word for word in wanted if share(frozenset({word}), own))


def shared_techniques(hit: KnowledgeHit, about: About) -> tuple[str, ...]:
    """Techniques of the hit that were asked for. A question for T1059 means its sub-techniques too; an incident that
    only tells T1059 shares no T1059.001."""
    wanted = {each.upper() for each in about.techniques}
    return tuple(
        each
        for each in hit.techniques
        if each.upper() in wanted
        or ("." not in each and each.upper() in map(_family, wanted))
        or (not about.of_incident and _family(each) in wanted)
    )


def _family(technique: str) -> str:
    return technique.upper().partition(".")[0]


def _families(hit: KnowledgeHit, about: About) -> frozenset[str]:
    """Techniques that both have, sub-techniques left aside."""
    return frozenset(map(_family, about.techniques)) & frozenset(map(_family, hit.techniques))


def fits(hit: KnowledgeHit, about: About, others: Sequence[KnowledgeHit] = ()) -> bool:
    """True if the hit shares something that tells: a technique, an entity, or words that stand in it. `others` may hold
    the part of its playbook that says when to use it."""
    if hit.is_playbook and about.of_incident:
        return _suits(hit, about, others)
    if shared_techniques(hit, about) or (not hit.is_playbook and hit.shared_techniques) or hit.shared_entities:
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


def _suits(hit: KnowledgeHit, about: About, others: Sequence[KnowledgeHit]) -> bool:
    """True if a playbook is for such an incident. A technique without its sub-technique and a tactic are what many
    attacks have, so they need each other's company or that of the title's words."""
    if any("." in each for each in shared_techniques(hit, about)):
        return True
    families = _families(hit, about)
    wanted = telling(about.words)
    name = stems_of(hit.source.rpartition("/")[2].rpartition(".")[0])
    if name and held(name, about.words) == name:
        return True
    named = held(wanted, when_to_use(hit, others))
    tactics = set(about.tactics) & set(hit.tactics)
    return (
        len(families) >= 2
        or len(named) >= 2
        or (bool(named) and bool(families or tactics))
        or (bool(families) and len(held(wanted, hit.text)) >= 2)
    )


def when_to_use(hit: KnowledgeHit, others: Sequence[KnowledgeHit]) -> str:
    """What a playbook says of itself: title, file, headings, and the section on when to use it if it was found."""
    own = [each.text for each in (hit, *others) if each.source == hit.source and _WHEN.match(each.heading)]
    return " ".join((hit.title, hit.source, *hit.path, *own))


def names_it(hit: KnowledgeHit, name: str) -> bool:
    """True if a hit tells of the host, account or address; a short name stands for the full one."""
    said = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    return any(said.search(text) for text in (hit.title, hit.text, *hit.entities))


def by_fit(hits: Sequence[KnowledgeHit], about: About) -> list[KnowledgeHit]:
    """Playbook hits, best first: its title's and headings' words, techniques and the phase before its place."""

    def weight(place: int, hit: KnowledgeHit) -> float:
        wanted = telling(about.words)
        title = len(held(wanted, f"{hit.title} {hit.source}"))
        headings = len(held(wanted, " ".join(hit.path[1:])))
        words = len(held(wanted, hit.text))
        techniques = min(len(_families(hit, about)), 2)
        phase = 2.0 if about.phase and phase_of(hit.path) == about.phase else 0.0
        tactics = 0.3 * len(set(about.tactics) & set(hit.tactics))
        use = len(held(wanted, when_to_use(hit, hits))) if about.of_incident else 0
        line = 0.0 if about.of_incident or title else said_in_one_line(wanted, hit.text)
        # A step of many attacks: its playbook comes first that says it most plainly, wherever it was found.
        near = 0.5 + 2.0 * line if line else 1.5 / (place + 1)
        return 1.6 * title + headings + 0.4 * words + 1.8 * techniques + phase + tactics + use + near

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
            found.setdefault(hit.document, []).append(hit)
    return list(found.values())
