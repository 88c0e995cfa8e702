"""A fuzz target run for some minutes, and then what it left tried once more: for work, for memory, for the report.

`guided_fuzz` is the process that tries inputs; a process that was ended by an input is started again for the time that
is left. The corpus stays in `.fuzz/TARGET`, so that the next run goes on where this one ended.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tests.support.fuzz import Target

from bench.guided_fuzz import SLOWEST_S, kind_of

ROOT = Path(__file__).resolve().parent.parent
CORPORA = ROOT / ".fuzz"
ATHERIS = ROOT / ".venv" / "atheris"
MOST_STARTS = 10
REPLAYED, REPLAYED_COSTLY = 400, 20
"""Inputs of the corpus whose memory is measured: every such round looks at each of them once. Fewer where the work is a
database's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` names the fault, `raised` is how it showed, `path` the smallest input that shows it."""

    kind: str
    raised: str
    path: Path


@dataclass(frozen=True, slots=True)
class Campaign:
    """What came of one target. `reached` are places of the code that inputs were kept for (0 where nothing guided
    them); `calls_a_byte` is the most that any input of the corpus cost over the target's floor, None where work is not
    counted; `bytes_kept` is what one more round over the corpus left in memory."""

    target: str
    guided: bool
    seconds: float
    executed: int
    corpus: int
    reached: int
    calls_a_byte: float | None
    bytes_kept: int
    findings: tuple[Finding, ...]


def campaign(target: Target, *, seconds: int, seed: int = 1) -> Campaign:
    """Run `target` for that long and look at what it left."""
    folder = CORPORA / target.name
    for old in [*folder.glob("found/*"), *folder.glob("stopped-*")]:
        old.unlink()
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    executed = reached = 0
    stopped: list[Finding] = []
    for start in range(MOST_STARTS):
        left = seconds - int(time.monotonic() - started)
        if left <= 0 and start:
            break
        log = _tried(target, folder, max(1, left), seed + start)
        executed += _last_number(r"stat::number_of_executed_units:\s*(\d+)", log) or _last_number(r"^#(\d+)", log)
        reached = max(reached, _last_number(r"cov: (\d+)", log))
        known = {finding.path for finding in stopped}
        ended = [path for path in folder.glob("stopped-*") if path not in known]
        if not ended:
            break
        stopped += [Finding(f"the process was ended ({path.name.split('-')[1]})", log[-2_000:], path) for path in ended]
    corpus = sorted((folder / "corpus").iterdir(), key=lambda path: path.stat().st_size)
    findings = stopped + [
        Finding(told["kind"], told["raised"], path.with_suffix(""))
        for path in sorted(folder.glob("found/*.json"))
        for told in [json.loads(path.read_text())]
    ]
    with TemporaryDirectory() as scratch, target.opened(Path(scratch)) as check:
        contents = [path.read_bytes() for path in corpus] or list(target.seeds())
        worst, costly = _most_calls(check, contents, target.calls)
        if costly is not None and target.calls is not None and worst > target.calls[1]:
            path = folder / "found" / "work"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(costly)
            findings.append(Finding("more work than its length allows", f"{worst:.0f} calls a byte", path))
        kept = _bytes_kept(check, contents[: REPLAYED_COSTLY if target.calls is None else REPLAYED])
    return Campaign(
        target.name,
        guided=ATHERIS.is_dir(),
        seconds=round(time.monotonic() - started, 1),
        executed=executed,
        corpus=len(corpus),
        reached=reached,
        calls_a_byte=None if target.calls is None else round(worst, 1),
        bytes_kept=kept,
        findings=tuple(findings),
    )


def reproduce(target: Target, path: Path) -> str | None:
    """What the input in `path` shows: the kind of a fault with where it came from, None if it shows none."""
    with TemporaryDirectory() as scratch, target.opened(Path(scratch)) as check:
        try:
            check(path.read_bytes())
        except Exception as error:  # this is what somebody wants to see
            return f"{''.join(traceback.format_exception(error))}\n{kind_of(error)}"
    return None


def _tried(target: Target, folder: Path, seconds: int, seed: int) -> str:
    environment = dict(os.environ)
    if ATHERIS.is_dir():
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ATHERIS), environment.get("PYTHONPATH"))))
    command = [
        sys.executable,
        "-m",
        "bench.guided_fuzz",
        target.opened.__module__,
        target.name,
        str(folder),
        str(seconds),
        str(seed),
    ]
    # Reading the code that is instrumented, and the input that is under way at the end, come on top of the time.
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds + 5 * SLOWEST_S, check=False
    )
    log = done.stderr.decode(errors="replace")
    if done.returncode and not list(folder.glob("stopped-*")):
        raise SystemExit(f"The fuzzer of {target.name} did not run:\n{_without_notes(log)[-3_000:]}")
    return log


def _without_notes(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith("INFO: "))


def _last_number(pattern: str, log: str) -> int:
    found = re.findall(pattern, log, re.MULTILINE)
    return int(found[-1]) if found else 0


def _most_calls(
    check: Callable[[bytes], None], contents: list[bytes], bound: tuple[int, int] | None
) -> tuple[float, bytes | None]:
    """The most calls of functions for a byte beyond the target's floor, and the input that cost them."""
    if bound is None:
        return 0.0, None
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event == "call"

    worst, costly = 0.0, None
    for content in contents:
        calls = 0
        sys.setprofile(count)
        try:
            _quietly(check, content)
        finally:
            sys.setprofile(None)
        cost = (calls - bound[0]) / max(1, len(content))
        if cost > worst:
            worst, costly = cost, content
    return worst, costly


def _bytes_kept(check: Callable[[bytes], None], contents: list[bytes]) -> int:
    """What the third round over the inputs left behind that the second had not."""
    after: list[int] = []
    tracemalloc.start()
    for _ in range(3):
        for content in contents:
            _quietly(check, content)
        gc.collect()
        after.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return max(0, after[2] - after[1])


def _quietly(check: Callable[[bytes], None], content: bytes) -> None:
    try:
        check(content)
    except Exception:  # a finding, and told as one already
        return
