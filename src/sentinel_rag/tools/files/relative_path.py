"""The one spelling of a path that this tool server takes: relative, `/` between parts, each part a plain name.

The gateway forwards paths in this form; whatever else arrives did not pass its rules, so it is refused and not mended.
"""

from __future__ import annotations

import unicodedata

from sentinel_rag.tools.tool_answer import ToolFault, wrong_argument

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MAX_NAME_BYTES = 255


def parts_of(field: str, path: str, *, directory: bool = False) -> tuple[str, ...]:
    """The names that lead to `path` from the root; a directory may end in `/`, and the root is empty. Raises ToolFault
    for the argument `field`."""
    if directory and path in ("", "/", ".", "./"):
        return ()
    parts = tuple((path[:-1] if directory and path.endswith("/") else path).split("/"))
    for part in parts:
        fault = name_fault(part)
        if fault:
            raise _refused(field, fault)
    return parts


def name_fault(name: str) -> str:
    """Why `name` cannot be a part of a path; empty if it can."""
    if name == "":
        return "it is absolute, or two slashes follow each other"
    if name in (".", ".."):
        return "it holds a part . or .."
    if "\\" in name:
        return "it holds a backslash"
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        return "it holds a control, invisible or undefined character"
    if unicodedata.normalize("NFKC", name) != name:
        return "it holds look-alike or decomposed letters"
    if name != name.strip() or name.endswith("."):
        return "a part begins or ends with a blank, or ends in a dot"
    if len(name.encode()) > MAX_NAME_BYTES:
        return "a part is longer than a file name can be"
    return ""


def _refused(field: str, fault: str) -> ToolFault:
    return wrong_argument(
        field,
        f"{field} is not a path below the files folder: {fault}.",
        "Write it relative to the root with / between its parts, such as public/handbook.md.",
    )
