"""Two web surfaces over one database, each with an agent of its own: whoever asks where, a question is answered once,
and a conversation by one surface at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from running_web import RunningWeb, running_web
from tests.support.postgres_server import PostgresServer

from sentinel_rag.audit import PostgresPlace
from sentinel_rag.storage.postgres import RecordSchema
from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURN_TABLES
from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = pytest.mark.requirement("OPS-5")


@pytest.fixture(scope="module")
def surfaces(
    web_gateway: RunningGateway, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningWeb, RunningWeb]]:
    """Both have the folder of the key that seals people's keys, as a mounted secret is had by both."""
    folder = tmp_path_factory.mktemp("surfaces")
    place = PostgresPlace(postgres.url, "two_surfaces_web", Path())
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                running_web(
                    web_gateway,
                    folder,
                    people=RecordSchema(place, "people", PEOPLE_TABLES, what="The accounts"),
                    turns=RecordSchema(place, "turns", TURN_TABLES, what="The record of conversations"),
                )
            )
            for _ in range(2)
        ]
        yield running[0], running[1]
    assert not (folder / "conversations.sqlite").exists()
    assert [file.name for file in (folder / "people").iterdir()] == ["people.key"]


def until(true: Any) -> None:
    """As soon as another thread has made it so; the test's own time-out bounds it."""
    while not true():
        sleep(0.02)


def test_a_question_is_answered_once_and_a_conversation_by_one_surface_at_a_time(
    surfaces: tuple[RunningWeb, RunningWeb],
) -> None:
    first, second = surfaces
    here = first.person("dana")
    there = replace(here, url=second.url)  # the same browser, after the balancer chose again
    session_id = here.ask("say hello")["session_id"]
    assert [each["session_id"] for each in there.get("/conversations").body["conversations"]] == [session_id]
    with ThreadPoolExecutor(3) as pool:
        slow = {"message": "wait", "session_id": session_id, "request_id": "r-1"}
        asked = pool.submit(here.post, "/chat", slow)
        until(lambda: (session_id, "wait") in first.analyst.asked)
        again = pool.submit(there.post, "/chat", slow)
        behind = pool.submit(there.ask, "say the next one", session_id=session_id)
        until(lambda: len(there.get(f"/conversations/{session_id}").body["items"]) == 3)
        assert second.analyst.asked == []
        first.analyst.release.set()
        answers = [asked.result().body, again.result().body]
        behind.result()
    assert [answer["request_id"] for answer in answers] == ["r-1", "r-1"]
    assert answers[0] == answers[1]
    assert [question for _, question in first.analyst.asked] == ["say hello", "wait"]
    assert second.analyst.asked == [(session_id, "say the next one")]
    turns = here.get(f"/conversations/{session_id}").body["items"]
    assert [(turn["number"], turn["question"], turn["state"]) for turn in turns] == [
        (1, "say hello", "answered"),
        (2, "wait", "answered"),
        (3, "say the next one", "answered"),
    ]
    path = f"/turns/{turns[1]['turn_id']}/events"
    assert there.events("GET", path) == here.events("GET", path) != []


def test_who_signs_out_at_one_surface_is_signed_out_at_the_other(surfaces: tuple[RunningWeb, RunningWeb]) -> None:
    first, second = surfaces
    here = first.browser("erin")
    there = replace(here, url=second.url)
    assert there.get("/session").status == 200
    assert here.delete("/session").status == 204
    assert there.get("/session").status == 401
