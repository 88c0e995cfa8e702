"""Things that a question names: accounts, hosts, addresses, hashes, files, URLs, quoted words.

A value with a shape of its own (an address, a hash, a UPN) is recognised by that shape; a bare name by the word before
it ("host dc-01") or by looking like a name (letters with digits, a hyphen or a dot). The kind is told only when the
person said it: guessing a kind could hide alerts that hold the same value in another place.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from sentinel_rag.agent.offline.vocabulary import KIND_WORDS, is_known
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.language.text import blank

FILE_ENDINGS = word_list(
    """
    exe dll ps1 psm1 bat cmd vbs vbe js jse jar doc docx docm xls xlsx xlsm ppt pptx pdf rtf zip rar 7z gz tar iso
    img lnk msi sys sh py pl hta scr txt log tmp dmp dit bin elf apk html htm php aspx jsp csv json xml one eml msg
    """
)
_TLDS = word_list(
    """
    com net org io co uk de fr nl eu us ca au jp cn ru br in it es ch at se no dk fi pl be ie nz example invalid
    test local localdomain lan internal corp intra home info biz dev app cloud online site xyz top gov edu mil int
    me tv cc onion
    """
)


@dataclass(frozen=True, slots=True)
class NameSlot:
    """`value` as the person wrote it; `kind` only if they said it; `shaped` if its form alone shows what it is."""

    value: str
    kind: str | None = None
    shaped: bool = True
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class NameReading:
    """What was found; `rest` is the text with the values blanked out, of the same length."""

    rest: str
    names: tuple[NameSlot, ...] = ()
    guids: tuple[str, ...] = ()
    incident_urls: tuple[str, ...] = ()


_QUOTES = re.compile(
    r"\"([^\"]{1,400})\"|“([^”]{1,400})”|`([^`]{1,400})`|(?<!\w)'([^'\n]{1,400}?)'(?!\w)|«([^»]{1,400})»"
)
_GUID = re.compile(r"(?<![0-9a-f-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f-])", re.I)
_URL = re.compile(r"\b(?:https?|ftp)://[^\s\"'<>`]+", re.IGNORECASE)
_SHAPES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.])\w[\w.+%'\u2019-]*@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b",  # UPN or mail address
        r"(?<![\w.'])[A-Za-z]\w*\.[od]['\u2019][A-Za-z]{3,}\b(?!['\u2019@])",  # its user part with an apostrophe
        r"\bS-1-\d+(?:-\d+){1,14}\b",  # SID
        r"(?<![\w\\:])[A-Za-z]:\\[^\s\"'<>|?*]*[^\s\"'<>|?*.,;]",  # Windows path
        r"(?<![\w\\])\\\\[\w.$-]+(?:\\[^\s\"'<>|?*]+)+",  # UNC path
        r"(?<![\w\\/:.])[A-Za-z][\w.-]*\\[\w.$-]+",  # DOMAIN\user
        r"(?<!\w)(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})(?!\w)",  # SHA-256, SHA-1, MD5
        r"(?<![\w./-])/(?:[\w.-]+/)+[\w.-]*\w",  # Unix path or Azure resource id
        rf"(?<![\w.\\/-])[\w-][\w.-]*\.(?:{'|'.join(FILE_ENDINGS)})\b(?![.\w/])",  # file name
        rf"(?<![\w.@-])(?:[a-z0-9](?:[\w-]*[a-z0-9])?\.)+(?:{'|'.join(_TLDS)})\b(?![\w@-])(?!\.\w)",  # domain or FQDN
    )
)
_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]*:[0-9a-f:.]*)(?![\w:]|\.\d)", re.I)
_KIND = "|".join(sorted((re.escape(word) for word in KIND_WORDS), key=len, reverse=True))
_AFTER_KIND = re.compile(
    rf"\b({_KIND})\s+(?:(?:named|called|name|with\s+(?:the\s+)?name|is|=|:|account|address)\s+)?([A-Za-z0-9_$][\w.$-]*)",
    re.IGNORECASE,
)
_BEFORE_KIND = re.compile(rf"\b([A-Za-z0-9_$][\w.$-]*)\s+({_KIND})\b", re.IGNORECASE)
_LOOKS_LIKE_NAME = re.compile(
    r"(?<![\w\\/@.#\[:-])(?=[\w.$-]*[A-Za-z])(?:(?=[\w.$-]*\d)[A-Za-z0-9_]+(?:[.-][\w$]+)+|[A-Za-z]\w*(?:[_.]\w+)+\$?|"
    r"[A-Za-z][A-Za-z0-9]*-[A-Za-z0-9-]*[A-Za-z0-9]\$?|[A-Za-z]{1,}\d+[A-Za-z0-9]*|[A-Za-z]\w*\$)(?![\w\\@/-])"
)
_AFTER_PREPOSITION = re.compile(
    r"\b(?:naming|mention(?:s|ing)?|involv(?:es|ing)|against|on|for|by|about|from|with|did|has|name)\s+([A-Za-z][\w$-]{2,})\b",
    re.IGNORECASE,
)
_TECHNIQUE = re.compile(r"t\d{4}(?:\.\d{3})?", re.IGNORECASE)
_DURATION = re.compile(r"\d+(?:h|d|w|m|hrs?|mins?)|p(?:t?\d+[hmdw])+|last_\w+", re.IGNORECASE)
_COMPOUND = re.compile(
    r"(?:sign|log)-?(?:ins?|ons?)|multi-\w+|e-?mails?|follow-ups?|in-progress|false-positives?|top-\w+|non-\w+|re-?\w+ed|"
    r"[a-z]+-based|brute-force|high-severity|low-severity|medium-severity|command-line|week-end|week-over-week|by-\w+",
    re.IGNORECASE,
)


def refang(text: str) -> str:
    """`hxxps://evil[.]example` as it is stored: people paste defanged indicators."""
    text = re.sub(r"\bhxxp(s?)(?=:|\[)", r"http\1", text, flags=re.IGNORECASE)
    return text.replace("[.]", ".").replace("[:]", ":").replace("(.)", ".").replace("[@]", "@")


def read_names(text: str) -> NameReading:
    """Values with a shape of their own, and quoted words. Bare names are read later, by `read_bare_names`."""
    names: list[NameSlot] = []
    guids: list[str] = []
    incident_urls: list[str] = []
    for match in list(_QUOTES.finditer(text)):
        value = next(group for group in match.groups() if group is not None).strip()
        text = blank(text, match.start(), match.end())
        if _GUID.fullmatch(value):
            guids.append(value.lower())
        elif value:
            names.append(NameSlot(value, _kind_before(text, match.start()), shaped=False, quoted=True))
    for match in list(_URL.finditer(text)):
        url = match[0].rstrip(".,;:!?)]}")
        kind = _kind_before(text, match.start())
        text = blank(text, match.start(), match.start() + len(url))
        if "incident" in url.lower() and re.search(r"microsoft\.com|azure\.com|azure\.us", url, re.IGNORECASE):
            incident_urls.append(url)
        else:
            names.append(NameSlot(url, kind))
    for match in list(_GUID.finditer(text)):
        guids.append(match[0].lower())
        text = blank(text, match.start(), match.end())
    for match in list(_ADDRESS.finditer(text)):
        value = match[0].rstrip(".:") if not match[0].endswith("::") else match[0]
        try:
            ipaddress.ip_address(value)
        except ValueError:
            continue
        names.append(NameSlot(value, _kind_before(text, match.start())))
        text = blank(text, match.start(), match.end())
    for pattern in _SHAPES:
        for match in list(pattern.finditer(text)):
            kind = _kind_before(text, match.start())
            names.append(NameSlot(match[0], None if kind in ("filehash", "process", "dns", "mailmessage") else kind))
            text = blank(text, match.start(), match.end())
    return NameReading(text, tuple(names), tuple(guids), tuple(incident_urls))


def read_bare_names(text: str) -> NameReading:
    """Names without a shape of their own, in text from which everything else the grammar knows was taken."""
    names: list[NameSlot] = []
    for match in list(_AFTER_KIND.finditer(text)):
        if may_be_named(match[2]):
            kind = KIND_WORDS[match[1].lower()]
            names.append(NameSlot(match[2].rstrip("."), kind if kind in _SAFE_KINDS else None, shaped=False))
            text = blank(text, match.start(2), match.end(2))
    for match in list(_BEFORE_KIND.finditer(text)):
        if may_be_named(match[1]) and _LOOKS_LIKE_NAME.fullmatch(match[1]):
            kind = KIND_WORDS[match[2].lower()]
            names.append(NameSlot(match[1], kind if kind in _SAFE_KINDS else None, shaped=False))
            text = blank(text, match.start(1), match.end(1))
    for match in list(_LOOKS_LIKE_NAME.finditer(text)):
        value = match[0].rstrip(".")
        if may_be_named(value):
            names.append(NameSlot(value, shaped=False))
            text = blank(text, match.start(), match.end())
    return NameReading(text, tuple(names))


def read_name_after_preposition(text: str) -> NameReading:
    """The last resort: a word that the grammar does not know behind "on", "for", "by", "naming" and the like."""
    for match in _AFTER_PREPOSITION.finditer(text):
        if may_be_named(match[1]):
            return NameReading(blank(text, match.start(1), match.end(1)), (NameSlot(match[1], shaped=False),))
    return NameReading(text)


_OWNER_OF_PROPERTY = re.compile(
    r"\b(?:of|for|did|does|do|has|have|had|by|on|from|with)\s+(?:the\s+)?([A-Za-z][\w$-]{2,})\b"
    r"|\b([A-Za-z][\w$-]{2,})(?:'s|\u2019s)\b"
    r"|\b(?:is|was)\s+([A-Za-z][\w$-]{2,})\s+(?:involved|part|seen|affected|in|mentioned|named)\b",
    re.IGNORECASE,
)


def read_plain_name(text: str) -> NameReading:
    """A word that the grammar does not know where the owner of a property stands: "of X", "did X use", "X's"."""
    for match in _OWNER_OF_PROPERTY.finditer(text):
        word = match[1] or match[2] or match[3]
        if may_be_named(word):
            place = match.start(match.lastindex or 1)
            return NameReading(blank(text, place, place + len(word)), (NameSlot(word, shaped=False),))
    return NameReading(text)


def read_word(text: str, word: str) -> NameReading:
    """`word` as a name, wherever it stands: "bjenkins sid"."""
    match = re.search(rf"(?<![\w$-]){re.escape(word)}(?![\w$-])", text, re.IGNORECASE)
    if match is None or not may_be_named(match[0]):
        return NameReading(text)
    return NameReading(blank(text, match.start(), match.end()), (NameSlot(match[0], shaped=False),))


_SAFE_KINDS = frozenset({"account", "host", "ip", "url", "file", "mailbox"})


_PARTS = frozenset({"rule", "rules", "agent", "agents", "principal", "principals", "group", "groups", "code", "codes"})
"""Words that end a compound with a kind before them: "mailbox rules", "user agents", "device code"."""

_DESCRIBING = frozenset(
    word_list(
        """
        behind tied pertaining implicated utilized employed dropped modified registered flagged contacted initiated
        performing conducting originating exhibiting attempting leveraged abused blocked quarantined removed delivered
        enumerated injected downloaded spawned executing launching serving dumped stolen encrypted renamed
        """
    )
)
"""Words that say what became of a thing: "the file dropped by", "the account behind it"."""


def may_be_named(word: str) -> bool:
    """True for a word that the grammar does not know: something may be called so."""
    return not (
        is_known(word.rstrip("."))
        or word.lower() in _PARTS
        or word.lower() in _DESCRIBING
        or word.isdigit()
        or _TECHNIQUE.fullmatch(word)
        or _DURATION.fullmatch(word)
        or _COMPOUND.fullmatch(word)
    )


def _kind_before(text: str, begin: int) -> str | None:
    """The kind that stands right before a value: "the host X", "from ip X"."""
    match = re.search(rf"\b({_KIND})(?:\s+(?:named|called|is|address|account|=|:))?\s*[:=]?\s*$", text[:begin], re.I)
    if match is None:
        return None
    kind = KIND_WORDS[match[1].lower()]
    return kind if kind in _SAFE_KINDS else None
