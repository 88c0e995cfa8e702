"""Whether an answer says of a playbook what a hit of it says, and of the right file, section and decider.

A piece is judged here if it cites a playbook, or if it tells a step of one as done. Quotations must stand in a hit of
what is cited; a paraphrase must be made of its words, with its "not" where that has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import folded, has_words
from sentinel_rag.agent.grounding.hit_texts import HitText, share, stems_of
from sentinel_rag.agent.grounding.playbook_citations import FILE, HEADINGS, NAMED, Citation, cited_in
from sentinel_rag.agent.grounding.playbook_deeds import CLEAR, told_as_done
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf
from sentinel_rag.agent.grounding.subjects import STRONG
from sentinel_rag.agent.grounding.verdicts import Verdict, in_result, unsupported

_ENOUGH = 0.6
_FEWEST = 3
_ROLE = 0.5


@dataclass(frozen=True, slots=True)
class PlaybookVerdicts:
    """What is wrong, each with its atom; `settled` if the piece says what a hit says, so that nothing else of its
    wording needs a result. `meant` are the hits of what it cites."""

    wrong: tuple[tuple[Atom, Verdict], ...] = ()
    settled: bool = False
    meant: tuple[HitText, ...] = ()

    def told(self, words: str) -> Leaf | None:
        """The text of a cited hit that holds `words`, so that a number or a state in them is the playbook's own."""
        wanted = folded(words)
        return next((hit.leaf for hit in self.meant if has_words(folded(_unmarked(hit.hit.text)), wanted)), None)


NOT_OF_PLAYBOOKS = PlaybookVerdicts()


def judge_playbooks(reading: Reading) -> PlaybookVerdicts:
    """The verdicts of a piece about playbooks; none for one that speaks of something else, or where none was found."""
    hits = [each for each in reading.index.hits if each.hit.is_playbook]
    if not hits:
        return NOT_OF_PLAYBOOKS
    cited = list(cited_in(reading.text, reading, hits))
    if not cited:
        wrong = tuple(told_as_done(reading, hits))
        led = [each for each in cited_in(reading.lead, reading, hits) if each.file and each.hits]
        if wrong or not led or any(subject.topic in STRONG for subject in reading.subjects):
            return PlaybookVerdicts(wrong)
        return _item_of(reading, [hit for each in led for hit in each.hits], hits)
    for each in cited:
        if not each.hits:
            return PlaybookVerdicts(((each.atom, unsupported(each.reason)),))
    meant = [hit for each in cited for hit in each.hits]
    wrong = tuple(_wrong_quotes(reading, meant, hits, cited)) or tuple(told_as_done(reading, hits))
    if wrong:
        return PlaybookVerdicts(wrong)
    return _claim(reading, meant, hits, cited)


def _item_of(reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText]) -> PlaybookVerdicts:
    """The verdicts of an item in a list that stands under the citation of a playbook; nothing of it is put right, since
    the citation stands elsewhere."""
    whole = Atom(Kind.NAME, reading.text.strip(), 0, len(reading.text))
    here = [Citation(whole, tuple(meant))]
    wrong = tuple(_wrong_quotes(reading, meant, hits, here))
    return PlaybookVerdicts(wrong) if wrong else _claim(reading, meant, hits, here)


def _wrong_quotes(
    reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText], cited: Sequence[Citation]
) -> Iterator[tuple[Atom, Verdict]]:
    """Quotations that stand in another playbook than the one that is cited; the file is put right where it is one."""
    for atom in reading.atoms:
        if atom.kind is not Kind.QUOTE or len(str(atom.value).split()) < _FEWEST:
            continue
        words = folded(str(atom.value)).strip(" .,;:!?…")
        if any(words in folded(_unmarked(hit.hit.text)) for hit in meant):
            continue
        others = {hit.hit.source: hit for hit in hits if words in folded(_unmarked(hit.hit.text))}
        if others:
            yield _moved(cited, others, "the quotation stands in another playbook, or another section")


def _moved(cited: Sequence[Citation], others: dict[str, HitText], reason: str) -> tuple[Atom, Verdict]:
    """A verdict against the citation, with the right file where exactly one file was named and one is right."""
    first = cited[0]
    if len(cited) == 1 and first.file and not first.section and len(others) == 1:
        ((source, hit),) = others.items()
        if source.lower() != first.atom.text.lower():
            return first.atom, unsupported(reason, hit.leaf, source)
    return first.atom, unsupported(reason)


def _claim(
    reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText], cited: Sequence[Citation]
) -> PlaybookVerdicts:
    """What is said of the playbook beside its quotations."""
    claim = _claimed(reading, meant)
    whole = Atom(Kind.NAME, reading.text.strip(), 0, len(reading.text))
    if len(claim) >= 2 and (wrong := _wrong_decider(reading, claim, meant, hits)) is not None:
        return PlaybookVerdicts(((whole, wrong),))
    if len(claim) < _FEWEST:
        return PlaybookVerdicts()
    best = max(meant, key=lambda hit: hit.coverage(claim))
    held = best.coverage(claim)
    if held < _ENOUGH:
        others = {hit.hit.source: hit for hit in hits if hit not in meant and hit.coverage(claim) >= CLEAR}
        return PlaybookVerdicts((_moved(cited, others, "no hit of this playbook says that"),))
    passage, of_passage = best.best_passage(claim)
    if passage is not None and of_passage >= _ROLE and passage.contradicts(_without_quotes(reading)):
        return PlaybookVerdicts(((whole, unsupported("the playbook says the opposite")),))
    return PlaybookVerdicts(((whole, in_result(best.leaf)),), settled=True, meant=tuple(meant))


def _claimed(reading: Reading, meant: Sequence[HitText]) -> frozenset[str]:
    """The stems of what a piece says itself: without citations, quotations, names and the headings that it cites."""
    text = list(reading.text)

    def blank(start: int, end: int) -> None:
        text[start:end] = " " * (end - start)

    for match in (*FILE.finditer(reading.text), *NAMED.finditer(reading.text)):
        blank(*match.span())
        path = HEADINGS.match(reading.text, match.end())
        if path is not None:
            blank(*_span_of_headings(reading.text, path, meant))
    for atom in reading.atoms:
        if atom.kind in (Kind.QUOTE, Kind.INCIDENT, Kind.TIME, Kind.GUID, Kind.TECHNIQUE, Kind.TACTIC):
            blank(atom.start, atom.end)
    headings = stems_of(" ".join(heading for hit in meant for heading in hit.hit.path[1:]))
    return stems_of("".join(text)) - headings


def _span_of_headings(text: str, path: re.Match[str], meant: Sequence[HitText]) -> tuple[int, int]:
    """The place of a path of headings without the words of the sentence behind it."""
    begin = path.start() + re.search(r"[^>›»→§]*$", path[0]).start()  # type: ignore[union-attr]  # matches always
    last = folded(path[0][begin - path.start() :].strip(" `*"))
    for hit in meant:
        own = folded(hit.hit.heading)
        if last.startswith(own):
            return path.start(), begin + len(path[0][begin - path.start() :]) - len(last) + len(own)
    return path.span()


def _wrong_decider(
    reading: Reading, claim: frozenset[str], meant: Sequence[HitText], hits: Sequence[HitText]
) -> Verdict | None:
    """A verdict against who may decide a step, where the table of the playbook names another."""
    roles = {_role(passage.decider) for hit in hits for passage in hit.passages if passage.decider}
    said = {role for role in roles if role and re.search(rf"\b{re.escape(role)}s?\b", reading.text, re.IGNORECASE)}
    if not said:
        return None
    step = claim - stems_of(" ".join((*said, "decide decision decider allowed asking approval")))
    rows = [passage for hit in meant for passage in hit.passages if passage.decider]
    held = {passage: share(step, stems_of(passage.text)) for passage in rows}
    if not step or not held or max(held.values()) < _ROLE:
        return None
    most = max(held.values())
    right = [passage for passage, value in held.items() if value == most]
    if any(_role(passage.decider) in said for passage in right):
        return None
    return unsupported("the playbook names another who may decide it")


def _role(decider: str) -> str:
    return decider.partition(",")[0].strip().lower()


def _without_quotes(reading: Reading) -> str:
    text = reading.text
    for atom in reading.atoms:
        if atom.kind is Kind.QUOTE:
            text = text[: atom.start] + " " * (atom.end - atom.start) + text[atom.end :]
    return text


def _unmarked(text: str) -> str:
    return re.sub(r"[*`]+", "", text)
