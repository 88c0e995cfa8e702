"""Places in a list: `[2]`, `[1] to [3]`, "line 2", a number alone, "the second one", "the first two", "the next"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.wording import (
    END,
    LINE,
    NOUN,
    NUMERAL,
    NUMERALS,
    ONE,
    ORDINAL,
    ORDINALS,
    START,
    is_plural,
    kind_of,
    spoken,
)

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
_ALONE = re.compile(rf"{START}(?P<number>\d{{1,9}})(?:\s+(?:please|pls|then|instead))?{END}", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:\b(?:details?|alerts?|entities|comments?|owners?|status|severity|hosts?|accounts?|users?|ips?|timelines?|more|"
    r"info\w*|events|tactics|techniques|story|summary|evidence)\s+(?:of|for|on|about|in|behind)\s+|"
    r"\b(?:tell\s+me|what\s+is|what's|what\s+was|show\s+me|and|what|how)\s+about\s+|"
    rf"{START}(?:and|or|also|open|show(?:\s+me)?|explain|describe|expand|compare|take|pick|select|choose|try|see|then)\s+|"
    r"\b(?:who\s+owns|who\s+has|explain|describe|expand|compare|what\s+is|open)\s+)"
    rf"(?P<numbers>{_N}(?:{_SEP}{_N})*){END}",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    rf"\b(?P<the>the\s+)?(?P<ordinal>{ORDINAL})(?:\s+(?:and|or|vs\.?|with)\s+(?:the\s+)?(?P<second>{ORDINAL}))?"
    rf"(?:\s+(?P<noun>{ONE}|{LINE}|{NOUN})\b|(?P<ofthem>\s+of\s+(?:them|these|those)\b|\s+(?:in|on|of|from)\s+(?:the|that|your)\s+(?:list|table)\b)|(?P<end>{END}))",
    re.IGNORECASE,
)
_SLICE = re.compile(
    rf"\b(?P<the>the\s+)?(?P<ordinal>first|last|top|bottom)\s+(?P<count>{NUMERAL}|\d{{1,2}})"
    rf"(?:\s+(?P<noun>{ONE}|{LINE}|{NOUN})\b|(?P<ofthem>\s+of\s+(?:them|these|those)\b)|(?P<end>{END})|(?P<verb>\s+(?=(?:and|in|are|have|share|involve|with)\b)))",
    re.IGNORECASE,
)
_NOT_A_LIST = re.compile(
    r"^\s+(?:of\s+(?!them|these|those|the\s+list|the\s+(?:\w+\s+)?list)|in\s+(?!the\s+(?:\w+\s+)*list)|for|from\s+(?!the)|on|seen|time)",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>next|previous|following|preceding)\s+(?P<noun>{ONE}|{LINE})|"
    rf"(?P<one>one)\s+(?P<side>before|after|above|below|under)(?:\s+(?:it|that(?:\s+one)?))?)(?={END}|\s)",
    re.IGNORECASE,
)


def read_brackets(masked: str) -> Iterator[Mention]:
    """As in "[3]", "[2] and [4]", "[1-3]": lines of the list that stands on the screen."""
    for match in _BRACKETS.finditer(masked):
        places = _range(int(match["from"]), int(match["to"])) if match["from"] else _numbers(match["in"])
        alone = is_plural(match["noun"] or "") and len(places) == 1  # "incidents [3] is involved in"
        start = match.end("noun") if alone else match.start()
        start += len(masked[start : match.end()]) - len(masked[start : match.end()].lstrip())
        kind = "" if alone else kind_of(match["noun"] or "")
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


def read_line_numbers(masked: str) -> Iterator[Mention]:
    """As in "line 3", "incidents number 2 and 5"; a number without a noun of a line may be an incident's too."""
    for match in _LINE_NUMBER.finditer(masked):
        places = _numbers(match["number"] + " , " + (match["more"] or ""))
        noun = match["noun"].lower()
        kind = kind_of(noun)
        bare = noun in ("number", "no", "no.")
        yield Mention(
            form=Form.NUMBERS if bare else Form.PLACES, start=match.start(), end=match.end(), places=places,
            kind="" if kind == "row" else kind, soft=(bool(kind) and kind != "row") or bare, plural=len(places) > 1,
        )  # fmt: skip


def read_hashed(masked: str) -> Iterator[Mention]:
    """As in "#3": a line, or an incident of that number."""
    for match in _HASHED.finditer(masked):
        yield Mention(form=Form.HASHED, start=match.start(), end=match.end(), places=(int(match["number"]),), soft=True)


def read_bare(masked: str) -> Iterator[Mention]:
    """A number that is the whole message, or ends it: "3", "tell me about 2 and 4"."""
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


def read_ordinals(masked: str) -> Iterator[Mention]:
    """As in "the first two", "the third alert", "first and last": places of a list, negative from its end."""
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
            form=Form.PLACES,
            start=match.start(),
            end=end,
            places=places,
            kind=kind,
            soft=bool(kind),
            plural=True,
            in_words=True,
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
            form=Form.PLACES, start=match.start(), end=end, places=places, kind=kind, soft=bool(kind), in_words=True,
            plural=len(places) > 1,
        )  # fmt: skip


def read_beside(masked: str) -> Iterator[Mention]:
    """As in "the next one", "the one before that": a line beside the one that was talked about."""
    for match in _BESIDE.finditer(masked):
        word = (match["word"] or match["side"]).lower()
        step = 1 if word in ("next", "following", "after", "below", "under") else -1
        yield Mention(form=Form.BESIDE, start=match.start(), end=match.end(), places=(step,))
