"""All atoms of one piece of an answer: the recognisers in order, each reading only what those before it left.

The order is the meaning: digits of an address are no count, and a title that holds a number is a title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.everyday_words import KNOWN_WORDS
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.identifier_atoms import identifiers_in, tactics_in
from sentinel_rag.agent.grounding.listed_incidents import begins_row_of_incident, numbers_of_a_list
from sentinel_rag.agent.grounding.markdown_text import Layout, Piece
from sentinel_rag.agent.grounding.name_atoms import (
    capitalised_names_in,
    code_spans_in,
    labelled_names_in,
    quotations_in,
    shaped_names_in,
)
from sentinel_rag.agent.grounding.number_atoms import (
    Quantity,
    cited_incidents_in,
    counts_in,
    incident_numbers_in,
    percentages_in,
    quantifiers_in,
)
from sentinel_rag.agent.grounding.state_atoms import states_in
from sentinel_rag.agent.grounding.time_atoms import durations_in, times_in

MOST_CHARACTERS = 8_000
MOST_NUMBERS = 200
"""A sentence, cell or code block beyond these is no sentence; reading it would take seconds."""
_NUMBERS = re.compile(r"\d+")
_HANDLE = re.compile(r"⟦([^⟦⟧]{1,1100})⟧")
_LIST_NUMBER = re.compile(r"\[\d{1,3}\]")
_STATE_WORD = re.compile(
    r"(?:high|medium|low|informational|critical|new|active|closed|open|in ?progress|resolved|dismissed|"
    r"(?:true|false|benign) ?positive|undetermined)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:named|called|titled|title|name|rule|alert|incident|known as|entitled)\W*$", re.IGNORECASE)
_LABEL = re.compile(r"^[*_\s]*([^:*_|]{1,60})[*_]*:")
_SAME_LENGTH = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "–": "-"})
_NO_NOUN_BEFORE = re.compile(
    r"(?:\b(?:incidents?|while|whereas|and|but|first|second|latest|newest|oldest|earliest|"
    r"recent|last|is|was|number|of|than|to|"
    r"with|one|by|from|include|includes|are|were|in|case)\b[\s,*_`(“\"]*|^[\s*_`]*|[,;(]\s*[*_`]*)$",
    re.IGNORECASE,
)
_NO_NOUN_AFTER = re.compile(
    r"^[*_`]*\s*(?:[,.;:()–—|…?!-]|$|(?:is|was|has|had|and|or|remains|stays|stands|being|"
    r"which|with|came|carries|contains|"
    r"involves|includes|from|on|at|in|to|followed|whereas|while|but|belongs|shows|looks)\b)",
    re.IGNORECASE,
)
_COUNTED_AFTER = re.compile(
    r"^[*_`]*\s*(?:%|of\b|in all\b|in total\b|times?\b|overall\b|(?:are|were|have)\b|high\b|"
    r"medium\b|low\b|informational\b|"
    r"new\b|active\b|closed\b|open\b|resolved\b|more\b|each\b|together\b)",
    re.IGNORECASE,
)
_NUMBER_HEADER = re.compile(
    r"^(?:#|no\.?|nr\.?|number|incident|incidents? (?:number|no\.?|id|#)|incident_?number|id|case)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Titles:
    """Names of the results that a text mentions, longest first; found once a text."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str, index: EvidenceIndex) -> Titles:
        whole = _searchable(text)
        found = {
            name
            for name in index.titles
            if name in whole and name not in KNOWN_WORDS and not name.isdigit() and not _STATE_WORD.fullmatch(name)
        }
        return cls(tuple(sorted(found, key=lambda name: (-len(name), name))))


def atoms_of(piece: Piece, index: EvidenceIndex, titles: Titles, known_incidents: frozenset[str]) -> list[Atom]:
    """The atoms of a piece in the order in which they stand."""
    most = MOST_NUMBERS * (10 if piece.layout is Layout.CODE else 1)
    if len(piece.text) > MOST_CHARACTERS or len(_NUMBERS.findall(piece.text)) > most:
        # Nothing holds the whole of it, so it is left out.
        return [Atom(Kind.CODE, f"{piece.text[:40]}…", 0, len(piece.text), piece.text)]
    taken: list[Atom] = []

    def take(atoms: Iterable[Atom], *, wanted: Callable[[Atom], bool] = lambda _: True) -> None:
        for atom in list(atoms):
            if wanted(atom) and not any(atom.same_place(other) for other in taken):
                taken.append(atom)

    text = piece.text
    take(Atom(Kind.HANDLE, match[0], match.start(), match.end(), match[1]) for match in _HANDLE.finditer(text))
    if piece.layout is Layout.CODE:
        take(identifiers_in(text))
        take(times_in(text), wanted=lambda atom: getattr(atom.value, "year", None) is not None)
        return sorted(taken, key=lambda atom: atom.start)
    take(cited_incidents_in(text))
    list_numbers = [Atom(Kind.CODE, match[0], match.start(), match.end(), "") for match in _LIST_NUMBER.finditer(text)]
    take(list_numbers)
    take(code_spans_in(text), wanted=lambda atom: not _simple(str(atom.value)))
    take(quotations_in(text), wanted=lambda atom: _is_quotation(atom, text, index))
    take(_titles_in(text, titles))
    take(times_in(text))
    take(identifiers_in(text))
    take(durations_in(text))
    take(percentages_in(text))
    take(incident_numbers_in(text))
    if piece.layout is Layout.CELL and (
        any(map(_NUMBER_HEADER.match, (piece.header, piece.row_label)))
        or begins_row_of_incident(text, piece, known_incidents)
    ):
        cell = re.fullmatch(r"[*_`#\s]*(\d{1,9})[*_`\s]*", text)
        if cell:
            take([Atom(Kind.INCIDENT, cell[1], cell.start(1), cell.end(1), str(int(cell[1])))])
    take(states_in(text), wanted=lambda _: piece.layout is not Layout.HEADER_CELL)
    take(quantifiers_in(text))
    take(_numbers(text, piece, known_incidents, taken))
    if piece.layout is not Layout.HEADER_CELL:
        take(tactics_in(text), wanted=lambda atom: not _sentence_start(text, atom))
        take(labelled_names_in(text))
        take(shaped_names_in(text))
        if piece.layout is not Layout.HEADING:
            label = _LABEL.match(text)
            after = label.end() if label else 0
            take(capitalised_names_in(text, begins=True), wanted=lambda atom: atom.start >= after)
    return sorted((atom for atom in taken if atom not in list_numbers), key=lambda atom: atom.start)


def _titles_in(text: str, titles: Titles) -> Iterator[Atom]:
    whole = _searchable(text)
    for name in titles.names:
        at = whole.find(name)
        while at >= 0:
            end = at + len(name)
            if (
                not whole[at - 1 : at].isalnum()
                and not whole[end : end + 1].isalnum()
                and whole[at - 1 : at] not in "\\@"
            ) or (at == 0 and not whole[end : end + 1].isalnum()):
                yield Atom(Kind.TITLE, text[at:end], at, end, name)
            at = whole.find(name, end)


def _numbers(text: str, piece: Piece, known_incidents: frozenset[str], taken: Sequence[Atom]) -> Iterator[Atom]:
    listed = numbers_of_a_list(text, known_incidents)
    for atom in counts_in(text):
        quantity = atom.value
        assert isinstance(quantity, Quantity)
        bare = atom.text.isdigit()
        if atom.start in listed or (bare and _is_incident(atom, quantity, text, piece, known_incidents, taken)):
            yield Atom(Kind.INCIDENT, atom.text, atom.start, atom.end, str(int(atom.text)))
        else:
            yield atom


_RATED = re.compile(r"^[*_`]*\s+(?:is|was|has been|remains)\s+(?:rated|an?\b|still|now|currently)", re.IGNORECASE)


def _in_brackets(atom: Atom, text: str, taken: Sequence[Atom]) -> bool:
    """A number alone in brackets counts, unless a name stands before it that may be an incident's."""
    if not (text[: atom.start].rstrip("*_`# ").endswith("(") and text[atom.end :].lstrip("*_`").startswith(")")):
        return False
    names = [each for each in taken if each.kind in (Kind.TITLE, Kind.QUOTE) and 0 <= atom.start - each.end <= 8]
    return not names


def _is_incident(
    atom: Atom, quantity: Quantity, text: str, piece: Piece, known_incidents: frozenset[str], taken: Sequence[Atom]
) -> bool:
    """A number without a noun that stands where the number of an incident stands."""
    after = text[atom.end :]
    if quantity.noun or piece.layout is Layout.CELL or _in_brackets(atom, text, taken):
        return False
    if atom.text in known_incidents and _RATED.match(after):
        return True
    if quantity.label:
        return False
    if _COUNTED_AFTER.match(after):
        return False
    if not _NO_NOUN_BEFORE.search(text[: atom.start]) or not _NO_NOUN_AFTER.match(after):
        return False
    return atom.text in known_incidents or bool(re.match(r"[*_`]*\s+(?:is|was|has been|remains)\b", after))


def _simple(inside: str) -> bool:
    """A code span whose content another recogniser reads by itself."""
    if _STATE_WORD.fullmatch(inside) or re.fullmatch(r"#?\d[\d.,]*", inside):
        return True
    readers = (identifiers_in, times_in)
    return any(atom.start == 0 and atom.end == len(inside) for reader in readers for atom in reader(inside))


def _is_quotation(atom: Atom, text: str, index: EvidenceIndex) -> bool:
    """A text in quotation marks that names or cites something; others are plain words with marks around them."""
    inside = str(atom.value)
    if _STATE_WORD.fullmatch(inside) or re.fullmatch(r"[\s#\d.,%]*", inside):
        return False
    if index.holding(inside.rstrip(".,;:!?…")) is not None:
        return True
    if _NAMED.search(text[: atom.start]):
        return True
    return len(inside.split()) > 3 or any(character.isupper() or character.isdigit() for character in inside)


def _sentence_start(text: str, atom: Atom) -> bool:
    """True for a word that has its capital only because a sentence begins with it, and no other name follows."""
    return (
        not text[: atom.start].strip(' *_`(“"#>-')
        and " " not in atom.text
        and atom.text
        in ("Execution", "Impact", "Discovery", "Collection", "Persistence", "Reconnaissance", "Exfiltration")
    )


def _searchable(text: str) -> str:
    """Lower case with straight quotation marks, every character in its place."""
    if text.isascii():
        return text.lower()
    straight = text.translate(_SAME_LENGTH)
    lowered = straight.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := each.lower()) == 1 else each for each in straight)


def words_of(text: str) -> str:
    """The text without marks, folded."""
    return folded(re.sub(r"[*_`]+", "", text))
