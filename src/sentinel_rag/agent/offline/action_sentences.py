"""A wish to change something as a sentence: what questions back offer, each reading as exactly the call that it says.

Pure; the inverse of `action_words` with `action_plans`, which a law checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.action_words import ActionWish
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS

CLASSIFICATION_WORDS: dict[tuple[str, str | None], str] = {
    ("TruePositive", "SuspiciousActivity"): "true positive (suspicious activity)",
    ("BenignPositive", "SuspiciousButExpected"): "benign positive (suspicious but expected)",
    ("FalsePositive", "IncorrectAlertLogic"): "false positive (incorrect alert logic)",
    ("FalsePositive", "InaccurateData"): "false positive (inaccurate data)",
    ("Undetermined", None): "undetermined",
}
"""Every classification with its reason, in the words in which it can be asked for."""


def fits(pair: tuple[str, str | None], classification: str | None, reason: str | None) -> bool:
    """True if a classification with its reason is one of those that are left open."""
    return classification in (None, pair[0]) and reason in (None, pair[1])


def wish_of(tool: str, arguments: Mapping[str, JsonValue]) -> ActionWish:
    """The wish that became that call."""
    fields = {name: str(value) for name, value in arguments.items() if name not in ("incident", "workspace")}
    if tool == "add_incident_comment":
        return ActionWish("", message=fields["message"], comments=True)
    note = fields.pop("classification_comment", "")
    return ActionWish("", fields, note=note)


def sentence_of(wish: ActionWish, incident: str, workspace: str = "") -> str:
    """The wish for that incident as a sentence that reads as exactly this wish again."""
    if workspace:
        incident = f"{incident} in workspace {workspace}"
    if wish.comments:
        return f"Comment on incident {incident}: {wish.message}"
    changes = {name: value for name, value in wish.changes.items() if value}
    classification, reason = changes.pop("classification", None), changes.pop("classification_reason", None)
    parts = [f"{name} {value}" for name, value in changes.items() if (name, value) != ("status", "Closed")]
    if classification is None:
        beginning = f"Close incident {incident}" if changes.get("status") == "Closed" else f"Set incident {incident} to"
    else:
        verb = "Close" if changes.get("status") == "Closed" else "Reclassify"
        words = next(words for pair, words in CLASSIFICATION_WORDS.items() if fits(pair, classification, reason))
        words = words if reason or len(CLASSIFICATION_REASONS[classification]) < 2 else words.partition(" (")[0]
        beginning = f"{verb} incident {incident} as {words}"
    joint = " " if beginning.endswith(" to") else ", "
    sentence = beginning + "".join(f"{joint if place == 0 else ', '}{part}" for place, part in enumerate(parts))
    return f"{sentence} with comment: {wish.note}" if wish.note else sentence
