"""Whether references in dialogues resolve to the right thing: 200 generated dialogues and the hand-written ones.

`python -m bench dialogues --seed 7` makes up others; the offline analyst answers over the small estate, and over the
rows in `../shared/data` where they are there. Every reference is right, asked back, or wrong; asking back where a
careful person would know is a miss. The wordings and dialogues that were held apart are told apart.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from tests.support.dialogues.judging import Thing
from tests.support.dialogues.running import (
    WORDINGS,
    WRITTEN,
    Session,
    Tally,
    alerts_shown,
    dialogues_of,
    run_generated,
    run_written,
)
from tests.support.small_estate import NOW, small_estate
from tests.support.small_estate_rows import alert_id

from bench.bench_secrl import DATA, TABLES, RememberingGateway
from bench.harness import write
from bench.workspace_process import IDENTITY_HEADER, WORKSPACE_ID, workspace_process
from sentinel_rag.contracts.tool_calls import ToolCall, ToolOutcome
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.workspace import Workspace

SEED = 2024
GENERATED = 100
"""For each of the two sets of wordings."""
OVER_REAL_ROWS = 20
REAL_NOW = datetime(2024, 8, 3, tzinfo=UTC)


async def measure_part(part: str, seed: int, tally: Tally) -> dict[str, Any]:
    """One set of wordings over the small estate."""
    alerts = await alerts_shown(small_estate())
    incidents = {thing.value: thing.incident for thing in alerts.values()}

    def things(written: str) -> Thing:
        kind, _, value = written.partition(" ")
        return Thing(kind, alert_id(value), incidents[alert_id(value)]) if kind == "alert" else Thing(kind, value)

    written = dialogues_of(WRITTEN[part]) if part in WRITTEN else []
    turns = 0
    for dialogue in written:
        turns += await run_written(dialogue, Session(small_estate(), NOW), things, tally)
    for place in range(GENERATED):
        turns += await run_generated(f"{seed}/{part}/{place}", part, Session(small_estate(), NOW), alerts, tally)
    first = yaml.safe_load(WORDINGS[part].read_text()).get("first_measured") if part != "development" else None
    report = {"dialogues": len(written) + GENERATED, "turns": turns, **tally.report()}
    return report if first is None else {**report, "first_measured": first}


class RealGateway:
    """The shipped tools over the embedded workspace; keeps the calls of a question."""

    def __init__(self, service: SentinelService) -> None:
        self._remembering = RememberingGateway(service)
        self.calls: list[ToolCall] = []

    async def offered_tools(self) -> frozenset[str]:
        return await self._remembering.offered_tools()

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        return await self._remembering.execute(call)


async def measure_real(url: str, part: str, seed: int, tally: Tally) -> dict[str, Any]:
    """Generated dialogues over the real alerts and incidents."""
    credential = IdentityEndpointCredential(f"{url}/msi/token", IDENTITY_HEADER)
    async with LogAnalytics(credential, endpoint=url) as connection:
        service = SentinelService({"lab": connection.workspace("lab", WORKSPACE_ID)}, clock=lambda: REAL_NOW)
        gateway = RealGateway(service)
        alerts = await alerts_shown(gateway)
        turns = 0
        for place in range(OVER_REAL_ROWS):
            session = Session(gateway, REAL_NOW)
            turns += await run_generated(f"{seed}/real/{part}/{place}", part, session, alerts, tally)
    return {"dialogues": OVER_REAL_ROWS, "turns": turns, **tally.report()}


async def measure(seed: int, *, verbose: bool) -> dict[str, Any]:
    measured: dict[str, Any] = {"seed": seed}
    for part in WORDINGS:
        # The held-apart ones are never listed, so that nobody tunes on them by accident.
        listed = verbose and part == "development"
        measured[part] = await measure_part(part, seed, Tally(print if listed else None))
    if not DATA.is_dir():
        return {**measured, "real_rows": "not beside this checkout"}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.open(Path(folder) / "workspace")
        for name, table in TABLES.items():
            workspace.import_path(DATA / name, table=table)
        workspace.close()
        with workspace_process(Path(folder) / "workspace") as server:
            for part in WORDINGS:
                listed = verbose and part == "development"
                tally = Tally(print if listed else None)
                measured[f"{part}_over_real_rows"] = await measure_real(server.url, part, seed, tally)
    return measured


def main() -> None:
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else SEED
    measured = asyncio.run(measure(seed, verbose="--verbose" in sys.argv))
    write("dialogues", measured, claim="No reference in a dialogue resolves to a wrong thing; most resolve.")


if __name__ == "__main__":
    main()
