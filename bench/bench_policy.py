"""What policies cost beside the decision itself: loading many rules, and deciding a long journal again.

The journal is made of intents and refusals of four tools under the shipped policy; the replay runs in a process of its
own, so that its peak of memory is its own.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_decision import KINDS
from bench.harness import write
from sentinel_rag.audit import CallIntended, CallRefused, Database, Journal
from sentinel_rag.contracts.labels import TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy import Policy, load_policy, parse_policy
from sentinel_rag.gateway.request_body import CanonicalArguments, fit

CONFIG = Path(__file__).parents[1] / "config" / "sentinel_config.yaml"
SIZES = (10_000, 1_000_000)
MEDIUM = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)

REPLAY = """
import json, resource, sys, time
from pathlib import Path
from sentinel_rag.audit import JournalReader
from sentinel_rag.gateway.policy_tools import Replay
reader, text = JournalReader(Path(sys.argv[1])), Path(sys.argv[2]).read_bytes()
run, after, start = Replay(lambda _: text), 0, time.perf_counter()
while entries := reader.read(after, 1_000):
    after = entries[-1].seq
    run.add_all(entry.record for entry in entries)
seconds, report = time.perf_counter() - start, run.report()
print(json.dumps([report.decided, report.same, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def load_milliseconds(rules: int, kinds: str) -> float:
    """Median of the time to load a policy of one tool with that many rules."""
    conditions = [KINDS[kinds][n % len(KINDS[kinds])].replace("{n}", str(n)) for n in range(rules)]
    lines = "\n".join(
        f"      - {{rule_id: r{n}, condition: {json.dumps(condition)}, taint_level: LOW}}"
        for n, condition in enumerate(conditions)
    )
    text = f"""
tools:
  - name: t
    parameters:
      - {{name: path, type: string}}
      - {{name: user, type: string}}
      - {{name: host, type: string}}
      - {{name: limit, type: integer}}
    taint_rules:
{lines}
"""
    samples = []
    for _ in range(5):
        start = time.perf_counter()
        parse_policy(text)
        samples.append(time.perf_counter() - start)
    return round(statistics.median(samples) * 1e3, 1)


def records(policy: Policy) -> list[CallIntended | CallRefused]:
    """Eight calls as the gate records them: six that ran and two that were denied."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("query_incidents", {"min_severity": "High", "time_window": "last_7d", "limit": 20}),
        ("get_incident_detail", {"incident": "125"}),
        ("query_alerts", {"entity": "ws-01", "entity_kind": "host"}),
        ("list_tables", {}),
        ("run_kql_query", {"template": "failed_signins_by_user", "limit": 10}),
        ("get_threat_summary", {"time_window": "last_24h"}),
    )
    made: list[CallIntended | CallRefused] = []
    for name, arguments in calls:
        tool = policy.tools[name]
        fitted = fit(tool, arguments)
        assert isinstance(fitted, CanonicalArguments)
        rule = tool.rules[-1]
        label = Label(rule.taint_level, Integrity.TRUSTED).join(MEDIUM if arguments else tool.revealed)
        made.append(
            CallIntended(
                audit_id="bench",
                key_id="bench",
                session_id="bench",
                tool=name,
                requested_tool=name,
                server=tool.server,
                effect=tool.effect.value,
                arguments=fitted.value,
                arguments_sha256=fitted.sha256,
                rule_id=rule.rule_id,
                label=label,
                context_before=MEDIUM,
                context_after=MEDIUM,
                policy_sha256=policy.sha256,
            )
        )
    for name, rule_id, reason, level in (
        ("run_kql_query", "kql_raw_signins_needs_approval", Reason.APPROVAL_REQUIRED, Label(Sensitivity.HIGH)),
        ("no_such_tool", None, Reason.UNKNOWN_TOOL, TOP),
    ):
        made.append(
            CallRefused(
                audit_id="bench",
                key_id="bench",
                session_id="bench",
                tool=name if rule_id else None,
                requested_tool=name,
                arguments={"template": "raw_signins"},
                arguments_sha256="0" * 64,
                reason=reason,
                http_status=403,
                rule_id=rule_id,
                label=level,
                context=MEDIUM,
                policy_sha256=policy.sha256,
            )
        )
    return made


async def fill(path: Path, count: int, policy: Policy) -> None:
    """Write that many records. Their audit ids are one each, so that open calls stay few."""
    events = records(policy)
    with Database(path) as database:
        journal = Journal(database)
        for start in range(0, count, 2_000):
            await asyncio.gather(
                *(
                    journal.append(_numbered(events[n % len(events)], n))
                    for n in range(start, min(count, start + 2_000))
                )
            )


def _numbered(event: CallIntended | CallRefused, number: int) -> CallIntended | CallRefused:
    from dataclasses import replace

    return replace(event, audit_id=f"call-{number}")


def replay(count: int) -> dict[str, Any]:
    """Decide a journal of that many records again, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        asyncio.run(fill(path, count, load_policy(CONFIG)))
        done = subprocess.run(
            [sys.executable, "-c", REPLAY, str(path), str(CONFIG)], capture_output=True, text=True, check=True
        )
    decided, same, seconds, peak_kib = json.loads(done.stdout)
    return {
        "records": count,
        "decided": decided,
        "same_verdict": same,
        "seconds": round(seconds, 1),
        "records_per_second": round(decided / seconds),
        "peak_memory_mib": round(peak_kib / 1024, 1),
    }


def main() -> None:
    measured = {
        "load_ms": {
            f"{rules}_rules_{kinds}": load_milliseconds(rules, kinds) for rules in (100, 1_000) for kinds in KINDS
        },
        "replay": {f"{count}_records": replay(count) for count in SIZES},
    }
    write(
        "policy",
        measured,
        claim="Held: every audited call comes out as it was decided, and the memory of a replay does not grow with the "
        "journal. Reported as measured: how long loading and replaying take.",
    )


if __name__ == "__main__":
    main()
