"""`sentinel up` and `sentinel serve`: all zones of this machine, or those of one role, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
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


def serve(
    role: str | None, *, tools: str | None, listen: str, workspace: str | None, check: bool, as_json: bool
) -> int:
    """Serve until Ctrl-C or SIGTERM (exit 0); a process that ends takes the others with it (exit 1). With `check` only
    ask whether every zone of the role answers on this machine, for a container's health check. Raises UsageError."""
    if role is None:
        raise UsageError(
            f"Which role is it: {', '.join(FIRST_PORTS)}?", next_step="For all of them on this machine: sentinel up"
        )
    settings, place, zones = load_settings(), ListenAddress.read(listen), _tool_zones(role, tools)
    if check:
        return _check(settings, role, zones, place)
    signal.signal(signal.SIGTERM, _interrupt)
    # Where the gateway is elsewhere, the names of workspaces are told to people all the same.
    choose = workspace_to_serve if role == "tools" else choose_workspace  # only the tool zones have its rows
    chosen = choose(replace(settings, gateway_url=None), workspace)
    try:
        with served_role(settings, role, zones, chosen, place) as served:
            if as_json:
                print(json.dumps(served.urls), flush=True)
            else:
                for name, url in served.urls.items():
                    print(f"{name:18} {url}", flush=True)
            served.wait()
    except KeyboardInterrupt:
        print("Stopping.", file=sys.stderr)
    return 0


def _tool_zones(role: str, tools: str | None) -> tuple[str, ...]:
    """The tool zones of the role, in their own order. Raises UsageError."""
    if tools is None:
        return OWN_SERVERS if role == "tools" else ()
    if role != "tools":
        raise UsageError("--tools goes with the role tools.", next_step=f"Leave it out: sentinel serve {role}")
    named = [name.strip() for name in tools.split(",")]
    unknown = [name for name in named if name not in OWN_SERVERS]
    if unknown:
        raise UsageError(
            f"There is no tool zone {unknown[0]!r}.", next_step=f"Name some of {','.join(OWN_SERVERS)}, by comma."
        )
    return tuple(name for name in OWN_SERVERS if name in named)


def _check(settings: Settings, role: str, zones: tuple[str, ...], place: ListenAddress) -> int:
    first = FIRST_PORTS[role] if place.port is None else place.port
    ports = [first + OWN_SERVERS.index(name) for name in zones] if role == "tools" else [first]
    for port in ports:
        if not is_served(settings, place.address, port):
            raise UnavailableError(
                f"Nothing healthy answers on port {port}.", next_step="See the log of sentinel serve."
            )
    return 0
