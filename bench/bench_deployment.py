"""What one question costs each zone of a deployment whose roles run apart, over TLS: processor time, and memory.

Four roles in homes of their own, as containers run them, offline analyst, sample estate. People ask, a few at a time;
the processor time of every process is read before and after from the kernel, so that a busy machine changes it little.
`docs/sizing.md` is written from the result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from tests.support.containers import Deployment, running_deployment

from bench.harness import write
from sentinel_rag.app.places import people_folder
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag.surfaces.users import Role, UserStore

QUESTIONS = (
    "list open incidents",
    "how many incidents are there by severity in the last 14 days?",
    "which accounts have the most alerts?",
    "show the alert trend of the last week",
    "tell me about the first one",
)
AT_ONCE = 4
WARM_UP = 10
EVENTS = 20_000
ZONES = ("web", "agent", "interceptor", "tools")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=200)
    count = parser.parse_args().questions
    with tempfile.TemporaryDirectory() as name, running_deployment(Path(name), events=EVENTS) as deployment:
        home = Path(deployment.containers["interceptor"].environment["SENTINEL_HOME"])
        tokens = accounts(home, 2 + (WARM_UP + count) // 15)
        asyncio.run(ask(deployment, tokens, WARM_UP))
        records, before = recorded(deployment), {zone: used(deployment, zone) for zone in ZONES}
        asyncio.run(ask(deployment, tokens, count))
        after = {zone: used(deployment, zone) for zone in ZONES}
        measured: dict[str, Any] = {
            "questions": count,
            "log_rows": EVENTS,
            "records_a_question": round((recorded(deployment) - records) / count, 1),
            "zones": {
                zone: {
                    "cpu_ms_a_question": round((after[zone][0] - before[zone][0]) * 1e3 / count, 1),
                    "memory_mib": round(after[zone][1], 0),
                    "processes": after[zone][2],
                }
                for zone in ZONES
            },
            "load_average_1_min": round(os.getloadavg()[0], 1),
        }
    measured["cpu_ms_a_question"] = round(sum(zone["cpu_ms_a_question"] for zone in measured["zones"].values()), 1)
    measured["memory_mib"] = sum(zone["memory_mib"] for zone in measured["zones"].values())
    write(
        "deployment",
        measured,
        claim="Reported as measured: processor time a question, and memory, of each zone where zones run apart over "
        "TLS, with the offline analyst and the embedded workspace.",
    )


def accounts(home: Path, count: int) -> list[str]:
    """A token for each of so many new people: one may ask 30 questions a minute."""
    tokens: list[str] = []
    with (
        closing(UserStore(people_folder(home), clock=utc_now)) as people,
        closing(KeyStore(home / "gateway" / "keys.sqlite")) as keys,
    ):
        for number in range(count):
            key, info = keys.create([Scope.USER], name=f"person-{number}", for_key="agent")
            account = people.add(f"person-{number}", [Role.ANALYST], password=None, key=key, key_id=info.key_id)
            tokens.append(people.sign_ins.begin(account.user_id, lasts=timedelta(hours=9), program=True).token)
    return tokens


async def ask(deployment: Deployment, tokens: list[str], count: int) -> None:
    """So many questions, `AT_ONCE` at a time, each person a conversation of their own. Raises RuntimeError for one that
    was not answered."""
    trusted = ssl.create_default_context(cafile=str(deployment.authority.file))
    slots = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as client:

        async def one(number: int) -> None:
            token = tokens[number % len(tokens)]
            body = {"message": QUESTIONS[number % len(QUESTIONS)]}
            async with (
                slots,
                client.post(
                    f"{deployment.urls['web']}/chat", json=body, headers={"Authorization": f"Bearer {token}"}
                ) as response,
            ):
                if response.status != 200:
                    raise RuntimeError(f"{response.status}: {await response.text()}")
                await response.read()

        await asyncio.gather(*map(one, range(count)))


def used(deployment: Deployment, zone: str) -> tuple[float, float, int]:
    """Seconds of processor time, MiB of memory that is its own (half of what is shared), and processes of a role."""
    parent = deployment.processes[zone].pid
    pids = [parent, *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]
    ticks, kib = 0, 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
        kib += sum(int(line.split()[1]) for line in _lines(pid) if line.startswith("Pss:"))
    return ticks / os.sysconf("SC_CLK_TCK"), kib / 1024, len(pids)


def _lines(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()


def recorded(deployment: Deployment) -> int:
    """Records of the gateway's journal."""
    done = deployment.containers["interceptor"].run("audit", "verify", "--json")
    return int(json.loads(done.stdout)["records"])


if __name__ == "__main__":
    main()
