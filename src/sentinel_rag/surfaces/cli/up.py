"""`sentinel up`: start the zones and keep them running; everything ends together."""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType

from sentinel_rag.assembly.plan import Ports
from sentinel_rag.assembly.processes import running_zones
from sentinel_rag.settings import NamedWorkspace, load_settings
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._zones import choose_workspace
from sentinel_rag.surfaces.cli.status import addresses


def run(*, workspace: str | None, port: int, agent_port: int, as_json: bool) -> int:
    """Serve until Ctrl-C or SIGTERM (exit 0); a zone that dies ends all the others (exit 1)."""
    settings = load_settings()
    signal.signal(signal.SIGTERM, _interrupt)
    chosen = choose_workspace(settings, workspace)
    with running_zones(settings, workspace=chosen, private=False, ports=Ports(port, agent_port)) as zones:
        for notice in zones.notices():
            report(notice, as_json=False)
        if as_json:
            print(json.dumps(addresses(settings, zones.state)), flush=True)
        else:
            for zone in zones.state.zones:
                print(f"{zone.name:18} {zone.url}")
            where = _served(settings.serves(chosen))
            print(f'Serving {where}. Ask from another terminal: sentinel ask "..."   Stop with Ctrl-C.', flush=True)
        try:
            zones.wait()
        except KeyboardInterrupt:
            print("Stopping.", file=sys.stderr)
    return 0


def _served(workspaces: tuple[NamedWorkspace, ...]) -> str:
    first = workspaces[0]
    told = f"the {'embedded' if first.embedded else 'Azure'} workspace {first.name!r}"
    others = ", ".join(repr(each.name) for each in workspaces[1:])
    return f"{told}, and by name {others}" if others else told


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
