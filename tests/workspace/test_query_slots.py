"""The service's rules for one user: five queries run, others wait for a bounded time, and a client may leave."""

from __future__ import annotations

import threading

import anyio
import pytest

from sentinel_rag.workspace.queries import StopSignal
from sentinel_rag.workspace.serving.query_api import ClientGoneError, QuerySlots, TooManyQueriesError
from waiting import WAIT_S

pytestmark = [pytest.mark.requirement("DATA-4"), pytest.mark.anyio]


async def stays() -> None:
    await anyio.sleep_forever()


async def leaves() -> None:
    await anyio.lowlevel.checkpoint()


def obedient(signal: StopSignal) -> str:
    """Work that ends only when it is told to stop."""
    stopped = threading.Event()
    with signal.heard_by(stopped.set):
        assert stopped.wait(WAIT_S)
    return "stopped"


async def test_the_answer_and_the_error_of_the_work_come_out() -> None:
    slots = QuerySlots()
    assert await slots.run(lambda _: 42, stays) == 42

    def fails(_: StopSignal) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await slots.run(fails, stays)
    assert (slots.counts.running, slots.counts.waiting) == (0, 0)


async def test_work_whose_client_left_is_told_to_stop_and_has_ended_when_it_is_said() -> None:
    slots = QuerySlots()
    with pytest.raises(ClientGoneError):
        await slots.run(obedient, leaves)
    assert (slots.counts.running, slots.counts.abandoned) == (0, 1)


async def test_a_place_is_waited_for_and_not_for_ever() -> None:
    slots = QuerySlots(running=1, waiting=1, longest_wait_s=0.05)
    async with anyio.create_task_group() as group:
        gone = anyio.Event()
        outcome: list[str] = []

        async def first() -> None:
            with pytest.raises(ClientGoneError):
                await slots.run(obedient, gone.wait)
            outcome.append("left")

        group.start_soon(first)
        while slots.counts.running != 1:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(TooManyQueriesError, match=r"waited 0\.05 seconds"):
            await slots.run(lambda _: 1, stays)
        gone.set()
    assert outcome == ["left"]
    assert slots.counts.refused == 1
    assert await slots.run(lambda _: 1, stays) == 1


async def test_the_queue_has_an_end() -> None:
    slots = QuerySlots(running=1, waiting=1)
    async with anyio.create_task_group() as group:
        gone = anyio.Event()

        async def asks() -> None:
            with pytest.raises(ClientGoneError):
                await slots.run(obedient, gone.wait)

        group.start_soon(asks)
        group.start_soon(asks)
        while (slots.counts.running, slots.counts.waiting) != (1, 1):
            await anyio.lowlevel.checkpoint()
        with pytest.raises(TooManyQueriesError, match="1 run and 1 wait"):
            await slots.run(lambda _: 1, stays)
        gone.set()
    assert (slots.counts.running, slots.counts.waiting, slots.counts.abandoned) == (0, 0, 2)


async def test_a_cancelled_caller_takes_its_work_along() -> None:
    slots = QuerySlots()
    with anyio.move_on_after(0.05) as scope:
        async with anyio.create_task_group() as group:

            async def asks() -> None:
                await slots.run(obedient, anyio.Event().wait)

            group.start_soon(asks)
    assert scope.cancelled_caught
    assert slots.counts.running == 0
