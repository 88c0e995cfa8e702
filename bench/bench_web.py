"""The web surface under people: 50 who stream an answer at once through all zones, and many messages in a row.

Each person has an account and a token of their own. Measured: the time to the first event and to the last, whether
every stream was whole (numbered without a gap, ended by `done`), readers that do not read beside the others, and the
memory of the surface's process over the messages (`--messages N`).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from tests.support.web_client import parse_events

from bench.harness import timings, write
from sentinel_rag.app.places import people_folder, workspace_folder
from sentinel_rag.app.plan import Ports
from sentinel_rag.app.processes import running_zones
from sentinel_rag.app.zones import key_store
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import Scope
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.users import Role, UserStore
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

PEOPLE = 50
DEAF = 10
QUESTION = "list open incidents"
SHORT = "tell me a joke"
"""A question that calls no tool: what is measured over many messages is the surface."""
AT_ONCE = 8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=10_000)
    messages = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as name:
        settings = load_settings(environment={"SENTINEL_HOME": name}, env_file=Path(name) / "none")
        workspace = Workspace.open(workspace_folder(settings.home, "default"))
        workspace.generate(EstateOptions())
        workspace.close()
        with running_zones(settings, workspace="default", private=False, ports=Ports(web=0)) as zones:
            web = zones.state.zone("web")
            assert web is not None
            tokens = accounts(settings, max(PEOPLE + DEAF, 2 + messages // 15))
            measured = asyncio.run(measure(web.url, web.pid, tokens, messages))
    write(
        "web",
        measured,
        claim="50 people stream an answer at once through all zones without a lost event, beside 10 connections that "
        "do not read; the first event of a warm question comes within 300 ms; memory is flat over the messages.",
    )


def accounts(settings: Settings, count: int) -> list[str]:
    """A token for each of so many new accounts."""
    tokens: list[str] = []
    with (
        closing(UserStore(people_folder(settings.home), clock=utc_now)) as people,
        closing(key_store(settings)) as keys,
    ):
        for number in range(count):
            name = f"person-{number}"
            key, info = keys.create([Scope.USER], name=name, for_key="agent")
            account = people.add(name, [Role.ANALYST], password=None, key=key, key_id=info.key_id)
            tokens.append(people.sign_ins.begin(account.user_id, lasts=timedelta(hours=9), program=True).token)
    return tokens


async def measure(url: str, pid: int, tokens: list[str], messages: int) -> dict[str, Any]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        warm = [await stream(http, url, tokens[0], QUESTION) for _ in range(12)][2:]
        deaf = [await begin(http, url, token, QUESTION) for token in tokens[PEOPLE : PEOPLE + DEAF]]
        many = await asyncio.gather(*(stream(http, url, token, QUESTION) for token in tokens[:PEOPLE]))
        for response in deaf:
            response.close()
        memory = await memory_over(http, url, pid, tokens, messages)
    return {
        "one_person": {
            "first_event": timings([each["first_s"] for each in warm]),
            "last_event": timings([each["last_s"] for each in warm]),
        },
        "people_at_once": {
            "people": PEOPLE,
            "connections_that_do_not_read": DEAF,
            "whole": sum(each["whole"] for each in many),
            "events": sum(each["events"] for each in many),
            "first_event": timings([each["first_s"] for each in many]),
            "last_event": timings([each["last_s"] for each in many]),
        },
        "memory": memory,
    }


async def begin(http: aiohttp.ClientSession, url: str, token: str, question: str) -> aiohttp.ClientResponse:
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    response = await http.post(f"{url}/chat", json={"message": question}, headers=headers)
    assert response.status == 200, await response.text()
    return response


async def stream(http: aiohttp.ClientSession, url: str, token: str, question: str) -> dict[str, Any]:
    """One answer, read as it comes."""
    started, first, content = time.perf_counter(), None, b""
    async with await begin(http, url, token, question) as response:
        async for chunk in response.content.iter_any():
            first = first or time.perf_counter()
            content += chunk
    last = time.perf_counter()
    events = parse_events(content)
    numbered = [event["id"] for event in events] == list(range(1, len(events) + 1))
    whole = numbered and events[-1]["type"] == "done"
    return {"first_s": (first or last) - started, "last_s": last - started, "whole": whole, "events": len(events)}


async def memory_over(
    http: aiohttp.ClientSession, url: str, pid: int, tokens: list[str], messages: int
) -> dict[str, Any]:
    """Resident memory of the surface's process, in MiB, after each tenth of the messages."""
    waiting = iter(range(messages))
    sizes = [resident(pid)]

    async def ask() -> None:
        for number in waiting:
            assert (await stream(http, url, tokens[number % len(tokens)], SHORT))["whole"]
            if messages >= 10 and (number + 1) % (messages // 10) == 0:
                sizes.append(resident(pid))

    started = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    took = time.perf_counter() - started
    return {"messages": messages, "messages_per_s": round(messages / took, 1), "resident_mib": sizes}


def resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * 4096 / 2**20, 1)


main()
