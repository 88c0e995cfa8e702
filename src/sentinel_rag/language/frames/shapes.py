"""What a token is by its shape alone, in any language: addresses, hashes, principal names, hosts, ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_ENDINGS = """
  exe dll ps1 psm1 bat cmd vbs vbe js jse jar doc docx docm xls xlsx xlsm ppt pptx pdf rtf zip rar iso 7z gz tar img lnk
  msi sys sh py pl hta scr txt log tmp dmp dit bin elf apk html htm php aspx jsp csv json xml one eml msg kql md
"""
_TOP_DOMAINS = """
  com net org io co uk de fr nl eu us ca au jp cn ru br in it es ch at se no dk fi pl be ie nz example invalid test
  local localdomain lan internal corp intra home info biz dev app cloud online site xyz top gov edu mil int me tv cc
  onion
"""
_L = r"[^\W\d_]"
_SHAPES: tuple[tuple[str, str], ...] = (
    (
        "quoted",
        r"\"([^\"]{1,400})\"|“([^”]{1,400})”|„([^“”]{1,400})[“”]|`([^`]{1,400})`|«([^»]{1,400})»|"
        r"(?<!\w)'([^'\n]{2,400}?)'(?!\w)|(?<!\w)‘([^’]{2,200})’(?!\w)",
    ),
    ("portal", r"https?://(?:[\w-]+\.)*(?:azure\.com|azure\.us|microsoft\.com)/\S*incident\S*"),
    ("url", r"\b(?:https?|ftp)://[^\s\"'<>`]+"),
    ("guid", r"(?<![0-9a-f-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f-])"),
    ("sid", r"\bS-1-\d+(?:-\d+){1,14}\b"),
    ("hash", r"(?<!\w)(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})(?!\w)"),
    ("upn", r"(?<![\w.])\w[\w.+%'’-]*@[\w-]+(?:\.[\w-]+)+\b"),
    (
        "path",
        r"(?<![\w\\:])[A-Za-z]:\\[^\s\"'<>|?*]*[^\s\"'<>|?*.,;]|(?<![\w\\])\\\\[\w.$-]+(?:\\[^\s\"'<>|?*]+)+|"
        r"(?<![\w./-])/(?:[\w.-]+/)+[\w.-]*\w",
    ),
    ("nt_account", r"(?<![\w\\/:.])[A-Za-z][\w.-]*\\[\w.$-]+"),
    ("ipv4", r"(?<![\w.:])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?![\w:]|\.\d)"),
    (
        "ipv6",
        r"(?<![\w:.])(?=[0-9a-f:]*:[0-9a-f:]*:)(?=[0-9:.]*[a-f]|[0-9a-f.]*::|(?:[0-9a-f]+:){7})[0-9a-f:]+(?![\w:])",
    ),
    ("switch", r"(?<!\S)-{1,2}[A-Za-z][\w-]*"),
    ("technique", r"\bT\d{4}(?:\.\d{3})?\b"),
    ("number", r"(?<![\w#])#\s?\d{1,9}\b"),
    ("item", r"\[\d{1,3}\]"),
    ("file", rf"(?<![\w.\\/-])[\w-][\w.-]*\.(?:{'|'.join(_ENDINGS.split())})\b(?![.\w/])"),
    (
        "domain",
        rf"(?<![\w.@-])(?:[^\W_](?:[\w-]*[^\W_])?\.)+(?:{'|'.join(_TOP_DOMAINS.split())})\b(?![\w@-])(?!\.\w)",
    ),
    ("user", rf"(?<![\w.@]){_L}{{1,20}}\.[od]['’]{_L}{{3,}}\b|\b{_L}{{1,20}}\.{_L}{{2,30}}\b(?!@|\.\w)"),
    ("operation", r"(?-i:\b[A-Z][a-z]+(?:[A-Z][a-z]+)*[A-Z][a-z]+ed\b)"),
    ("table", r"\bsyslog\b|(?-i:\b[A-Z]+[a-z]+(?:[A-Z][a-z]*)+(?:_CL)?\b|\b\w+_CL\b)"),
    ("template", rf"\b{_L}+(?:_{_L}+)+\b"),
    (
        "host",
        rf"(?<![\w.#-])(?=[\w-]*\d){_L}[^\W_]*(?:-[^\W_]+)+\b(?!\.\d)|\b{_L}{{2,}}\d{{2,}}\b|"
        rf"\b{_L}{{3,}}\d+{_L}+\d*\b",
    ),
    ("service", r"\b(?:svc|adm|admin|sa)[-_][\w-]+\b"),
)
_FINDERS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _SHAPES)
NAMES = {
    "url": ("url",), "hash": ("filehash", "file"), "upn": ("account", "sender", "mailbox"), "sid": ("account",),
    "path": ("file", "process"), "nt_account": ("account",), "ipv4": ("ip",), "ipv6": ("ip",),
    "file": ("file", "process"), "domain": ("domain", "url", "host", "sender"), "user": ("account",),
    "service": ("account",), "host": ("host",),
}  # fmt: skip
"""Shapes that name a thing, and as which kinds."""


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of a text that is something by its shape."""

    shape: str
    value: str
    start: int
    end: int


def refang(text: str) -> str:
    """The text with defanged addresses (`hxxp`, `[.]`) as they were."""
    text = re.sub(r"\bhxxp(s?)\b", r"http\1", text, flags=re.IGNORECASE)
    return text.replace("[.]", ".").replace("(.)", ".").replace("[:]", ":").replace("[@]", "@")


@lru_cache(maxsize=64)
def shaped_tokens(text: str) -> tuple[Token, ...]:
    """Tokens of `text`, none overlapping; an earlier shape wins. Several readers ask for the same, so it is kept."""
    taken: list[Token] = []
    for shape, finder in _FINDERS:
        for match in finder.finditer(text):
            start, end = match.span()
            if any(start < one.end and one.start < end for one in taken):
                continue
            value = next((group for group in match.groups() if group), match[0])
            if shape == "url":
                value = value.rstrip(".,;:!?)")
                end = start + len(value)
            if shape == "number":
                value = value.lstrip("# ")
            if shape == "quoted":
                inner = shaped_tokens(value)
                if len(inner) == 1 and inner[0].shape in NAMES and inner[0].value == value:
                    shape = inner[0].shape
            taken.append(Token(shape, value, start, end))
    return tuple(sorted(taken, key=lambda one: one.start))
