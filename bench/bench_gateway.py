"""What one gateway hop costs: a call through the Interceptor (audit on, durable against the end of the process) beside
the direct MCP call to the same fake executor by the same client, in one run, alternating.

The fake executor, the Interceptor and the caller are three processes. Decision time is measured alone, for a tool of 10
and of 1 000 rules of which the last one matches, all of one kind and of six kinds in turn; so are opening and appending
to a journal with a short and a long history.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp  # the caller

from bench.harness import write
from sentinel_rag.audit import Database, Journal, SessionChanged
from sentinel_rag.interceptor.arguments import CanonicalArguments
from sentinel_rag.interceptor.policy import decide, load_policy, parse_policy
from sentinel_rag.interceptor.upstream import McpHttpUpstream, Returned

CONFIG = Path(__file__).parents[1] / "config" / "sentinel_config.yaml"
TOKEN = "bench"
ROUNDS, CALLS = 12, 150
ARGUMENTS = {"min_severity": "High", "time_window": "last_7d", "limit": 20}

EXECUTOR = """
import sys, threading
from sentinel_rag.testing.fake_executor import FakeExecutor
with FakeExecutor(token="bench").running() as executor:
    print(executor.url, flush=True)
    sys.stdin.read()
"""
INTERCEPTOR = """
import json, resource, sys
from pathlib import Path
from sentinel_rag.interceptor import create_app
from sentinel_rag.interceptor.policy import FixedPolicy, load_policy
from sentinel_rag.interceptor.store import Scope, open_state
from sentinel_rag.interceptor.upstream import McpHttpUpstream
from sentinel_rag.testing.loopback import serve
with open_state(Path(sys.argv[3])) as state:
    key, _ = state.keys.create([Scope.EXECUTE])
    app = create_app(policies=FixedPolicy(load_policy(Path(sys.argv[2]))), keys=state.keys, state=state,
                     upstreams={"sentinel": McpHttpUpstream(sys.argv[1], token="bench")})
    with serve(app) as url:
        print(json.dumps([url, key]), flush=True)
        for line in sys.stdin:
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(used.ru_utime + used.ru_stime, flush=True)
"""

Call = Callable[[], Awaitable[None]]


@contextmanager
def child(source: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", source, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return float(line(process))


async def timed(call: Call, concurrency: int, count: int) -> tuple[list[float], float]:
    """Seconds of each call, and calls a second."""
    seconds: list[float] = []
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            start = time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(worker())
    return seconds, count / (time.perf_counter() - start)


def summary(seconds: list[float], rates: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": round(statistics.median(ordered) * 1e3, 3),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1e3, 3),
        "calls_per_second": round(statistics.median(rates), 1),
        "calls": len(ordered),
    }


async def compare(direct: Call, through: Call, concurrency: int, gateway: subprocess.Popen[str]) -> dict[str, Any]:
    await timed(direct, concurrency, CALLS)
    await timed(through, concurrency, CALLS)
    found: dict[str, tuple[list[float], list[float]]] = {"direct": ([], []), "gateway": ([], [])}
    cpu = 0.0
    for _ in range(ROUNDS):
        for name, call in (("direct", direct), ("gateway", through)):
            before = cpu_seconds(gateway)
            seconds, rate = await timed(call, concurrency, CALLS)
            cpu += cpu_seconds(gateway) - before if name == "gateway" else 0.0
            found[name][0].extend(seconds)
            found[name][1].append(rate)
    ours, base = summary(*found["gateway"]), summary(*found["direct"])
    return {
        "gateway": ours,
        "direct": base,
        "p50_ratio": round(ours["p50_ms"] / base["p50_ms"], 2),
        "throughput_ratio": round(ours["calls_per_second"] / base["calls_per_second"], 2),
        "gateway_cpu_ms_a_call": round(cpu * 1e3 / ours["calls"], 3),
    }


async def hops(executor_url: str, gateway_url: str, key: str, gateway: subprocess.Popen[str]) -> dict[str, Any]:
    upstream = McpHttpUpstream(executor_url, token=TOKEN)
    arguments = CanonicalArguments.of(ARGUMENTS)
    body = json.dumps({"session_id": "bench", "tool_name": "query_incidents", "args": ARGUMENTS}).encode()
    headers = {"X-API-Key": key, "Content-Type": "application/json"}

    async def direct() -> None:
        reply = await upstream.call("query_incidents", arguments, principal="bench", session_id="bench", timeout_s=30)
        assert isinstance(reply, Returned)

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), headers=headers) as client:

        async def through() -> None:
            async with client.post(f"{gateway_url}/v1/proxy-execute", data=body) as response:
                await response.read()
                assert response.status == 200

        measured = {
            f"concurrency_{concurrency}": await compare(direct, through, concurrency, gateway)
            for concurrency in (1, 16)
        }
    await upstream.aclose()
    return measured


KINDS: Mapping[str, tuple[str, ...]] = {
    "one_kind": ("path.startswith('folder{n}/')",),
    "mixed": (
        "path.startswith('folder{n}/')",
        "user == 'user{n}@example.com'",
        "has(host) and host.lower() in ['ws-{n}', 'srv-{n}']",
        "path.contains('/secret{n}/')",
        r"user.matches(r'^svc-{n}-\d+@')",
        "limit > {n}000000 and path.endswith('.x{n}')",
    ),
}
"""Conditions of a policy's rules in turn; `{n}` is the number of the rule."""


def decision_microseconds(rules: int, kinds: str) -> float:
    """Median of the time to decide a call that only the last of `rules` rules matches."""
    conditions = [KINDS[kinds][n % len(KINDS[kinds])].replace("{n}", str(n)) for n in range(rules - 1)]
    lines = "\n".join(
        f'      - {{rule_id: r{n}, condition: "{condition}", taint_level: LOW}}'
        for n, condition in enumerate(conditions)
    )
    text = f"""
tools:
  - name: t
    parameters:
      - {{name: path, type: string, required: true}}
      - {{name: user, type: string, required: true}}
      - {{name: host, type: string}}
      - {{name: limit, type: integer, required: true}}
    taint_rules:
{lines}
      - {{rule_id: last, condition: "path.startswith('public/')", taint_level: LOW}}
""".replace(r"\d", r"\\d")
    tool = parse_policy(text).tools["t"]
    arguments = {"path": "public/reports/2026/readme.txt", "user": "a.singh@example.com", "limit": 20}
    assert decide(tool, arguments).rule_id == "last"
    samples = []
    for _ in range(200):
        start = time.perf_counter()
        for _ in range(20):
            decide(tool, arguments)
        samples.append((time.perf_counter() - start) / 20 * 1e6)
    return round(statistics.median(samples), 2)


async def journal_costs(folder: Path, records: int) -> dict[str, float]:
    """Milliseconds to open a journal of `records` records, and microseconds of one append to it."""
    event = SessionChanged(audit_id="bench", key_id="bench", session_id="bench", change="opened")
    path = folder / f"{records}.sqlite"
    with Database(path) as database:
        journal = Journal(database)
        for _ in range(records // 1_000):
            await asyncio.gather(*(journal.append(event) for _ in range(1_000)))
    opening: list[float] = []
    for _ in range(7):
        start = time.perf_counter()
        with Database(path) as database:
            Journal(database)
            opening.append(time.perf_counter() - start)
    with Database(path) as database:
        journal = Journal(database)
        appending: list[float] = []
        for _ in range(500):
            start = time.perf_counter()
            await journal.append(event)
            appending.append(time.perf_counter() - start)
    return {
        "open_ms": round(statistics.median(opening) * 1e3, 2),
        "append_us": round(statistics.median(appending) * 1e6, 1),
    }


def main() -> None:
    load_policy(CONFIG)
    with tempfile.TemporaryDirectory() as folder, child(EXECUTOR) as executor:
        executor_url = line(executor).strip()
        with child(INTERCEPTOR, executor_url, str(CONFIG), folder) as gateway:
            gateway_url, key = json.loads(line(gateway))
            measured = asyncio.run(hops(executor_url, gateway_url, key, gateway))
    with tempfile.TemporaryDirectory() as folder:
        measured["journal"] = {
            f"{records}_records": asyncio.run(journal_costs(Path(folder), records)) for records in (1_000, 200_000)
        }
    measured["decision_us"] = {
        f"{rules}_rules_{kinds}": decision_microseconds(rules, kinds) for rules in (10, 1_000) for kinds in KINDS
    }
    write(
        "gateway",
        measured,
        claim="Reported as measured: a call through the Interceptor, audit on and durable against kill -9, beside the "
        "direct call. Held: a decision takes at most 25 us with 1 000 rules, of one kind and of six kinds in turn; "
        "opening the journal and appending to it cost the same with a long history.",
    )


if __name__ == "__main__":
    main()
