"""`python -m bench [NAME ...] [OPTION ...]`: run the named benchmarks, or all, and write `bench/results/NAME.json` for
each. Options go to the benchmarks: `python -m bench grounding --seed 7`."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    """Every module `bench/bench_NAME.py`."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one of: {', '.join(names())}")
    options, passed_on = parser.parse_known_args()
    chosen = options.name or names()
    for name in chosen:
        if importlib.util.find_spec(f"bench.bench_{name}") is None:
            print(f"bench: no benchmark named {name!r}; there are: {', '.join(names())}", file=sys.stderr)
            return 2
        print(f"== {name}", flush=True)
        sys.argv[1:] = passed_on
        runpy.run_module(f"bench.bench_{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
