"""What a conversation's memory costs a turn, with 100,000 tokens of history: fitting, cutting, counting, storing.

A turn here is everything but the model and the tools: the question, two rounds with a tool result of 4,000 tokens, the
answer, and the writes of the conversation store. The baseline counts every message again for each request, as a history
without memory of its counts has to. Memory is looked at over 1,000 turns.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from bench.harness import paired, timings, write
from sentinel_rag.agent.conversations.store import ConversationStore, StoredConversation, StoredTurn
from sentinel_rag.agent.history import Budget, Fitted, History, cut_lines
from sentinel_rag.agent.models.port import AssistantMessage, ModelToolCall, SystemMessage, ToolResultMessage
from sentinel_rag.agent.tokens import TokenCounter, count_message, count_tool, ready_counter
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS

RULES = SystemMessage("Answer from the rows alone. " * 100)
# Rows of 40,000 tokens leave words to fill the rest of 100,000, so answers are long here and each turn keeps its rows.
BUDGET = Budget(total=128_000, tool_results=90_000)
TURNS = 1_000


def rows(start: int, number: int) -> list[str]:
    """Rows as a tool returns them, each different."""
    return [
        json.dumps(
            {
                "TimeGenerated": f"2024-07-02T09:{place % 60:02}:12.{start:04}Z",
                "Computer": f"ws-{start % 97:02}.woodgrove.example",
                "Account": f"user{place}@woodgrove.example",
                "IpAddress": f"198.51.100.{place % 250}",
                "EventId": 4625 + place,
            }
        )
        for place in range(number)
    ]


class Chat:
    """A conversation that grows a turn at a time."""

    def __init__(self, counter: TokenCounter, store: ConversationStore | None) -> None:
        self.history = History(BUDGET, counter)
        self._counter = counter
        self._store = store
        self._numbers: Iterator[int] = count(1)

    def turn(self) -> Fitted:
        """One whole turn, model and tools left out."""
        number, history = next(self._numbers), self.history
        self._save(number, None)
        history.begin(f"what happened on ws-{number % 97:02} since Monday?")
        for call_round in (1, 2):
            fitted = history.fitted(RULES, SENTINEL_TOOLS)
            call = ModelToolCall(f"call_{number}_{call_round}", "run_kql_query", {"host": "ws-01"}, '{"host": "ws-01"}')
            history.add(AssistantMessage("", (call,)))
            text = "\n".join(rows(number + call_round, 60))
            history.add(ToolResultMessage(call.call_id, cut_lines(text, BUDGET.tool_result, self._counter)))
        fitted = history.fitted(RULES, SENTINEL_TOOLS)
        history.add(AssistantMessage("Three accounts failed to sign in, each from one address. " * 20))
        history.end()
        self._save(number, "answered")
        return fitted

    def _save(self, number: int, outcome: str | None) -> None:
        if self._store is not None:
            memory = self.history.last_turn() if outcome else None
            turn = StoredTurn(number, "2024-07-02T09:45:12Z", "what happened?", outcome, "Three accounts.", (), memory)
            self._store.save(StoredConversation("session-of-a-bench", turns=(turn,)), known=number > 1)


def full_chat(counter: TokenCounter, store: ConversationStore | None) -> Chat:
    """A conversation that holds at least 100,000 tokens."""
    chat = Chat(counter, store)
    while chat.turn().tokens < 100_000:
        pass
    return chat


def measure(folder: Path) -> dict[str, Any]:
    began = time.perf_counter()
    counter = ready_counter()
    load_s = time.perf_counter() - began
    assert counter.exact, "the benchmark is about exact counts"
    store = ConversationStore(folder / "conversations.db", clock=lambda: datetime.now(UTC))
    chat = full_chat(counter, store)
    turns: list[float] = []
    processor: list[float] = []
    for _ in range(60):
        began, used = time.perf_counter(), time.process_time()
        fitted = chat.turn()
        processor.append(time.process_time() - used)
        turns.append(time.perf_counter() - began)
    store.close()

    def count_all_again() -> int:
        return sum(count_message(message, counter) for message in fitted.messages) + sum(
            count_tool(tool, counter) for tool in SENTINEL_TOOLS
        )

    fitting = paired(lambda: chat.history.fitted(RULES, SENTINEL_TOOLS), count_all_again, runs=25)
    return {
        "history_tokens": fitted.tokens,
        "whole_turn": timings(turns),
        # What a turn takes of a core: on a machine that does other work too, the time above is mostly waiting for one.
        "whole_turn_processor_time": timings(processor),
        "fitted_against_counting_again": fitting,
        "vocabulary_load_s": round(load_s, 2),
        "python_memory_over_turns_kib": _memory(counter),
    }


def _memory(counter: TokenCounter) -> dict[str, int]:
    """KiB that Python holds for one conversation after 100, 500 and 1,000 turns."""
    gc.collect()
    tracemalloc.start()
    chat = Chat(counter, None)
    held: dict[str, int] = {}
    for turn in range(1, TURNS + 1):
        chat.turn()
        if turn in (100, 500, TURNS):
            gc.collect()
            held[str(turn)] = tracemalloc.get_traced_memory()[0] // 1024
    tracemalloc.stop()
    return held


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder))
    write(
        "memory",
        measured,
        claim="A turn costs under 15 ms outside model and tools with a 100,000-token history, and memory stays flat.",
    )


if __name__ == "__main__":
    main()
