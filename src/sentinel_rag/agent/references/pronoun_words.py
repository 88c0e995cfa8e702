"""Words that point at what is talked about: "that host", "the incident", "its", "them", "both", "the other one"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.wording import ALONE, END, LINE, NOUN, NUMERAL, NUMERALS, START, is_plural, kind_of

_THAT = re.compile(
    rf"\b(?P<word>that|this|the\s+same|the\s+said|same)\s+(?:very\s+|exact\s+)?(?P<noun>one|{LINE}|{NOUN})\b(?!\s+(?:of|number|id)\b\s*\d)(?P<genitive>['’]s)?",
    re.IGNORECASE,
)
_THE = re.compile(
    rf"\b(?:of|for|on|in|about|owns?|to|behind|explain|describe|around|from|by|is|was)\s+(?P<all>the\s+(?P<noun>{NOUN})(?P<genitive>['’]s)?)(?={END}|['’]s\b)",
    re.IGNORECASE,
)
_THE_ALONE = re.compile(rf"{START}(?P<all>the\s+(?P<noun>{NOUN})){END}", re.IGNORECASE)
_THE_INSIDE = re.compile(
    rf"\b(?P<all>the\s+(?P<noun>{NOUN})(?P<genitive>['’]s)?)\s+(?=(?:part|belongs?|happen\w*|occur\w*|fired?|start\w*|beg[ai]n|came|"
    r"come|involve[sd]?|affect\w*|still|already|ever|now|assigned|created|raised|in|was|is|has|have|contains?|holds?|names?|"
    r"mentions?|touch\w*)\b)",
    re.IGNORECASE,
)
_NAMED_THERE = re.compile(
    r"\s+(?:(?:is|was)\s+)?(?:named|called)\b|\s*(?:[#\ufffc]|(?:no\.?|number|id)\s*#?\d|\d)|\s+[\w.$-]*(?:[\w$-]*\d[\w$-]*|\w\.\w|\w@\w|\w\\\w)",
    re.IGNORECASE,
)
"""The noun is followed by a number or a name of its own: "that incident 23", "this host web-03"."""
_POINTING = re.compile(
    r"(?:\b(?:about|on|of|for|explain|into|behind|open|describe|is|was|owns?|did|does|has|around|to|with|close|after|before|see)\s+)"
    rf"(?P<that>that|this)(?P<genitive>['’]s)?(?={END}|\s+(?:still|open|closed|assigned|created|bad|serious|critical|severe|related|linked|about|detected|found|in|part|from|happen\w*|resolved|fixed)\b)",
    re.IGNORECASE,
)
_IT = re.compile(rf"{ALONE[0]}(?P<word>its|it['’]s|it|his|her|him){ALONE[1]}", re.IGNORECASE)
_IDLE_IT = re.compile(
    r"how\s+(?:is|are|goes)\b|how['’]s\b|what\s+time\b|\bgoing\b|\b(?:does|did|will)\s+it\s+take\b|\bit\s+takes?\b|"
    r"\bis\s+it\s+(?:possible|true|ok|okay|safe\s+to|a\s+good\s+idea|raining|late)\b|\b(?:do|doing)\s+it\b|\bgot\s+it\b|"
    rf"\bforget\s+it\b|\bthat['’]s\s+it\b|\bit['’]s\s+(?:ok|okay|fine|good|late|time)\b|{START}(?:is|was|has)\s+it\s*{END}",
    re.IGNORECASE,
)
_THEM = re.compile(
    r"(?:(?P<before>\b(?:of|for|on|about|in|from|involving|naming|compare|between|behind|owns?|link|does|do|did|are|were|"
    r"have|share|with|to|around|by|involves?|mentions?|names?|touch|affect|contain|hit|explain|describe|against|close|summari[sz]e|merge|is|connects?|relates?))\s+)"
    rf"(?P<all>(?:(?:all|both|each|every\s+one|any)\s+of\s+)?(?P<word>them|these|those|they){ALONE[1]}(?:\s+(?P<count>{NUMERAL}|\d{{1,2}}))?"
    rf"(?:\s+(?P<noun>{NOUN}|{LINE}|ones))?)\b(?!\s+(?:days?|hours?|weeks?|minutes?|months?|times?|from|since|with|that|which|who|sorted|ordered|by)\b)",
    re.IGNORECASE,
)
_THEIR = re.compile(rf"{ALONE[0]}(?P<all>their){ALONE[1]}", re.IGNORECASE)
_ALL_OF = re.compile(
    rf"(?:(?P<before>\b(?:of|for|on|about|in|involving|compare|between|owns?|explain|describe|summari[sz]e|merge))\s+)"
    rf"(?P<all>all\s+(?P<count>{NUMERAL}|\d{{1,2}})(?:\s+of\s+(?:them|these|those))?(?:\s+(?P<noun>{NOUN}|{LINE}))?|each\s+one|all\s+of\s+(?:it|the\s+above)|the\s+lot|everything\s+listed)(?=\W|$)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    rf"\b(?P<all>both(?:\s+of\s+(?:them|these|those|the))?|the\s+two(?:\s+of\s+them)?|these\s+two|those\s+two|the\s+pair)"
    rf"(?:\s+(?P<noun>{NOUN}|{LINE}|ones))?(?={END}|\s+(?:are|have|share|involve|in|at|about|on|from|together|side|were|still|open|do|did|with)\b)",
    re.IGNORECASE,
)
_PARTITIVE = re.compile(
    r"(?:how\s+many|which|all|each|both|any|some|one|most|none|two|three|four|five|what|\d+|only|ones?)\s+(?:of\s*)?$",
    re.IGNORECASE,
)
_OTHER = re.compile(rf"\bthe\s+other(?:\s+(?P<noun>one|{NOUN}|{LINE}))?(?P<genitive>['’]s)?(?={END}|\W)", re.IGNORECASE)


def read_that(masked: str) -> Iterator[Mention]:
    """As in "that host", "this line", "the incident" with nothing behind it that says which."""
    for match in _THAT.finditer(masked):
        kind = kind_of(match["noun"])
        if is_plural(match["noun"]) or _NAMED_THERE.match(masked[match.end() :]):
            continue
        line = not kind or kind == "row"
        yield Mention(
            form=Form.IT if line else Form.THAT, start=match.start(), end=match.end(), kind="" if line else kind,
            genitive=bool(match["genitive"]),
        )  # fmt: skip
    for match in (*_THE.finditer(masked), *_THE_ALONE.finditer(masked), *_THE_INSIDE.finditer(masked)):
        if is_plural(match["noun"]):
            continue
        kind = kind_of(match["noun"])
        yield Mention(
            form=Form.THAT, start=match.start("all"), end=match.end("all"), kind=kind,
            soft=match.re is not _THE_ALONE, only_if_sure=match.re is _THE_INSIDE,
            genitive=match.re is not _THE_ALONE and bool(match["genitive"]),
        )  # fmt: skip


def read_it(masked: str) -> Iterator[Mention]:
    """As in "it", "its", "that" and "his" or "her", unless the "it" stands for nothing."""
    for match in _POINTING.finditer(masked):
        genitive = bool(match["genitive"])
        end = match.end("genitive" if genitive else "that")
        yield Mention(form=Form.IT, start=match.start("that"), end=end, genitive=genitive, soft=True)
    if _IDLE_IT.search(masked):
        return
    for match in _IT.finditer(masked):
        word = match["word"].lower()
        kind = "account" if word in ("his", "her", "him") else ""
        contracted = word not in ("its", "it", "his", "her", "him")
        genitive = word in ("its", "his", "her") or (contracted and _possesses(masked[match.end() :]))
        end = match.end() if genitive or not contracted else match.start() + 2
        yield Mention(form=Form.IT, start=match.start(), end=end, kind=kind, genitive=genitive)


def _possesses(after: str) -> bool:
    """True for "it's alerts": a noun behind the apostrophe, as people misspell "its"."""
    return (
        re.match(rf"\s+(?:{NOUN}|owner|severity|status|entities|comments|timeline)\b", after, re.IGNORECASE) is not None
    )


def _both(masked: str) -> Iterator[re.Match[str]]:
    """Not the "both" of "both open and closed"."""
    for match in _BOTH.finditer(masked):
        if not re.match(r"\s+\S+\s+(?:and|or)\b", masked[match.end() :]):
            yield match


def read_them(masked: str) -> Iterator[Mention]:
    """As in "them", "both", "all three of those", "their"."""
    for match in (*_both(masked), *_ALL_OF.finditer(masked), *_THEM.finditer(masked)):
        if _PARTITIVE.search(masked[: match.start("all")]):
            continue
        noun = match["noun"] or ""
        groups = match.groupdict()
        count = groups.get("count") or ""
        number = (2,) if match.re is _BOTH else (NUMERALS.get(count.lower()) or int(count),) if count else ()
        end = match.end("noun") if noun else match.end("all")
        yield Mention(
            form=Form.BOTH if number == (2,) else Form.THEM, start=match.start("all"), end=end, kind=kind_of(noun),
            places=number, plural=True, soft=True,
        )  # fmt: skip
    for match in _THEIR.finditer(masked):
        yield Mention(form=Form.THEM, start=match.start(), end=match.end(), plural=True, genitive=True, soft=True)


def read_other(masked: str) -> Iterator[Mention]:
    """As in "the other one", "the other incident's"."""
    for match in _OTHER.finditer(masked):
        noun = match["noun"] or "one"
        if is_plural(noun) or (re.match(r"\s+\w", masked[match.end() :]) and match["noun"] is None):
            continue
        yield Mention(
            form=Form.OTHER, start=match.start(), end=match.end(), kind=kind_of(noun), genitive=bool(match["genitive"])
        )
