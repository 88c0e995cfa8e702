"""`sentinel up`: start the zones and keep them running; everything ends together."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from sentinel_rag.app.plan import Ports
from sentinel_rag.app.processes import running_zones
from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.settings import NamedWorkspace, Settings, load_settings
from sentinel_rag.surfaces.cli._built_page import HOW_TO_BUILD, page_is_built
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._zones import workspace_to_serve
from sentinel_rag.surfaces.cli.status import addresses


def run(*, workspace: str | None, port: int, agent_port: int, web_port: int | None, as_json: bool) -> int:
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
        from sentinel_rag.surfaces.users.owner_links import owner_link

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
