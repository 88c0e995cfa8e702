"""Fields of alerts that a question asks for by the alert's name: description, remediation steps, product, tactics.

Alerts of one name mostly say the same; each distinct text is told once, with the alert that it stands in.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun

MOST_TEXTS = 5
_LABELS = {
    "description": ("Description", "description"),
    "remediation": ("Remediation steps", "remediation_steps"),
    "product": ("Raised by", "product"),
    "tactics": ("Tactics", "tactics"),
    "techniques": ("Techniques", "techniques"),
}


def say_fields(writer: AnswerWriter, run: ToolRun, fields: Sequence[str]) -> None:
    """One line for each distinct value of each field; a field that no alert holds is said to be missing."""
    for field in fields:
        label, key = _LABELS[field]
        seen: dict[str, int] = {}
        for place, row in enumerate(run.rows):
            value = row.get(key)
            if value not in (None, "", [], {}):
                seen.setdefault(plain(str(value)), place)
        if not seen:
            writer.say_none([run], f"{label}: none recorded in these alerts.")
        for place in list(seen.values())[:MOST_TEXTS]:
            writer.say(
                f"{label} (alert {{}}): {{}}",
                writer.name(run, f"/rows/{place}/name"),
                _shown(writer, run, f"/rows/{place}/{key}"),
            )


def _shown(writer: AnswerWriter, run: ToolRun, pointer: str) -> Fact | list[Fact]:
    value = run.at(pointer)
    if isinstance(value, list | tuple):
        return [writer.words(run, f"{pointer}/{place}", limit=1500) for place in range(len(value))]
    return writer.words(run, pointer, limit=1500)
