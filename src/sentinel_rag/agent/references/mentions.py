"""Finds the places of a question that point at something: `[2]`, "the second one", "that host", "its", "both".

Reads words only; what they point at is chosen with the conversation, see `choosing`. A mention that is `soft` points
at nothing where nothing fits ("is it possible", "the incident was large"); the others are asked back then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from sentinel_rag.agent.references.wording import (
    LINE,
    NOUN,
    NUMERAL,
    NUMERALS,
    ONE,
    ORDINAL,
    ORDINALS,
    is_plural,
    kind_of,
    spoken,
)


class Form(StrEnum):
    """How the words point."""

    PLACES = "places"
    NUMBERS = "numbers"
    HASHED = "hashed"
    BESIDE = "beside"
    THAT = "that"
    IT = "it"
    THEM = "them"
    OTHER = "other"
    BOTH = "both"
    DESCRIBED = "described"
    EARLIER = "earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChoice:
    """Which list is meant: `place` counts lists from 1, or from the newest with -1; `kind` is what it lists; `earlier`
    for one before the screen's."""

    place: int = 0
    kind: str = ""
    earlier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words at `[start, end)`. `places` are line numbers, negative from the end; `kind` is what the noun asks for;
    `words` tell a line by what it says; `genitive` stands for a possessive."""

    form: Form
    start: int
    end: int
    places: tuple[int, ...] = ()
    kind: str = ""
    words: str = ""
    chosen: ListChoice | None = None
    genitive: bool = False
    soft: bool = False
    plural: bool = False
    same: bool = False


_N = r"\d{1,4}"
_SEP = r"\s*(?:,\s*and|,\s*or|,|and|&|or|vs\.?|versus|with|to|through|-|–)\s*"
_BRACKETS = re.compile(
    rf"(?:(?:\bthe\s+)?\b(?P<noun>{NOUN}|{LINE}|number|numbers|nos?\.?)\s*)?(?<![\w\])])"
    rf"(?:\[\s*(?P<from>{_N})\s*\]\s*(?:-|–|to|through|until)\s*\[\s*(?P<to>{_N})\s*\]"
    rf"|\[\s*(?P<in>{_N}(?:\s*(?:,|and|&|-|–|to)\s*{_N}){{0,30}})\s*\])",
    re.IGNORECASE,
)
_LINE_NUMBER = re.compile(
    rf"\b(?:the\s+)?(?P<noun>{LINE}|number|no\.?|alert|host|account|user|machine|device|ip)\s+#?(?P<number>\d{{1,3}})\b(?![\w.:/-])"
    rf"(?P<more>(?:{_SEP}#?\d{{1,3}}\b(?![\w.:/-]))*)",
    re.IGNORECASE,
)
_HASHED = re.compile(r"(?<![\w&/])(?<!incident )(?<!case )#\s?(?P<number>\d{1,9})\b(?![\w.:/-])", re.IGNORECASE)
_ALONE = re.compile(r"^\W*(?P<number>\d{1,9})\W*$")
_TAIL = re.compile(
    r"(?:\b(?:details?|alerts?|entities|comments?|owners?|status|severity|hosts?|accounts?|users?|ips?|timelines?|more|"
    r"info\w*|events|tactics|techniques|story|summary|evidence)\s+(?:of|for|on|about|in|behind)\s+|"
    r"\b(?:tell\s+me|what\s+is|what's|what\s+was|show\s+me|and|what|how)\s+about\s+|"
    r"^\W*(?:and|or|also|open|show(?:\s+me)?|explain|describe|expand|compare|take|pick|select|choose|try|see|then)\s+|"
    r"\b(?:who\s+owns|who\s+has|explain|describe|expand|compare|what\s+is|open)\s+)"
    rf"(?P<numbers>{_N}(?:{_SEP}{_N})*)\W*$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    rf"\b(?P<the>the\s+)?(?P<ordinal>{ORDINAL})(?:\s+(?:and|or|vs\.?|with)\s+(?:the\s+)?(?P<second>{ORDINAL}))?"
    rf"(?:\s+(?P<noun>{ONE}|{LINE}|{NOUN})\b|(?P<ofthem>\s+of\s+(?:them|these|those)\b)|(?P<end>\W*$))",
    re.IGNORECASE,
)
_SLICE = re.compile(
    rf"\b(?P<the>the\s+)?(?P<ordinal>first|last|top|bottom)\s+(?P<count>{NUMERAL}|\d{{1,2}})"
    rf"(?:\s+(?P<noun>{ONE}|{LINE}|{NOUN})\b|(?P<ofthem>\s+of\s+(?:them|these|those)\b)|(?P<end>\W*$)|(?P<verb>\s+(?=(?:and|in|are|have|share|involve|with)\b)))",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>next|previous|following|preceding)\s+(?P<noun>{ONE}|{LINE})|"
    rf"(?P<one>one)\s+(?P<side>before|after|above|below|under)(?:\s+(?:it|that(?:\s+one)?))?)(?=\W*$|\s)",
    re.IGNORECASE,
)
_THAT = re.compile(
    rf"\b(?P<word>that|this|the\s+same|the\s+said|same)\s+(?:very\s+|exact\s+)?(?P<noun>one|{LINE}|{NOUN})\b(?!\s+(?:of|number|id)\b\s*\d)(?P<genitive>['’]s)?",
    re.IGNORECASE,
)
_THE = re.compile(
    rf"\b(?:of|for|on|in|about|owns?|to|behind|explain|describe|around|from|by|is|was)\s+(?P<all>the\s+(?P<noun>{NOUN})(?P<genitive>['’]s)?)(?=\W*$|['’]s\b)",
    re.IGNORECASE,
)
_THE_ALONE = re.compile(rf"^\W*(?P<all>the\s+(?P<noun>{NOUN}))\W*$", re.IGNORECASE)
_POINTING = re.compile(
    r"(?:\b(?:about|on|of|for|explain|into|behind|open|describe|is|was|owns?|did|does|has|around|to|with|close|after|before|see)\s+)"
    r"(?P<that>that|this)(?P<genitive>['’]s)?(?=\W*$|\s+(?:still|open|closed|assigned|created|bad|serious|critical|severe|related|linked|about|detected|found|happen\w*|resolved|fixed)\b)",
    re.IGNORECASE,
)
_IT = re.compile(r"\b(?P<word>its|it['’]s|it|his|her|him)\b", re.IGNORECASE)
_IDLE_IT = re.compile(
    r"how\s+(?:is|are|goes)\b|how['’]s\b|what\s+time\b|\bgoing\b|\b(?:does|did|will)\s+it\s+take\b|\bit\s+takes?\b|"
    r"\bis\s+it\s+(?:possible|true|ok|okay|safe\s+to|a\s+good\s+idea|raining|late)\b|\b(?:do|did|doing|does)\s+it\b|\bgot\s+it\b|"
    r"\bforget\s+it\b|\bthat['’]s\s+it\b|\bit['’]s\s+(?:ok|okay|fine|good|late|time)\b|^\W*(?:is|was|has)\s+it\s*\W*$",
    re.IGNORECASE,
)
_THEM = re.compile(
    r"(?:(?P<before>\b(?:of|for|on|about|in|from|involving|naming|compare|between|behind|owns?|link|does|do|did|are|were|"
    r"have|share|with|to|around|by|explain|describe|against|close|summari[sz]e|merge|is|connects?|relates?))\s+)"
    rf"(?P<all>(?:(?:all|both|each|every\s+one|any)\s+of\s+)?(?P<word>them|these|those|they)(?:\s+(?P<count>{NUMERAL}|\d{{1,2}}))?"
    rf"(?:\s+(?P<noun>{NOUN}|{LINE}|ones))?)\b(?!\s+(?:days?|hours?|weeks?|minutes?|months?|times?|from|since|with|that|which|who|sorted|ordered|by)\b)",
    re.IGNORECASE,
)
_THEIR = re.compile(r"\b(?P<all>their)\b", re.IGNORECASE)
_ALL_OF = re.compile(
    rf"(?:(?P<before>\b(?:of|for|on|about|in|involving|compare|between|owns?|explain|describe|summari[sz]e|merge))\s+)"
    rf"(?P<all>all\s+(?P<count>{NUMERAL}|\d{{1,2}})(?:\s+of\s+(?:them|these|those))?(?:\s+(?P<noun>{NOUN}|{LINE}))?|each\s+one|all\s+of\s+(?:it|the\s+above)|the\s+lot|everything\s+listed)(?=\W|$)",
    re.IGNORECASE,
)
_BOTH = re.compile(
    rf"\b(?P<all>both(?:\s+of\s+(?:them|these|those|the))?|the\s+two(?:\s+of\s+them)?|these\s+two|those\s+two|the\s+pair)"
    rf"(?:\s+(?P<noun>{NOUN}|{LINE}|ones))?(?=\W*$|\s+(?:are|have|share|involve|in|at|about|on|from|together|side|were|still|open|do|did|with)\b)",
    re.IGNORECASE,
)
_OTHER = re.compile(rf"\bthe\s+other(?:\s+(?P<noun>one|{NOUN}|{LINE}))?(?P<genitive>['’]s)?(?=\W*$|\W)", re.IGNORECASE)
_DESCRIBED = re.compile(
    rf"\bthe\s+(?P<words>(?!other\b|same\b|next\b|previous\b|very\b)(?:[\w'’-]+\s+){{1,4}}?)(?P<noun>one|{LINE}|{NOUN})\b(?P<genitive>['’]s)?(?!\s+(?:one|{NOUN})\b)",
    re.IGNORECASE,
)
_ONE_THAT = re.compile(
    rf"\b(?:the|that)\s+(?:one|(?P<noun>{LINE}|{NOUN}))\s+(?P<words>(?:about|with|on|from|of|for|named|called|titled|mentioning|involving|created|opened|raised|"
    r"assigned|owned|without|naming|at|in|that\s+(?:is|was|has|mentions|involves|names|came|happened)|which\s+(?:is|was|has|mentions))\b[^,;?!]{1,120})",
    re.IGNORECASE,
)
_EARLIER = re.compile(
    rf"\b(?:the|those|these)\s+(?:(?P<adjective>earlier|previous|former|listed|original)\s+)?(?P<noun>{NOUN})"
    r"(?P<tail>\s+(?:from|of)\s+(?:before|earlier|the\s+list(?:\s+before)?|that\s+list|the\s+first\s+list|the\s+previous\s+list)|\s+(?:you\s+)?(?:listed|showed)(?:\s+(?:before|earlier|above))?|\s+above)?",
    re.IGNORECASE,
)
_OF_LIST = re.compile(
    rf"\s+(?:of|from|in|on|off)\s+(?:the\s+|that\s+|your\s+)?"
    rf"(?:(?:(?P<which>{ORDINAL}|previous|prior|earlier|other|current|original|latest)\s+)?"
    rf"(?:(?P<kind>(?:top\s+)?(?:{NOUN}))\s+)?(?:list|table|results|answer)(?:\s+of\s+(?P<kind2>{NOUN}))?"
    rf"(?P<back>\s+(?:before|earlier|above|from\s+before|from\s+earlier|you\s+showed(?:\s+(?:me|before|earlier))*))?"
    rf"|(?P<kind3>{NOUN})(?P<back2>\s+(?:from\s+)?(?:before|earlier|above))?(?=\W*$)|(?P<before>before|earlier)\b)",
    re.IGNORECASE,
)


def whole(mention: Mention, masked: str) -> bool:
    """True if the question holds nothing but the mention."""
    return not re.search(r"[\w\ufffc]", masked[: mention.start] + masked[mention.end :])


def mentions_in(masked: str) -> list[Mention]:
    """Every mention, in order and apart from each other; where two readers claim a word, the earlier reader has it."""
    found: list[Mention] = []
    for read in _READERS:
        for mention in read(masked):
            if mention.form in (Form.PLACES, Form.DESCRIBED) and mention.chosen is None:
                mention = _with_list(mention, masked)
            if all(mention.end <= other.start or mention.start >= other.end for other in found):
                found.append(mention)
    return sorted(found, key=lambda mention: mention.start)


def _with_list(mention: Mention, masked: str) -> Mention:
    match = _OF_LIST.match(masked, mention.end)
    if match is None:
        return mention
    kind = next((match[name] for name in ("kind", "kind2", "kind3") if match[name]), "")
    kind = kind_of(re.sub(r"^top\s+", "", kind, flags=re.IGNORECASE))
    which = spoken(match["which"] or "")
    place = ORDINALS.get(which, 0)
    earlier = bool(match["back"] or match["back2"] or match["before"]) or which in (
        "previous",
        "prior",
        "earlier",
        "other",
    )
    if which in ("original",):
        place = 1
    if match["kind3"] and not earlier and mention.form is Form.PLACES and not is_plural(match["kind3"]):
        return mention
    return replace(mention, end=match.end(), chosen=ListChoice(place=place, kind=kind, earlier=earlier))


def _read_brackets(masked: str) -> Iterator[Mention]:
    for match in _BRACKETS.finditer(masked):
        places = _range(int(match["from"]), int(match["to"])) if match["from"] else _numbers(match["in"])
        start = match.start()
        kind = kind_of(match["noun"] or "")
        yield Mention(
            form=Form.PLACES, start=start, end=match.end(), places=places, kind=kind, plural=len(places) > 1,
            genitive=False,
        )  # fmt: skip


def _range(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, min(last, first + 50) + 1)) if first <= last else (first, last)


def _numbers(text: str) -> tuple[int, ...]:
    if match := re.fullmatch(r"(\d+)\s*(?:-|–|to)\s*(\d+)", text.strip()):
        return _range(int(match[1]), int(match[2]))
    return tuple(dict.fromkeys(int(number) for number in re.findall(r"\d+", text)))


def _read_line_numbers(masked: str) -> Iterator[Mention]:
    for match in _LINE_NUMBER.finditer(masked):
        places = _numbers(match["number"] + " , " + (match["more"] or ""))
        noun = match["noun"].lower()
        kind = kind_of(noun)
        bare = noun in ("number", "no", "no.")
        yield Mention(
            form=Form.NUMBERS if bare else Form.PLACES, start=match.start(), end=match.end(), places=places,
            kind="" if kind == "row" else kind, soft=(bool(kind) and kind != "row") or bare, plural=len(places) > 1,
        )  # fmt: skip


def _read_hashed(masked: str) -> Iterator[Mention]:
    for match in _HASHED.finditer(masked):
        yield Mention(form=Form.HASHED, start=match.start(), end=match.end(), places=(int(match["number"]),), soft=True)


def _read_bare(masked: str) -> Iterator[Mention]:
    if match := _ALONE.match(masked):
        yield Mention(
            form=Form.NUMBERS, start=match.start("number"), end=match.end("number"), places=(int(match["number"]),),
            soft=True,
        )  # fmt: skip
    elif match := _TAIL.search(masked):
        for number in re.finditer(r"\d+", match["numbers"]):
            start = match.start("numbers") + number.start()
            yield Mention(
                form=Form.NUMBERS, start=start, end=start + len(number[0]), places=(int(number[0]),), soft=True
            )


_NOT_A_LIST = re.compile(
    r"^\s+(?:of\s+(?!them|these|those|the\s+list|the\s+(?:\w+\s+)?list)|in\s+(?!the\s+(?:\w+\s+)*list)|for|from\s+(?!the)|on|seen|time)",
    re.IGNORECASE,
)


def _read_ordinals(masked: str) -> Iterator[Mention]:
    for match in _SLICE.finditer(masked):
        noun = match["noun"] or ""
        kind = kind_of(noun)
        count = NUMERALS.get(match["count"].lower()) or int(match["count"])
        first = match["ordinal"].lower() in ("first", "top")
        if (kind and (not match["the"] or not first)) or not count or (match["end"] is not None and not match["the"]):
            continue
        places = tuple(range(1, count + 1)) if first else tuple(range(-count, 0))
        end = match.end() if match["end"] is None and match["verb"] is None else match.end("count")
        yield Mention(
            form=Form.PLACES, start=match.start(), end=end, places=places, kind=kind, soft=bool(kind), plural=True
        )
    for match in _ORDINAL.finditer(masked):
        noun = (match["noun"] or "").lower()
        kind = kind_of(noun)
        if match["end"] is not None and not match["the"] and masked[: match.start()].strip(" \t,.;:!?"):
            continue
        if noun and is_plural(noun) and not match["second"]:
            continue
        said = (match["ordinal"], match["second"])
        places = tuple(ORDINALS[spoken(each)] for each in said if each)
        if kind and (places[0] == -1 or _NOT_A_LIST.match(masked[match.end() :]) or spoken(match["ordinal"]) == "top"):
            continue  # "the last incident" is the newest one, "the first alert of incident 12" its oldest
        end = match.end("second") if match["end"] is not None and match["second"] else match.end()
        end = match.end("ordinal") if match["end"] is not None and not match["second"] else end
        yield Mention(
            form=Form.PLACES, start=match.start(), end=end, places=places, kind=kind, soft=bool(kind),
            plural=len(places) > 1,
        )  # fmt: skip


def _read_beside(masked: str) -> Iterator[Mention]:
    for match in _BESIDE.finditer(masked):
        word = (match["word"] or match["side"]).lower()
        step = 1 if word in ("next", "following", "after", "below", "under") else -1
        yield Mention(form=Form.BESIDE, start=match.start(), end=match.end(), places=(step,))


_NAMED_THERE = re.compile(
    r"\s+(?:(?:is|was)\s+)?(?:named|called)\b|\s*(?:[#\ufffc]|(?:no\.?|number|id)\s*#?\d|\d)|\s+[\w.$-]*(?:[\w$-]*\d[\w$-]*|\w\.\w|\w@\w|\w\\\w)",
    re.IGNORECASE,
)
"""The noun is followed by a number or a name of its own: "that incident 23", "this host web-03"."""


def _read_that(masked: str) -> Iterator[Mention]:
    for match in _THAT.finditer(masked):
        kind = kind_of(match["noun"])
        if is_plural(match["noun"]) or _NAMED_THERE.match(masked[match.end() :]):
            continue
        line = not kind or kind == "row"
        yield Mention(
            form=Form.IT if line else Form.THAT, start=match.start(), end=match.end(), kind="" if line else kind,
            genitive=bool(match["genitive"]), same="same" in match["word"].lower(),
        )  # fmt: skip
    for match in (*_THE.finditer(masked), *_THE_ALONE.finditer(masked)):
        if is_plural(match["noun"]):
            continue
        kind = kind_of(match["noun"])
        yield Mention(
            form=Form.THAT, start=match.start("all"), end=match.end("all"), kind=kind, soft=match.re is _THE,
            genitive=match.re is _THE and bool(match["genitive"]),
        )  # fmt: skip


def _read_it(masked: str) -> Iterator[Mention]:
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


_PARTITIVE = re.compile(
    r"(?:how\s+many|which|all|each|both|any|some|one|most|none|two|three|four|five|what|\d+|only|ones?)\s+(?:of\s*)?$",
    re.IGNORECASE,
)


def _read_them(masked: str) -> Iterator[Mention]:
    for match in (*_BOTH.finditer(masked), *_ALL_OF.finditer(masked), *_THEM.finditer(masked)):
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


def _read_other(masked: str) -> Iterator[Mention]:
    for match in _OTHER.finditer(masked):
        noun = match["noun"] or "one"
        if is_plural(noun) or (re.match(r"\s+\w", masked[match.end() :]) and match["noun"] is None):
            continue
        yield Mention(
            form=Form.OTHER, start=match.start(), end=match.end(), kind=kind_of(noun), genitive=bool(match["genitive"])
        )


def _read_described(masked: str) -> Iterator[Mention]:
    for match in _ONE_THAT.finditer(masked):
        kind = kind_of(match["noun"] or "")
        end = match.start("words") + len(match["words"].rstrip(" ."))
        yield Mention(
            form=Form.DESCRIBED, start=match.start(), end=end, kind=kind, words=match["words"].rstrip(" ."),
            soft=bool(kind),
        )  # fmt: skip
    for match in _DESCRIBED.finditer(masked):
        noun = match["noun"]
        if is_plural(noun):
            continue
        yield Mention(
            form=Form.DESCRIBED, start=match.start(), end=match.end(), kind=kind_of(noun), words=match["words"].strip(),
            soft=kind_of(noun) != "" and kind_of(noun) != "row", genitive=bool(match["genitive"]),
        )  # fmt: skip


def _read_earlier(masked: str) -> Iterator[Mention]:
    for match in _EARLIER.finditer(masked):
        if not (match["adjective"] or match["tail"]) or not is_plural(match["noun"]):
            continue
        yield Mention(
            form=Form.EARLIER, start=match.start(), end=match.end(), kind=kind_of(match["noun"]), plural=True, soft=True
        )


_READERS: tuple[Callable[[str], Iterator[Mention]], ...] = (
    _read_brackets,
    _read_earlier,
    _read_line_numbers,
    _read_hashed,
    _read_bare,
    _read_beside,
    _read_other,
    _read_ordinals,
    _read_described,
    _read_that,
    _read_them,
    _read_it,
)
