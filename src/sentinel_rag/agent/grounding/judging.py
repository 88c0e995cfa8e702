"""One piece of an answer judged: a verdict for each of its atoms, and for what it states without an atom.

Only picks who judges what and what stands outside the check (questions, advice, analysis that says so); how each kind
of claim is judged is in the `*_verdicts` modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from sentinel_rag.agent.grounding.atoms import IDENTIFIERS, Atom, Kind
from sentinel_rag.agent.grounding.clauses import clause_at, clauses_of
from sentinel_rag.agent.grounding.code_records import wrong_pairs
from sentinel_rag.agent.grounding.comparison_verdicts import judge_comparisons
from sentinel_rag.agent.grounding.count_verdicts import judge_count, judge_percent
from sentinel_rag.agent.grounding.day_parts import judge_day_parts, judge_shares_of_time
from sentinel_rag.agent.grounding.deed_verdicts import claims_own_deed, unfounded_deeds
from sentinel_rag.agent.grounding.denial_verdicts import judge_denials, truly_denied
from sentinel_rag.agent.grounding.entity_scope import judge_scopes
from sentinel_rag.agent.grounding.event_words import event_before, judge_events
from sentinel_rag.agent.grounding.evidence_index import folded, has_words, moment_of
from sentinel_rag.agent.grounding.frequency_verdicts import judge_frequencies
from sentinel_rag.agent.grounding.handle_verdicts import judge_handle
from sentinel_rag.agent.grounding.markdown_text import Layout
from sentinel_rag.agent.grounding.name_verdicts import judge_name
from sentinel_rag.agent.grounding.order_verdicts import judge_orders, judge_sequences
from sentinel_rag.agent.grounding.past_verdicts import judge_past_incidents
from sentinel_rag.agent.grounding.playbook_verdicts import NOT_OF_PLAYBOOKS, PlaybookVerdicts, judge_playbooks
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.share_verdicts import judge_shares
from sentinel_rag.agent.grounding.state_verdicts import judge_state
from sentinel_rag.agent.grounding.statement_verdicts import unfounded_statement, verdict_statement
from sentinel_rag.agent.grounding.subjects import STRONG, Subject, Topic, governing, mismatched
from sentinel_rag.agent.grounding.time_atoms import Moment
from sentinel_rag.agent.grounding.time_verdicts import judge_duration, judge_time
from sentinel_rag.agent.grounding.title_claims import names_two, titled_otherwise
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, NOT_TIED, Verdict, in_result, unsupported

_STATES = (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION, Kind.OWNERSHIP)
_LONGEST = 400
"""A longer piece that is one atom has nothing else to judge."""
_CITED = (Kind.TITLE, Kind.QUOTE, Kind.CODE)
_FIRM_IN_QUESTIONS = (IDENTIFIERS - {Kind.NAME, Kind.TACTIC, Kind.QUOTE}) | {Kind.INCIDENT, Kind.HANDLE}
"""What is checked in a question or a piece of advice too: things that exist or do not."""
_TO_BE_DONE = re.compile(r"\b(?:could|can|should|would|must|to)\s+(?:then |also |now )?be\s+$", re.IGNORECASE)
_DONE = ("closed", "resolved", "dismissed", "reopened")
"""With words such as "could be" in front they name a change that may come, and no status."""
_ABOUT_DATA = re.compile(
    r"\b(?:incidents?|alerts?|hosts?|accounts?|users?|attack\w*|malware|ransomware|address(?:es)?|devices?|servers?|"
    r"workstations?|processes|files?|sign-?ins?|log-?ins?|logons?|credentials?|password|phish\w*|breach\w*|activity|"
    r"compromis\w+|exfiltrat\w+|lateral|entities|severity|threats?|events?|connections?|traffic)\b",
    re.IGNORECASE,
)
_BARE_ANSWER = re.compile(
    r"[\s*_`]*(?:yes|no|yep|nope|correct|right|indeed|true|false|it (?:is|was|does|has)(?: not)?|it (?:isn|wasn)[’']t|"
    r"(?:still )?(?:the same|unchanged|so)|not (?:yet|any ?more))"
    r"(?:,\s*(?:it (?:is|does|has)(?: not)?|not yet|still))?[\s.!*_`]*",
    re.IGNORECASE,
)
"""An answer without a word of its own: all that it states is the question."""
_ABOUT_NOT_KNOWING = re.compile(
    r"\b(?:no|not|none|nothing|never|n[’']t|cannot|unable|failed|fails?|failing|errors?|"
    r"unavailable|empty|denied|refused|timed out|"
    r"without|try|could|would|i|ask|person|human)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """An atom with its verdict; `atom` is the words themselves for a statement without one."""

    atom: Atom
    verdict: Verdict
    names_subject: bool = False


def judge(reading: Reading, *, anything_known: bool) -> Iterator[Judged]:
    """The verdicts of a piece. `anything_known` is False where no result holds any row."""
    text = reading.text
    if len(reading.atoms) == 1 and len(text) > _LONGEST and reading.atoms[0].end == len(text):
        yield Judged(reading.atoms[0], judge_name(reading, reading.atoms[0]))
        return
    prose = reading.piece.layout not in (Layout.CELL, Layout.HEADER_CELL, Layout.CODE)
    own_words = _without(reading, [atom for atom in reading.atoms if atom.kind in _CITED])
    clauses = clauses_of(own_words)

    def asks(place: int) -> bool:
        return prose and clause_at(clauses, place).asks

    judged: list[Judged] = []
    used: list[Atom] = []
    for atom in reading.atoms:
        if atom.kind is Kind.COUNT and (
            not asks(atom.start) or _of_named(reading, atom) or _taken_for_granted(reading, atom)
        ):
            if prose and clause_at(clauses, atom.start).reports and _narrowed_by_name(reading, atom):
                continue  # what its writer did not find
            verdict, states = judge_count(reading, atom)
            judged.append(Judged(atom, verdict))
            used += states
    for atom in reading.atoms:
        if atom.kind is Kind.COUNT or (atom in used and not _listed(reading, atom)):
            continue
        if asks(atom.start) and atom.kind not in _FIRM_IN_QUESTIONS and not _of_named(reading, atom):
            continue
        may_be_guessed = prose and atom.kind in (Kind.CLASSIFICATION, Kind.NAME)
        if may_be_guessed and clause_at(clauses, atom.start).leaves_open(atom.start):
            continue
        if atom.kind is Kind.STATUS and _TO_BE_DONE.search(text[: atom.start]) and atom.text.lower() in _DONE:
            continue
        if prose and atom.kind in (Kind.TIME, Kind.DURATION) and clause_at(clauses, atom.start).reports:
            continue  # where its writer looked
        found = _judge_atom(reading, atom)
        if prose and not found.verdict.supported and truly_denied(reading, atom):
            found = replace(found, verdict=NOT_TIED)
        judged.append(found)
    if prose and (claims_own_deed(own_words) or names_two(reading.subjects, text)):
        judged = [_without_repair(each) for each in judged]
    of_playbooks = judge_playbooks(reading) if prose else NOT_OF_PLAYBOOKS
    judged = [_in_words_of_hits(reading, each, of_playbooks) for each in judged]
    yield from judged
    for atom, verdict in of_playbooks.wrong:
        yield Judged(atom, verdict)
    if of_playbooks.settled:
        return
    for atom, verdict in judge_past_incidents(reading) if prose else ():
        yield Judged(atom, verdict)
    if reading.piece.layout is Layout.CODE:
        for start, end in wrong_pairs(text, reading.index):
            wrong_value = Atom(Kind.CODE, text[start:end], start, end, text[start:end])
            yield Judged(wrong_value, unsupported("the results tell another value for the incident of this object"))
    if reading.piece.layout in (Layout.HEADER_CELL, Layout.CODE):
        return
    wrong = (
        mismatched(reading.subjects, text)
        or titled_otherwise(reading.subjects, text, reading.context)
        or _of_another(reading)
    )
    if wrong is not None and all(each.verdict.supported for each in judged):
        yield Judged(_atom_of(wrong, text), _mismatch(wrong, reading), names_subject=True)
    for claim, verdict in judge_orders(reading):
        if not asks(claim.start):
            yield Judged(Atom(Kind.NAME, text[claim.start : claim.end], claim.start, claim.end), verdict)
    for atom, verdict in judge_events(reading) if prose else ():
        if not asks(atom.start):
            yield Judged(atom, verdict)
    for share, verdict in judge_shares(reading):
        if not asks(share.start):
            yield Judged(Atom(Kind.NAME, text[share.start : share.end], share.start, share.end), verdict)
    compared = (
        (
            *judge_comparisons(reading),
            *judge_denials(reading),
            *judge_scopes(reading),
            *judge_day_parts(reading),
            *judge_shares_of_time(reading),
        )
        if prose
        else ()
    )
    for start, end, verdict in (*judge_sequences(reading), *judge_frequencies(reading), *compared):
        if not asks(start):
            yield Judged(Atom(Kind.NAME, text[start:end].strip(), start, end), verdict)
    yield from _statements(reading, judged, anything_known=anything_known)


_IN_WORDS = frozenset({Kind.DURATION, Kind.TIME, Kind.PERCENT, Kind.COUNT, *_STATES})


def _in_words_of_hits(reading: Reading, judged: Judged, of_playbooks: PlaybookVerdicts) -> Judged:
    """A number, time or state that is none of a field, and stands in the words of the playbook that is cited, or with
    the word behind it in the record of the past incident that is spoken of ("the new data centre")."""
    if judged.verdict.supported or judged.atom.kind not in _IN_WORDS:
        return judged
    leaf = of_playbooks.told(judged.atom.text)
    if leaf is None and judged.atom.kind in _STATES:
        behind = re.match(r"\s+[a-z]{3,}", reading.text[judged.atom.end :])
        numbers = {number for subject in reading.subjects for number in subject.numbers}
        if behind is not None:
            words = folded(judged.atom.text + behind[0])
            own = [hit for hit in reading.index.hits if hit.hit.number in numbers]
            leaf = next((hit.leaf for hit in own if has_words(folded(hit.hit.text), words)), None)
    return judged if leaf is None else replace(judged, verdict=in_result(leaf))


def _without_repair(judged: Judged) -> Judged:
    """The verdict with nothing to put in the place of what is wrong, so that the sentence is left out."""
    if judged.verdict.supported:
        return judged
    return replace(judged, verdict=unsupported(judged.verdict.reason))


def _statements(reading: Reading, judged: list[Judged], *, anything_known: bool) -> Iterator[Judged]:
    told = [each.atom for each in judged if each.verdict.supported and each.atom.kind in (*_CITED, Kind.CLASSIFICATION)]
    text = _without(reading, told)
    if reading.piece.layout is not Layout.CELL:
        for start, end in unfounded_deeds(text, reading.subjects, reading.index, reading.question):
            deed = Atom(Kind.NAME, reading.text[start:end], start, end)
            yield Judged(deed, unsupported("no result tells that this was done or said"))
    words = verdict_statement(text, reading.index, reading.question)
    if words:
        at = reading.text.find(words)
        start, end = (at, at + len(words)) if at >= 0 else (0, len(reading.text))
        yield Judged(Atom(Kind.NAME, words, start, end), unsupported("no result makes this statement"))
    elif (
        reading.piece.layout in (Layout.SENTENCE, Layout.ITEM)
        and not any(each.verdict.leaf is not None or each.verdict is FROM_PERSON for each in judged)
        and all(each.verdict.supported for each in judged)
        and unfounded_statement(text, reading.index)
    ):
        yield Judged(Atom(Kind.NAME, text, 0, len(text)), unsupported("no result makes this statement"))
    elif (
        not anything_known
        and reading.piece.layout in (Layout.SENTENCE, Layout.ITEM)
        and (
            (text.rstrip().endswith((".", "!")) and _ABOUT_DATA.search(text) and not _ABOUT_NOT_KNOWING.search(text))
            or (_BARE_ANSWER.fullmatch(text) and _ABOUT_DATA.search(reading.question))
        )
    ):
        yield Judged(Atom(Kind.NAME, text, 0, len(text)), unsupported("no result holds any row"))


_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)


def _of_another(reading: Reading) -> Subject | None:
    """The title of a list of labels that is not the title of the incident whose number the list gives."""
    context = reading.context.last
    if context is None or context.topic is not Topic.INCIDENT or not context.text.isdigit() or not reading.context.firm:
        return None
    if reading.piece.layout is not Layout.ITEM or not _TITLE_LABEL.match(reading.text):
        return None
    named = [each for each in reading.subjects if each.topic is Topic.INCIDENT and each.start >= 0]
    return next((each for each in named if not each.same(context)), None)


_TITLE_LABEL = re.compile(r"^[*_`\s]*(?:title|name|incident (?:title|name)|guid)[*_`]*\s*[:=–-]", re.IGNORECASE)


def _listed(reading: Reading, atom: Atom) -> bool:
    """True for a state of a count whose things the sentence lists: "the three High incidents are 40, 18 and 12"."""
    found = governing(atom, reading.subjects, reading.text, (Topic.INCIDENT,))
    return bool(found) and found[0].start >= atom.end and len(found) > 1


def _of_named(reading: Reading, atom: Atom) -> bool:
    """True for a value that even a question states of a thing: "shall I open incident 12, which is High?" """
    found = governing(atom, reading.subjects, reading.text, STRONG)
    return atom.kind in (*_STATES, Kind.COUNT) and any(each.start >= 0 and each.end <= atom.start for each in found)


_DEFINITE = re.compile(r"\b(?:the|all|these|those|its|their)\s+$", re.IGNORECASE)
_OF_A_THING = re.compile(r"^\s+(?:\w+\s+){1,3}?(?:of|in|from|for|behind)\s+(?:incident|alert)\b", re.IGNORECASE)


def _taken_for_granted(reading: Reading, atom: Atom) -> bool:
    """True for a number that a question takes as known: "shall I show the 12 alerts of incident 31?" """
    text = reading.text
    return bool(_DEFINITE.search(text[: atom.start]) and _OF_A_THING.match(text[atom.end :]))


def _narrowed_by_name(reading: Reading, atom: Atom) -> bool:
    """True for "I did not find any incident that names X": nobody asked for exactly these."""
    return any(
        each.start >= atom.end and each.kind not in (*_STATES, Kind.COUNT, Kind.INCIDENT, Kind.PERCENT)
        for each in reading.atoms
    )


def _without(reading: Reading, atoms: Iterable[Atom]) -> str:
    """The words of the piece that are its own: what it cites is blanked out, every place stays."""
    text = reading.text
    for atom in atoms:
        text = text[: atom.start] + "#" * (atom.end - atom.start) + text[atom.end :]
    return text


def _judge_atom(reading: Reading, atom: Atom) -> Judged:
    if atom.kind is Kind.INCIDENT:
        return Judged(atom, _incident(reading, atom), names_subject=True)
    if atom.kind in _STATES:
        subjects = _subjects(reading, atom, STRONG) or _subjects(reading, atom, (Topic.ENTITY,))
        verdict = judge_state(atom, subjects, reading.index, text=reading.text, question=reading.question)
        return Judged(atom, verdict)
    if atom.kind is Kind.TIME:
        subjects = [each for each in _subjects(reading, atom, (*STRONG, Topic.ENTITY)) if each.start != atom.start]
        subjects = event_before(reading, atom) or subjects
        cited = [each for each in reading.atoms if each.kind in _CITED]
        verdict = judge_time(
            atom,
            subjects,
            reading.index,
            text=_without(reading, cited),
            question=reading.question,
            firm=reading.context.firm and reading.piece.layout is Layout.ITEM,
        )
        return Judged(atom, verdict)
    if atom.kind is Kind.DURATION:
        subjects = [each for each in reading.subjects if each.topic in STRONG] or _subjects(reading, atom, tuple(Topic))
        return Judged(
            atom,
            judge_duration(atom, subjects, reading.index, question=reading.question, told=_told_times(reading)),
        )
    if atom.kind is Kind.PERCENT:
        return Judged(atom, judge_percent(reading, atom))
    if atom.kind is Kind.HANDLE:
        return Judged(atom, judge_handle(reading, atom, _subjects(reading, atom, STRONG)))
    verdict = judge_name(reading, atom)
    names = reading.piece.layout in (Layout.HEADING, Layout.CELL) and atom.kind in (Kind.TITLE, Kind.QUOTE, Kind.GUID)
    return Judged(atom, verdict, names_subject=names)


def _subjects(reading: Reading, atom: Atom, topics: tuple[Topic, ...]) -> list[Subject]:
    """Whose value it is: a subject of the piece, of its table row, or of what stands before it."""
    if _RESPECTIVELY.search(reading.text):
        named = [each for each in reading.subjects if each.topic in STRONG and each.start >= 0]
        values = [each for each in reading.atoms if each.kind is atom.kind]
        if len(values) == len(named) and atom in values:
            return [named[values.index(atom)]]
    own = [each for each in reading.subjects if not (each.start <= atom.start and atom.end <= each.end)]
    strong = [topic for topic in topics if topic in STRONG]
    found = governing(atom, own, reading.text, tuple(strong) or topics) or governing(atom, own, reading.text, topics)
    if found and found[0].topic in STRONG:
        return found
    row = [subject for subject in reading.row_subjects if subject.topic in topics]
    row.sort(key=lambda subject: subject.topic not in STRONG)
    if row:
        return row[:1]
    if found:
        return found
    context = reading.context.last
    return [context] if context is not None and context.topic in topics else []


def _incident(reading: Reading, atom: Atom) -> Verdict:
    number = str(atom.value)
    index = reading.index
    for record in index.incidents(number):
        leaf = record.first("number")
        if leaf is not None:
            return in_result(leaf)
    for run in index.results:
        for record in run.records:
            if number == record.incident or number in record.incidents:
                for key in ("incident_number", "incident_numbers"):
                    for leaf in record.leaves.get(key, ()):
                        if str(leaf.value) == number:
                            return in_result(leaf)
    if index.said(number, reading.question):
        return FROM_PERSON
    for leaf in index.exactly(number):
        if leaf.key in ("provider_incident_id", "incidentnumber", "incident"):
            return in_result(leaf)
    right = _named_beside(reading, atom)
    if right is not None:
        return right
    return unsupported("no result has an incident of this number")


def _named_beside(reading: Reading, atom: Atom) -> Verdict | None:
    """The number of the one incident whose title stands beside a wrong number."""
    named = [each for each in reading.subjects if each.topic is Topic.INCIDENT and not each.text.isdigit()]
    if len(named) != 1 or len(named[0].numbers) != 1:
        return None
    (number,) = named[0].numbers
    leaf = named[0].records[0].first("number") if named[0].records else None
    return None if leaf is None else unsupported("the incident of this title has another number", leaf, number)


def _mismatch(wrong: Subject, reading: Reading) -> Verdict:
    return unsupported(f"{wrong.text} is not the incident that stands beside it")


def _atom_of(subject: Subject, text: str) -> Atom:
    return Atom(Kind.INCIDENT, text[subject.start : subject.end], subject.start, subject.end, subject.text)


_SINCE_THEN = re.compile(r"\b(?:later|after(?:wards)?|before|earlier|following|then|in between|apart)\b", re.IGNORECASE)


_MOST_INSTANTS = 4
"""A time without a date may be of several days."""


def _told_times(reading: Reading) -> list[datetime]:
    """Instants of results that the sentence itself tells, and those before it that it measures from."""
    found: list[datetime] = []
    before = reading.preceding if _SINCE_THEN.search(reading.text) else ()
    for atom in (*before, *reading.atoms):
        if isinstance(atom.value, Moment):
            told = (instant for instants in _matching(atom.value, reading) for instant in instants)
            found += islice(dict.fromkeys(told), _MOST_INSTANTS)
    return found


def _matching(moment: Moment, reading: Reading) -> Iterator[list[datetime]]:
    for run in reading.index.results:
        for leaf in run.times[1]:
            told = moment_of(leaf.value)
            if told is not None and moment.fits(told, reading.index.zone):
                yield [told]
