"""`sentinel serve ROLE`: one role of a deployment in the foreground, as each container or machine runs it."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass, replace
from types import FrameType

from sentinel_rag.app.apart import FIRST_PORTS, ListenAddress
from sentinel_rag.app.foreground import is_served, served_role
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.tool_servers import OWN_SERVERS
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._zones import choose_workspace, workspace_to_serve


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed: the role, its tool zones by comma, where to listen, and the workspace."""

    role: str | None
    tools: str | None
    listen: str
    workspace: str | None

    @property
    def named_role(self) -> str:
        """Raises UsageError without one."""
        if self.role is None:
            raise UsageError(
                f"Which role is it: {', '.join(FIRST_PORTS)}?",
                next_step="For all of them on this machine: sentinel up",
            )
        return self.role

    @property
    def tool_zones(self) -> tuple[str, ...]:
        """The tool zones of the role, in their own order. Raises UsageError."""
        if self.tools is None:
            return OWN_SERVERS if self.role == "tools" else ()
        if self.role != "tools":
            raise UsageError("--tools goes with the role tools.", next_step=f"Leave it out: sentinel serve {self.role}")
        named = [name.strip() for name in self.tools.split(",")]
        unknown = [name for name in named if name not in OWN_SERVERS]
        if unknown:
            raise UsageError(
                f"There is no tool zone {unknown[0]!r}.", next_step=f"Name some of {','.join(OWN_SERVERS)}, by comma."
            )
        return tuple(name for name in OWN_SERVERS if name in named)


def run(wish: Wish, *, as_json: bool) -> int:
    """Serve until Ctrl-C or SIGTERM (exit 0); a process that ends takes the others with it (exit 1)."""
    role, settings = wish.named_role, load_settings()
    signal.signal(signal.SIGTERM, _interrupt)
    place, tools = ListenAddress.read(wish.listen), wish.tool_zones
    # Where the gateway is elsewhere, the names of workspaces are told to people all the same.
    choose = workspace_to_serve if role == "tools" else choose_workspace  # only the tool zones have its rows
    workspace = choose(replace(settings, gateway_url=None), wish.workspace)
    try:
        with served_role(settings, role, tools, workspace, place) as served:
            if as_json:
                print(json.dumps(served.urls), flush=True)
            else:
                for name, url in served.urls.items():
                    print(f"{name:18} {url}", flush=True)
            served.wait()
    except KeyboardInterrupt:
        print("Stopping.", file=sys.stderr)
    return 0


def check(wish: Wish) -> int:
    """For a container's health check: 0 if every zone of the role answers on this machine. Raises UnavailableError."""
    role, settings = wish.named_role, load_settings()
    place, tools = ListenAddress.read(wish.listen), wish.tool_zones
    first = FIRST_PORTS[role] if place.port is None else place.port
    ports = [first + OWN_SERVERS.index(name) for name in tools] if role == "tools" else [first]
    for port in ports:
        if not is_served(settings, place.address, port):
            raise UnavailableError(
                f"Nothing healthy answers on port {port}.", next_step="See the log of sentinel serve."
            )
    return 0


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
