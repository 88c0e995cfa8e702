"""Counts of tables: the list of tables knows them, and nobody's raw rows are read for a number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from action_estate import Estate, estate
from asking import Conversation, shown

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("AGENT-1")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with estate(tmp_path_factory.mktemp("field-tables")) as running:
        yield running


@pytest.mark.parametrize(
    ("question", "table"),
    [
        ("how many rows are in SigninLogs?", "SigninLogs"),
        ("how many rows does SecurityEvent have?", "SecurityEvent"),
        ("count the rows of OfficeActivity", "OfficeActivity"),
        ("row count of AuditLogs", "AuditLogs"),
    ],
)
async def test_the_rows_of_a_table_are_counted_by_the_list_of_tables(served: Estate, question: str, table: str) -> None:
    ((rows,),) = served.kql(f"{table} | count")
    conversation = Conversation(served)
    answer = shown(await conversation.ask(question))
    assert answer.startswith(f"`{table}` holds {rows} rows, the oldest of 2025-03-0"), answer
    assert conversation.calls == [("list_tables", {})]


async def test_a_window_that_the_count_does_not_have_is_told(served: Estate) -> None:
    answer = shown(await Conversation(served).ask("how many rows are in SigninLogs in the last 24 hours?"))
    assert "`SigninLogs` holds 28 rows" in answer
    assert "all rows that are retained" in answer


async def test_a_table_that_is_not_there_is_told_and_not_over_a_cut_list(served: Estate) -> None:
    question = "how many rows are in NoSuchTable?"
    assert shown(await Conversation(served).ask(question)).startswith("The workspace holds no rows of `NoSuchTable`.")
    served.faults({"kind": "partial", "path": "/query"})
    answer = shown(await Conversation(served).ask(question))
    served.faults()
    assert answer.startswith("Whether the workspace holds rows of `NoSuchTable` is not known"), answer
