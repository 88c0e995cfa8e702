"""Which alerts fit the words of a question best: names, descriptions and what they name, weighted by rarity.

Reads rows as text to be compared and as nothing else.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame

NEAR_BEST = 0.75
"""Alerts that fit at least this share of the best one's score are answers too."""

_STOP = frozenset(
    word_list(
        """
    what which who when where how is are was were the a an of in on for to from by with and or that this it its can
    you could please identify provide tell me give find related incident incidents alert alerts during investigation
    was observed detected involved associated used using security recent another same as there their they find known
    name
    """
    )
)


def candidates_of(runs: Sequence[ToolRun]) -> list[tuple[ToolRun, int]]:
    """Every alert once, though two calls may have returned it."""
    seen: set[str] = set()
    found = []
    for run in runs:
        for place, row in enumerate(run.rows):
            alert_id = str(row.get("alert_id"))
            if alert_id not in seen:
                seen.add(alert_id)
                found.append((run, place))
    return found


def ranked_alerts(frame: Frame, candidates: Sequence[tuple[ToolRun, int]]) -> list[tuple[float, ToolRun, int]]:
    """(score, run, place) of each alert, the one that fits the words and names of the question best first."""
    documents = [_words(_text(run.rows[place])) for run, place in candidates]
    frequency = Counter(word for document in documents for word in set(document))
    question = set(_words(frame.text)) - _STOP
    names = [name.lower() for name in frame.all("name")]
    ranked = []
    for (run, place), document in zip(candidates, documents, strict=True):
        row = run.rows[place]
        title = set(_words(str(row.get("name"))))
        present = set(document)
        score = sum(
            math.log(1 + len(documents) / frequency[word]) * (2.0 if word in title else 1.0)
            for word in question
            if word in present
        )
        score /= 1 + 0.1 * math.log(1 + len(document))
        text = str(row.get("entities")).lower() + str(row.get("compromised_entity")).lower()
        if names:
            hits = sum(name in text or name.replace("\\", "\\\\") in text for name in names)
            score = score + 20.0 * hits if hits else score * 0.2
        ranked.append((score, run, place))
    return sorted(ranked, key=lambda item: -item[0])


def _text(row: Mapping[str, JsonValue]) -> str:
    return " ".join(str(row.get(name) or "") for name in ("name", "description", "tactics", "techniques", "product"))


def _words(text: str) -> list[str]:
    words = re.findall(r"[a-z][a-z0-9]+", text.lower())
    return [re.sub(r"(?:ings?|ed|es|s)$", "", word) if len(word) > 5 else word for word in words if word not in _STOP]
