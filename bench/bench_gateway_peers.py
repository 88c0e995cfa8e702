"""The gateway beside other gateways and proxies for MCP, and the direct call beside both, in one run.

Each peer is installed from the package index into an environment of its own (`bench/peers/pins/`), put before the same
echo server, and called by the same caller, in rounds that alternate between the three. What a peer does with a call is
told with its figures. A peer that cannot be had, or does not come up, is told with the reason.

The result is written after each peer. A run that was cut short goes on where it stopped; a finished one starts anew.
Options: `--only NAME` (may be repeated), `--environments FOLDER` (kept for the next run), `--rounds N`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from bench.harness import RESULTS, machine, write
from bench.peers.decisions import DECISION_PEER, decisions
from bench.peers.environments import NotInstalled, environment, pinned_version
from bench.peers.http_peers import HTTP_PEERS
from bench.peers.ours import over_http, over_stdio
from bench.peers.peer import NotStarted, Peer, Running
from bench.peers.rounds import ROUNDS, NoAnswers, Way, comparison, interleave, summary
from bench.peers.stdio_peers import STDIO_PEERS

NAME = "gateway_peers"
CONCURRENCY = (1, 8, 32)
PEERS = {peer.name: peer for peer in (*HTTP_PEERS, *STDIO_PEERS)}
AT_MOST_ADDED, AT_LEAST_THROUGHPUT = 0.5, 3.0
CLAIM = (
    "Held: at most half the added p50 and at least three times the throughput of every general proxy measured beside "
    "it that also authenticates and audits: the added p50 at every concurrency, the throughput where more than one "
    "call is under way (one at a time, calls a second are the latency once more, the echo server's own time "
    "included). The gateway checks a key, labels, decides by the shipped policy and writes two chained records a "
    "call; it is called over its own HTTP interface, the peers as MCP servers. Peers over standard streams do not "
    "authenticate; they are measured for orientation, and the gateway beside them still takes its calls over "
    "HTTP. Compare within a peer's own entry only."
)


async def measure(peer: Peer, python: Path, rounds: int) -> dict[str, Any]:
    """One peer, the gateway and the direct call, at each concurrency."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / name for name in ("ours", "peer")]
        for folder in folders:
            folder.mkdir()
        beside = over_http if peer.way == "http" else over_stdio
        async with beside(folders[0]) as known, peer.start(python, folders[1], known.upstream) as running:
            found: dict[str, Any] = {}
            at_start = [each.records() if each.records else 0 for each in (known.ours, running)]
            for concurrency in CONCURRENCY:
                ways = {
                    "direct": Way(known.direct),
                    "ours": Way(known.ours.call, known.ours.tree.cpu_seconds),
                    "peer": Way(running.call, running.tree.cpu_seconds),
                }
                try:
                    await interleave(ways, concurrency, rounds=rounds)
                except NoAnswers as failure:
                    found[f"concurrency_{concurrency}"] = {"not_measured": str(failure)}
                    continue
                told = {name: summary(way) for name, way in ways.items()}
                found[f"concurrency_{concurrency}"] = {**told, **comparison(*ways.values())}
            return {
                **found,
                "memory_mib": {name: memory(each) for name, each in (("ours", known.ours), ("peer", running))},
                "without_a_credential": running.stranger,
                "records_grew_by": {
                    name: each.records() - before if each.records else None
                    for name, each, before in zip(("ours", "peer"), (known.ours, running), at_start, strict=True)
                },
            }


def memory(running: Running) -> dict[str, float]:
    resident, proportional = running.tree.memory_bytes()
    return {"rss": round(resident / 2**20, 1), "pss": round(proportional / 2**20, 1)}


def one_peer(peer: Peer, environments: Path, rounds: int) -> dict[str, Any]:
    """The entry of a peer in the result, also if it could not be measured."""
    entry: dict[str, Any] = {
        "distribution": peer.distribution,
        "version": pinned_version(peer.distribution),
        "way": peer.way,
        "authenticates": peer.authenticates,
        "decides": peer.decides,
        "audits": peer.audits,
        "as_configured": peer.as_configured,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        entry |= uvloop.run(measure(peer, environment(peer.distribution, environments), rounds))
    except NotInstalled as reason:
        entry["not_installed"] = str(reason)
    except NotStarted as reason:
        entry["not_started"] = str(reason)
    entry["load_average_1_min"] = round(os.getloadavg()[0], 1)
    return entry


def verdict(peers: dict[str, Any]) -> dict[str, Any]:
    """Whether the claim held, beside each peer that it speaks of and was measured."""
    found = {}
    for name, entry in peers.items():
        measured = [
            each for each in (entry.get(f"concurrency_{number}", {}) for number in CONCURRENCY) if "direct" in each
        ]
        if entry["authenticates"] and entry["audits"] and len(measured) == len(CONCURRENCY):
            added = max(each["added_p50_ours_over_peer"]["median"] for each in measured)
            one_at_a_time, *under_load = (each["throughput_ours_over_peer"]["median"] for each in measured)
            throughput = min(under_load)
            found[name] = {
                "added_p50_ours_over_peer_at_most": added,
                "throughput_ours_over_peer_at_least": throughput,
                "calls_a_second_one_at_a_time_ours_over_peer": one_at_a_time,
                "held": added <= AT_MOST_ADDED and throughput >= AT_LEAST_THROUGHPUT,
            }
    return found


def begun() -> dict[str, Any]:
    """The peers of a run that was cut short on this kind of machine; else empty."""
    path = RESULTS / f"{NAME}.json"
    document = json.loads(path.read_text()) if path.exists() else {"measured": {"complete": True}}
    if document["measured"]["complete"] or document["machine"] != machine():
        return {}
    peers: dict[str, Any] = document["measured"]["peers"]
    return peers


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m bench {NAME}", description=__doc__)
    parser.add_argument("--only", action="append", choices=[*PEERS, DECISION_PEER], default=[])
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    peers = begun()
    measured: dict[str, Any] = {"complete": False, "held": {}, "peers": peers}
    with tempfile.TemporaryDirectory() as scratch:
        environments = options.environments or Path(scratch)
        for name, peer in PEERS.items():
            if name in peers or (options.only and name not in options.only):
                continue
            print(f"-- {name}", flush=True)
            peers[name] = one_peer(peer, environments, options.rounds)
            measured["held"] = verdict(peers)
            write(NAME, measured, claim=CLAIM, show=False)
        if not options.only or DECISION_PEER in options.only:
            measured["decision_alone"] = decisions(environments)
        measured["complete"] = PEERS.keys() <= peers.keys()
        write(NAME, measured, claim=CLAIM)


if __name__ == "__main__":
    main()
