"""What a number of an answer counts: its noun, the states that narrow it ("High", "closed"), and whose it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.markdown_text import Layout
from sentinel_rag.agent.grounding.number_atoms import NOUNS, Amount, Quantity, nouns_in
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.state_atoms import State, states_in
from sentinel_rag.agent.grounding.subjects import STRONG, Subject, Topic, governing

_STOP = re.compile(
    r"[;:.]|\((?!\s*(?:status|severity)\b)|,(?!\d)|\s[–—]\s|\b(?:and|but|(?<!of )which|while|whereas|"
    r"that|whose|against|compared)\b|"
    r"\bwith\b(?!\s+(?:an?\s+)?(?:high|medium|low|informational|status|severity))",
    re.IGNORECASE,
)
_RATIO = re.compile(
    r"^[\s*_`]+(?:out\s+)?of\s+(?:(?:the|all|these|those|a total of|in total)\s+)*[*_`]*$", re.IGNORECASE
)
_PART_OF = re.compile(
    r"\b(?:most|majority|bulk|half|few|many|several|minority|none|some|any)\s+of\s+(?:(?:the|these|those|all|our)\s+)*$",
    re.IGNORECASE,
)
_LEADS = re.compile(r"(?:[:=|(]|\b(?:is|are|was|were|number|to|at|count))[\s*_`]*(?:only|just)?\s*$", re.IGNORECASE)
_JOINED = re.compile(r"[\s*_`:=–-]*(?:\([\s*_`]*)?")
_NONE = re.compile(r"no|none|not\b.*", re.IGNORECASE)
_ANY_NOUN = re.compile(r"[*_`]*\s+[A-Za-z]")
_REMARK = re.compile(r"\s*\([^()]*\)")
_BREAK = re.compile(r"[;,.(|·]")
_FORWARD = re.compile(
    r"^[*_`]*\s+(?:[\w-]+\s+){0,4}(?:for|on|by|from|mention(?:s|ing|ed)?|name|naming|"
    r"involv\w+|against|about|hit|concern\w*)\s+"
    r"(?:the\s+)?(?:(?:account|host|user|ip|address|device|day)\s+)?[*_`“\"(]*$",
    re.IGNORECASE,
)
_STATE_KINDS = (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION, Kind.OWNERSHIP)


@dataclass(frozen=True, slots=True)
class Counted:
    """`noun` is one of the values of NOUNS, or empty; `words` are all words that may name a column; `states` narrow the
    count and are judged with it (`used` are their atoms). `subjects` are whose things are counted."""

    noun: str
    words: str
    states: tuple[tuple[Kind, State], ...]
    used: tuple[Atom, ...]
    subjects: tuple[Subject, ...]
    loosely: bool = False
    """True where the subject stands before the sentence, or a sum over all of them may be meant."""
    inherited: bool = False
    """True where the noun is not of the sentence itself."""
    name: str = ""
    """A name that stands right before the number, as the key of a group does ("Execution 2")."""
    within: frozenset[str] = frozenset()
    """Incidents that the sentence or what stands before it speaks of."""


def counted_by(reading: Reading, atom: Atom) -> Counted:
    """What `atom`, a count of the piece, counts."""
    quantity = atom.value
    assert isinstance(quantity, Quantity)
    noun = quantity.noun if quantity.noun in NOUNS.values() else ""
    used = _narrowing(reading, atom, quantity)
    states = [(each.kind, each.value) for each in used if isinstance(each.value, State)]
    cell = reading.piece.layout is Layout.CELL
    if cell and not states:
        states = [
            (each.kind, each.value)
            for each in (*states_in(f" {reading.piece.header}"), *states_in(reading.piece.row_label))
            if isinstance(each.value, State) and each.kind in _STATE_KINDS
        ]
    inherited = not noun and not nouns_in(reading.text[: atom.start])
    if not noun:
        noun = _noun_around(reading, atom)
    subjects = _subjects(reading, atom, noun)
    loosely = False
    altogether = bool(_ALTOGETHER.search(reading.text[max(0, atom.start - 40) : atom.end + 20]))
    if not subjects and reading.context.last is not None and noun != "incident":
        subjects, loosely = [reading.context.last], True
    words = f"{quantity.phrase or _phrase_before(reading, atom)} {quantity.label} {quantity.noun} "
    words += reading.column_words if cell else ""
    around = (*reading.subjects, *reading.row_subjects, reading.context.last)
    within = frozenset(number for each in around if each is not None for number in each.numbers)
    named = [
        str(each.value)
        for each in reading.atoms
        if each.kind in (Kind.TACTIC, Kind.TITLE, Kind.QUOTE, Kind.NAME, Kind.CODE)
        and _stands_before(each, atom, reading.text)
    ]
    name = named[-1] if named else ""
    return Counted(
        noun,
        words,
        tuple(states),
        tuple(used),
        tuple(subjects),
        loosely or altogether,
        inherited=inherited,
        name=name,
        within=within,
    )


_ALTOGETHER = re.compile(r"\b(?:in total|altogether|overall|combined|together|in all|in sum|total of)\b", re.IGNORECASE)


def _phrase_before(reading: Reading, atom: Atom) -> str:
    """What the last number before it counted, for one that repeats no noun ("128 failed sign-ins, the other 42")."""
    earlier = [each.value for each in reading.atoms if each.end <= atom.start and isinstance(each.value, Quantity)]
    return next((quantity.phrase for quantity in reversed(earlier) if quantity.phrase), "")


def _narrowing(reading: Reading, atom: Atom, quantity: Quantity) -> list[Atom]:
    """The states that belong to the count: behind it up to the next break, or in its label before it."""
    text, numbers = reading.text, _numbers(reading.atoms)
    joined = [each for each in reading.atoms if each.kind in _STATE_KINDS and _stands_before(each, atom, text)]
    if joined and not _ANY_NOUN.match(text[atom.end :]):
        # "High 3, Medium 1"
        return joined
    place = numbers.index(atom)
    following = numbers[place + 1] if place + 1 < len(numbers) else None
    before = numbers[place - 1] if place else None
    if before is not None and _RATIO.match(text[before.end : atom.start]):
        # "three of the 12 High incidents are closed": the verb speaks of the three.
        noun_end = text.find(quantity.phrase, atom.end) + len(quantity.phrase) if quantity.noun else atom.end
        return _states(reading, atom.end, noun_end)
    if _PART_OF.search(text[: atom.start]):
        # "most of the 12 incidents are closed": the verb speaks of the most.
        return _states(reading, atom.end, text.find(quantity.phrase, atom.end) + len(quantity.phrase))
    if following is not None and _RATIO.match(text[atom.end : following.start]):
        assert isinstance(following.value, Quantity)
        return _states(reading, atom.end, _stop(text, following.end, len(text)))
    start = atom.end
    if remark := _REMARK.match(text, start):
        # "three (50%) have High severity"
        start = remark.end()
        following = next((each for each in numbers[place + 1 :] if each.start >= start), None)
    end = following.start if following is not None else len(text)
    if quantity.value == 0 and _NONE.fullmatch(atom.text):
        # "no alerts match (severity High)": all that the sentence says narrows what there is none of.
        return _states(reading, start, end)
    found = _states(reading, start, _stop(text, start, end))
    if found:
        return found
    left = before.end if before is not None else 0
    head = text[left : atom.start]
    breaks = [match.end() for match in _BREAK.finditer(head.rstrip(" *_`|:=("))]
    if not _LEADS.search(head):
        return []
    return _states(reading, left + (breaks[-1] if breaks else 0), atom.start)


def _stands_before(name: Atom, number: Atom, text: str) -> bool:
    """True if nothing but a mark stands between a word and the number behind it."""
    return name.end <= number.start and bool(_JOINED.fullmatch(text[name.end : number.start]))


def _stop(text: str, start: int, limit: int) -> int:
    match = _STOP.search(text, start, limit)
    return match.start() if match else limit


def _states(reading: Reading, start: int, end: int) -> list[Atom]:
    return [atom for atom in reading.atoms if atom.kind in _STATE_KINDS and atom.start >= start and atom.end <= end]


def _numbers(atoms: Sequence[Atom]) -> list[Atom]:
    return [atom for atom in atoms if atom.kind in (Kind.COUNT, Kind.PERCENT)]


def _noun_around(reading: Reading, atom: Atom) -> str:
    """The noun of a number that has none: of its column, of the words before it, of what was counted before."""
    if reading.piece.layout is Layout.CELL:
        nouns = list(nouns_in(reading.piece.header)) or list(nouns_in(reading.piece.row_label))
        if nouns:
            return nouns[-1]
    nouns = list(nouns_in(reading.text[: atom.start]))
    if nouns:
        return nouns[-1]
    quantity = atom.value
    assert isinstance(quantity, Quantity)
    if quantity.phrase and quantity.amount not in (Amount.ALL, Amount.SOME, Amount.NOT_ALL):
        words = quantity.phrase.lower().split()
        if words and words[0] not in _FUNCTION_WORDS and not any(_state_word(word) for word in words):
            return ""
    return reading.context.noun


_FUNCTION_WORDS = frozenset(
    [
        "of",
        "are",
        "is",
        "were",
        "was",
        "have",
        "has",
        "had",
        "in",
        "with",
        "and",
        "or",
        "on",
        "at",
        "to",
        "from",
        "by",
        "came",
        "match",
        "matched",
        "matches",
        "came",
        "remain",
        "remains",
        "still",
        "currently",
        "now",
        "overall",
    ]
)


def _state_word(word: str) -> bool:
    return word in {
        "high",
        "medium",
        "low",
        "informational",
        "new",
        "active",
        "closed",
        "open",
        "resolved",
        "dismissed",
    }


def _subjects(reading: Reading, atom: Atom, noun: str) -> list[Subject]:
    topics = (Topic.ENTITY, Topic.ROW) if noun == "incident" else (*STRONG, Topic.ENTITY, Topic.ROW)
    text = reading.text
    for subject in reading.subjects:
        if subject.topic in topics and subject.start >= atom.end and _FORWARD.match(text[atom.end : subject.start]):
            return [subject]
    found = governing(atom, reading.subjects, text, topics, may_describe=False)
    if found and found[0].start >= atom.end and re.search(r"[;:]|[.)](?:\s|$)", text[atom.end : found[0].start]):
        found = []
    if not found:
        found = [subject for subject in reading.row_subjects if subject.topic in topics]
        strong = [subject for subject in found if subject.topic in STRONG]
        found = strong[:1] or found[:1]
    return found
