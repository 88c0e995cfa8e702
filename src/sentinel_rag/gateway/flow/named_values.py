"""Values that a user's own words name (TAINT-5): typed pairs, never bare texts.

`named_in` reads the words by a small grammar; an argument counts as named only if its parameter attests the same kind
and its value reads the same. "June 13" is a day and nothing else, "incident 13" names the incident 13 and no file, host
or account of that name. What a user pastes or quotes (a fenced block, a line that begins with `>`, three words between
quotation marks) names nothing, and neither does a clause with a negation ("do not close incident 13", "nicht", "ne ...
pas"). A quoted text is only what a parameter of the kind `quoted` may say, whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.gateway.flow.value_grammar import (
    MAX_VALUE,
    canonical,
    days_in,
    sought_as,
    sought_in,
    values_in,
    without_year,
)
from sentinel_rag.gateway.policy.model import NO_KINDS, NamedKind, NoteKind, Policy, ValueKind

MAX_WORDS = 32_000
"""Characters of one message that are read."""

MAX_QUOTED = 2_000
"""Characters of a text that the user hands over whole."""

MAX_FILLED = 120
"""Characters that one place of such a text may be filled with, all on one line."""

MIN_PASSAGE = 3
"""Characters of the shortest passage of the user's words that counts as theirs."""

MIN_TELLING = 2
"""Words of the shortest passage that names a record by itself."""

_WORD = re.compile(r"\w{2,}")
_COMMON = (
    "about after all also am an and any are as at be because been before but by can could did do does each "
    "every for from get give had has have he her here him his how if in into is it its just let like make may "
    "me more most my new no not now of off on one or our out over please she should so some tell than that the "
    "their them then there these they this those to today tomorrow up us was we were what when where which who "
    "why will with would yes you your"
)
_GRAMMAR = frozenset(_COMMON.split())
"""Words that stand in what anybody asks."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SPEECH = re.compile(rf"[\"“„«][^\"“”„«»\n]{{1,{MAX_QUOTED}}}[\"“”»]|(?<!\w)'[^'\n]{{1,{MAX_QUOTED}}}'(?!\w)")
"""Text between quotation marks; of three words or more it is what somebody else said, if it should name anything."""

_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n|,\s+(?:but|except)\b|\bbut\b")
_NEGATION = re.compile(
    r"\b(?:not|never|no|without|except|ignore|avoid|instead of|other than|rather than|leave|skip"
    r"|nicht|kein\w*|nie|niemals|ohne|ne|pas|jamais|sans|nunca|sin|não|sem|non|mai|niet|geen|zonder)\b|n['’]t\b",
    re.IGNORECASE,
)
_COLON = re.compile(rf"(?<=\w):[ \t]+(?P<text>\S[^\n]{{0,{MAX_QUOTED - 1}}})$")
_PLACE = re.compile(r"\{[^{}\n]{1,64}\}")


def own_lines(words: str) -> Iterator[str]:
    """The lines of a message that are the user's own: no fenced block, no quoted line, no table."""
    for line in _FENCE.sub("\n", words[:MAX_WORDS]).splitlines():
        if not line.lstrip().startswith((">", "|")):
            yield line


def clauses(words: str) -> Iterator[str]:
    """The clauses that name values: without what somebody else said, and without denials."""
    for line in own_lines(words):
        for clause in _CLAUSE.split(_SPEECH.sub(_unless_speech, line)):
            if not _NEGATION.search(clause):
                yield clause


def sentences(words: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The sentences that deny nothing: each without what somebody else said, and the texts that it hands over whole."""
    for line in own_lines(words):
        for part in _parts(line):
            texts = {" ".join(match[0][1:-1].split()) for match in _SPEECH.finditer(part)}
            colon = _COLON.search(part.strip())
            # What stands behind a colon between quotation marks is one text and not two.
            if colon is not None and not _SPEECH.fullmatch(colon["text"].rstrip(" \t.!?")):
                texts.add(" ".join(colon["text"].split()))
            yield _SPEECH.sub(_unless_speech, part), frozenset(texts - {""})


def passages(words: str) -> str:
    """The user's words, with single blanks and without the clauses that deny something: a line break stands wherever
    one was, or a line ended, so that no passage reaches over it. Quoted texts stay, and a denial inside one is no
    denial of the user's."""
    whole = "\n".join("".join(clause or "\n" for clause in _parts(line)) for line in own_lines(words))
    return "\n".join(line for part in whole.split("\n") if (line := " ".join(part.split())))


def quoted(words: str) -> frozenset[str]:
    """The texts that the user hands over whole, with single blanks."""
    found: set[str] = set()
    for line in own_lines(words):
        for clause in _parts(line):
            found.update(" ".join(match[0][1:-1].split()) for match in _SPEECH.finditer(clause))
        colon = _COLON.search(line)
        if colon is not None and not _NEGATION.search(_masked(line[: colon.start()])):
            found.add(" ".join(colon["text"].split()))
    return frozenset(found - {""})


def has_places(text: str) -> bool:
    """Whether a quoted text has places to fill in, and words of the user's around them."""
    return _PLACE.search(text) is not None and len(_PLACE.sub("", text).strip()) >= MIN_PASSAGE


def fills(text: str, frame: str) -> bool:
    """Whether `text` is `frame` with each of its places filled in, in plain blanks. Takes time in proportion to the
    text for each place: where the next words of the frame stand is found once, and no way there is tried twice."""
    if "\n" in text or len(text) > MAX_QUOTED + MAX_FILLED:
        return False
    text = " ".join(text.split())
    first, *others = _PLACE.split(frame)
    if not text.startswith(first):
        return False
    ends = [len(first)]  # in rising order
    for literal in others:
        ends = [
            start + len(literal)
            for start in range(ends[0] + 1, len(text) + 1)
            if text.startswith(literal, start) and start - ends[bisect_left(ends, start) - 1] <= MAX_FILLED
        ]
        if not ends:
            return False
    return len(text) in ends


def is_passage(text: str, of: str) -> bool:
    """Whether `text` stands in `of` (see `passages`), word for word in any case, and not inside a longer word."""
    text, of = " ".join(text.split()).casefold(), of.casefold()
    if len(text) < MIN_PASSAGE:
        return False
    start = of.find(text)
    while start >= 0:
        end = start + len(text)
        inside = (start > 0 and text[0].isalnum() and of[start - 1].isalnum()) or (
            end < len(of) and text[-1].isalnum() and of[end].isalnum()
        )
        if not inside:
            return True
        start = of.find(text, start + 1)
    return False


def is_telling(text: str) -> bool:
    """Whether a passage of the user's words says enough to name one thing: two words that are not mere grammar."""
    return sum(word.casefold() not in _GRAMMAR for word in _WORD.findall(text)) >= MIN_TELLING


def has_plain_case(text: str) -> bool:
    """Whether the case of a text follows one rule, so that it tells next to nothing."""
    return text in (text.lower(), text.upper(), text.title(), text[:1].upper() + text[1:].lower())


def _parts(line: str) -> Iterator[str]:
    """The clauses of a line with what follows each, quoted texts whole; empty for one that denies something."""
    masked = _masked(line)
    start = 0
    for cut in [*_CLAUSE.finditer(masked), None]:
        end = len(line) if cut is None else cut.end()
        yield "" if _NEGATION.search(masked[start:end]) else line[start:end]
        start = end


def _masked(line: str) -> str:
    """The line with its quoted texts blotted out, as long as it was, by a sign that ends the word before it."""
    return _SPEECH.sub(lambda match: '"' * len(match[0]), line)


def _unless_speech(said: re.Match[str]) -> str:
    return said[0] if len(said[0].split()) < 3 else " "


MAX_NAMED = 500
"""Values that one message can name; a text with more is a paste."""

MAX_TEXT = 4_000
"""Characters of an argument that may be a text of the user's."""

_MINUTE = re.compile(r"(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::00)?Z?)?", re.ASCII)
"""A moment as a person would write it: a day, or a minute of it."""


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A kind, one of `ValueKind` or of the policy's own, and the canonical text of a value of that kind."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Naming:
    """Who says that `value` is named: `user`, or an endorsement. `whole` tells that it holds nothing but what was
    named: a text with places that were filled in is not, nor is a value in a spelling of the agent's, whose blanks and
    signs could tell what the agent has read. `said` is what of the session's names it, where that names others too: a
    day of any year, words with all their passages."""

    by: str
    value: NamedValue
    whole: bool = True
    said: NamedValue | None = None

    @property
    def form(self) -> NamedValue:
        """What was named: whichever of its values the agent takes, it is one."""
        return self.said or self.value


def named_in(words: str, policy: Policy | None = None) -> frozenset[NamedValue]:
    """What a user's message names, with the kinds of the policy; nothing if it names more than `MAX_NAMED` values."""
    found: set[NamedValue] = set()
    kinds = NO_KINDS if policy is None else policy.kinds
    attested: frozenset[str] = frozenset() if policy is None else policy.attested()
    for clause in clauses(words):
        found.update(_values_in(clause, kinds))
        if ValueKind.SOUGHT in attested:
            found.update(NamedValue(ValueKind.SOUGHT, text) for text in sought_in(clause))
        if ValueKind.DAY in attested:
            found.update(NamedValue(ValueKind.DAY, day) for day in days_in(clause))
    if ValueKind.QUOTED in attested:
        for text in quoted(words):
            found.add(NamedValue(NoteKind.FRAME if has_places(text) else ValueKind.QUOTED, text))
    if policy is not None and (pairs := policy.pairs()):
        found.update(_named_together(words, pairs, kinds))
    if ValueKind.WORDS in attested:
        found.add(NamedValue(ValueKind.WORDS, passages(words)))
    return frozenset(found) if len(found) <= MAX_NAMED else frozenset()


def naming_of(
    kinds: Collection[str], value: JsonValue, named: Mapping[NamedValue, str], own: Mapping[str, NamedKind]
) -> Naming | None:
    """Who names an argument, one of whose kinds it has to be; None if nobody does."""
    for kind in kinds:
        if kind in (ValueKind.QUOTED, ValueKind.WORDS, ValueKind.SOUGHT):
            found = _naming_of_text(kind, value, named)
            if found is not None:
                return found
            continue
        candidate = canonical_named(kind, value, own)
        if candidate is None:
            continue
        forms = [candidate]
        if kind == ValueKind.DAY:
            forms.append(NamedValue(kind, without_year(candidate.text)))
        for form in forms:
            if form in named:
                return Naming(named[form], candidate, whole=_is_plain(kind, str(value), candidate.text), said=form)
    return None


def may_name(kinds: Collection[str], named: Mapping[NamedValue, str]) -> bool:
    """Whether some argument of these kinds may be named: False only if none is, whatever it says."""
    notes = (NoteKind.FRAME, NoteKind.TOGETHER, NoteKind.PLANNED)
    return any(said.kind in kinds or said.kind in notes for said in named)


def naming_together(
    kinds: Collection[str],
    value: JsonValue,
    other_kinds: Collection[str],
    other: JsonValue,
    named: Mapping[NamedValue, str],
    own: Mapping[str, NamedKind],
) -> Naming | None:
    """Who names an argument in one sentence with another argument; None if nobody does."""
    for other_kind in other_kinds:
        joined = canonical_named(other_kind, other, own)
        if joined is None:
            continue
        for kind in kinds:
            candidate = canonical_named(kind, value, own, most=MAX_TEXT)
            if candidate is not None and (pair := together(joined, candidate)) in named:
                return Naming(named[pair], pair, whole=_is_plain(kind, str(value), candidate.text))
    return None


def together(other: NamedValue, value: NamedValue) -> NamedValue:
    """The two as one named value."""
    return NamedValue(NoteKind.TOGETHER, f"{other.kind} {other.text} {value.kind} {value.text}")


def canonical_named(
    kind: str, value: JsonValue, own: Mapping[str, NamedKind] = NO_KINDS, *, most: int = MAX_VALUE
) -> NamedValue | None:
    """An argument as a value of `kind`, None if it is none: what is compared with the user's words."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return None
    try:
        text = own[kind].canonical(value) if kind in own else canonical(ValueKind(kind), value)
    except ValueError:
        return None
    return NamedValue(kind, text) if text else None


def _values_in(clause: str, own: Mapping[str, NamedKind]) -> Iterator[NamedValue]:
    return (NamedValue(kind, text) for kind, text in values_in(clause, own))


def values_inside(kind: str, text: str, own: Mapping[str, NamedKind]) -> frozenset[NamedValue]:
    """The values of `kind` that stand in a text, whoever wrote it."""
    return frozenset(value for value in _values_in(text, own) if value.kind == kind)


def _is_plain(kind: str, value: str, compared: str) -> bool:
    """Whether a value is spelled as it is compared, but for its case and what people leave out: of the many spellings
    of one value the agent would choose, and a choice tells something."""
    match kind:
        case ValueKind.DAY:
            return _MINUTE.fullmatch(value) is not None or value.startswith("--")
        case ValueKind.HOST:
            value = value.removesuffix(".")
        case ValueKind.INCIDENT:
            return value.removeprefix("#").lower() == compared
        case ValueKind.URL:
            bare = compared.removeprefix("https://")
            return value.casefold() in {
                form.casefold() for each in (compared, bare) for form in (each, each.rstrip("/"))
            }
    return value.casefold() == compared.casefold()


def _named_together(
    words: str, pairs: Collection[tuple[str, str]], own: Mapping[str, NamedKind]
) -> Iterator[NamedValue]:
    """The pairs of values, by kinds, that are the only ones of their kinds in one sentence."""
    for sentence, texts in sentences(words):
        found = {*_values_in(sentence, own), *(NamedValue(ValueKind.QUOTED, text) for text in texts)}
        found.update(NamedValue(ValueKind.DAY, day) for day in days_in(sentence))
        for other_kind, kind in pairs:
            others = [value for value in found if value.kind == other_kind]
            values = [value for value in found if value.kind == kind]
            if len(others) == len(values) == 1:
                yield together(others[0], values[0])


def _naming_of_text(kind: str, value: JsonValue, named: Mapping[NamedValue, str]) -> Naming | None:
    """A text that the user handed over whole, or asked to look up, or a passage of the user's words."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        return None
    if kind == ValueKind.SOUGHT:
        return _naming_of_sought(value, named)
    exact = NamedValue(kind, " ".join(value.split()))
    for said, by in named.items():
        if said == exact or (said.kind == kind == ValueKind.WORDS and is_passage(value, said.text)):
            if value == exact.text and (value in said.text or has_plain_case(value)):
                return Naming(by, exact, said=said)
            # In the record no case of the agent's stands for one of the user's.
            told = exact.text.casefold() if kind == ValueKind.WORDS else exact.text
            return Naming(by, NamedValue(kind, told), whole=False, said=said)
    if kind == ValueKind.QUOTED:
        for said, by in named.items():
            if said.kind == NoteKind.FRAME and fills(value, said.text):
                return Naming(by, NamedValue(NoteKind.FRAME, exact.text), whole=False, said=said)
    return None


def _naming_of_sought(value: str, named: Mapping[NamedValue, str]) -> Naming | None:
    """What the user asked to look up: as they wrote it, or in lower case."""
    folded = sought_as(value).casefold()
    for said, by in named.items():
        if said.kind == ValueKind.SOUGHT and said.text.casefold() == folded:
            return Naming(by, NamedValue(said.kind, said.text), whole=value in (said.text, said.text.lower()))
    return None
