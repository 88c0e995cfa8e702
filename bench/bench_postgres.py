"""What a call costs with the gateway's state in PostgreSQL, beside the same call with SQLite: in one run, alternating.

The PostgreSQL server waits for its disk at each commit, as in production, and stands on the same machine; a network
adds its round trips. Then the same calls over two gateways that share the state, whose commits follow one another; and
what it costs on either engine when a call raises all sessions of a key that has many.
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop
from tests.support.postgres_server import running_postgres

from bench.gateway_processes import LEAN_EXECUTOR, Call, executor, http_client, interceptor, p50_ms, through, timed
from bench.harness import write
from bench.session_rises import SESSIONS, rises
from sentinel_rag.audit import JournalReader, PostgresPlace
from sentinel_rag.gateway.store import open_state

ROUNDS, CALLS, WARM_UP = 10, 150, 300
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "postgresql_two_gateways": "two gateways on PostgreSQL"}


def in_turn(calls: list[Call]) -> Call:
    """Each call through the next of them."""
    turn = itertools.cycle(calls)
    return lambda: next(turn)()


async def compare(ways: dict[str, Call], concurrency: int) -> dict[str, Any]:
    """Ratios to SQLite are medians over rounds, so that a busy machine slows all of a round."""
    for call in ways.values():
        await timed(call, concurrency, WARM_UP)
    p50: dict[str, list[float]] = {name: [] for name in ways}
    rate: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            seconds, a_second = await timed(call, concurrency, CALLS)
            p50[name].append(statistics.median(seconds))
            rate[name].append(a_second)
    return {
        name: {
            "p50_ms": p50_ms(p50[name]),
            "calls_per_second": round(statistics.median(rate[name]), 1),
            "p50_ratio_to_sqlite": round(
                statistics.median(mine / base for mine, base in zip(p50[name], p50["sqlite"], strict=True)), 2
            ),
            "throughput_ratio_to_sqlite": round(
                statistics.median(mine / base for mine, base in zip(rate[name], rate["sqlite"], strict=True)), 2
            ),
        }
        for name in ways
    }


async def measure(gateways: dict[str, list[Any]]) -> dict[str, Any]:
    async with http_client() as client:
        found: dict[str, Any] = {}
        for concurrency in (1, 16):
            # A session of its own for each way, and the same one at both gateways that share it.
            ways = {
                name: in_turn([through(client, each, f"{name}-{concurrency}") for each in several])
                for name, several in gateways.items()
            }
            found[f"concurrency_{concurrency}"] = await compare(ways, concurrency)
        return found


def shown(measured: dict[str, Any]) -> dict[str, object]:
    """What the page of the benchmarks shows."""
    found: dict[str, object] = {}
    for concurrency in (1, 16):
        for name, way in measured[f"concurrency_{concurrency}"].items():
            place = f"{concurrency} at once, {NAMES[name]}"
            found[f"{place}: p50 ms"] = way["p50_ms"]
            if name != "sqlite":
                found[f"{place}: throughput to that of SQLite"] = way["throughput_ratio_to_sqlite"]
    for name, by_many in measured["rise_of_all_sessions_of_a_key"].items():
        most = by_many[f"sessions_{SESSIONS[-1]}"]
        found[f"a call that raises {SESSIONS[-1]:,} sessions, {NAMES[name]}: ms"] = most["rise_ms"]
        found[f"the same to one session after another, {NAMES[name]}"] = most["ratio_to_one_by_one"]
    return found


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_postgres(durable=True))
        url = stack.enter_context(executor(LEAN_EXECUTOR))
        one = PostgresPlace(server.url, "one", folder / "one")
        first = PostgresPlace(server.url, "two", folder / "first")
        second = PostgresPlace(server.url, "two", folder / "second")
        gateways = {
            "sqlite": [stack.enter_context(interceptor(url, folder / "sqlite"))],
            "postgresql": [stack.enter_context(interceptor(url, one.folder, postgres=one))],
            "postgresql_two_gateways": [stack.enter_context(interceptor(url, first.folder, postgres=first))],
        }
        second.folder.mkdir()
        for secret in ("keys.pepper", "audit-signing.key", "audit-signing.pub"):
            shutil.copy(first.folder / secret, second.folder)
        beside = stack.enter_context(interceptor(url, second.folder, postgres=second))
        [shared] = gateways["postgresql_two_gateways"]
        gateways["postgresql_two_gateways"].append(replace(beside, key=shared.key))  # one agent at both
        measured = uvloop.run(measure(gateways))
        measured["chain_of_two_gateways_intact"] = JournalReader(first).verify().intact
        measured["rise_of_all_sessions_of_a_key"] = {}
        of_rises = PostgresPlace(server.url, "rises", folder / "rises_postgresql")
        for name, place in (("sqlite", None), ("postgresql", of_rises)):
            with open_state(folder / f"rises_{name}", postgres=place) as state:
                measured["rise_of_all_sessions_of_a_key"][name] = rises(state)
        measured["load_average_1_min"] = round(os.getloadavg()[0], 1)
    write(
        "postgres",
        measured,
        claim="With the state in PostgreSQL on the same machine a call costs more than with SQLite, whose commit "
        "happens in the gateway's own process; two gateways share one state without a fork of its chain. A call that "
        "raises all sessions of its key does so with a handful of statements, however many they are. Reported as "
        "measured.",
        figures=shown(measured),
        group="speed",
    )


if __name__ == "__main__":
    main()
