"""A user's words in the parts that may name something: their own clauses, without what they paste, quote or deny.

Below `named_values`, which reads kinds of values in them. Here are also the texts that a user hands over whole: between
quotation marks, after a colon, and with places to fill in, such as 'Dinner at {restaurant}'.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

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
