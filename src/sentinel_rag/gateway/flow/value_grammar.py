"""The grammar of values in words, kind by kind: where one stands in a clause, and the form by which two are compared.

A kind of `ValueKind` is found by `_candidates` and brought into one form by `canonical`; the kinds of a policy bring a
pattern of their own. Who may name what by it is for `named_values` to say. A day that is written without its year names
that day of any year; relative days ("tomorrow") name none: the gateway would have to trust somebody's clock and zone.
One clause gives two or three search terms at most, so that an agent has next to no choice.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Iterator, Mapping

from sentinel_rag.gateway.argument_formats import FORMATS
from sentinel_rag.gateway.policy.model import MOST_OF_A_KIND, NamedKind, ValueKind
from sentinel_rag.language.lexicon import plain_words

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
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
