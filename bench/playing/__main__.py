"""`python -m bench.playing COMMAND`: play the model behind the product, and measure what was played. See README.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import anyio

from bench.playing import runs, wire


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench.playing", description=__doc__)
    actions = made.add_subparsers(dest="action", required=True)
    served = actions.add_parser("serve", help="serve the model until Ctrl-C")
    served.add_argument("--port", type=int, default=0)
    served.add_argument("--dir", type=Path, required=True)
    for name, told, words in (
        ("ask", "put a question to the product and print the first request", ("name", "question")),
        ("next", "print the next request, or the answer as the person reads it", ()),
        ("reply", "answer a request with a file and print what comes next", ("id", "file")),
    ):
        waits = actions.add_parser(name, help=told)
        waits.add_argument("dir", type=Path)
        for word in words:
            waits.add_argument(word)
        waits.add_argument("--wait", type=float, default=300, help="seconds")
        waits.add_argument("--after", default="", help="ask: go on with the conversation of the question of this name")
        waits.add_argument("--lang", default="en", help="ask: the language of the answer")
        waits.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    bare = actions.add_parser("plain", help="list the tools over plain MCP, or call one")
    bare.add_argument("dir", type=Path)
    bare.add_argument("tool", nargs="?", default="")
    bare.add_argument("arguments", nargs="?", type=json.loads, default={}, help="as JSON")
    for name, told in (
        ("figures", "sentences by state"),
        ("make-set", "a set of statements"),
        ("pairs", "blind pairs"),
    ):
        many = actions.add_parser(name, help=told)
        many.add_argument("dirs", type=Path, nargs="+", metavar="DIR")
        many.add_argument("--out", type=Path, default=Path())
        many.add_argument("--name", default="played", help="make-set: its name")
        many.add_argument("--part", choices=runs.PARTS, default="draft", help="make-set: before or after the repair")
    scored = actions.add_parser("score", help="what the judge's verdicts say of pairs")
    scored.add_argument("out", type=Path)
    scored.add_argument("verdicts", type=Path)
    return made


def run(told: argparse.Namespace) -> int:
    match told.action:
        case "serve":
            wire.serve(told.port, told.dir)
        case "ask" if told.here:
            runs.ask(told.dir, told.name, told.question, told.after, told.lang)
        case "ask" | "next" | "reply":
            if told.action == "ask":
                told.dir.joinpath("port").read_text()  # nobody serves: told here, and not in a log
                if told.after:
                    runs.load_run(told.dir, told.after)
                with (told.dir / "ask.log").open("a") as log:
                    again = [sys.executable, "-m", "bench.playing", *sys.argv[1:], "--here"]
                    subprocess.Popen(again, stdout=log, stderr=log, start_new_session=True)
            elif told.action == "reply":
                runs.reply_to(told.dir, told.id, Path(told.file))
            return runs.show_next(told.dir, told.wait)
        case "plain":
            runs.fill(told.dir)
            anyio.run(runs.plain, told.dir, told.tool, told.arguments)
        case "figures":
            runs.figures(told.dirs)
        case "make-set":
            runs.make_set(told.dirs, told.name, told.out, told.part)
        case "pairs":
            runs.pairs(told.dirs, told.out)
        case "score":
            runs.score(told.out, told.verdicts)
    return 0


def main() -> int:
    try:
        return run(parser().parse_args())
    except (OSError, ValueError) as error:
        print(f"bench.playing: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
