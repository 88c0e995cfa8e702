"""One fuzz target until its time is up, as a process: `python -m bench.guided_fuzz MODULE TARGET FOLDER SECONDS SEED`.

Where atheris is installed (`make fuzz` does it), inputs that reach new code are kept and mutated further; elsewhere
mutations of the seeds are tried blindly. A finding does not end the run: the smallest input of each kind is kept in
FOLDER/found, with what was raised. What ends the process itself (a crash of an extension, memory, an input that takes a
minute) is left in FOLDER as `stopped-...`. `fuzz_campaign` starts this and reads what it leaves.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

INSTRUMENTED = ["sentinel_rag", "pypdf", "markdown_it"]
LONGEST_TOKEN = 64
"""Of libFuzzer's dictionary; longer ones go into the corpus."""
SLOWEST_S = 60
MOST_MIB = 3_000
OWN = ("testing", "fuzz")
"""The folder of the targets: a fault lies in what they try, so their own frames do not name it."""


class Findings:
    """Runs a check and keeps what it raised. `executed` counts inputs."""

    def __init__(self, check: Callable[[bytes], None], folder: Path) -> None:
        self._check = check
        self._folder = folder
        self._smallest: dict[str, int] = {}
        self.executed = 0

    def __call__(self, content: bytes) -> None:
        self.executed += 1
        try:
            self._check(content)
        except Exception as error:  # whatever a target raises is what this program looks for
            self._keep(content, error)

    def _keep(self, content: bytes, error: Exception) -> None:
        kind = kind_of(error)
        if len(content) >= self._smallest.get(kind, sys.maxsize):
            return
        self._smallest[kind] = len(content)
        name = hashlib.sha256(kind.encode()).hexdigest()[:8]
        told = {"kind": kind, "raised": "".join(traceback.format_exception(error, limit=-4))[-4_000:]}
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / name).write_bytes(content)
        (self._folder / f"{name}.json").write_text(json.dumps(told, indent=1))


def kind_of(error: Exception) -> str:
    """What two findings of one fault have in common: the untrue sentence, or where in the code what was raised."""
    if type(error).__name__ == "Violation":
        return re.sub(r"\d+", "_", str(error).partition(": ")[0])
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "sentinel_rag" in frame.filename]
    inner = [frame for frame in frames if Path(frame.filename).parts[-3:-1] != OWN] or frames
    place = f"{Path(inner[-1].filename).name}:{inner[-1].name}" if inner else "?"
    return f"{type(error).__name__} in {place}"


def with_long_tokens(seeds: list[bytes], tokens: list[bytes]) -> list[bytes]:
    """The seeds, and for each token that no dictionary takes one seed that holds it."""
    long = [token for token in tokens if len(token) > LONGEST_TOKEN]
    middle = [(seed[: len(seed) // 2], seed[len(seed) // 2 :]) for seed in seeds]
    return seeds + [token.join(middle[number % len(middle)]) for number, token in enumerate(long)] + long


def dictionary(tokens: list[bytes]) -> str:
    """libFuzzer's form of them."""
    lines = ["".join(f"\\x{byte:02x}" for byte in token) for token in tokens if 0 < len(token) <= LONGEST_TOKEN]
    return "".join(f'"{line}"\n' for line in lines)


def blindly(findings: Findings, seeds: list[bytes], tokens: list[bytes], largest: int, ends: float, seed: int) -> None:
    from tests.support.body_mutations import mutated_bodies

    while time.monotonic() < ends:
        for content in mutated_bodies(200, seed, seeds, tokens):
            findings(content[:largest])
        seed += 1


def main(module: str, name: str, folder: Path, seconds: int, seed: int) -> None:
    atheris: Any
    try:
        import atheris
    except ImportError:
        atheris = None
    with nullcontext() if atheris is None else atheris.instrument_imports(include=INSTRUMENTED):
        members = vars(importlib.import_module(module)).values()
    target = next(each for each in members if getattr(each, "name", None) == name)
    tokens = list(target.tokens)
    seeds = with_long_tokens(list(target.seeds()), tokens)
    with TemporaryDirectory() as scratch, target.opened(Path(scratch)) as check:
        findings = Findings(check, folder / "found")
        if atheris is None:
            ends = time.monotonic() + seconds
            blindly(findings, seeds, tokens, target.largest, ends, seed)
            print(f"stat::number_of_executed_units: {findings.executed}", file=sys.stderr)
            return
        with atheris.instrument_imports(include=INSTRUMENTED):
            for content in seeds:  # what a target imports only when it is needed is instrumented too
                findings(content)
        corpus = folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for content in seeds:
            (corpus / f"seed-{hashlib.sha256(content).hexdigest()[:16]}").write_bytes(content[: target.largest])
        words = folder / "words.dict"
        words.write_text(dictionary(tokens or [b"\xff\xff\xff\xff"]))  # libFuzzer takes no empty one
        options = [
            f"-max_total_time={seconds}",
            f"-max_len={target.largest}",
            f"-timeout={SLOWEST_S}",
            f"-rss_limit_mb={MOST_MIB}",
            f"-artifact_prefix={folder}/stopped-",
            f"-dict={words}",
            f"-seed={seed}",
            "-print_final_stats=1",
        ]
        atheris.Setup([sys.argv[0], str(corpus), *options], findings)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
