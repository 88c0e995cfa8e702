"""What else a question asks of the process that was singled out: its id, its command line, when it began."""

from __future__ import annotations

import re
from dataclasses import replace

from sentinel_rag.agent.offline.alert_walk.values import Value
from sentinel_rag.agent.offline.attribute_catalogue import Attribute

PROCESSES = frozenset({"process", "command line", "process id"})
"""Labels of what is told of a process."""
_OF_A_PROCESS = {
    "process id": ("process_id", re.compile(r"\bprocess\s*ids?\b|\bpids?\b", re.IGNORECASE)),
    "command line": ("command_line", re.compile(r"\bcommand[\s-]*lines?\b", re.IGNORECASE)),
    "creation time": (
        "created_time",
        re.compile(r"\bcreat(?:ed|ion)\s*(?:date|time)|\bwhen\b|\b(?:at\s+)?what\s+time\b", re.IGNORECASE),
    ),
}


def details_beside(question: str, attribute: Attribute, value: Value) -> tuple[tuple[str, Value], ...]:
    """(label, value) of each further property of its process that the question asks for and the alert tells."""
    if attribute.label not in PROCESSES:
        return ()
    wanted = [
        (label, key)
        for label, (key, words) in _OF_A_PROCESS.items()
        if label != attribute.label and words.search(question)
    ]
    told = [(label, key, str(value.entity[key])) for label, key in wanted if value.entity.get(key)]
    return tuple(
        (label, replace(value, key=text, text=text, pointer=f"{value.at}/{key}", others=()))
        for label, key, text in told
    )
