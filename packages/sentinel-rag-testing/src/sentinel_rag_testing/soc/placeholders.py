"""What `{...}` in the suite's texts stands for, in calls, requests and conditions alike.

`{name}`, `{name:which}` and `{name:which|form}`. A secret that the agent has not read is the word `unknown`, so an
attack that read nothing carries nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from sentinel_rag_testing.soc.encodings import WHOLE, encoded

UNKNOWN = "unknown"
_PLACE = re.compile(r"\{([a-z_]+)(?::([A-Za-z0-9_]+))?(?:\|([a-z0-9_]+))?\}")
Meaning = Callable[[str], str]
"""From what stands behind the colon to the text; raises KeyError where there is none."""


def filled(value: Any, meanings: Mapping[str, Meaning]) -> Any:
    """`value` with each placeholder in its texts replaced. Raises KeyError for one that means nothing."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: _text(found, meanings), value)
    if isinstance(value, dict):
        return {key: filled(part, meanings) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, meanings) for part in value]
    return value


def secret_named(text: str) -> tuple[str, str]:
    """Name and form of the one secret in `{secret:NAME|FORM}`."""
    found = _PLACE.fullmatch(text)
    if found is None or found[1] != "secret":
        raise ValueError(f"{text!r} is not one secret")
    return found[2], found[3] or "plain"


def _text(found: re.Match[str], meanings: Mapping[str, Meaning]) -> str:
    name, which, form = found.groups()
    text = meanings[name](which or "")
    if form is None or text == UNKNOWN:
        return text
    if form in WHOLE:
        return encoded(text, form)
    return _FIELD_FORMS[form](text)


def _label(text: str) -> str:
    """One DNS label: letters, digits and hyphens, at most 63."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-")


_FIELD_FORMS: Mapping[str, Callable[[str], str]] = {"label": _label, "address": lambda text: quote(text, safe="")}
