"""Two gateway processes on one state folder, and five hundred kept-alive clients of one gateway.

Caller, tool server and gateways share the machine's cores, so two gateways can be faster than one only where cores are
left. What is measured is what sharing one state costs: the same calls through one gateway, through two in sessions of
their own, and through two in one session, in rounds that alternate. The five hundred have one connection each and ask
in turn, a few at a time, so that nearly all of them are idle at any moment.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from bench.gateway_processes import SDK_EXECUTOR, Call, Client, Gateway, executor, http_client, interceptor, through
from bench.harness import write
from bench.peers.rounds import Way, interleave, run_block, summary

CONCURRENCY, ROUNDS = 16, 9
CLIENTS, ASKING, CALLS = 500, 24, 5_000


def in_turn(calls: list[Call]) -> Call:
    """A call that goes to each of them in turn."""
    turn = itertools.cycle(calls)

    async def call() -> None:
        await next(turn)()

    return call


async def two_processes(one: Gateway, other: Gateway) -> dict[str, Any]:
    two = replace(other, key=one.key)  # a session belongs to one key, and both processes know all keys

    def cpu() -> float:
        return one.cpu_seconds() + two.cpu_seconds()

    async with http_client() as client:
        alone = through(client, one, "alone")
        ways = {
            "one_process": Way(alone, cpu),
            "two_processes_own_sessions": Way(in_turn([alone, through(client, two, "apart")]), cpu),
            "two_processes_one_session": Way(
                in_turn([through(client, one, "shared"), through(client, two, "shared")]), cpu
            ),
        }
        await interleave(ways, CONCURRENCY, rounds=ROUNDS)
    told: dict[str, Any] = {name: summary(way) for name, way in ways.items()}
    first, *others = ways.items()
    for name, way in others:
        ratios = [block.rate / base.rate for block, base in zip(way.blocks, first[1].blocks, strict=True)]
        told[name]["throughput_over_one_process"] = round(statistics.median(ratios), 2)
    return told


async def many_clients(gateway: Gateway) -> dict[str, Any]:
    before = gateway.resident_bytes()
    clients = [Client() for _ in range(CLIENTS)]
    try:
        way = Way(in_turn([through(client, gateway, "many") for client in clients]), gateway.cpu_seconds)
        for _ in range(CLIENTS // ASKING + 1):  # every client has connected before a call counts
            await run_block(way.call, ASKING, calls=ASKING)
        used = gateway.cpu_seconds()
        way.blocks.append(await run_block(way.call, ASKING, seconds=60.0, calls=CALLS))
        way.cpu_seconds = gateway.cpu_seconds() - used
        grown = gateway.resident_bytes() - before
    finally:
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.aclose())
    return {**summary(way), "clients": CLIENTS, "memory_kib_a_client": round(grown / 1024 / CLIENTS, 1)}


def main() -> None:
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, executor(SDK_EXECUTOR) as url:
        with interceptor(url, Path(folder)) as one, interceptor(url, Path(folder)) as two:
            measured["one_state_folder"] = uvloop.run(two_processes(one, two))
        with interceptor(url, Path(folder)) as one:
            measured["kept_alive_clients"] = uvloop.run(many_clients(one))
    measured["load_average_1_min"] = round(os.getloadavg()[0], 1)
    write(
        "gateway_scale",
        measured,
        claim="Reported as measured: the throughput of two gateway processes on one state folder over that of one, and "
        "what five hundred kept-alive clients of one gateway cost. On two cores, which caller and tool server share, a "
        "second process brings no throughput; it is there so that one may end while the other serves.",
    )


if __name__ == "__main__":
    main()
