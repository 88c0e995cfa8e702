"""`python -m sentinel_rag_testing.scripted_model`: the scripted model as a process of its own.

Prints one JSON line with its address once it listens, and ends on a signal.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import anyio

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag_testing.scripted_model import SCENARIOS_BY_NAME, ScriptedModel, scenario_replies


def main(arguments: list[str] | None = None) -> int:
    """0 when it was told to stop, 2 for a scenario that cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m sentinel_rag_testing.scripted_model", description=__doc__)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--scenario", type=Path, metavar="FILE", help="JSON file with the replies")
    chosen.add_argument("--name", choices=sorted(SCENARIOS_BY_NAME), metavar="NAME", help="a shipped scenario")
    chosen.add_argument("--list", action="store_true", help="list the shipped scenarios and end")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--key", default="", help="the key that clients must bring (default: none)")
    parser.add_argument("--of-others", action="store_true", help="let in what other clients than this product's send")
    options = parser.parse_args(arguments)
    if options.list:
        for scenario in SCENARIOS_BY_NAME.values():
            print(f"{scenario.name}: {scenario.about}")
        return 0
    try:
        replies = SCENARIOS_BY_NAME[options.name].replies if options.name else scenario_replies(options.scenario)
        server = ScriptedModel(replies, key=options.key, port=options.port, of_others=options.of_others)
        anyio.run(server.run, _announce)
    except KeyboardInterrupt:
        return 0
    except SentinelError as error:
        print(f"{error} {error.next_step}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"Port {options.port} cannot be used: {error.strerror}. Choose another one.", file=sys.stderr)
        return 2
    return 0


def _announce(url: str) -> None:
    print(json.dumps({"url": url}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
