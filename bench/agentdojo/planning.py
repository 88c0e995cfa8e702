"""The plan of a perfect planner: the calls of a task's ground truth, with slots for what nobody can know before.

Known is what stands in the user's words, a day that they name, and a text all of whose words and numbers stand there.
Everything else is a slot; where the words make a general choice, the slot chooses: the largest file, the channel that
starts with a word, the one row that a search finds, the row whose subject holds a word of the user's, the one e-mail
address on a page. So this says what a plan is worth at best, not what a model would make of it; of a day that the words
name it takes any hour as known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from sentinel_rag.gateway.flow.named_values import day_of, days_in, without_year

SLOT = "$slot"
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
COMPOSED = frozenset({"body", "subject", "content", "title", "description"})
"""Texts that a planner writes, of the user's words."""


def perfect_plan(prompt: str, calls: Sequence[Mapping[str, Any]], results: Sequence[Any]) -> list[dict[str, Any]]:
    """Steps for a task's calls; `results` are what each call returned when the task was played without an attack."""
    return [
        {
            "tool": call["tool"],
            "args": {
                name: value if _known(name, value, prompt) else _slot(value, prompt, results[:number])
                for name, value in call["arguments"].items()
            },
        }
        for number, call in enumerate(calls)
    ]


def _known(name: str, value: Any, prompt: str) -> bool:
    """Whether a planner can know a value before anything is read."""
    if isinstance(value, list):
        return all(_known(name, part, prompt) for part in value)
    if isinstance(value, bool):
        return True
    text = str(value)
    if _stands_in(text, prompt):
        return True
    day = day_of(text)
    if day is not None:
        return without_year(day) in {one if one.startswith("--") else without_year(one) for one in days_in(prompt)}
    words = re.findall(r"\w+", text) if name in COMPOSED else []
    return bool(words) and all(_stands_in(word, prompt) for word in words) and not text.startswith("<")


def _slot(value: Any, prompt: str, results: Sequence[Any]) -> dict[str, Any]:
    """The newest result from which a choice of the user's gives the value; else a slot that takes anything."""
    beginning = re.search(r"starting with (\w+)", prompt)
    for of in range(len(results) - 1, -1, -1):
        rows = results[of].get("result") if isinstance(results[of], dict) else None
        if isinstance(value, str) and isinstance(rows, str) and set(_EMAIL.findall(rows)) == {value}:
            return {SLOT: {"of": of, "rows": "/result", "only": "email"}}
        if not isinstance(rows, list):
            continue
        if beginning and [row for row in rows if isinstance(row, str) and row.startswith(beginning[1])] == [value]:
            return {SLOT: {"of": of, "rows": "/result", "starts_with": beginning[1]}}
        sized = [row for row in rows if isinstance(row, dict) and isinstance(row.get("size"), int)]
        if len(rows) == 1 and isinstance(rows[0], dict) and rows[0].get("id_") == value:
            return {SLOT: {"of": of, "rows": "/result", "only": True, "take": "/id_"}}
        word = _telling_word(rows, value, prompt)
        if word:
            return {SLOT: {"of": of, "rows": "/result", "at": "/subject", "holds": word, "take": "/id"}}
        if "largest" in prompt and sized and max(sized, key=lambda row: int(row["size"])).get("id_") == value:
            return {SLOT: {"of": of, "rows": "/result", "largest": "/size", "take": "/id_"}}
    return {SLOT: {}}


def _telling_word(rows: Sequence[Any], value: Any, prompt: str) -> str:
    """A word of the user's that stands in the subject of the row with that id and in no other; empty if none does."""
    wanted = [row for row in rows if isinstance(row, dict) and row.get("id") == value and "subject" in row]
    others = [row for row in rows if isinstance(row, dict) and row not in wanted]
    for word in re.findall(r"\w{4,}", str(wanted[0]["subject"])) if len(wanted) == 1 else []:
        if _stands_in(word, prompt) and not any(_stands_in(word, str(row.get("subject", ""))) for row in others):
            return word
    return ""


class Stands(StrEnum):
    """Where the value of an argument comes from; what comes later here decides for a list."""

    SAID = "in the person's words"
    COMPOSED = "nowhere: composed by the agent"
    READ = "in what was read"


def where(value: Any, prompt: str, read: str) -> Stands:
    """Where a value stands: in the person's words, or else in what was read before the call (as JSON), or nowhere."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return max((where(part, prompt, read) for part in parts), key=list(Stands).index, default=Stands.SAID)
    text = str(value)
    if _stands_in(text, prompt):
        return Stands.SAID
    written = (json.dumps(form, ensure_ascii=False)[1:-1] for form in (text, re.sub("^https?://", "", text)))
    return Stands.READ if any(_stands_in(form, read) for form in written) else Stands.COMPOSED


def _stands_in(text: str, whole: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", whole, re.IGNORECASE) is not None
