"""One role of a deployment whose zones run apart: which processes it starts, whom they know, and its run in front.

The zones are those of `app.plan`. What differs is replaced here: the secrets that one run makes for itself, and the
addresses that its supervisor knows, are those that the settings name. A role that lacks one of them does not start, and
says which. As in a container, what the zones log goes on to this process's own output; only tool zones publish where
they listen, so that knowledge and rows can be read in from a terminal beside them.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.app.model_access import needs_identity
from sentinel_rag.app.plan import RUN_KEYS, ListeningSocket, Ports, RunPlan, approvals_page, plan_zones
from sentinel_rag.app.processes import is_healthy, start_zone, stop_zones, wait_until_healthy
from sentinel_rag.app.run_state import RunFolder, RunState, ZoneEntry
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.settings import DeploymentSettings, Settings

FIRST_PORTS: Mapping[str, int] = {"web": 8440, "agent": 8441, "interceptor": 8442, "tools": 8451}
"""Where each role listens; the tool zones on ports one after the other, in the order of `OWN_SERVERS`."""

_OWN_LINES = "Its own last lines above say why."

WITH_WORKSPACES = frozenset({"sentinel", "knowledge"})
"""The tool zones that ask a workspace; an embedded one runs beside them, on loopback."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a role listens: an IP address, and the port of its first zone (None: that of `FIRST_PORTS`; 0: free
    ones)."""

    address: str = "127.0.0.1"
    port: int | None = None

    @classmethod
    def read(cls, text: str) -> ListenAddress:
        """`ADDRESS`, `ADDRESS:PORT` or, of IPv6, `[ADDRESS]:PORT`. Raises UsageError."""
        host, colon, port = text.rpartition(":") if text.count(":") == 1 or text.startswith("[") else (text, "", "")
        if text.endswith("]"):
            host, colon, port = text, "", ""
        try:
            address = str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]")))
        except ValueError:
            address = ""
        if not address or (colon and not (port.isascii() and port.isdecimal() and int(port[:6]) < 65_536)):
            raise UsageError(
                f"{text!r} is no address to listen on.",
                next_step="Give an IP address and, if you like, a port: --listen 0.0.0.0:8442",
            )
        return cls(address, int(port) if colon else None)


def plan_role(
    settings: Settings, role: str, tools: Sequence[str], workspace: str, place: ListenAddress, stack: ExitStack
) -> RunPlan:
    """The part of a run that `role` (web, agent, interceptor or tools) is. `tools` are the tool zones of that role.

    Raises UsageError for what the settings lack or what cannot be served there, UnavailableError for a port in use.
    """
    if settings.deployment.tls is None and not ipaddress.ip_address(place.address).is_loopback:
        raise UsageError(
            f"The address {place.address} can be reached by other machines, and there is no certificate.",
            next_step="Set SENTINEL_TLS_CERTIFICATE and SENTINEL_TLS_KEY, or listen on 127.0.0.1.",
        )
    whole, told = _PARTS[role](settings, tools, workspace, stack)
    served = [zone for zone in whole.zones if zone.name in told]
    beside = [zone for zone in whole.zones if _is_beside(zone.name, role, tools)]
    for zone in whole.zones:
        if zone not in beside:
            zone.listener.socket.close()
    tls = settings.deployment.tls
    proof = {} if tls is None else {"tls": {"certificate": str(tls.certificate), "key": str(tls.key)}}
    zones = [
        replace(
            zone,
            configuration={**zone.configuration, **told[zone.name], **proof},
            listener=_listen(place, role, zone.name, secure=tls is not None, stack=stack),
        )
        for zone in served
    ]
    return replace(whole, zones=(*beside, *zones), agent_token="", keys={}, web_secret="")


def _is_beside(name: str, role: str, tools: Iterable[str]) -> bool:
    """Whether a zone runs with the role on loopback, as in `sentinel up`: an embedded workspace, with what asks it."""
    return role == "tools" and name.partition("-")[0] == "workspace" and not WITH_WORKSPACES.isdisjoint(tools)


_Told = dict[str, dict[str, Any]]
"""Zone -> what it is told instead of what the plan says."""


def _tools(settings: Settings, tools: Sequence[str], workspace: str, stack: ExitStack) -> tuple[RunPlan, _Told]:
    token = _needed(settings.deployment.zone_token, "SENTINEL_ZONE_TOKEN", "the gateway shows it to this zone")
    plan = plan_zones(replace(settings, gateway_url=None), workspace, Ports(), stack)
    return plan, {f"executor-{name}": {"token": token} for name in tools}


def _gateway(settings: Settings, _: Sequence[str], workspace: str, stack: ExitStack) -> tuple[RunPlan, _Told]:
    known = settings.deployment
    _needed(known.tools or None, "SENTINEL_TOOLS", "without tool zones there is nothing that a call could reach")
    upstreams = {
        name: {"url": f"{url}/mcp", "token": known.tools_tokens[name].reveal()} for name, url in known.tools.items()
    }
    held = {"agent": settings.gateway_key, "user": settings.user_key, "approver": settings.approver_key}
    keys = [
        {"key_id": key_id, "key": key.reveal(), **RUN_KEYS[key_id]}
        for key_id, key in held.items()
        if key is not None and (key_id != "user" or settings.gateway_key is not None)
    ]
    plan = plan_zones(replace(settings, gateway_url=None), workspace, Ports(), stack)
    absent = [name for name in OWN_SERVERS if name not in upstreams]
    [planned] = [zone for zone in plan.zones if zone.name == "interceptor"]
    # The web surface runs elsewhere: what MCP clients are told of it is the address that people type.
    page = None if settings.web_url is None else approvals_page(settings.web_url)
    approvals = {**planned.configuration["approvals"], "page": page}
    told = {"upstreams": upstreams, "keys": keys, "absent_servers": absent, "approvals": approvals}
    return plan, {"interceptor": told}


def _agent(settings: Settings, _: Sequence[str], workspace: str, stack: ExitStack) -> tuple[RunPlan, _Told]:
    _needed(settings.gateway_url, "SENTINEL_URL", "the agent reaches everything through the gateway")
    token = _needed(settings.deployment.zone_token, "SENTINEL_ZONE_TOKEN", "the web surface shows it to the agent")
    if settings.model_settings is not None and needs_identity(settings.model_settings):
        raise UsageError(
            "The model has no key, so it would be entered with Entra ID, and a served agent holds no Azure sign-in.",
            next_step="Set AZURE_OPENAI_API_KEY, or lead SENTINEL_MODEL_URL to a model gateway that signs in itself.",
        )
    return plan_zones(settings, workspace, Ports(), stack), {"agent": {"token": token}}


def _web(settings: Settings, _: Sequence[str], workspace: str, stack: ExitStack) -> tuple[RunPlan, _Told]:
    known: DeploymentSettings = settings.deployment
    where = {
        "gateway_url": _needed(settings.gateway_url, "SENTINEL_URL", "people's approvals and audit are there"),
        "agent_url": _needed(known.agent_url, "SENTINEL_AGENT_URL", "questions go to the agent"),
        "agent_token": _needed(known.agent_token, "SENTINEL_AGENT_TOKEN", "the agent asks for it"),
        "owner_keys": {},  # nobody started this run at a terminal: people have accounts
        "stores": None,  # they are on other machines
    }
    if known.tls is not None:
        _needed(settings.web_url, "SENTINEL_WEB_URL", "cookies are for the address that people type")
    return plan_zones(replace(settings, gateway_url=None), workspace, Ports(web=0), stack), {"web": where}


_PARTS: Mapping[str, Callable[[Settings, Sequence[str], str, ExitStack], tuple[RunPlan, _Told]]] = {
    "web": _web,
    "agent": _agent,
    "interceptor": _gateway,
    "tools": _tools,
}
ROLES = tuple(_PARTS)


def _needed(value: Any, variable: str, why: str) -> Any:
    if value is None:
        raise UsageError(f"{variable} is not set: {why}.", next_step=f"Set {variable}; docs/deployment.md shows how.")
    return value.reveal() if hasattr(value, "reveal") else value


def _listen(place: ListenAddress, role: str, zone: str, *, secure: bool, stack: ExitStack) -> ListeningSocket:
    first = FIRST_PORTS[role] if place.port is None else place.port
    name = zone.removeprefix("executor-")
    port = first + OWN_SERVERS.index(name) if role == "tools" and first else first
    is_v6 = ":" in place.address
    listener = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_STREAM)
    stack.callback(listener.close)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((place.address, port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnavailableError(
            f"The {zone} cannot listen on {place.address} port {port}: {why}.",
            next_step="Choose another address or port: --listen ADDRESS:PORT",
        ) from None
    listener.listen(512)
    host = f"[{place.address}]" if is_v6 else place.address
    return ListeningSocket(listener, f"{'https' if secure else 'http'}://{host}:{listener.getsockname()[1]}")


def url_here(scheme: str, address: str, port: int) -> str:
    """The URL by which this machine reaches what listens on `address`, which may stand for every address."""
    found = ipaddress.ip_address(address)
    if found.is_unspecified:
        address = "127.0.0.1" if found.version == 4 else "::1"
    return f"{scheme}://{f'[{address}]' if found.version == 6 else address}:{port}"


@dataclass(frozen=True, slots=True)
class ServedRole:
    """The running processes of a role, and each zone's URL as it was bound."""

    urls: dict[str, str]
    _processes: dict[str, subprocess.Popen[bytes]]

    def check(self) -> None:
        """Raise UnavailableError if a process has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise UnavailableError(
                    f"The {name} process ended (exit code {process.returncode}).",
                    next_step=_OWN_LINES,
                )

    def wait(self) -> None:
        """Block until a process ends, which raises UnavailableError."""
        while True:
            self.check()
            time.sleep(0.2)


@contextmanager
def served_role(
    settings: Settings, role: str, tools: tuple[str, ...], workspace: str, place: ListenAddress
) -> Iterator[ServedRole]:
    """Start the role's zones, wait until all serve, and end them together. Raises as `plan_role`, and UnavailableError
    if a zone does not come up, or other tool zones run in this home."""
    folder = RunFolder(settings.home)
    with ExitStack() as stack:
        stack.enter_context(folder.serve())
        if role == "tools":
            stack.enter_context(folder.hold())
        plan = plan_role(settings, role, tools, workspace, place, stack)
        processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(stop_zones, processes)
        for zone in plan.zones:
            processes[zone.name] = start_zone(zone, None, folder.path)
            zone.listener.socket.close()
        running = ServedRole({zone.name: zone.listener.url for zone in plan.zones}, processes)
        state = _state(settings, plan, workspace, processes)
        for entry in state.zones:
            wait_until_healthy(entry, running.check, next_step=_OWN_LINES, certificate=state.certificate)
        if role == "tools":
            folder.write(state)
        yield running


def _state(
    settings: Settings, plan: RunPlan, workspace: str, processes: dict[str, subprocess.Popen[bytes]]
) -> RunState:
    tls = settings.deployment.tls
    return RunState(
        supervisor_pid=os.getpid(),
        private=False,
        workspace=workspace,
        zones=tuple(ZoneEntry(zone.name, _here(zone.listener.url), processes[zone.name].pid) for zone in plan.zones),
        workspace_token=plan.workspace_token,
        knowledge_token=plan.knowledge_token,
        workspaces=plan.workspaces,
        certificate="" if tls is None else str(tls.certificate),
    )


def _here(url: str) -> str:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return url_here(parts.scheme, parts.hostname, parts.port)


def is_served(settings: Settings, address: str, port: int) -> bool:
    """Whether a healthy zone of these settings answers on `port` of this machine."""
    tls = settings.deployment.tls
    url = url_here("http" if tls is None else "https", address, port)
    return is_healthy(url, "" if tls is None else str(tls.certificate), timeout=5)
