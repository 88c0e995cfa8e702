"""`python -m bench [NAME ...] [OPTION ...]`: run the named benchmarks, or all, and write `bench/results/NAME.json` for
each. Options go to the benchmarks, and so do words that name none: `python -m bench answers --auto-only`,
`python -m bench fuzz request-body --minutes 5`. `python -m bench report` writes `docs/benchmarks.md` again."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from bench.report import PAGE, write_page

HERE = Path(__file__).parent


def names() -> list[str]:
    """Every module `bench/bench_NAME.py`."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one of: {', '.join(names())}")
    options, passed_on = parser.parse_known_args()
    if options.name == ["report"]:
        write_page()
        print(f"{PAGE.relative_to(HERE.parent)} is written.")
        return 0
    chosen = [name for name in options.name if name in names()] or names()
    words = [name for name in options.name if name not in names()]
    if words and (len(chosen) > 1 or options.name[0] in words):
        print(f"bench: no benchmark named {words[0]!r}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    failed = {name: code for name in chosen if (code := _run(name, [*words, *passed_on]))}
    if len(chosen) > 1 and failed:
        print(f"bench: these have not ended well: {', '.join(failed)}", file=sys.stderr)
    return max(failed.values(), default=0)


def _run(name: str, arguments: list[str]) -> int:
    """Run one and give its exit code. What it ends with is said, and the others run all the same."""
    print(f"== {name}", flush=True)
    sys.argv[1:] = arguments
    try:
        runpy.run_module(f"bench.bench_{name}", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
