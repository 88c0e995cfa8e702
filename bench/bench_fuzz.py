"""100 000 mutated bodies at the parser of the gateway, and 20 000 of them over HTTP at a running Interceptor.

Counted: what was read and refused, statuses, memory that the parser keeps over ten rounds, and the most function calls
that one byte of a body cost. There is no time in it but the whole duration, and no baseline: the claim is "none".
"""

from __future__ import annotations

import gc
import http.client
import json
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from bench.harness import write
from sentinel_rag.interceptor.policy import load_policy
from sentinel_rag.interceptor.request_body import MalformedBody, parse_execute
from sentinel_rag.testing.body_mutations import mutated_bodies
from sentinel_rag.testing.fake_executor import FakeExecutor
from sentinel_rag.testing.running_gateway import running_gateway

POLICY = Path(__file__).resolve().parent.parent / "config" / "sentinel_config.yaml"
AT_PARSER = 100_000
ROUNDS = 10
OVER_HTTP = 20_000
COUNTED = 10_000
SEED = 3


def read(body: bytes) -> str:
    """`read`, `refused`, or the name of an exception that should not be."""
    try:
        parse_execute(body)
    except MalformedBody:
        return "refused"
    except Exception as error:  # the finding that this benchmark looks for
        return type(error).__name__
    return "read"


def at_parser() -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    kept: list[int] = []
    started = time.perf_counter()
    tracemalloc.start()
    for number in range(ROUNDS):
        for body in mutated_bodies(AT_PARSER // ROUNDS, SEED + number):
            outcomes[read(body)] += 1
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {
        "bodies": sum(outcomes.values()),
        "outcomes": dict(outcomes),
        "other_exceptions": sum(count for name, count in outcomes.items() if name not in ("read", "refused")),
        "bytes_kept_after_each_round": kept,
        "growth_from_second_round": kept[-1] - kept[1],
        "seconds": round(time.perf_counter() - started, 1),
    }


def work() -> dict[str, Any]:
    calls = 0
    worst = 0.0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for body in mutated_bodies(COUNTED, SEED + 100):
        calls = 0
        sys.setprofile(count)
        read(body)
        sys.setprofile(None)
        worst = max(worst, (calls - 60) / max(1, len(body)))
    return {"bodies": COUNTED, "most_calls_for_one_byte": round(worst, 2)}


def over_http() -> dict[str, Any]:
    statuses: Counter[int] = Counter()
    slowest = 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        FakeExecutor().running() as executor,
        running_gateway(load_policy(POLICY), Path(folder), executor) as gateway,
    ):
        address = urlsplit(gateway.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        headers = {"X-API-Key": gateway.key, "Content-Type": "application/json"}
        for body in mutated_bodies(OVER_HTTP, SEED + 200):
            started = time.perf_counter()
            connection.request("POST", "/v1/proxy-execute", body=body, headers=headers)
            response = connection.getresponse()
            json.loads(response.read())
            slowest = max(slowest, time.perf_counter() - started)
            statuses[response.status] += 1
        connection.close()
    return {
        "bodies": OVER_HTTP,
        "statuses": {str(status): statuses[status] for status in sorted(statuses)},
        "server_errors": sum(count for status, count in statuses.items() if status >= 500),
        "slowest_ms": round(slowest * 1e3, 1),
    }


if __name__ == "__main__":
    write(
        "fuzz",
        {"parser": at_parser(), "work": work(), "http": over_http()},
        claim="100 000 mutated bodies at the parser: no exception but the refusal, no hang, no growth of memory; over "
        "HTTP no 5xx",
    )
