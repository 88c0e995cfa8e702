"""Plain text for places that Sentinel's portal renders: comments are shown as HTML and Markdown, remote images too.

What an agent writes may hold text that an attacker put into a log. So everything that would become a tag, a link or an
image is written with character references, which both renderers show as the character and neither takes for markup.
`html.unescape` gives the text back.
"""

from __future__ import annotations

import re

from sentinel_rag.sentinel.failures import invalid_argument

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REFERENCE = re.compile(r"&(?=[#A-Za-z])")  # what would be read as a character reference must not become one
_MARKDOWN_LINK = re.compile(r"\]\s*[(\[:]")


def plain_text(field: str, text: str, *, longest: int) -> str:
    """`text` so that it is shown as it is written. Raises QueryFailedError INVALID_ARGUMENT for `field`: a control
    character (also one that turns the direction of writing), or more than `longest` characters once escaped."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    control = _CONTROL.search(text)
    if control is not None:
        raise invalid_argument(
            field,
            f"{field} holds the control character U+{ord(control[0]):04X} at position {control.start()}.",
            next_step="Leave it out.",
        )
    escaped = _REFERENCE.sub("&amp;", text).replace("<", "&lt;")
    if _MARKDOWN_LINK.search(escaped):
        escaped = escaped.replace("[", "&#91;").replace("]", "&#93;")
    if len(escaped) > longest:
        raise invalid_argument(
            field,
            f"{field} is {len(escaped)} characters long once it is escaped for the portal; {longest} are kept.",
            next_step="Shorten it.",
        )
    return escaped
