"""A process that tries to use one approval many times at once: `python race_consumers.py JOURNAL APPROVAL_ID TRIES`.

It says `ready`, waits for a line, and prints how many tries were let through.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from approval_desk import Clock, Desk, open_desk, the_call

from sentinel_rag.gateway.approvals import ApprovalSpent


async def let_through(desk: Desk, approval_id: str) -> bool:
    binding, _ = the_call()
    try:
        await desk.database.run(desk.store.consume(approval_id, binding))
    except ApprovalSpent:
        return False
    return True


async def race(desk: Desk, approval_id: str, tries: int) -> int:
    return sum(await asyncio.gather(*(let_through(desk, approval_id) for _ in range(tries))))


def main() -> None:
    path, approval_id, tries = sys.argv[1:]
    with open_desk(Path(path), Clock()) as desk:
        print("ready", flush=True)
        sys.stdin.readline()
        print(asyncio.run(race(desk, approval_id, int(tries))), flush=True)


if __name__ == "__main__":
    main()
