"""The clauses of a sentence, and which of them state nothing: those that ask, offer or advise, and those that guess.

Only the clause counts and never the sentence around it. "Shall I close 31, which is benign?" states that 31 is benign,
and "to be clear, ..." or "if you ask me, ..." turns no statement into advice. Pure text; what is stated is judged by
the `*_verdicts` modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_MARKUP = re.compile(r"[*_`#]")
_BREAK = re.compile(
    r"[;:](?=\s)\s+|\s[–—-]{1,2}\s+|,\s+|\s+(?=\()|(?<=\))\s+"
    r"|\s+(?=(?:because|since|although|though|whereas|given\s+that|now\s+that|seeing\s+that|and|but|so)\b)",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"^\W*(?:(?:and|but|so)\s+)?(?:because|since|as|given\s+that|now\s+that|seeing\s+that|although|though|whereas|while|"
    r"which|who|whose|where)\b",
    re.IGNORECASE,
)
"""How a clause begins that tells why, or something more of a thing: what it says is said as known."""
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|remains?|remained|stays?|shows?|showed|proves?|proved|came|contains?|"
    r"(?:is|are|was|were|has|have|had|does)n[’']t|(?:it|there|that|everything|nothing|all)[’']s)\b",
    re.IGNORECASE,
)
_COMPLEMENT = re.compile(
    r"\b(?:whether|if|that|what|who|whom|which|how|where|when|why|for|to|with|of)\b", re.IGNORECASE
)
_OPENS = re.compile(r"\b(?:whether|if|that|what|who|how|where|when|why)\b", re.IGNORECASE)
_MARKS = re.compile(
    r"^\W*(?:(?:please|then|also|next|and|but|so|or|first|second|finally|therefore|otherwise|instead|now)\b\W*)*",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:consider|check|verify|review|isolate|reset|block|investigate|confirm|let me|ask|show|list(?!\s+of)|give|tell|"
    r"recommended|to (?!date\b|our\b|my\b|your\b|the\b|be (?:clear|honest|precise|exact|sure|fair|brief)\b|"
    r"(?:sum|recap|summari[sz]e|conclude|repeat|confirm|answer)\b)\w+)\b",
    re.IGNORECASE,
)
_INVERTED = re.compile(r"(?:would you|do you|shall|should)\b", re.IGNORECASE)
_ALSO = r"(?:(?:also|now|then|already|safely|clearly|even|only|still)\s+)*"
_TO_YOU = re.compile(
    r"you\s+(?:can|could|may|might|should|(?:do not |don[’']t )?need)\b"
    rf"(?!\s+{_ALSO}(?:to\s+)?(?:see|tell|know|note|notice|observe|remember|rest|trust|believe|say|count|conclude|"
    r"be (?:sure|certain|assured|confident|aware))\b)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"(?:i|we)\s+(?:(?:recommend|suggest|advise|propose)\b|(?:can|could|would|will)\b"
    rf"(?!\s+{_ALSO}(?:see|say|confirm|report|count|state|assure|conclude|note|know|call|rule out|exclude|vouch|"
    r"verify that|(?:tell|show|find)\s+(?:you\s+)?(?:that|no|nothing|\d+|there))\b))",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"i\s+(?:could not|couldn[’']t|did not|didn[’']t|do not|don[’']t|am not|have not|haven[’']t|looked|"
    r"cannot|can[’']t)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|shall|should|would|will|may|might|which|who|whose|what|"
    r"when|where|why|how|any|anything|want|need|or)\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"(?:(?:did|do) you (?:know|see|realise|realize|notice)|(?:are|were) you aware|(?:did|do) you remember|"
    r"have you (?:seen|heard|noticed)|(?:is|are|was|were|does|do|did|has|have)n[’']t\b|"
    r"(?:right|correct|ok|okay|yes|no|agreed|true)\W*$)",
    re.IGNORECASE,
)
"""Questions that take for granted what they ask: "did you know that ...", "..., isn't it?" """
_MODAL = re.compile(r"\b(?:may|might|could|would|cannot|can[’']t|could not)\b", re.IGNORECASE)
_GUESS = re.compile(
    r"\b(?:possibl[ey]|potential(?:ly)?|perhaps|likely|unlikely|probabl[ey]|suggests?|suggesting|indicates? that|"
    r"appears? (?:to|that)|seems?|hypothes[ie]s|assum\w+|(?:i|we) suspect|suspected (?:of|to)\b|(?:is|are|was|were) "
    r"suspected|whether|unclear|(?:is|are|was|were|remains?) (?:still )?unknown|"
    r"unknown (?:whether|if|who|how|why|what)|if(?! you ask| i may| any(?:thing|body|one))|"
    r"not (?:been )?(?:checked|confirmed|verified|known|looked)|"
    r"consistent with|point(?:s|ing)? to|in theory|presumably|(?:my|an|one) (?:own )?(?:analysis|interpretation|"
    r"assessment|hypothesis))\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"^\W*(?:my\s+|own\s+)*(?:analysis|assessment|interpretation|hypothes[ie]s)\b(?:\s*\([^)]*\))?\s*[:–—-]",
    re.IGNORECASE,
)
"""Whoever marks a sentence as analysis marks all of it."""
_IN_GENERAL = re.compile(r"\b(?:typically|usually|often|generally|in general)\b", re.IGNORECASE)
_THIS_ONE = re.compile(
    r"\b(?:the|this|that|these|those|your|our|it|its|he|she|they|no|nothing|everything|all|incident \d+|"
    r"was|were|been)\b",
    re.IGNORECASE,
)
"""What is said of one case is no word about what such cases are like."""
_IF = re.compile(r"^\W*(?:(?:and|but|so)\s+)?(?:if|unless|should)\b(?! you ask| i may| any(?:thing|body|one))", re.I)
_GUESSED_THAT = re.compile(
    r"\bthat\b|^\W*(?:perhaps|possibly|probably|presumably|likely|whether|it (?:is|seems|appears))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Clause:
    """`[start, end)` of a sentence. `asks`: it asks, offers or advises. `reports`: it tells what its writer did not
    find or do. `guesses`: it leaves open whether it is so; a modal counts only in front of what it leaves open, so
    `modal` is the place of the first one, or -1."""

    start: int
    end: int
    asks: bool
    reports: bool
    guesses: bool
    modal: int

    def leaves_open(self, place: int) -> bool:
        """Whether the words that end at `place` of the sentence are marked as a guess."""
        return self.guesses or 0 <= self.modal < place


@lru_cache(maxsize=64)
def clauses_of(sentence: str) -> tuple[Clause, ...]:
    """The clauses in their order; together they are the sentence."""
    plain = _MARKUP.sub(" ", sentence)
    question = plain.rstrip().endswith("?")
    marked = _LABELLED.match(plain) is not None
    found: list[Clause] = []
    texts: list[str] = []
    for start, end, joint in _cut(plain):
        text = plain[start:end]
        before = found[-1] if found else None
        asks = _asks(text, before, texts[-1] if texts else "", joint, asked=question, last=end == len(plain))
        guess = _GUESS.search(text) is not None or (
            _IN_GENERAL.search(text) is not None and _THIS_ONE.search(text) is None
        )
        guesses = marked or guess or _goes_on_guessing(text, before, texts[-1] if texts else "", joint)
        modal = _MODAL.search(text)
        reports = _REPORT.match(_MARKS.sub("", text, count=1)) is not None
        found.append(Clause(start, end, asks, reports, guesses, -1 if modal is None else start + modal.start()))
        texts.append(text)
    return tuple(found)


def clause_at(clauses: tuple[Clause, ...], place: int) -> Clause:
    """The clause that holds the character at `place`."""
    return next((each for each in clauses if place < each.end), clauses[-1])


def stated(sentence: str) -> str:
    """The sentence with every clause blanked out that asks, reports or guesses; each place stays."""
    for each in clauses_of(sentence):
        if each.asks or each.reports or each.guesses or each.modal >= 0:
            sentence = sentence[: each.start] + " " * (each.end - each.start) + sentence[each.end :]
    return sentence


def _cut(plain: str) -> Iterator[tuple[int, int, str]]:
    """Places of the clauses, each with what stands between it and the one before."""
    start, joint = 0, ""
    for match in _BREAK.finditer(plain):
        if match.start() > start:
            yield start, match.end(), joint
            start, joint = match.end(), match[0].strip()
    yield start, len(plain), joint


def _asks(text: str, before: Clause | None, told_before: str, joint: str, *, asked: bool, last: bool) -> bool:
    bare = _MARKS.sub("", text, count=1)
    finite = _FINITE.search(bare)
    if finite is not None and _FACT.match(text) and not (asked and before is None and _ASKING.match(text.strip())):
        return False
    if asked and _TELLING.match(bare):
        return False
    if _TO_YOU.match(bare) or _OFFER.match(bare) or _INVERTED.match(bare):
        return True
    if _IMPERATIVE.match(bare):
        opened = _COMPLEMENT.search(bare, len(bare.split(" ", 1)[0]))
        return finite is None or (opened is not None and opened.start() < finite.start())
    if asked and (_ASKING.match(bare) or (last and before is None)):
        return True
    if before is None or not before.asks:
        return False
    return finite is None or (joint == "" and _OPENS.search(told_before) is not None)


def _goes_on_guessing(text: str, before: Clause | None, told_before: str, joint: str) -> bool:
    if before is None or not (before.guesses or before.modal >= 0):
        return False
    if _IF.match(told_before) or _FINITE.search(text) is None:
        return joint not in (";", ":")
    return re.match(r"(?:and|or)\b", text, re.IGNORECASE) is not None and _GUESSED_THAT.search(told_before) is not None
