"""The grammar of values in words, kind by kind: where one stands in a clause, and the form by which two are compared.

A kind of `ValueKind` is found by `_candidates` and brought into one form by `canonical`; the kinds of a policy bring a
pattern of their own (`written_kinds`). Who may name what by it is for `named_values` to say.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping

from sentinel_rag.gateway.argument_formats import FORMATS
from sentinel_rag.gateway.flow.days import day_of
from sentinel_rag.gateway.flow.search_terms import sought_as
from sentinel_rag.gateway.flow.written_kinds import written
from sentinel_rag.gateway.policy.kinds import NamedKind
from sentinel_rag.gateway.policy.model import ValueKind

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
