"""Text that somebody outside may have written to be obeyed: found by its signs, so that a person sees it.

The page finds the same, by the same words (`frontend/src/outside.ts`). It is a look-out and no guard: an order without
these signs is one too. What it can do is bounded by the gateway's labels, whatever is found here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.visible_text import visible

_MARKUP = re.compile(
    r"<\s*[a-z][^<>]*\son[a-z]+\s*=|<\s*(?:script|iframe|img|svg|object)\b|!\[[^\]\n]*\]\([^)\n]*\)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class OutsideText:
    """A text with where it stands (`alert description`), what speaks for it, and its alert with the incident of it."""

    text: str
    place: str
    why: Sequence[str]
    alert: str
    alert_id: str
    incident: int | None
    audit_id: str
    """The record of the reading that found it."""


@cache
def _holds(name: str) -> re.Pattern[str]:
    """One of the words of that list, with no letter or digit beside it."""
    words = json.loads(Path(__file__).with_name("outside_words.json").read_text(encoding="utf-8"))[name]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, words))})(?![^\W_])")


def signs_of(text: str) -> list[str]:
    """What speaks for it that a text was written for a reader that obeys or draws it; empty for an ordinary text."""
    low = text.lower()
    signs = {
        "it gives orders to an assistant": _holds("addressed").search(low) and _holds("ordered").search(low),
        "it holds markup": _MARKUP.search(text),
        "it holds hidden characters": visible(text) != text,
    }
    return [sign for sign, found in signs.items() if found]


def outside_texts(alerts: Iterable[Mapping[str, Any]], audit_id: str) -> Iterator[OutsideText]:
    """The texts of these rows of `query_alerts` that carry such signs."""
    for alert in alerts:
        texts = [("alert name", alert["name"]), ("alert description", alert["description"])]
        texts += [(f"{each['kind']} of an alert", each["name"]) for each in alert["entities"]]
        for place, text in texts:
            if text and (why := signs_of(text)):
                named = str(alert["name"] or ""), str(alert["alert_id"]), alert.get("incident_number")
                yield OutsideText(text, place, why, *named, audit_id)
