"""Whether references in dialogues resolve to the right thing: 200 generated dialogues and the hand-written ones.

`python -m bench dialogues --seed 7` makes up others; the offline analyst answers over the small estate, and over the
rows in `../shared/data` where they are there. Every reference is right, asked back, or wrong; asking back where a
careful person would know is a miss. The wordings and dialogues that were held apart are told apart.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from bench.harness import write
from sentinel_rag.testing.dialogues.judging import Thing
from sentinel_rag.testing.dialogues.running import (
    WRITTEN,
    Session,
    Tally,
    alerts_shown,
    dialogues_of,
    run_generated,
    run_written,
)
from sentinel_rag.testing.small_estate import NOW, alert_id, small_estate

SEED = 2024
GENERATED = 100
"""For each of the two sets of wordings."""


async def measure_part(part: str, seed: int, tally: Tally) -> dict[str, Any]:
    """One set of wordings over the small estate."""
    alerts = await alerts_shown(small_estate())
    incidents = {thing.value: thing.incident for thing in alerts.values()}

    def things(written: str) -> Thing:
        kind, _, value = written.partition(" ")
        return Thing(kind, alert_id(value), incidents[alert_id(value)]) if kind == "alert" else Thing(kind, value)

    written = dialogues_of(WRITTEN[part])
    turns = 0
    for dialogue in written:
        turns += await run_written(dialogue, Session(small_estate(), NOW), things, tally)
    for place in range(GENERATED):
        turns += await run_generated(f"{seed}/{part}/{place}", part, Session(small_estate(), NOW), alerts, tally)
    return {"dialogues": len(written) + GENERATED, "turns": turns, **tally.report()}


async def measure(seed: int, *, verbose: bool) -> dict[str, Any]:
    measured: dict[str, Any] = {"seed": seed}
    for part in WRITTEN:
        # The held-apart ones are never listed, so that nobody tunes on them by accident.
        listed = verbose and part == "development"
        measured[part] = await measure_part(part, seed, Tally(print if listed else None))
    return measured


def main() -> None:
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else SEED
    measured = asyncio.run(measure(seed, verbose="--verbose" in sys.argv))
    write("dialogues", measured, claim="No reference in a dialogue resolves to a wrong thing; most resolve.")


if __name__ == "__main__":
    main()
