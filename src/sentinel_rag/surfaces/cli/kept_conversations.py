"""`sentinel chat --list`, `--resume`, `--rename` and `--delete`: the conversations that this home keeps.

They are read from the home's file, so that listing and deleting need no zone. A conversation goes on only in its own
session at the gateway, whose labels hold what was read in it; where that session is gone, a new one starts clean.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from sentinel_rag.agent.conversations.store import StoredConversation
from sentinel_rag.app.conversations import kept_conversations, not_kept
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe_cell

if TYPE_CHECKING:
    from sentinel_rag.agent.conversations.store import ConversationStore

MOST_SINGLE = 5
"""Conversations of one question, such as those of `sentinel ask`, that the whole list shows."""
SHORT_ID = 8
"""Characters of an id that are shown, and that are enough to name a conversation."""


def show(words: str, *, as_json: bool) -> int:
    """Print the kept conversations with `words` in their title or a question, the last one first. Where no words are
    given, the oldest of those with one question are counted alone, so that single questions displace no chat."""
    with closing(kept_conversations(load_settings())) as store:
        entries = store.list(words=words)
    if as_json:
        print_json([entry.to_dict() for entry in entries])
        return 0
    if not entries:
        print(
            f"No kept conversation holds {safe_cell(words)!r}."
            if words
            else "No conversation is kept yet. Start one: sentinel chat"
        )
        return 0
    left = {id(entry) for entry in [entry for entry in entries if entry.turns == 1][MOST_SINGLE:] if not words}
    rows = [
        (entry.conversation_id[:SHORT_ID], entry.used_at[:16].replace("T", " "), str(entry.turns), entry.title)
        for entry in entries
        if id(entry) not in left
    ]
    print_table(("id", "last used (UTC)", "questions", "title"), rows)
    if left:
        print(f"\n{len(left)} older ones of one question each are not shown. Find them: sentinel chat --list WORDS")
    print("\nGo on with one: sentinel chat --resume ID")
    return 0


def delete(beginning: str) -> int:
    """Delete the conversation whose id begins so. Raises UsageError if it is none, or several."""
    with closing(kept_conversations(load_settings())) as store:
        conversation_id = store.find(beginning)
        store.delete(conversation_id)
    print(f"The conversation {conversation_id[:SHORT_ID]} is deleted; the audit journal keeps its records of calls.")
    return 0


def rename(beginning: str, title: str) -> int:
    """Give the conversation whose id begins so another title. Raises UsageError if it is none, or several."""
    if not title.strip():
        raise UsageError("The title is empty.", next_step='Say which: sentinel chat --rename ID "Night shift"')
    with closing(kept_conversations(load_settings())) as store:
        conversation_id = store.find(beginning)
        store.rename(conversation_id, title)
    print(f"The conversation {conversation_id[:SHORT_ID]} has another title.")
    return 0


def conversation_to_resume(settings: Settings, beginning: str) -> StoredConversation:
    """The conversation whose id begins so, or the last one for an empty text. Raises UsageError if there is none."""
    if not settings.chat_keep_days:
        raise not_kept()
    with closing(kept_conversations(settings)) as store:
        stored = store.load(found_or_last(store, beginning))
    assert stored is not None, "it was found a moment ago"
    return stored


def found_or_last(store: ConversationStore, beginning: str | None) -> str:
    """The id of the conversation that begins so, or of the last one where nothing is given. Raises UsageError if there
    is none, or if several begin so."""
    if beginning:
        return store.find(beginning)
    newest = store.list(1)
    if not newest:
        raise UsageError("No conversation is kept yet.", next_step="Start one: sentinel chat")
    return newest[0].conversation_id
