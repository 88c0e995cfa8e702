"""A day of the product in minutes: many calls, kills of every process, a full disk, clocks that jump, servers that are
gone.

    python -m bench endurance                        # all of it; writes results/endurance.json
    python -m bench endurance --calls 1000000        # the same with a million calls
    python -m bench endurance --part faults ...      # some parts; writes nothing

Two thirds of the calls go through one gateway that is never restarted, a third through ones that are killed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from bench.endurance.faults import faults
from bench.endurance.kills import kills
from bench.endurance.steady import steady
from bench.endurance.zones import zones
from bench.harness import write

CALLS, SESSIONS = 300_000, 1_000
LEGS = 12
FAULT_CALLS, ZONE_CALLS = 200, 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench endurance", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, help=f"in all ({CALLS})")
    parser.add_argument("--part", action="append", choices=("steady", "kills", "faults", "zones"))
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "steady": lambda: steady(options.calls * 2 // 3, SESSIONS),
        "kills": lambda: kills(options.calls // 3, LEGS),
        "faults": lambda: faults(FAULT_CALLS),
        "zones": lambda: zones(ZONE_CALLS),
    }
    load = round(os.getloadavg()[0], 1)
    measured: dict[str, Any] = {}
    for name in options.part or parts:
        measured[name] = parts[name]()
        print(f"{name}: {len(measured[name]['violations'])} violations", file=sys.stderr, flush=True)
        for violation in measured[name]["violations"][:20]:
            print(f"  {violation}", file=sys.stderr, flush=True)
    violations = sum(len(part["violations"]) for part in measured.values())
    if options.part:
        print(measured)
        return 1 if violations else 0
    measured = {
        "calls": sum(measured[name]["calls"] for name in ("steady", "kills", "faults")),
        "sessions": sum(measured[name]["sessions"] for name in ("steady", "kills")),
        "processes_killed": sum(measured[name]["kills"] for name in ("kills", "zones")) + 1,
        "violations": violations,
        **measured,
        "load_average_1_min": load,
    }
    write(
        "endurance",
        measured,
        claim="Nothing that was acknowledged is lost, no label falls, no call hangs, none reaches a tool server "
        "without its record, and the journal verifies: over many sessions, kills of every process, a full disk, a "
        "database that another program holds, clocks that jump by months, and tool servers that are dead, silent or "
        "cut. The last tenth of the calls of one process costs what the second did, in time and in memory.",
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
