"""Hostile bytes at every reader of text that somebody else wrote, by coverage, and 120 000 bodies at the gateway.

    python -m bench fuzz                                  # everything; writes results/fuzz.json
    python -m bench fuzz TARGET ... --minutes 60          # some targets, for as long as you like; writes nothing
    python -m bench fuzz TARGET --input FILE              # shows what one input does
    python -m bench fuzz --list                           # the targets, each with what must hold

Counted: inputs tried, places of the code that they reached, findings, statuses over HTTP, what a round leaves in
memory, and the most function calls that one byte cost. There is no baseline: the claim is "none".
"""

from __future__ import annotations

import argparse
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

from tests.support.body_mutations import mutated_bodies
from tests.support.fuzz.catalogue import TARGETS

from bench.fuzz_campaign import ROOT, Campaign, campaign, reproduce
from bench.harness import write
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.request_body import MalformedBody, parse_execute
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway

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
        FakeToolServer().running() as executor,
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


def of_targets(names: list[str], minutes: float, seed: int) -> list[Campaign]:
    """Run the targets one after another and tell each with the command that shows a finding again."""
    found: list[Campaign] = []
    for name in names:
        done = campaign(TARGETS[name], seconds=max(1, round(minutes * 60)), seed=seed)
        found.append(done)
        print(
            f"{name}: {done.executed:,} inputs in {done.seconds:.0f} s, {done.corpus:,} kept, "
            f"{len(done.findings)} findings" + ("" if done.guided else " (not guided by coverage: see `make fuzz`)"),
            flush=True,
        )
        for finding in done.findings:
            path = finding.path.relative_to(ROOT)
            print(f"  {finding.kind}\n    python -m bench fuzz {name} --input {path}", flush=True)
    return found


def told(done: Campaign) -> dict[str, Any]:
    return {
        "promise": TARGETS[done.target].promise,
        "inputs": done.executed,
        "guided_by_coverage": done.guided,
        "code_places_reached": done.reached,
        "inputs_kept": done.corpus,
        "most_calls_for_one_byte": done.calls_a_byte,
        "bytes_kept_by_a_round": done.bytes_kept,
        "findings": [finding.kind for finding in done.findings],
        "seconds": done.seconds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench fuzz", description="Fuzz readers of hostile text.")
    parser.add_argument("target", nargs="*", help=f"one of: {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (1)")
    parser.add_argument("--input", type=Path, metavar="FILE", help="show what this input does to the one target")
    parser.add_argument("--list", action="store_true", help="list the targets with what must hold")
    options = parser.parse_args()
    unknown = [name for name in options.target if name not in TARGETS]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; there are: {', '.join(TARGETS)}")
    if options.input is not None and (len(options.target) != 1 or not options.input.is_file()):
        parser.error("--input takes a file that is there, and one target before it")
    if options.list:
        print("\n".join(f"{name}: {target.promise}" for name, target in TARGETS.items()))
        return 0
    if options.input is not None:
        shown = reproduce(TARGETS[options.target[0]], options.input)
        print(shown or "The promise holds for this input.")
        return 1 if shown else 0
    if options.target:
        return 1 if any(done.findings for done in of_targets(options.target, options.minutes, options.seed)) else 0
    targets = of_targets(list(TARGETS), options.minutes, options.seed)
    write(
        "fuzz",
        {
            "all_targets": {
                "targets": len(targets),
                "inputs": sum(done.executed for done in targets),
                "findings": sum(len(done.findings) for done in targets),
            },
            "targets": {done.target: told(done) for done in targets},
            "parser": at_parser(),
            "work": work(),
            "http": over_http(),
        },
        claim="Every reader of text that somebody else wrote keeps its promise under inputs guided by coverage: "
        "no exception but its own refusals, no hang, no crash. 100 000 mutated bodies at the gateway's parser: no "
        "exception but the refusal, no growth of memory; over HTTP no 5xx.",
    )
    return 1 if any(done.findings for done in targets) else 0


if __name__ == "__main__":
    sys.exit(main())
