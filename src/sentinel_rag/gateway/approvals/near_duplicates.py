"""Which calls read alike: a person's no to one of them holds for all.

Whoever denied a call read its arguments, and no reader tells apart what is folded here: case, blanks, invisible signs,
accents, letters of other scripts that look alike, escapes, quotation marks, and the ways to write one link or one
thing. Two calls that differ in more are two questions; how many of those are asked is bounded elsewhere.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from urllib.parse import unquote

from sentinel_rag.contracts.json_values import JsonObject, JsonValue, canonical_json
from sentinel_rag.gateway.policy.model import ToolPolicy

MAX_UNFOLDING = 3
"""How often escapes are taken away: what is nested deeper is shown to a reader as escapes."""

_PLACE = re.compile(r"\{([^{}]*)\}")
_DEFANGED = re.compile(r"[\[({]\s*(?:\.|dot)\s*[\])}]")
_SCHEME = re.compile(r"\bh(?:tt|xx)ps?\[?:\]?[/\\]*|(?<![\w.-])www\.")
_END = re.compile(r":(?:80|443)(?=[\s/?#]|\Z)|(?<![/\\.,;!])[/\\.,;!]++(?=[\s?#:]|\Z)")
"""What may end a link or a sentence and says nothing: a default port, a slash, a full stop."""
_UNSEEN = frozenset(("Cc", "Cf", "Mn", "Me", "Pi", "Pf"))
_ALIKE = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u2010\u2011\u2012\u2013\u2014\u2212",
    "abekmhopctyxijshdqwaikvoptuxi------",
    "\"'`\u00b4\u115f\u1160\u2800",
)
"""Cyrillic and Greek letters as the Latin ones that they look like, dashes as one, quotation marks and what is drawn as
a blank (fillers of Hangul, Braille without a dot) as nothing."""


def near_duplicate_sha256(tool: ToolPolicy, arguments: JsonObject, number: str = "") -> str:
    """The hash, in hex, that calls share which read alike. `number` is the thing's own, where the gateway has read it:
    whichever of its names the call writes to it by, it is one thing."""
    named = {place for template in tool.writes for place in _PLACE.findall(template)} if number else set()
    read = {name: number if name in named else value for name, value in arguments.items()}
    return hashlib.sha256(canonical_json([tool.name, _folded(read)])).hexdigest()


def _folded(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _folded_text(value)
    if isinstance(value, dict):
        parts = {_folded_text(name): _folded(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in (None, "", [], {})}
    return [_folded(part) for part in value] if isinstance(value, list) else value


def _folded_text(text: str) -> str:
    for _ in range(MAX_UNFOLDING):
        unfolded = unicodedata.normalize("NFKD", html.unescape(unquote(text)))
        if unfolded == text:
            break
        text = unfolded
    seen = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
    text = "".join(seen).casefold()
    text = _SCHEME.sub("", _DEFANGED.sub(".", text.translate(_ALIKE)))
    return "".join(_END.sub("", text).split())
