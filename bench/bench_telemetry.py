"""What spans and metrics cost in processor time: a gateway call and a whole question, with them and without.

Everything compared runs in one go, alternating in short blocks, so that a busy machine slows all alike; what a thread
sends after a block still counts. Every trace is recorded and sent to a receiver in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.gateway_processes import (
    LEAN_EXECUTOR,
    Gateway,
    child,
    executor,
    http_client,
    interceptor,
    line,
    through,
    timed,
)
from bench.harness import write
from bench.telemetry_parts import parts
from sentinel_rag.app.processes import RunningZones, running_zones
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._zones import AgentClient, user_session
from sentinel_rag.telemetry.tracer import MAX_BATCH
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

RECEIVER = """
import sys
from tests.support.otlp_receiver import running_receiver
with running_receiver() as receiver:
    print(receiver.url, flush=True)
    for line in sys.stdin:
        print(len(receiver.spans()), flush=True)
"""
ROUNDS, CALLS, WARM_UP = 15, MAX_BATCH, 300
QUESTION_ROUNDS, QUESTIONS = 16, 10
QUESTION = "how many high severity alerts are there?"
LAST_BATCH_S = 6.0
CONCURRENCY = (1, 16)


def configuration(url: str | None, *, metrics: bool, ratio: float = 1.0) -> dict[str, Any]:
    collector = {"endpoint": url, "headers": {}, "timeout_s": 10.0, "certificate": None}
    tracing = {
        "collector": collector,
        "wait_s": 5.0,
        "sampler": "parentbased_traceidratio",
        "ratio": ratio,
        "trusts_callers": True,
        "session_key": "5e" * 32,
        "resource": {},
    }
    return {
        "tracing": None if url is None else tracing,
        "metrics_token": "a-token-of-the-bench" if metrics else None,
    }


async def gateway_calls(gateways: Mapping[str, Gateway], concurrency: int) -> dict[str, float]:
    """Microseconds of processor time a call: medians over rounds, and what each kind adds to `off` of the same round. A
    round has as many calls as spans are sent at once, so that sending them is part of it."""
    used: dict[str, list[float]] = {name: [] for name in gateways}
    async with http_client() as client:
        calls = {name: through(client, gateway, f"bench-{concurrency}") for name, gateway in gateways.items()}
        for call in calls.values():
            await timed(call, concurrency, WARM_UP)
        for turn in range(ROUNDS):
            for name in list(calls) if turn % 2 == 0 else list(reversed(calls)):
                before = gateways[name].cpu_seconds()
                await timed(calls[name], concurrency, CALLS)
                used[name].append((gateways[name].cpu_seconds() - before) / CALLS * 1e6)
    found = {f"{name}_us": round(statistics.median(micro), 1) for name, micro in used.items()}
    for name in used:
        if name != "off":
            ratios = [ours / off for ours, off in zip(used[name], used["off"], strict=True)]
            found[f"{name}_added_percent"] = round((statistics.median(ratios) - 1) * 100, 2)
    return found


def cpu_seconds(running: RunningZones) -> float:
    """Processor time of all zones so far."""
    total = 0
    for zone in running.state.zones:
        fields = Path(f"/proc/{zone.pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def questions(folder: Path, receiver_url: str) -> dict[str, float]:
    workspace = Workspace.open(folder / "home" / "workspaces" / "default")
    workspace.generate(EstateOptions())
    workspace.close()
    homes: dict[str, Path] = {"off": folder / "home"}
    for name in ("off_again", "on"):
        homes[name] = folder / f"home-{name}"
        subprocess.run(["cp", "-r", str(folder / "home"), str(homes[name])], check=True)
    with ExitStack() as stack:
        zones: dict[str, RunningZones] = {}
        clients: dict[str, AgentClient] = {}
        for name, home in homes.items():
            environment = {"SENTINEL_HOME": str(home)}
            if name == "on":
                environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver_url
                environment["SENTINEL_METRICS_TOKEN"] = "a-token-of-the-bench"
            settings = load_settings(environment, folder / "none.env")
            zones[name] = stack.enter_context(running_zones(settings, workspace="default", private=True))
            clients[name] = AgentClient(zones[name].state, user_session(zones[name].state, settings))
        return asked(zones, clients)


def asked(zones: Mapping[str, RunningZones], clients: Mapping[str, AgentClient]) -> dict[str, float]:
    """Milliseconds that a question takes and of processor time of all zones for it. `off_again` is a second run without
    telemetry: what it adds is what this machine's noise adds. The processor time holds an export of each zone every
    five seconds, however few questions there were meanwhile."""
    waited: dict[str, list[float]] = {name: [] for name in clients}

    def ask(name: str, count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            answer = clients[name].ask(QUESTION, lambda _: None)
            waited[name].append((time.perf_counter() - began) * 1e3)
            assert answer.outcome == "answered", answer.text

    for name in clients:
        ask(name, QUESTIONS)
        waited[name].clear()
    time.sleep(LAST_BATCH_S)
    before = {name: cpu_seconds(running) for name, running in zones.items()}
    for turn in range(QUESTION_ROUNDS):
        for name in list(clients) if turn % 2 == 0 else list(reversed(clients)):
            ask(name, QUESTIONS)
    time.sleep(LAST_BATCH_S)
    used = {name: cpu_seconds(running) - before[name] for name, running in zones.items()}
    count = QUESTION_ROUNDS * QUESTIONS
    found = {f"{name}_ms": round(seconds / count * 1e3, 3) for name, seconds in used.items()}
    for name in ("off_again", "on"):
        found[f"{name}_added_percent"] = round((used[name] / used["off"] - 1) * 100, 2)
        slower = [one / off for one, off in zip(waited[name], waited["off"], strict=True)]
        found[f"{name}_slower_percent"] = round((statistics.median(slower) - 1) * 100, 2)
    return {**found, "off_waited_ms": round(statistics.median(waited["off"]), 1)}


@contextmanager
def receiving() -> Iterator[str]:
    """The address of a receiver in a process of its own."""
    with child(RECEIVER) as process:
        yield line(process).strip()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, receiving() as url, executor(LEAN_EXECUTOR) as behind:
        folder = Path(name)
        kinds: dict[str, dict[str, Any] | None] = {
            "off": None,
            "off_again": None,
            "spans": configuration(url, metrics=False),
            "a_tenth_of_the_spans": configuration(url, metrics=False, ratio=0.1),
            "spans_and_metrics": configuration(url, metrics=True),
        }
        with ExitStack() as stack:
            gateways = {}
            for kind, telemetry in kinds.items():
                (folder / kind).mkdir()
                gateways[kind] = stack.enter_context(interceptor(behind, folder / kind, telemetry=telemetry))
            calls = {str(number): asyncio.run(gateway_calls(gateways, number)) for number in CONCURRENCY}
        answered = questions(folder, url)
        of_code = parts()
    write(
        "telemetry",
        {"gateway_call": calls, "question": answered, "parts": of_code},
        claim="Off: nothing of telemetry is loaded. On, with every trace recorded, a question costs no more than one "
        "without, within 5 %. A bare gateway call, a third of a millisecond, does cost more.",
        group="speed",
        figures={
            "a gateway call, 16 at once, off: µs": calls["16"]["off_us"],
            "with spans and metrics: added, %": calls["16"]["spans_and_metrics_added_percent"],
            "with spans alone: added, %": calls["16"]["spans_added_percent"],
            "a second gateway without either: added, % (the noise)": calls["16"]["off_again_added_percent"],
            "a gateway call, one at a time, with spans and metrics: added, %": calls["1"][
                "spans_and_metrics_added_percent"
            ],
            "of it telemetry's own code, spans and metrics: µs": round(sum(of_code.values()), 2),
            "how long a question takes, off: ms": answered["off_waited_ms"],
            "with spans and metrics: slower, %": answered["on_slower_percent"],
            "a second run without either: slower, % (the noise)": answered["off_again_slower_percent"],
            "a question's processor time, all zones, off: ms": answered["off_ms"],
            "with spans and metrics: added, % (of a question)": answered["on_added_percent"],
            "a second run without either: added, % (the noise)": answered["off_again_added_percent"],
        },
    )


main()
