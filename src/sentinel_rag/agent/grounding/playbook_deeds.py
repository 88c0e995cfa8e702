"""Steps of a playbook that an answer tells as done, though no result tells that anybody did them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.hit_texts import HitText, share, stems_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.verdicts import Verdict, unsupported

_DONE = re.compile(
    r"\b(?:was|were|has been|have been|had been|got)\s+(?:(?:now|already|also|then|just|since|\w+ly)\s+)*"
    r"(?P<verb>[a-z]+(?:-[a-z]+)?ed|reset|taken|cut|shut|put|rebuilt|sent|told|switched|blocked)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:if|when|whether|once|unless|until|should|must|could|would|may|might|can|to|where|after|before|asks?|who|which|"
    r"what|not|no|never|nothing|nobody)\b|\?",
    re.IGNORECASE,
)
CLEAR = 0.75
"""How much of a claim's words a passage holds that clearly says it."""


def told_as_done(reading: Reading, hits: Sequence[HitText]) -> Iterator[tuple[Atom, Verdict]]:
    """Steps of a playbook that a piece tells as done, though no result tells that they were."""
    text = reading.text
    for match in _DONE.finditer(text):
        start = max(
            (each.end() for each in re.finditer(r"[;,:]\s|\.\s|\b(?:and|but)\b", text[: match.start()])), default=0
        )
        stop = re.search(r"[;,]\s|\.(?:\s|$)|\band\b", text[match.end() :])
        clause = text[start : match.end() + stop.start()] if stop else text[start:]
        if _OPEN.search(text[start : match.start()]) or match[0].lower() in " ".join(h.hit.text.lower() for h in hits):
            continue
        claim = stems_of(clause)
        if len(claim) < 2 or not any(hit.best_passage(claim)[1] >= CLEAR for hit in hits):
            continue
        if not _told_elsewhere(reading, claim):
            atom = Atom(Kind.NAME, text[match.start() : match.end()], match.start(), match.end())
            yield atom, unsupported("a playbook names this step; no result tells that it was done")


def _told_elsewhere(reading: Reading, claim: frozenset[str]) -> bool:
    """True if a value of the workspace, a past incident that the piece names, or the person tells it."""
    if share(claim, stems_of(f"{reading.question} {reading.index.words}")) >= 1.0:
        return True
    named = {number for subject in reading.subjects for number in subject.numbers}
    if reading.context.incident is not None and not named:
        named = set(reading.context.incident.numbers)
    for run in reading.index.results:
        if run.hits:
            own = [hit for hit in run.hits if hit.hit.number in named]
            if any(hit.coverage(claim) >= CLEAR for hit in own):
                return True
        elif any(len(value) > 10 and share(claim, stems_of(value)) >= 1.0 for value in run.by_text):
            return True
    return False
