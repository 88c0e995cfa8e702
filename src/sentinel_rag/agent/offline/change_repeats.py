"""The words that repeat a change which waits for a person ("do it now"), and those that drop it.

Pure: reads the words and what the conversation keeps of the last change.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.conversation import AskedChange, Conversation
from sentinel_rag.agent.planner.plan import Ask

_BEFORE = (
    r"^\W*(?:(?:ok|okay|please|pls|now|then|and|so|yes|done|great|it['’]?s|it\s+(?:is|was|has\s+been)|approved)"
    r"[\s,.!:]+)*"
)
_EXPLICIT = re.compile(
    rf"{_BEFORE}(?:do\s+(?:it|that|the\s+change)\s+now|"
    r"(?:do|make|run|send|apply|repeat)\s+the\s+(?:change|call|update|comment)"
    r"(?:\s+(?:now|again))?|(?:it\s+(?:is|was|has\s+been)\s+|it['’]?s\s+)?approved(?:\s+now)?)(?:,?\s+please)?\W*$",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    rf"{_BEFORE}(?:do\s+(?:it|that)(?:\s+again)?|(?:run|make|send|apply|repeat|execute)\s+(?:it|that)(?:\s+(?:now|again))?|"
    r"try\s+(?:it\s+|that\s+)?(?:once\s+)?(?:more|again)(?:\s+now)?|again|retry|go\s+ahead)(?:,?\s+please)?\W*$",
    re.IGNORECASE,
)
DROPPED = "I will not ask for it again. What waits for an approval goes on waiting until it is denied or expires."
_NONE_WAITS = "No change waits in this conversation. Ask for it whole, such as: close incident N as benign positive."
_DROPPED = re.compile(
    r"^\W*(?:no[\s,]+)?(?:never\s*mind|cancel(?:\s+(?:it|that|the\s+change))?|forget\s+(?:it|that))\W*$", re.I
)


def means_again(question: str, *, just_now: bool) -> bool:
    """True for words that mean a change asked for before and nothing else, such as "do it now"; looser ones ("go
    ahead") only where it was asked for `just_now`."""
    return bool(_EXPLICIT.match(question) or (just_now and _LOOSE.match(question)))


def asked_again(question: str, conversation: Conversation) -> AskedChange | Ask | None:
    """The change that "do it now" means; None if the words mean none. Looser words count right after the change."""
    change = conversation.change
    just_now = change is not None and change.turn == conversation.turns - 1 and not conversation.offers
    if not means_again(question, just_now=just_now):
        return None
    if change is None:
        return Ask(_NONE_WAITS)
    if change.done:
        return Ask("That change was made already. Ask for it whole again if it is to be made once more.")
    return change


def dropped(question: str, conversation: Conversation) -> bool:
    """True for "never mind" right after a change that waits: it is forgotten here."""
    change = conversation.change
    if change is None or change.done or change.turn != conversation.turns - 1 or not _DROPPED.match(question):
        return False
    conversation.change = None
    return True
