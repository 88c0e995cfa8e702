"""Shared by the benchmarks: paired timing and the result file.

Two things compared are always measured in one run, alternating, so that a busy machine slows both. A result states the
machine, the versions and the time; numbers of different files are not comparable.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.report import write_page

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("duckdb", "mcp", "starlette", "uvicorn", "msgspec", "aiohttp", "azure-monitor-query")


def machine() -> dict[str, Any]:
    """Cores, memory and versions of what is measured; no host name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def timings(seconds: list[float]) -> dict[str, float]:
    """Minimum, median and maximum in milliseconds."""
    return {
        "min_ms": round(min(seconds) * 1e3, 3),
        "median_ms": round(statistics.median(seconds) * 1e3, 3),
        "max_ms": round(max(seconds) * 1e3, 3),
        "runs": len(seconds),
    }


def paired(
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    runs: int,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Time both in alternation; `ratio` is the median of ours over the median of the baseline.

    With `time.process_time` as the clock the load of the machine counts little, where both run in this process.
    """
    for _ in range(warmup):
        ours()
        baseline()
    first: list[float] = []
    second: list[float] = []
    for _ in range(runs):
        start = clock()
        ours()
        middle = clock()
        baseline()
        second.append(clock() - middle)
        first.append(middle - start)
    return {
        "ours": timings(first),
        "baseline": timings(second),
        "ratio": round(statistics.median(first) / statistics.median(second), 3),
    }


def write(
    name: str,
    measured: dict[str, Any],
    *,
    claim: str,
    figures: Mapping[str, object] | None = None,
    group: str = "",
    show: bool = True,
) -> None:
    """Write `results/NAME.json` and `docs/benchmarks.md`, and print the measurements.

    `figures` (label to value) is what the page shows, and `group` where (security, correctness, speed, endurance),
    unless `bench/report/figures.toml` has an entry of that name. `show` is false for a result that is still growing.
    """
    RESULTS.mkdir(exist_ok=True)
    document = {
        "benchmark": name,
        "claim": claim,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "measured": measured,
        **({} if figures is None else {"figures": dict(figures)}),
        **({"group": group} if group else {}),
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    if show:
        print(json.dumps(measured, indent=2, ensure_ascii=False), flush=True)
    write_page()
