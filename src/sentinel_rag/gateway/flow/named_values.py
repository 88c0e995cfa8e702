"""Values that a user's own words name (TAINT-5): typed pairs, never bare texts.

`named_in` reads the words by a small grammar; an argument counts as named only if its parameter attests the same kind
and its value reads the same. "June 13" is a day and nothing else, "incident 13" names the incident 13 and no file, host
or account of that name. What a user pastes or quotes (a fenced block, a line that begins with `>`, three words between
quotation marks) names nothing, and neither does a clause with a negation ("do not close incident 13", "nicht", "ne ...
pas"). A quoted text is only what a parameter of the kind `quoted` may say, whole.

The grammar of values in words, kind by kind: where one stands in a clause, and the form by which two are compared.

A kind of `ValueKind` is found by `_candidates` and brought into one form by `canonical`; the kinds of a policy bring a
pattern of their own. Who may name what by it is for `named_values` to say. A day that is written without its year names
that day of any year; relative days ("tomorrow") name none: the gateway would have to trust somebody's clock and zone.
One clause gives two or three search terms at most, so that an agent has next to no choice.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.gateway.argument_formats import FORMATS
from sentinel_rag.gateway.policy.model import MOST_OF_A_KIND, NO_KINDS, NamedKind, NoteKind, Policy, ValueKind
from sentinel_rag.language.lexicon import language_data, plain_words

_MONTHS = tuple(said.split()[0] for said in language_data("en")["months"].values())
_MONTH = "|".join(f"{name}|{name[:3]}" if name != "may" else name for name in _MONTHS)
_DAY_NUMBER = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)[0-9]{2}"
_WRITTEN_DAY = re.compile(
    rf"\b(?:(?P<m1>{_MONTH})\.?\s{{1,3}}(?:the\s{{1,3}})?(?P<d1>{_DAY_NUMBER})(?!\w)(?:,?\s{{1,3}}(?P<y1>{_YEAR}))?"
    rf"|(?P<d2>{_DAY_NUMBER})\s{{1,3}}(?:of\s{{1,3}})?(?P<m2>{_MONTH})(?!\w)\.?(?:,?\s{{1,3}}(?P<y2>{_YEAR}))?)(?!\d)",
    re.IGNORECASE,
)
_ISO = re.compile(r"(?<![\d-])((?:19|20)\d\d)-(\d\d)-(\d\d)(?![\d-])")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")
_RANGE = re.compile(r"\s{0,3}(?:to|until|till|through|-|–)\s{0,3}(?:the\s{1,3})?", re.IGNORECASE)


def days_in(clause: str) -> Iterator[str]:
    """The days that a clause names, as `2025-01-11`, or `--01-11` where it says no year."""
    for match in _ISO.finditer(clause):
        yield from _day(match[1], match[2], match[3])
    found = list(_WRITTEN_DAY.finditer(clause))
    for index, match in enumerate(found):
        year = match["y1"] or match["y2"]
        if year is None and index + 1 < len(found):
            following = found[index + 1]
            if _RANGE.fullmatch(clause, match.end(), following.start()):
                year = following["y1"] or following["y2"]
        name = (match["m1"] or match["m2"]).lower()
        month = next(number for number, each in enumerate(_MONTHS, 1) if each.startswith(name))
        yield from _day(year, str(month), re.sub(r"\D", "", match["d1"] or match["d2"]))


def day_of(text: str) -> str | None:
    """The day of a date, or of a moment in any zone, as `2025-01-11`; None if the text is neither."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return text if re.fullmatch(r"--\d\d-\d\d", text) else None
    return next(_day(*match[1].split("-")), None)


def without_year(day: str) -> str:
    """`--01-11` of `2025-01-11`."""
    return "-" + day[4:]


def _day(year: str | None, month: str, day: str) -> Iterator[str]:
    try:
        found = datetime.date(int(year or 2000), int(month), int(day))
    except ValueError:
        return
    yield found.isoformat() if year else without_year(found.isoformat())


MAX_SOUGHT = 200
"""Characters of what may be looked up."""

_WEB = r"(?:the\s{1,3})?(?:web|internet|net)"
_WISHES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:search|check|browse|query|ask)\s{{1,3}}{_WEB}\s{{1,3}}(?:for|about|on)\s{{1,3}}(?P<wanted>\S.*)",
        r"\b(?:web|internet|online)\s{1,3}search\s{1,3}(?:(?:for|about|on)\s{1,3})?(?P<wanted>\S.*)",
        r"\b(?:search|look)\s{1,3}online\s{1,3}(?:for|about)\s{1,3}(?P<wanted>\S.*)",
        r"\bgoogle\s{1,3}(?:for\s{1,3})?(?P<wanted>\S.*)",
        rf"\b(?:search|look|find)(?:\s{{1,3}}for)?(?:\s{{1,3}}up)?\s{{1,3}}(?P<wanted>\S.{{0,200}}?)\s{{1,3}}(?:up\s{{1,3}})?"
        rf"(?:online|(?:on|in)\s{{1,3}}{_WEB})\b",
        rf"\bwhat\s{{1,3}}does\s{{1,3}}{_WEB}\s{{1,3}}say\s{{1,3}}about\s{{1,3}}(?P<wanted>\S.*)",
    )
)
_TERM = r"(?P<wanted>[^\W\d_][^\W\d_&'’-]*(?:[\s'’-]{1,2}[^\W\d_]+){0,6})"
"""Words of letters alone."""

_DEFINITIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bwhat(?:'s|\s{{1,3}}is|\s{{1,3}}are)\s{{1,3}}(?:exactly\s{{1,3}}|meant\s{{1,3}}by\s{{1,3}})?{_TERM}\W*\Z",
        rf"\bwhat\s{{1,3}}(?!does\b){_TERM}\s{{1,3}}(?:is|are|means?)\W*\Z",
        rf"\bwhat\s{{1,3}}does\s{{1,3}}{_TERM}\s{{1,3}}mean\W*\Z",
        rf"\b(?:define|explain|(?:meaning|definition)\s{{1,3}}of)\s{{1,3}}{_TERM}\W*\Z",
    )
)
_GOES_ON = re.compile(r"[,;]|\s(?:and|then)\s")
_AROUND = " \t.,;:!?\"'“”„«»`()"


def sought_in(clause: str) -> Iterator[str]:
    """What a clause asks to look up, as it is written: whole, to where the sentence may go on, and, where a definition
    is asked for, as a question."""
    for wish in _WISHES:
        for match in wish.finditer(clause):
            yield from _texts(match["wanted"])
            yield from _texts(_GOES_ON.split(match["wanted"])[0])
    for definition in _DEFINITIONS:
        for match in definition.finditer(clause):
            for text in _texts(match["wanted"]):
                yield text
                yield f"what is {text}"


def sought_as(text: str) -> str:
    """The text by which two wishes are compared: single blanks, nothing around it."""
    return " ".join(text.split()).strip(_AROUND)


def _texts(wanted: str) -> Iterator[str]:
    text = sought_as(wanted)
    if 1 < len(text) <= MAX_SOUGHT:
        yield text


_START = re.compile(r"(?<![\w])\w")
_QUOTES = "`'\"“”„«»#"
_BETWEEN = r"[`'\"“”„«»]?(?:\s{0,3},\s{0,3}(?:and\s{1,3}|or\s{1,3})?|\s{1,3}(?:and|or|&)\s{1,3})[`'\"“”„«»#]?"
_MAX_BETWEEN = 16
"""Characters of the longest text that `_BETWEEN` fits."""


def written(kind: NamedKind, clause: str) -> Iterator[str]:
    """The canonical texts of the values of `kind` that a clause names."""
    spans = list(_spans(kind, clause))
    if not kind.beside:
        chosen = spans
    else:
        nouns = "|".join(map(re.escape, kind.beside))
        before = re.compile(rf"(?i:\b(?:{nouns})\s{{1,3}}(?:named\s{{1,3}}|called\s{{1,3}})?)[{_QUOTES}]?\Z")
        after = re.compile(rf"[{_QUOTES}]?\s{{1,3}}(?i:(?:{nouns})\b)")
        joint = re.compile(_BETWEEN)
        known = [
            span
            for span in spans
            if before.search(clause, max(0, span[0] - 100), span[0]) or after.match(clause, span[1])
        ]
        chosen = list(known)
        listed, ends = set(known), {end for _, end in known}
        for span in spans:  # "the channels general, random and sales"
            near = ends.intersection(range(span[0] - _MAX_BETWEEN, span[0]))
            if any(joint.fullmatch(clause, end, span[0]) for end in near) and span not in listed:
                chosen.append(span)
                listed.add(span)
                ends.add(span[1])
    for start, end in chosen:
        text = clause[start:end]
        if not _is_of_the_sentence(clause, start, end):
            canonical = kind.canonical(text)
            if canonical is not None:
                yield canonical


def _is_of_the_sentence(clause: str, start: int, end: int) -> bool:
    """Whether a word stands there for the sentence's sake: it is in no quotation marks, and begins it or joins it."""
    text = clause[start:end]
    if not text.isalpha() or clause[start - 1 : start] in tuple(_QUOTES):
        return False
    return not clause[:start].strip() or text.lower() in plain_words()


def _spans(kind: NamedKind, clause: str) -> Iterator[tuple[int, int]]:
    """Where a value may stand: from the beginning of a word to the end of one."""
    for start in _START.finditer(clause):
        match = kind.start.search(clause[start.start() : start.start() + MOST_OF_A_KIND])
        if match is None or match.end() == 0:
            continue
        end = start.start() + match.end()
        if end == len(clause) or not (clause[end - 1].isalnum() and (clause[end].isalnum() or clause[end] == "_")):
            yield start.start(), end


MAX_VALUE = 512
"""Characters of a value that words name."""

_GUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_JOINT = r"(?:\s{0,3},\s{0,3}(?:and\s{1,3}|or\s{1,3})?|\s{1,3}(?:and|or|&)\s{1,3}|\s{0,3}/\s{0,3})"
_NO_NUMBER = r"\.\d|-\d|,\d{3}(?!\d)|\s{0,3}(?:seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?|[smhd])\b"
"""What makes a number a part, a range, a thousand or a span of time: "incidents 24 hours back" names none."""

_NUMBER = rf"(?:\#?\d{{1,9}}\b(?!{_NO_NUMBER})|{_GUID})"
_INCIDENTS = re.compile(
    rf"\bincidents?\s{{1,3}}(?:numbers?\s{{1,3}}|ids?\s{{1,3}}|no\.?\s{{1,3}})?(?P<list>{_NUMBER}(?:{_JOINT}{_NUMBER}){{0,50}})",
    re.IGNORECASE,
)
_ONE_NUMBER = re.compile(_NUMBER)
_NAME = r"[A-Za-z0-9_$](?:[A-Za-z0-9._$-]{0,62}[A-Za-z0-9_$])?"
_NOUNS = {
    ValueKind.HOST: r"hosts?|machines?|servers?|devices?|computers?|workstations?|endpoints?",
    ValueKind.ACCOUNT: r"users?|accounts?|upns?|logins?",
    ValueKind.TEMPLATE: r"templates?|stored\s{1,3}quer(?:y|ies)",
}
_LISTS = {
    kind: re.compile(
        rf"\b(?:{nouns})\s{{1,3}}(?:named\s{{1,3}}|called\s{{1,3}})?(?P<list>[`'\"]?{_NAME}[`'\"]?(?:{_JOINT}[`'\"]?{_NAME}[`'\"]?){{0,50}})",
        re.IGNORECASE,
    )
    for kind, nouns in _NOUNS.items()
}
_ONE_NAME = re.compile(_NAME)
_COMMON_WORDS = (
    "a account accounts an and are as at be by called did do does for from had has have he her his host "
    "hosts how id ids if in is it its me my name named names no of on or our she show that the their them "
    "then there these they this those to user users was we were what when where which who whose why will "
    "with would you your"
)
_NOT_NAMES = frozenset(_COMMON_WORDS.split())
"""Words that may stand behind such a noun and are no name."""

_DOMAIN_USER = re.compile(
    r"(?<![\w\\])([A-Za-z0-9][A-Za-z0-9.-]{0,30})\\([A-Za-z0-9_$][A-Za-z0-9._$-]{0,62})(?![\w\\])"
)
_EMAIL = re.compile(
    r"(?<![\w.+@-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![\w@-])"
)
_URL = re.compile(r"\bhttps?://[^\s<>\"'`\])}]{1,500}", re.IGNORECASE)
_FQDN = re.compile(
    r"(?<![\w@./\\-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z][A-Za-z0-9-]{1,23}(?![\w@/\\-])"
)
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:]|\.\d)"
)
_PATH = re.compile(r"(?<![\w./:\\@-])(?:[A-Za-z0-9._-]{1,100}/){1,15}[A-Za-z0-9._-]{0,100}(?![\w/\\@])")
_SCHEMELESS = re.compile(
    r"(?<![\w@./:\\-])(?:www\.(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}|(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?=/[^\s/]))"
    r"(?:/[^\s<>\"'`\])}]{0,500})?",
    re.IGNORECASE,
)
"""A web address as people write it, without its scheme."""

_BARE_ADDRESS = re.compile(r"(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?(?:/\S*)?", re.IGNORECASE)
_WRITTEN = (
    (_DOMAIN_USER, (ValueKind.ACCOUNT,), ""),
    (_EMAIL, (ValueKind.EMAIL, ValueKind.ACCOUNT), ""),
    (_URL, (ValueKind.URL,), ".,;:!?"),
    (_SCHEMELESS, (ValueKind.URL,), ".,;:!?"),
    (_FQDN, (ValueKind.HOST,), ""),
    (_ADDRESS, (ValueKind.IP,), ""),
    (_PATH, (ValueKind.PATH,), "."),
)
"""Values that need no noun beside them: the form, the kinds that it is of, and signs behind it that end a sentence."""

FOUND_IN_TEXTS = frozenset({ValueKind.INCIDENT, *(kind for _, kinds, _ in _WRITTEN for kind in kinds)})
"""Kinds of which a text of somebody else's may hold the only value."""


def values_in(clause: str, own: Mapping[str, NamedKind]) -> Iterator[tuple[str, str]]:
    """Every value that stands in a clause, with its kind, in canonical form; first those of the policy's own kinds."""
    for kind_of_policy in own.values():
        for text in written(kind_of_policy, clause):
            yield kind_of_policy.name, text
    for kind, text in _candidates(clause):
        try:
            found = canonical(kind, text)
        except ValueError:
            continue
        if found and len(found) <= MAX_VALUE:
            yield kind, found


def canonical(kind: ValueKind, text: str) -> str:
    """The text by which a value of `kind` is compared. Raises ValueError, NotCanonical among them, for no value of
    it; what has no form of its own gives an empty text."""
    match kind:
        case ValueKind.INCIDENT:
            bare = text.strip().removeprefix("#")
            return str(int(bare)) if bare.isascii() and bare.isdecimal() else bare.lower()
        case ValueKind.IP:
            address = ipaddress.ip_address(text.strip())
            mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
            return str(mapped or address)
        case ValueKind.URL:
            text = text.strip()
            return FORMATS["url"](f"https://{text}" if _BARE_ADDRESS.fullmatch(text) else text)
        case ValueKind.PATH | ValueKind.HOST | ValueKind.EMAIL:
            return FORMATS[kind.value](text.strip())
        case ValueKind.TEMPLATE:
            return FORMATS["kql-template"](text)
        case ValueKind.ACCOUNT:
            return text.strip().lower()
        case ValueKind.DAY:
            return day_of(text) or ""
        case ValueKind.SOUGHT:
            return sought_as(text)
        case ValueKind.QUOTED | ValueKind.WORDS:
            return " ".join(text.split())


def _candidates(clause: str) -> Iterator[tuple[ValueKind, str]]:
    for match in _INCIDENTS.finditer(clause):
        for number in _ONE_NUMBER.finditer(match["list"]):
            yield ValueKind.INCIDENT, number[0]
    for kind, pattern in _LISTS.items():
        for match in pattern.finditer(clause):
            for name in _ONE_NAME.finditer(match["list"]):
                if name[0].lower() in ("and", "or"):
                    continue
                if name[0].lower() in _NOT_NAMES:
                    break
                yield kind, name[0]
    for pattern, kinds, end in _WRITTEN:
        for match in pattern.finditer(clause):
            for kind in kinds:
                yield kind, match[0].rstrip(end)


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
