"""Whether a number of an answer is one that results tell, or one that follows from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.count_candidates import Candidate, candidates, single_counts
from sentinel_rag.agent.grounding.counted_things import Counted, counted_by
from sentinel_rag.agent.grounding.evidence_index import folded, has_words
from sentinel_rag.agent.grounding.frequency_verdicts import named_counts
from sentinel_rag.agent.grounding.markdown_text import Layout
from sentinel_rag.agent.grounding.number_atoms import NOUNS, Amount, Quantity, nouns_in
from sentinel_rag.agent.grounding.owned_counts import owned_counts
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, HARMLESS, Verdict, derived, in_result, unsupported

_ORDERING = re.compile(
    r"\b(?:top|first|page|step|phase|stage|option|part|section|tier|level|figure|item|version|"
    r"office|windows|microsoft|office|defender|log)[\s*_`-]*$",
    re.IGNORECASE,
)
_DISCOURSE = re.compile(
    r"^(?:\w+\s+)?(?:steps?|ways?|things?|options?|reasons?|questions?|points?|possibilit\w+|"
    r"examples?|sections?|parts?|"
    r"groups?|lists?|kinds?|types?|categor\w+|phases?|stages?|sentences?|tools?|calls?|"
    r"searches|ideas?|next|more things?)\b",
    re.IGNORECASE,
)
_IDENTIFIED = re.compile(
    r"\b(?:port|pid|process id|event ?id|id|code|error|kb|rule|version|build|line|under|"
    r"defender|as|uid|calls(?: it)?|called|numbered)[\s:#=*_`]*$",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?:more recent|newer|younger|later|older|earlier)\s+than\b", re.IGNORECASE)
_EACH = re.compile(r"\b(?:each|apiece|per|every|other|respectively|the rest|others)\b", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except|apart from|other than|besides|but)\b", re.IGNORECASE)
_AMOUNT_KEY = re.compile(r"count|alerts|total|rows|returned|_s$|duration|high|medium|low|found")
_QUALIFIED = re.compile(
    r"^\s+\w+\s+(?:are|is|were|was|have|had|need|require|involve|concern|affect|contain|wait)\b", re.IGNORECASE
)
"""The words behind a counted noun narrow it, in a way that is not known."""
_YEAR = re.compile(r"\b(?:in|of|since|during|until|year)\s+$", re.IGNORECASE)
_LISTED_KINDS = {
    "incident": (Kind.INCIDENT,), "alert": (Kind.TITLE, Kind.QUOTE, Kind.GUID), "ip": (Kind.ADDRESS,),
    "host": (Kind.DOMAIN, Kind.TITLE, Kind.TOKEN, Kind.CODE, Kind.NAME), "file": (Kind.FILE, Kind.PATH, Kind.CODE),
    "account": (Kind.ACCOUNT, Kind.TITLE, Kind.TOKEN, Kind.CODE, Kind.NAME), "url": (Kind.URL, Kind.DOMAIN),
    "filehash": (Kind.HASH,), "technique": (Kind.TECHNIQUE,), "tactic": (Kind.TACTIC,),
}  # fmt: skip


def judge_count(reading: Reading, atom: Atom) -> tuple[Verdict, tuple[Atom, ...]]:
    """The verdict for a number, and the states that were judged with it."""
    quantity = atom.value
    assert isinstance(quantity, Quantity)
    counted = counted_by(reading, atom)
    before = reading.text[: atom.start]
    if quantity.amount in (Amount.ALL, Amount.NOT_ALL, Amount.SOME) or (
        quantity.value == 0 and not atom.text.isdigit()
    ):
        return _quantified(reading, atom, quantity, counted), counted.used
    if not quantity.noun and (_ORDERING.search(before) or _DISCOURSE.match(quantity.phrase)):
        return HARMLESS, counted.used
    if atom.text.lower() == "both":
        return HARMLESS, ()
    if not quantity.noun and _IDENTIFIED.search(before):
        leaf = _exact_number(reading, atom)
        return (in_result(leaf) if leaf is not None else unsupported("no result holds this number")), counted.used
    if not counted.states and (led := _led_by_state(reading, atom)):
        counted = replace(counted, states=((led.kind, led.value),), used=(*counted.used, led))  # type: ignore[arg-type]
    owned = owned_counts(reading, atom, counted)
    if owned is not None:
        hit = next((each for each in owned if _agrees(quantity, each.value)), None)
        return (_supported(hit) if hit else unsupported("the results tell another number of theirs")), counted.used
    found = candidates(counted, reading.index)
    if counted.inherited and (counted.states or counted.name):
        found += candidates(replace(counted, noun="", subjects=()), reading.index)
    if _EACH.search(reading.text):
        found += single_counts(counted, reading.index)
    hit = next((each for each in found if _agrees(quantity, each.value)), None)
    if hit is not None:
        return _supported(hit), counted.used
    of_name = next((each for each in named_counts(reading, atom) or () if _agrees(quantity, each.value)), None)
    if of_name is not None:
        return _supported(of_name), counted.used
    if _enumerated(reading, atom, quantity, counted):
        return derived(None, "number of things that follow"), counted.used
    other = _elsewhere(reading, atom, quantity, before)
    if other is not None:
        return other, counted.used
    values = {each.value: each for each in found}
    reason = "the results give another number" if found else "no result gives this number"
    if _QUALIFIED.search(reading.text[atom.end :]) and not counted.states:
        return unsupported(reason), counted.used
    told = quantity.noun or quantity.label or reading.piece.layout is Layout.CELL or counted.subjects
    if (
        len(values) == 1
        and quantity.amount is Amount.EXACT
        and (counted.noun or counted.subjects)
        and told
        and not counted.loosely
        # A bare number that an incident has is never made a count of.
        and not (atom.text in reading.index.incident_numbers and not quantity.noun)
    ):
        (only,) = values.values()
        if only.leaf is not None:
            return unsupported(reason, only.leaf, _written(only.value)), counted.used
    return unsupported(reason), counted.used


_LED = re.compile(r"[\s*_`]*,?\s*with\s+(?:only |just |a total of )?[*_`]*", re.IGNORECASE)


def _led_by_state(reading: Reading, atom: Atom) -> Atom | None:
    """The state of which a count says how many have it ("the most common severity is Medium, with 18 alerts")."""
    before = [each for each in reading.atoms if each.end <= atom.start and isinstance(each.value, State)]
    if not before or not _LED.fullmatch(reading.text[before[-1].end : atom.start]):
        return None
    common = _COMMON.search(reading.text[: before[-1].start])
    return before[-1] if common else None


_COMMON = re.compile(r"\b(?:severity|status|classification)\b[\s*_`]*(?:is|was)\W*(?:by far\W*)?$", re.IGNORECASE)


def _supported(hit: Candidate) -> Verdict:
    return in_result(hit.leaf) if hit.leaf is not None and not hit.formula else derived(hit.leaf, hit.formula)


def _agrees(quantity: Quantity, value: float) -> bool:
    written = quantity.value
    match quantity.amount:
        case Amount.ABOUT:
            return abs(value - written) <= max(0.1 * value, 0)
        case Amount.AT_LEAST:
            return value >= written
        case Amount.MORE:
            return value > written
        case Amount.AT_MOST:
            return value <= written
        case Amount.LESS:
            return value < written
        case _:
            return value == written or (not float(value).is_integer() and round(value, _decimals(written)) == written)


def _decimals(written: float) -> int:
    _, dot, digits = str(written).partition(".")
    return len(digits) if dot and digits != "0" else 0


def _quantified(reading: Reading, atom: Atom, quantity: Quantity, counted: Counted) -> Verdict:
    """ "no", "none", "all", "some": the narrowed count beside the whole one."""
    whole = Counted(counted.noun, counted.words, (), (), counted.subjects, counted.loosely)
    narrowed = candidates(counted, reading.index)
    totals = candidates(whole, reading.index)
    if quantity.value == 0 and _THAN.search(reading.text, atom.end):
        return HARMLESS  # a superlative, which `order_verdicts` judges
    if quantity.value == 0:
        listed = _distinct(each for each in reading.atoms if each.start > atom.end and each.kind is Kind.INCIDENT)
        if listed and _EXCEPT.search(reading.text, atom.end):
            hit = next((each for each in narrowed if each.value == listed), None)
            return _supported(hit) if hit is not None else unsupported("the results tell other exceptions")
        if counted.states or not _narrower(quantity):
            hit = next((each for each in narrowed if each.value == 0), None)
        else:
            hit = None
        if hit is None:
            hit = _empty_call(reading, counted)
        if hit is None:
            hit = _empty_result(reading)
            if hit is not None and any(each.value > 0 for each in narrowed) and not _narrower(quantity):
                hit = None
        return _supported(hit) if hit is not None else unsupported("the results do not say that there are none")
    if not counted.states:
        if quantity.amount is Amount.SOME:
            hit = next((each for each in totals if each.value > 0), None)
            return _supported(hit) if hit is not None else unsupported("no result holds any")
        return HARMLESS
    for each in narrowed:
        for total in totals:
            right = {
                Amount.ALL: each.value == total.value and total.value > 0,
                Amount.NOT_ALL: each.value < total.value,
                Amount.SOME: each.value > 0,
            }[quantity.amount]
            if right and total.value == max(one.value for one in totals):
                return derived(each.leaf, f"{_written(each.value)} of {_written(total.value)}")
    return unsupported("the results tell another share of them")


def _narrower(quantity: Quantity) -> bool:
    """True if words of the answer narrow the count in a way that nothing computes ("no suspicious alerts")."""
    return bool(quantity.phrase) and len(quantity.phrase.split()) > 1


def _empty_call(reading: Reading, counted: Counted) -> Candidate | None:
    """A result without rows of a call that asked for just this: the states and the thing that the answer names."""
    wanted = [state.word.lower() for _, state in counted.states]
    wanted += [folded(subject.text) for subject in counted.subjects if subject.start >= 0]
    for run in reading.index.results:
        if run.run.worked and not run.rows and wanted and all(has_words(run.argument_text, each) for each in wanted):
            leaf = next((leaf for record in run.records if (leaf := record.first("rows_returned"))), None)
            if leaf is not None:
                return Candidate(0, leaf)
    return None


def _empty_result(reading: Reading) -> Candidate | None:
    """A result without rows, which is what "none were found" rests on."""
    for run in reading.index.results:
        if run.run.worked and not run.rows:
            for record in run.records:
                leaf = record.first("rows_returned")
                if leaf is not None:
                    return Candidate(0, leaf)
    return None


def _enumerated(reading: Reading, atom: Atom, quantity: Quantity, counted: Counted) -> bool:
    """True if so many things of the kind are named behind the number, in the sentence or in what follows it."""
    if quantity.amount is not Amount.EXACT or not 1 < quantity.value <= 30 or counted.states:
        return False
    kinds = _LISTED_KINDS.get(quantity.noun)
    if kinds is None:
        return False
    here = _distinct(each for each in reading.atoms if each.start > atom.end and each.kind in kinds)
    if here:
        return here == quantity.value
    return _distinct(each for each in reading.look_ahead() if each.kind in kinds) == quantity.value


def _distinct(atoms: object) -> int:
    return len({str(atom.value).lower() for atom in atoms})  # type: ignore[attr-defined]  # an iterable of atoms


_BOUNDS_A_LIST = re.compile(
    r"\b(?:first|last|top|newest|latest|oldest|next|limit(?:ed)?(?:\s+(?:to|of|is))?|up to|threshold(?:\s+(?:of|is))?|"
    r"minimum(?:\s+of)?|maximum(?:\s+of)?|port|code|id|event|number|page|asked for|window of)\s*[:=#*_`]*\s*$",
    re.IGNORECASE,
)
_COUNTED_LABEL = re.compile(
    r"\b(?:high|medium|low|informational|critical|open|closed|new|active|resolved|dismissed|assigned|unassigned|total|count|"
    r"positives?)\b",
    re.IGNORECASE,
)


_LONGEST_LABEL = 3
"""Words; what is longer is a sentence that ends in a colon and a list of what it speaks of."""


def _is_person_s(reading: Reading, atom: Atom, quantity: Quantity, before: str) -> bool:
    """Whether a number is one that the person or a call named, and named of this: who asks about incident 12 has not
    said that there are 12 hosts."""
    index, question = reading.index, reading.question
    if quantity.noun in ("incident", "alert") or not index.said(atom.text, question):
        return False
    label = quantity.label if len(quantity.label.split()) <= _LONGEST_LABEL else ""
    if _COUNTED_LABEL.search(label) or nouns_in(label):
        return False
    if not quantity.phrase or quantity.amount is not Amount.EXACT or _BOUNDS_A_LIST.search(before):
        return True
    return index.said(f"{atom.text} {quantity.phrase.split()[0]}", question)


def _elsewhere(reading: Reading, atom: Atom, quantity: Quantity, before: str) -> Verdict | None:
    """Numbers that count nothing: identifiers, years, words of the person, words of a result."""
    index = reading.index
    if _is_person_s(reading, atom, quantity, before):
        return FROM_PERSON
    if _YEAR.search(before) and atom.text.isdigit() and len(atom.text) == 4:
        leaf = next(
            (leaf for run in index.results for leaf in run.times[1] if str(leaf.value).startswith(atom.text)), None
        )
        return in_result(leaf) if leaf is not None else None
    if _IDENTIFIED.search(before) or (not quantity.noun and quantity.value >= 1000):
        leaf = _exact_number(reading, atom)
        if leaf is not None:
            return in_result(leaf)
    if quantity.phrase and not quantity.noun:
        leaf = index.holding(f"{atom.text} {quantity.phrase.split()[0]}")
        if leaf is not None:
            return in_result(leaf)
    return None


def _exact_number(reading: Reading, atom: Atom) -> Leaf | None:
    digits = re.sub(r"[,  ]", "", atom.text)
    named = [leaf for leaf in reading.index.exactly(digits) if _AMOUNT_KEY.search(leaf.key) is None]
    leaf = named[0] if named else None if list(reading.index.exactly(digits)) else reading.index.holding(atom.text)
    if leaf is None:
        return None
    strong = [subject for subject in reading.subjects if subject.records]
    holders = named or [leaf]
    if strong and not any(subject.holds(each) for subject in strong for each in holders):
        return None
    return leaf


def judge_percent(reading: Reading, atom: Atom) -> Verdict:
    """The verdict for a share: some part of some whole of the same result, rounded as it was written."""
    share = float(str(atom.value))
    leaf = next(reading.index.exactly(atom.text), None)
    if leaf is not None or reading.index.said(atom.text, reading.question):
        return in_result(leaf) if leaf is not None else FROM_PERSON
    decimals = _decimals(share)
    word = not atom.text[:1].isdigit()
    about = bool(
        re.search(
            r"(?:about|around|roughly|nearly|almost|approximately|~)\s*$", reading.text[: atom.start], re.IGNORECASE
        )
    )
    tolerance = 2.5 if word else (1.5 if about else 0.5 * 10**-decimals + 1e-9)
    parts, wholes = _parts_and_wholes(reading, atom)
    for part in parts:
        for whole in wholes:
            if (
                whole.value > 0
                and part.value <= whole.value
                and abs(100 * part.value / whole.value - share) <= tolerance
            ):
                return derived(part.leaf, f"{_written(part.value)} / {_written(whole.value)}")
    return unsupported("no part of the results has this share")


def _parts_and_wholes(reading: Reading, atom: Atom) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
    """The counts of the states of the sentence beside the totals."""
    noun = next(
        (
            each.value.noun
            for each in reading.atoms
            if isinstance(each.value, Quantity) and each.value.noun in NOUNS.values()
        ),
        reading.context.noun,
    )
    states = [
        (each.kind, each.value)
        for each in reading.atoms
        if each.kind in (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION)
    ]
    whole = Counted(noun, "", (), (), ())
    wholes = candidates(whole, reading.index)
    if not states:
        return _groups(reading), wholes
    parts: list[Candidate] = []
    for state in states:
        parts += candidates(Counted(noun, "", (state,), (), ()), reading.index)  # type: ignore[arg-type]  # a State
    return parts, wholes


def _groups(reading: Reading) -> Sequence[Candidate]:
    return [
        Candidate(float(str(leaf.value)), leaf)
        for run in reading.index.results
        for record in run.records
        if record.pointer.startswith("/summary") or record.speaks.value in ("entity", "row")
        for leaves in record.leaves.values()
        for leaf in leaves
        if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool)
    ]


def _written(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"
