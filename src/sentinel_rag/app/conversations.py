"""Where a home's conversations lie, and the store over them: for the agent's process, and for commands that list,
resume and delete them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.app.places import chat_database, record_schema
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.agent.conversations.store import ConversationStore
    from sentinel_rag.agent.history import Budget
    from sentinel_rag.storage import Records

CONVERSATIONS_FILE = "conversations.db"


def agent_folder(home: Path) -> Path:
    """Where the agent's process keeps what it remembers."""
    return home / "agent"


def conversation_configuration(settings: Settings) -> dict[str, Any]:
    """What the agent's process is told of memory: the file (None: nothing is kept), the database in place of it, its
    bounds, and how much of a conversation a model is told."""
    model = settings.model_settings
    return {
        "database": chat_database(settings),
        "file": str(agent_folder(settings.home) / CONVERSATIONS_FILE) if settings.chat_keep_days else None,
        "keep_days": settings.chat_keep_days,
        "keep": settings.chat_keep,
        "turns": settings.chat_turns,
        "context_tokens": None if model is None else model.context_tokens,
    }


def open_conversations(configuration: Mapping[str, Any]) -> ConversationStore | None:
    """The store of a `conversation_configuration`; None where nothing is kept. Its place is opened when it is used."""
    from sentinel_rag.agent.conversations.store import ConversationStore

    if configuration["file"] is None:
        return None
    return ConversationStore(
        _conversation_schema(configuration["database"]) or Path(configuration["file"]),
        clock=utc_now,
        keep_days=configuration["keep_days"],
        keep=configuration["keep"],
    )


def model_budget(configuration: Mapping[str, Any]) -> Budget:
    """How much of a conversation a model is told, by a `conversation_configuration`."""
    from sentinel_rag.agent.history import Budget

    total = configuration["context_tokens"]
    turns = configuration["turns"]
    return Budget(turns=turns) if total is None else Budget.of_context(total, turns=turns)


def kept_conversations(settings: Settings) -> ConversationStore:
    """The conversations of this home, for a command; the caller closes it. Where none is kept any more, those of before
    can be listed and deleted. Raises UsageError where there are none of before either."""
    from sentinel_rag.agent.conversations.store import ConversationStore

    file = agent_folder(settings.home) / CONVERSATIONS_FILE
    schema = _conversation_schema(chat_database(settings))
    if not settings.chat_keep_days and schema is None and not file.exists():
        raise not_kept()
    return ConversationStore(schema or file, clock=utc_now, keep_days=settings.chat_keep_days, keep=settings.chat_keep)


def _conversation_schema(database: Mapping[str, str] | None) -> Records | None:
    from sentinel_rag.agent.conversations.store import MIGRATIONS

    return record_schema(database, "conversations", MIGRATIONS, what="The database of conversations")


def not_kept() -> UsageError:
    """The error for what needs kept conversations."""
    return UsageError("No conversation is kept: SENTINEL_CHAT_KEEP_DAYS is 0.", next_step="Set it to a number of days.")
