"""Values that a user's own words name (TAINT-5): typed pairs, never bare texts.

`named_in` reads the words by a small grammar; an argument counts as named only if its parameter attests the same kind
and its value reads the same. "June 13" names nothing, "incident 13" names the incident 13 and no file, host or account
of that name. What a user pastes or quotes (a fenced block, a line that begins with `>`, three words between quotation
marks) names nothing, and neither does a clause with a negation ("do not close incident 13", "nicht", "ne ... pas").
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.interceptor.argument_formats import FORMATS, NotCanonical
from sentinel_rag.interceptor.policy.model import ValueKind

MAX_WORDS = 32_000
"""Characters of one message that are read."""

MAX_NAMED = 500
"""Values that one message can name; a text with more is a paste."""

MAX_VALUE = 512

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
_NOT_NAMES = frozenset(
    {
        *(
            "a",
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "by",
            "did",
            "do",
            "does",
            "for",
            "from",
            "had",
            "has",
            "have",
            "he",
        ),
        *("her", "his", "how", "if", "in", "is", "it", "its", "me", "my", "no", "of", "on", "or", "our", "she", "show"),
        *("that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we", "were"),
        *("what", "when", "where", "which", "who", "whose", "why", "will", "with", "would", "you", "your", "name"),
        *("names", "named", "called", "id", "ids", "account", "accounts", "user", "users", "host", "hosts"),
    }
)
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
_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_SPEECH = re.compile(r"[\"“„«][^\"“”„«»\n]{1,1000}[\"“”»]|(?<!\w)'[^'\n]{1,1000}'(?!\w)")
"""Text between quotation marks; of three words or more it is what somebody else said."""

_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n|,\s+(?:but|except)\b|\bbut\b")
_NEGATION = re.compile(
    r"\b(?:not|never|no|without|except|ignore|avoid|instead of|other than|rather than|leave|skip"
    r"|nicht|kein\w*|nie|niemals|ohne|ne|pas|jamais|sans|nunca|sin|não|sem|non|mai|niet|geen|zonder)\b|n['’]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A kind and the canonical text of a value of that kind."""

    kind: ValueKind
    text: str


def named_in(words: str) -> frozenset[NamedValue]:
    """What a user's message names; nothing if it names more than `MAX_NAMED` values."""
    found: set[NamedValue] = set()
    own = _SPEECH.sub(_unless_speech, _FENCE.sub("\n", words[:MAX_WORDS]))
    for line in own.splitlines():
        if line.lstrip().startswith((">", "|")):
            continue
        for clause in _CLAUSE.split(line):
            if not _NEGATION.search(clause):
                found.update(_named_in_clause(clause))
    return frozenset(found) if len(found) <= MAX_NAMED else frozenset()


def _unless_speech(quoted: re.Match[str]) -> str:
    return quoted[0] if len(quoted[0].split()) < 3 else " "


def canonical_named(kind: ValueKind, value: JsonValue) -> NamedValue | None:
    """An argument as a value of `kind`, None if it is none: what is compared with the user's words."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_VALUE:
        return None
    try:
        text = _canonical(kind, value)
    except ValueError:
        return None
    return NamedValue(kind, text) if text else None


def _canonical(kind: ValueKind, text: str) -> str:
    match kind:
        case ValueKind.INCIDENT:
            bare = text.strip().removeprefix("#")
            return str(int(bare)) if bare.isascii() and bare.isdecimal() else bare.lower()
        case ValueKind.IP:
            address = ipaddress.ip_address(text.strip())
            mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
            return str(mapped or address)
        case ValueKind.PATH | ValueKind.URL | ValueKind.HOST | ValueKind.EMAIL:
            return FORMATS[kind.value](text.strip())
        case ValueKind.TEMPLATE:
            return FORMATS["kql-template"](text)
        case ValueKind.ACCOUNT:
            return text.strip().lower()


def _named_in_clause(clause: str) -> Iterator[NamedValue]:
    for kind, text in _candidates(clause):
        try:
            canonical = _canonical(kind, text)
        except (ValueError, NotCanonical):
            continue
        if canonical and len(canonical) <= MAX_VALUE:
            yield NamedValue(kind, canonical)


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
    for match in _DOMAIN_USER.finditer(clause):
        yield ValueKind.ACCOUNT, match[0]
    for match in _EMAIL.finditer(clause):
        yield ValueKind.EMAIL, match[0]
        yield ValueKind.ACCOUNT, match[0]
    for match in _URL.finditer(clause):
        yield ValueKind.URL, match[0].rstrip(".,;:!?")
    for match in _FQDN.finditer(clause):
        yield ValueKind.HOST, match[0]
    for match in _ADDRESS.finditer(clause):
        yield ValueKind.IP, match[0]
    for match in _PATH.finditer(clause):
        yield ValueKind.PATH, match[0].rstrip(".")
