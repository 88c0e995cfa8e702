"""Asks the same questions again and again, each time in a child that kills itself before another SQL statement.

Run by `test_remembering_crash`: `python conversation_crash_driver.py FOLDER`. Prints a JSON list of [statement, answers
that the person had seen, whether the child was killed].
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import anyio
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.conversations.chat import StoredChat
from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question

QUESTIONS = ("list open incidents", "who owns [2]?")
SESSION = "session-of-the-crash"


async def known(_: str) -> bool:
    return True


def converse(folder: Path, last_statement: int, seen: int) -> None:
    executed = 0

    def count(_: str) -> None:
        nonlocal executed
        executed += 1
        if executed == last_statement:
            os.kill(os.getpid(), signal.SIGKILL)

    connect = sqlite3.connect

    def counting_connect(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counting_connect  # type: ignore[assignment]

    async def ask_all() -> None:
        store = ConversationStore(folder / "conversations.db", clock=lambda: NOW)
        analyst = OfflineAnalyst(small_estate(), clock=lambda: NOW)
        chat = StoredChat(analyst, store, clock=lambda: NOW, knows_session=known)
        for question in QUESTIONS:
            await chat.answer(Question(question, SESSION))
            os.write(seen, b".")

    anyio.run(ask_all)


async def read_once() -> None:
    """What an analyst reads of its own files before a first answer, for all children: each would read it again."""
    analyst = OfflineAnalyst(small_estate(), clock=lambda: NOW)
    for question in QUESTIONS:
        await analyst.answer(Question(question, SESSION))


def main(folder: Path) -> None:
    anyio.run(read_once)
    outcomes: list[tuple[int, int, bool]] = []
    killed, statement = True, 0
    while killed:
        statement += 1
        place = folder / str(statement)
        place.mkdir()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            converse(place, statement, write)
            os._exit(0)
        os.close(write)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        outcomes.append((statement, len(os.read(read, 100)), killed))
        os.close(read)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
