"""Which playbook, and which section of it, words of an answer cite, and the hits that they may mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import folded
from sentinel_rag.agent.grounding.hit_texts import HitText, share, stems_of
from sentinel_rag.agent.grounding.reading import Reading

FILE = re.compile(r"(?<![\w/\\.-])(?P<file>[\w][\w./-]*\.(?:md|markdown|txt|html?|pdf))\b", re.IGNORECASE)
HEADINGS = re.compile(r"(?:[`*]*\s*(?:>|›|»|→|§)\s*[`*]*[^>›»→§`*\n.,;:()\"“”]{2,90})+")
NAMED = re.compile(
    r"\b(?:the|our|your|this|that|its|a|an)\s+(?P<words>(?:[\w-]+\s+){0,4})(?:playbook|runbook)\b(?!s)", re.IGNORECASE
)
_SECTION_OF = re.compile(
    r"\b(?:the\s+)?[*_`“\"]*(?P<heading>[\w-]+(?:\s+to\s+[\w-]+)?)[*_`”\"]*\s+section\b", re.IGNORECASE
)
_IN_BRACKETS = re.compile(
    r"\((?:see\s+)?[`*]*[\w./-]+\.(?:md|markdown|txt|html?|pdf)[`*]*,\s*[`*]*(?P<heading>[A-Z][\w ]{2,40}?)[`*]*\)"
)
_GENERIC = """
    incident response relevant shipped standard following same best fitting nearest security first second third other
    matching right given said own applicable general main corresponding
"""
"""Words before "playbook" that name none."""
_SECTION_WORDS = re.compile(r"this|that|each|next|same|other|whole|first|second|last|every|one|following|which", re.I)


@dataclass(frozen=True, slots=True)
class Citation:
    """Words that cite a playbook, and the hits that they may mean; `file` if they name a file, `sure` if a section."""

    atom: Atom
    hits: tuple[HitText, ...]
    reason: str = ""
    file: bool = False
    section: bool = False


def cited_in(text: str, reading: Reading, hits: Sequence[HitText]) -> Iterator[Citation]:
    files = list(FILE.finditer(text))
    for match in files:
        name = match["file"].lower()
        of_file = [hit for hit in hits if hit.hit.source.lower() == name]
        atom = Atom(Kind.FILE, match["file"], match.start("file"), match.end("file"), match["file"])
        if not of_file:
            if any(name in hit.hit.text.lower() for hit in hits) and not HEADINGS.match(text, match.end()):
                continue
            if any(folded(name) in run.blob for run in reading.index.results if not run.hits):
                continue  # a file of an alert, and no playbook
            yield Citation(atom, (), "no search found this playbook", file=True)
            continue
        yield _with_section(text, match, atom, of_file)
    if files:
        return
    for match in NAMED.finditer(text):
        words = stems_of(match["words"]) - stems_of(_GENERIC)
        atom = Atom(Kind.NAME, match[0], match.start(), match.end(), match[0])
        named = [hit for hit in hits if share(words, stems_of(f"{hit.hit.source} {hit.hit.title}")) >= 1.0]
        yield Citation(atom, tuple(named), "no search found a playbook of that name")


def _with_section(text: str, match: re.Match[str], atom: Atom, of_file: Sequence[HitText]) -> Citation:
    """The hits of a file, of the section alone where one is named beside it."""
    headings: list[str] = []
    path = HEADINGS.match(text, match.end())
    if path is not None:
        headings = [part.strip(" `*") for part in re.split(r"[>›»→§]", path[0]) if part.strip(" `*")]
    elif (behind := _IN_BRACKETS.search(text)) is not None:
        headings = [behind["heading"]]
    elif (said := _SECTION_OF.search(text)) is not None and not _SECTION_WORDS.fullmatch(said["heading"]):
        headings = [said["heading"]]
    named = [hit for hit in of_file if all(any(_is_heading(each, own) for own in hit.hit.path) for each in headings)]
    if not named:
        return Citation(atom, (), "no search found such a section of this playbook", file=True)
    return Citation(atom, tuple(named), file=True, section=bool(headings))


def _is_heading(said: str, own: str) -> bool:
    """True if words name a heading; words of the sentence may stand behind it."""
    said, own = folded(said), folded(own)
    return said.startswith(own) or (len(said) >= 4 and own.startswith(said))
