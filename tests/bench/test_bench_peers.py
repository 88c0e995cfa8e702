"""What the comparison with other gateways rests on: pinned versions, what counts as a peer's, and the arithmetic."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.bench_gateway_peers import PEERS, verdict
from bench.gateway_processes import TOOL
from bench.peers.callers import CallFailed, check_echo, stdio_call
from bench.peers.decisions import DECISION_PEER
from bench.peers.environments import PINS, pinned_version
from bench.peers.ours import ECHO_COMMAND
from bench.peers.peer import plain_environment
from bench.peers.process_tree import ProcessTree
from bench.peers.rounds import Block, NoAnswers, Way, comparison, run_block, summary


@pytest.mark.parametrize("distribution", sorted({*(peer.distribution for peer in PEERS.values()), DECISION_PEER}))
def test_every_peer_has_all_its_versions_pinned(distribution: str) -> None:
    lines = (PINS / f"{distribution}.txt").read_text().splitlines()
    assert all(line.count("==") == 1 and not line.startswith("-") for line in lines)
    assert pinned_version(distribution)


BUSY = "import sys; sum(range(4_000_000)); print('done', flush=True); sys.stdin.read()"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"


@contextmanager
def family(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """A parent that does nothing and a child that has worked; the pid of the parent and the child's script."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        yield process.pid, str(script)


def test_a_tree_counts_its_children_but_not_the_tool_server(tmp_path: Path) -> None:
    with family(tmp_path) as (pid, script):
        whole, without = ProcessTree(pid), ProcessTree(pid, but_not=script)
        assert whole.cpu_seconds() > without.cpu_seconds()
        (all_resident, all_proportional), (resident, proportional) = whole.memory_bytes(), without.memory_bytes()
        assert all_resident > resident > 0
        assert all_proportional > proportional > 0
        assert resident >= proportional


async def _nothing() -> None: ...


def way(*blocks: tuple[list[float], float], cpu_seconds: float = 0.0) -> Way:
    return Way(
        _nothing,
        blocks=[Block(seconds=seconds, elapsed=elapsed) for seconds, elapsed in blocks],
        cpu_seconds=cpu_seconds,
    )


def test_ratios_are_formed_within_a_round() -> None:
    direct = way(([0.001, 0.001], 0.002), ([0.010, 0.010], 0.020))
    ours = way(([0.002, 0.002], 0.004), ([0.020, 0.020], 0.040), cpu_seconds=0.002)
    peer = way(([0.005, 0.005], 0.010), ([0.050, 0.050], 0.100), cpu_seconds=0.017)
    told = comparison(direct, ours, peer)
    assert told["added_p50_ms"] == {
        "ours": {"median": 5.5, "min": 1.0, "max": 10.0},
        "peer": {"median": 22.0, "min": 4.0, "max": 40.0},
    }
    assert told["added_p50_ours_over_peer"] == {"median": 0.25, "min": 0.25, "max": 0.25}
    assert told["throughput_ours_over_peer"] == {"median": 2.5, "min": 2.5, "max": 2.5}
    assert told["cpu_peer_over_ours"] == 8.5
    assert summary(ours) == {
        "p50_ms": 11.0,
        "p99_ms": 20.0,
        "calls_per_second": 275.0,
        "cpu_ms_a_call": 0.5,
        "calls": 4,
    }


def entry(
    *, added: float, throughput: float, one_at_a_time: float = 9.0, audits: bool = True, **beside: object
) -> dict[str, object]:
    def measured(added: float, throughput: float) -> dict[str, object]:
        return {
            "direct": {},
            "added_p50_ours_over_peer": {"median": added},
            "throughput_ours_over_peer": {"median": throughput},
        }

    return {
        "authenticates": True,
        "audits": audits,
        "concurrency_1": measured(0.1, one_at_a_time),
        "concurrency_8": measured(added, throughput),
        "concurrency_32": measured(0.1, 9.0),
        **beside,
    }


def test_the_worst_concurrency_decides_whether_the_claim_held() -> None:
    found = verdict(
        {
            "both": entry(added=0.5, throughput=3.0),
            "slow": entry(added=0.51, throughput=3.0),
            "few": entry(added=0.5, throughput=2.99),
            "no audit": entry(added=0.9, throughput=1.0, audits=False),
            "latency once more": entry(added=0.5, throughput=3.0, one_at_a_time=2.0),
            "cut short": entry(added=0.5, throughput=3.0, concurrency_32={"failures": 3}),
        }
    )
    assert {name: each["held"] for name, each in found.items()} == {
        "both": True,
        "slow": False,
        "few": False,
        "latency once more": True,
    }
    assert found["latency once more"]["calls_a_second_one_at_a_time_ours_over_peer"] == 2.0


@pytest.mark.anyio
async def test_failed_calls_are_told_and_not_timed() -> None:
    turns = iter(range(10))

    async def every_second_fails() -> None:
        if next(turns) % 2:
            raise CallFailed("no")

    block = await run_block(every_second_fails, 1, seconds=60.0, calls=10)
    assert (len(block.seconds), block.failures) == (5, ["CallFailed: no"] * 5)

    async def always_fails() -> None:
        raise CallFailed("never")

    with pytest.raises(NoAnswers, match="never"):
        await run_block(always_fails, 2, seconds=60.0, calls=4)


@pytest.mark.anyio
async def test_the_echo_over_standard_streams_answers_the_call_that_is_measured(tmp_path: Path) -> None:
    async with stdio_call(ECHO_COMMAND, TOOL, folder=tmp_path, environment=plain_environment(tmp_path)) as (call, _):
        block = await run_block(call, 4, seconds=60.0, calls=20)
    assert (len(block.seconds), block.failures) == (20, [])


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32603, "message": "Internal error"}},
        {"result": {"content": [{"type": "text", "text": "rate limit"}]}},
        {"result": {"isError": True, "structuredContent": {"arguments": {}}}},
        {"result": {"structuredContent": {"arguments": {"limit": 1}}}},
        {"result": {"content": []}},
        None,
    ],
)
def test_an_answer_that_is_not_the_echo_is_a_failed_call(answer: object) -> None:
    with pytest.raises(CallFailed):
        check_echo(answer)
