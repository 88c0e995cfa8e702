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
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf
from sentinel_rag.agent.grounding.subjects import STRONG
from sentinel_rag.agent.grounding.verdicts import Verdict, in_result, unsupported

_FILE = re.compile(r"(?<![\w/\\.-])(?P<file>[\w][\w./-]*\.(?:md|markdown|txt|html?|pdf))\b", re.IGNORECASE)
_HEADINGS = re.compile(r"(?:[`*]*\s*(?:>|›|»|→|§)\s*[`*]*[^>›»→§`*\n.,;:()\"“”]{2,90})+")
_NAMED = re.compile(
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
_ENOUGH = 0.6
_CLEAR = 0.75
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
    cited = list(_cited(reading.text, reading, hits))
    if not cited:
        wrong = tuple(_told_as_done(reading, hits))
        led = [each for each in _cited(reading.lead, reading, hits) if each.file and each.hits]
        if wrong or not led or any(subject.topic in STRONG for subject in reading.subjects):
            return PlaybookVerdicts(wrong)
        return _item_of(reading, [hit for each in led for hit in each.hits], hits)
    for each in cited:
        if not each.hits:
            return PlaybookVerdicts(((each.atom, unsupported(each.reason)),))
    meant = [hit for each in cited for hit in each.hits]
    wrong = tuple(_wrong_quotes(reading, meant, hits, cited)) or tuple(_told_as_done(reading, hits))
    if wrong:
        return PlaybookVerdicts(wrong)
    return _claim(reading, meant, hits, cited)


@dataclass(frozen=True, slots=True)
class _Citation:
    """Words that cite a playbook, and the hits that they may mean; `file` if they name a file, `sure` if a section."""

    atom: Atom
    hits: tuple[HitText, ...]
    reason: str = ""
    file: bool = False
    section: bool = False


def _item_of(reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText]) -> PlaybookVerdicts:
    """The verdicts of an item in a list that stands under the citation of a playbook; nothing of it is put right, since
    the citation stands elsewhere."""
    whole = Atom(Kind.NAME, reading.text.strip(), 0, len(reading.text))
    here = [_Citation(whole, tuple(meant))]
    wrong = tuple(_wrong_quotes(reading, meant, hits, here))
    return PlaybookVerdicts(wrong) if wrong else _claim(reading, meant, hits, here)


def _cited(text: str, reading: Reading, hits: Sequence[HitText]) -> Iterator[_Citation]:
    files = list(_FILE.finditer(text))
    for match in files:
        name = match["file"].lower()
        of_file = [hit for hit in hits if hit.hit.source.lower() == name]
        atom = Atom(Kind.FILE, match["file"], match.start("file"), match.end("file"), match["file"])
        if not of_file:
            if any(name in hit.hit.text.lower() for hit in hits) and not _HEADINGS.match(text, match.end()):
                continue
            if any(folded(name) in run.blob for run in reading.index.results if not run.hits):
                continue  # a file of an alert, and no playbook
            yield _Citation(atom, (), "no search found this playbook", file=True)
            continue
        yield _with_section(text, match, atom, of_file)
    if files:
        return
    for match in _NAMED.finditer(text):
        words = stems_of(match["words"]) - stems_of(_GENERIC)
        atom = Atom(Kind.NAME, match[0], match.start(), match.end(), match[0])
        named = [hit for hit in hits if share(words, stems_of(f"{hit.hit.source} {hit.hit.title}")) >= 1.0]
        yield _Citation(atom, tuple(named), "no search found a playbook of that name")


def _with_section(text: str, match: re.Match[str], atom: Atom, of_file: Sequence[HitText]) -> _Citation:
    """The hits of a file, of the section alone where one is named beside it."""
    headings: list[str] = []
    path = _HEADINGS.match(text, match.end())
    if path is not None:
        headings = [part.strip(" `*") for part in re.split(r"[>›»→§]", path[0]) if part.strip(" `*")]
    elif (behind := _IN_BRACKETS.search(text)) is not None:
        headings = [behind["heading"]]
    elif (said := _SECTION_OF.search(text)) is not None and not _SECTION_WORDS.fullmatch(said["heading"]):
        headings = [said["heading"]]
    named = [hit for hit in of_file if all(any(_is_heading(each, own) for own in hit.hit.path) for each in headings)]
    if not named:
        return _Citation(atom, (), "no search found such a section of this playbook", file=True)
    return _Citation(atom, tuple(named), file=True, section=bool(headings))


def _is_heading(said: str, own: str) -> bool:
    """True if words name a heading; words of the sentence may stand behind it."""
    said, own = folded(said), folded(own)
    return said.startswith(own) or (len(said) >= 4 and own.startswith(said))


def _wrong_quotes(
    reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText], cited: Sequence[_Citation]
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


def _moved(cited: Sequence[_Citation], others: dict[str, HitText], reason: str) -> tuple[Atom, Verdict]:
    """A verdict against the citation, with the right file where exactly one file was named and one is right."""
    first = cited[0]
    if len(cited) == 1 and first.file and not first.section and len(others) == 1:
        ((source, hit),) = others.items()
        if source.lower() != first.atom.text.lower():
            return first.atom, unsupported(reason, hit.leaf, source)
    return first.atom, unsupported(reason)


def _claim(
    reading: Reading, meant: Sequence[HitText], hits: Sequence[HitText], cited: Sequence[_Citation]
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
        others = {hit.hit.source: hit for hit in hits if hit not in meant and hit.coverage(claim) >= _CLEAR}
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

    for match in (*_FILE.finditer(reading.text), *_NAMED.finditer(reading.text)):
        blank(*match.span())
        path = _HEADINGS.match(reading.text, match.end())
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


def _told_as_done(reading: Reading, hits: Sequence[HitText]) -> Iterator[tuple[Atom, Verdict]]:
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
        if len(claim) < 2 or not any(hit.best_passage(claim)[1] >= _CLEAR for hit in hits):
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
            if any(hit.coverage(claim) >= _CLEAR for hit in own):
                return True
        elif any(len(value) > 10 and share(claim, stems_of(value)) >= 1.0 for value in run.by_text):
            return True
    return False


def _without_quotes(reading: Reading) -> str:
    text = reading.text
    for atom in reading.atoms:
        if atom.kind is Kind.QUOTE:
            text = text[: atom.start] + " " * (atom.end - atom.start) + text[atom.end :]
    return text


def _unmarked(text: str) -> str:
    return re.sub(r"[*`]+", "", text)
