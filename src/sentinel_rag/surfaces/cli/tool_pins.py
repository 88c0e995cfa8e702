"""`sentinel tools pins` and `sentinel tools accept`: which definitions are pinned, what has changed, and accepting it.

A changed definition is shown whole, as a difference from the accepted one and with invisible characters made visible,
before anything is asked: it was written by somebody who may want it to be accepted.
"""

from __future__ import annotations

import difflib
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._clients import call_gateway
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli._zones import attached_zones
from sentinel_rag.surfaces.rendering.visible import safe

WIDTH = 100
Json = Mapping[str, Any]


def show(*, as_json: bool) -> int:
    """List every pinned tool with its state, and what changed in those that wait."""
    with _gateway() as ask:
        pins = ask("GET", "/v1/pins")["pins"]
    if as_json:
        print_json(pins)
        return 0
    rows = [(pin["tool"], pin["server"], _state(pin), pin["accepted"]["sha256"][:12]) for pin in pins]
    print_table(("tool", "server", "state", "accepted hash"), rows)
    waiting = [pin for pin in pins if pin["waiting"] is not None]
    for pin in waiting:
        print(f"\n{safe(pin['tool'])} of {safe(pin['server'])} is in quarantine: its server now describes it so\n")
        print(changes(pin))
    if waiting:
        print("\nIts calls are denied until: sentinel tools accept TOOL")
    if any(_is_unread(pin) for pin in pins):
        print(
            "\nThe agent is not shown what a server says of a tool that is not read, until: sentinel tools accept TOOL"
        )
    return 0


def _is_unread(pin: Json) -> bool:
    return pin["waiting"] is None and not pin["vouched"]


def _state(pin: Json) -> str:
    return "pinned, not read" if _is_unread(pin) else str(pin["state"])


def accept(tool: str | None, *, yes: bool, as_json: bool) -> int:
    """Accept the new or changed definition of one tool, after showing it; `yes` answers the question."""
    if tool is None:
        raise UsageError("Which tool?", next_step="Run: sentinel tools accept TOOL (sentinel tools pins lists them)")
    with _gateway() as ask:
        pin = _waiting(ask("GET", "/v1/pins")["pins"], tool)
        sha256 = (pin["waiting"] or pin["accepted"])["sha256"]
        if not as_json:
            print(changes(pin) if pin["waiting"] else safe("\n".join(_lines(pin["accepted"]["definition"]))))
            print(f"\n{'new hash' if pin['waiting'] else 'hash'} {sha256}")
        if not yes and not _confirmed():
            print("Nothing was accepted.")
            return 1
        accepted = ask("POST", f"/v1/pins/{pin['server']}/{pin['tool']}", {"sha256": sha256})
    print(json.dumps(accepted, indent=2) if as_json else f"Accepted: {safe(pin['tool'])} may be called again.")
    return 0


def changes(pin: Json) -> str:
    """The difference between the accepted and the waiting definition, line by line, safe to print."""
    before, after = (_lines(pin[name]["definition"]) for name in ("accepted", "waiting"))
    return safe("\n".join(difflib.unified_diff(before, after, "accepted", "now", lineterm="", n=2)))


def _lines(definition: Json) -> list[str]:
    """A definition as people read it: the words wrapped, the schemas indented."""
    lines = ["description:"]
    for paragraph in str(definition["description"]).splitlines() or [""]:
        lines += [f"  {line}" for line in textwrap.wrap(paragraph, WIDTH) or [""]]
    for name in ("inputSchema", "outputSchema", "annotations"):
        text = json.dumps(definition[name], indent=2, sort_keys=True, ensure_ascii=False)
        lines += [f"{name}:", *(f"  {line}" for line in text.splitlines())]
    return lines


def _waiting(pins: list[Json], tool: str) -> Json:
    named = [pin for pin in pins if tool in (pin["tool"], f"{pin['server']}/{pin['tool']}")]
    if not named:
        raise UsageError(f"No tool {tool!r} is pinned.", next_step="Run: sentinel tools pins")
    found = [pin for pin in named if pin["waiting"] is not None or _is_unread(pin)]
    if not found:
        raise UsageError(f"The definition of {tool!r} has not changed.", next_step="Run: sentinel tools pins")
    if len(found) > 1:
        servers = ", ".join(f"{pin['server']}/{pin['tool']}" for pin in found)
        raise UsageError(f"Several servers have a new or changed {tool!r}.", next_step=f"Name one of: {servers}")
    return found[0]


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Nobody is there to confirm it.", next_step="Look at the difference, then add --yes.")
    return input("Accept this definition? [y/N] ").strip().lower() in ("y", "yes")


@contextmanager
def _gateway() -> Iterator[Any]:
    """A function that asks the gateway as its administrator, after it has looked at its servers again."""
    settings = load_settings()
    if settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set, and the pins of a gateway that runs elsewhere are its operator's.",
            next_step="Use GET and POST /v1/pins there with a key of the scope admin, or unset SENTINEL_URL.",
        )
    with attached_zones(settings, None) as (state, _):
        zone = state.zone("interceptor")
        assert zone is not None

        def ask(method: str, path: str, body: Any = None) -> Any:
            status, answer = call_gateway(zone.url, state.keys["admin"], method, path, body)
            if status == 409:
                raise UsageError(answer["detail"], next_step="Run: sentinel tools pins")
            if status != 200:
                raise UnavailableError(
                    f"The gateway could not do it: {answer.get('detail', status)}", next_step="Run: sentinel status"
                )
            return answer

        call_gateway(zone.url, state.keys["agent"], "GET", "/v1/tools")
        yield ask
