"""What one gateway hop costs: a call through the gateway (audit on, durable against the end of the process) beside
the direct MCP call to the same tool server by the same client, in one run, alternating.

Measured in front of a server of the official SDK, as the product's tool servers are, and in front of a lean one.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from bench.gateway_processes import (
    LEAN_EXECUTOR,
    SDK_EXECUTOR,
    Call,
    Gateway,
    executor,
    http_client,
    interceptor,
    p50_ms,
    straight,
    through,
    timed,
)
from bench.harness import write

ROUNDS, CALLS, WARM_UP = 12, 200, 300
EXECUTORS = {"official_sdk_server": SDK_EXECUTOR, "lean_server": LEAN_EXECUTOR}


def summary(seconds: list[float], rates: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50_ms": p50_ms(ordered),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1e3, 3),
        "calls_per_second": round(statistics.median(rates), 1),
        "calls": len(ordered),
    }


async def compare(direct: Call, gated: Call, concurrency: int, gateway: Gateway) -> dict[str, Any]:
    """Ratios are medians over rounds of one direct and one gated block, so that a busy machine slows both."""
    await timed(direct, concurrency, WARM_UP)
    await timed(gated, concurrency, WARM_UP)
    found: dict[str, tuple[list[float], list[float]]] = {"direct": ([], []), "gateway": ([], [])}
    p50_ratios: list[float] = []
    rate_ratios: list[float] = []
    cpu = 0.0
    for _ in range(ROUNDS):
        base, base_rate = await timed(direct, concurrency, CALLS)
        before = gateway.cpu_seconds()
        ours, rate = await timed(gated, concurrency, CALLS)
        cpu += gateway.cpu_seconds() - before
        for name, seconds, a_second in (("direct", base, base_rate), ("gateway", ours, rate)):
            found[name][0].extend(seconds)
            found[name][1].append(a_second)
        p50_ratios.append(statistics.median(ours) / statistics.median(base))
        rate_ratios.append(rate / base_rate)
    return {
        "gateway": summary(*found["gateway"]),
        "direct": summary(*found["direct"]),
        "p50_ratio": round(statistics.median(p50_ratios), 2),
        "throughput_ratio": round(statistics.median(rate_ratios), 2),
        "gateway_cpu_ms_a_call": round(cpu * 1e3 / (ROUNDS * CALLS), 3),
    }


async def hops(executor_url: str, gateway: Gateway) -> dict[str, Any]:
    async with http_client() as client:
        direct, gated = straight(client, executor_url), through(client, gateway, "bench")
        return {
            f"concurrency_{concurrency}": await compare(direct, gated, concurrency, gateway) for concurrency in (1, 16)
        }


def main() -> None:
    measured: dict[str, Any] = {}
    for name, source in EXECUTORS.items():
        with tempfile.TemporaryDirectory() as folder, executor(source) as url, interceptor(url, Path(folder)) as one:
            measured[name] = uvloop.run(hops(url, one))
    measured["load_average_1_min"] = round(os.getloadavg()[0], 1)
    write(
        "gateway",
        measured,
        claim="In front of a server of the official SDK, audit on and durable against kill -9. Held: at least 0.75 of "
        "the direct throughput and at most 0.5 ms of the gateway's processor time a call at concurrency 16, p99 at "
        "most 10 ms at concurrency 1. Goals that are reported as measured: p50 at most 2.2 times the direct call and "
        "0.5 ms of processor time at concurrency 1. The lean server does next to nothing, so the hop weighs "
        "most there.",
    )


if __name__ == "__main__":
    main()
