"""`sentinel up` and `sentinel serve`: all zones of this machine, or those of one role, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from sentinel_rag.app.plan import Ports
from sentinel_rag.app.processes import running_zones
from sentinel_rag.app.roles import FIRST_PORTS, ListenAddress, is_served, served_role
from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.settings import NamedWorkspace, Settings, load_settings
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._zones import choose_workspace, workspace_to_serve
from sentinel_rag.surfaces.cli.status import addresses

HOW_TO_BUILD = "make page (in a clone)"


def page_is_built() -> bool:
    """True if `sentinel up --web` serves a page, and not the HTTP API alone."""
    return (Path(__file__).parents[1] / "web" / "page" / "index.html").is_file()


def up(*, workspace: str | None, port: int, agent_port: int, web_port: int | None, as_json: bool) -> int:
    """Serve until Ctrl-C or SIGTERM (exit 0); a zone that dies ends all the others (exit 1)."""
    settings = load_settings()
    signal.signal(signal.SIGTERM, _interrupt)
    chosen = workspace_to_serve(settings, workspace)
    with running_zones(settings, workspace=chosen, private=False, ports=Ports(port, agent_port, web_port)) as zones:
        for notice in zones.notices():
            report(notice, as_json=False)
        if as_json:
            print(json.dumps(addresses(settings, zones.state)), flush=True)
        else:
            for zone in zones.state.zones:
                print(f"{zone.name:18} {zone.url}")
            for line in _web(zones.state, settings):
                print(line)
            where = _served(settings.serves(chosen))
            print(f'Serving {where}. Ask from another terminal: sentinel ask "..."   Stop with Ctrl-C.', flush=True)
        try:
            zones.wait()
        except KeyboardInterrupt:
            print("Stopping.", file=sys.stderr)
    return 0


def _web(state: RunState, settings: Settings) -> Iterator[str]:
    """How people come in, if the web surface is served."""
    zone = state.zone("web")
    if zone is not None:
        from sentinel_rag.surfaces.users.store import owner_link

        if not page_is_built():
            yield f"The web page is not built, so this is the HTTP API alone. To build it: {HOW_TO_BUILD}"
        url = settings.web_url or zone.url  # behind a proxy with TLS, cookies are for its address alone
        yield f"Sign in as the owner, once: {url}{owner_link(state.web_secret, utc_now())}"
        yield f"Others sign in at {url}; make the first account: sentinel users add NAME"


def _served(workspaces: tuple[NamedWorkspace, ...]) -> str:
    first = workspaces[0]
    told = f"the {'embedded' if first.embedded else 'Azure'} workspace {first.name!r}"
    others = ", ".join(repr(each.name) for each in workspaces[1:])
    return f"{told}, and by name {others}" if others else told


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class RoleOptions:
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


def serve(
    role: str | None, *, tools: str | None, listen: str, workspace: str | None, check: bool, as_json: bool
) -> int:
    """Serve until Ctrl-C or SIGTERM (exit 0); a process that ends takes the others with it (exit 1). With `check` only
    ask whether it serves."""
    wish = RoleOptions(role, tools, listen, workspace)
    return _check(wish) if check else _serve(wish, as_json=as_json)


def _serve(wish: RoleOptions, *, as_json: bool) -> int:
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


def _check(wish: RoleOptions) -> int:
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
