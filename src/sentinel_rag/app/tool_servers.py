"""The tool servers: how the gateway reaches each, and what the Sentinel one is told of KQL of people and alerts.

A server whose program or credential is missing becomes one that says so; the others are not touched by it. A tool
server has no PATH to find node by, so the supervisor tells where node lies.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.tool_schemas import OPT_IN_TOOLS
from sentinel_rag.settings import Settings, newest_credential, tool_server_environment

if TYPE_CHECKING:
    from sentinel_rag.gateway.policy import Policy, ServerSpec
    from sentinel_rag.gateway.upstream import Renewal, Upstream
    from sentinel_rag.sentinel.alert_events import AlertEvents
    from sentinel_rag.sentinel.freeform_query import FreeformQueries
    from sentinel_rag.sentinel.kql_guard import KqlGuard


_FALLBACK = (
    "Freeform KQL is on, but Microsoft's parser is not there: queries are checked by a fallback, which knows no types "
    "and refuses more."
)


def switched_off_tools(settings: Settings) -> list[str]:
    """Tools of the policy that this run neither serves nor lets pass."""
    return [] if settings.freeform_kql else sorted(OPT_IN_TOOLS)


def freeform_configuration(settings: Settings) -> dict[str, Any] | None:
    """The tool server's share of its configuration line; None where freeform KQL is off."""
    if not settings.freeform_kql:
        return None
    from sentinel_rag.sentinel.kql_guard.official_parser import parser_state

    state = parser_state()
    parser = None
    if not state.missing and state.node is not None:
        version = list(state.node.version)
        parser = {"folder": str(state.folder), "node": str(state.node.program), "version": version}
    return {"tables": list(settings.freeform_tables), "parser": parser}


def freeform_queries(configuration: Mapping[str, Any] | None) -> FreeformQueries | None:
    """The tool, its parser starting in the background; None where freeform KQL is off."""
    if configuration is None:
        return None
    from sentinel_rag.sentinel.freeform_query import FreeformQueries
    from sentinel_rag.sentinel.kql_guard import KqlGuard, OfficialParser

    found = configuration["parser"]
    parser = None
    if found is None:
        from sentinel_rag.app.serving import give_notice

        give_notice(UnavailableError(_FALLBACK, next_step="Run: sentinel kql install (it needs npm and node)"))
    else:
        parser = OfficialParser(Path(found["folder"]), Path(found["node"]), node_version=tuple(found["version"]))
        parser.warm()
    tables = configuration["tables"]
    return FreeformQueries(KqlGuard(parser), allowed_tables=frozenset(tables) if tables else None)


def stored_query_configuration(settings: Settings) -> dict[str, Any]:
    """The tool server's share of its configuration line. The allow-list of tables for freeform KQL holds here too."""
    node = shutil.which("node")
    return {"node_folder": "" if node is None else str(Path(node).parent), "tables": list(settings.freeform_tables)}


def stored_queries(configuration: Mapping[str, Any], shared: KqlGuard | None) -> AlertEvents:
    """The tool, whose guard starts with the first query; where freeform KQL has one, it is `shared`."""
    from sentinel_rag.sentinel.alert_events import AlertEvents

    def guard() -> KqlGuard:
        if shared is not None:
            return shared
        from sentinel_rag.sentinel.kql_guard import KqlGuard, installed_parser

        return KqlGuard(installed_parser(search_path=configuration["node_folder"]))

    tables = configuration["tables"]
    return AlertEvents(guard, allowed_tables=frozenset(tables) if tables else None)


def tool_server_configuration(settings: Settings) -> dict[str, Any]:
    """The arguments of `ToolServers` as the gateway's configuration line carries them; it holds secrets."""
    return {
        "folder": str(settings.home / "tool-servers"),
        "environment": tool_server_environment(),
        "credentials": {name: value.reveal() for name, value in settings.upstream_credentials.items()},
        "places": dict(settings.upstream_places),
    }


class ToolServers:
    """`folder` holds a working folder for each started server, `environment` is what each of them starts with, and
    `credentials` are the values of the variables that a policy may refer to, `places` where newer ones may be."""

    def __init__(
        self,
        *,
        folder: str,
        environment: Mapping[str, str],
        credentials: Mapping[str, str],
        places: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._environment = environment
        self._credentials = credentials
        self._places = places or {}

    def upstreams(self, policy: Policy) -> dict[str, Upstream]:
        """One upstream for each declared server; also those that cannot be used."""
        return {spec.name: self._upstream(spec) for spec in policy.server_specs.values()}

    def faults(self, policy: Policy) -> list[SentinelError]:
        """What is wrong with the declared servers on this machine, each with the next step."""
        from sentinel_rag.gateway.policy.flow_section import unknown_servers

        faults = [fault for spec in policy.server_specs.values() if (fault := self._fault(spec)) is not None]
        hint = "Declare it under servers in the policy file, or correct the name; until then the tool cannot be called."
        return [*faults, *(UnavailableError(sentence, next_step=hint) for sentence in unknown_servers(policy))]

    def _upstream(self, spec: ServerSpec) -> Upstream:
        from sentinel_rag.gateway.upstream import (
            AbsentUpstream,
            Launch,
            McpHttpUpstream,
            McpStdioUpstream,
            UpstreamProtocol,
        )

        fault = self._fault(spec)
        if fault is not None:
            return AbsentUpstream(str(fault))
        era = UpstreamProtocol(spec.era) if spec.era else None
        if spec.url:
            return McpHttpUpstream(
                spec.url,
                token=self._credentials.get(spec.token_variable),
                renewal=self._renewal(spec.token_variable) if spec.token_variable else None,
                era=era,
            )
        folder = self._folder / spec.name
        secrets = {name: self._credentials[variable] for name, variable in spec.secret_environment.items()}
        program = self._program(spec)
        assert program is not None
        launch = Launch(
            command=(program, *spec.command[1:]),
            environment={**self._environment, "HOME": str(folder), **spec.environment, **secrets},
            folder=folder,
        )
        return McpStdioUpstream(launch, name=spec.name, secrets=secrets.values(), era=era, shared=spec.shared)

    def _renewal(self, variable: str) -> Renewal:
        from sentinel_rag.gateway.upstream import Renewal

        place = self._places.get(variable)
        return Renewal(variable, None if place is None else lambda: newest_credential(variable, place))

    def _fault(self, spec: ServerSpec) -> SentinelError | None:
        referred = (*([spec.token_variable] if spec.token_variable else []), *spec.secret_environment.values())
        missing = [variable for variable in referred if variable not in self._credentials]
        if missing:
            return UnavailableError(
                f"The tool server {spec.name!r} is left out: not set: {', '.join(missing)}.",
                next_step="Set it in the environment or in .env and start again; the other tools work.",
            )
        if spec.token_variable and not self._credentials[spec.token_variable].isprintable():
            return UnavailableError(
                f"The tool server {spec.name!r} is left out: {spec.token_variable} cannot be sent in an HTTP header.",
                next_step="Set it to the bare token, without line ends; the other tools work.",
            )
        if spec.command and self._program(spec) is None:
            return UnavailableError(
                f"The tool server {spec.name!r} is left out: there is no program {spec.command[0]!r} to start.",
                next_step="Install it or correct the command in the policy file; the other tools work.",
            )
        return None

    def _program(self, spec: ServerSpec) -> str | None:
        return shutil.which(spec.command[0], path=self._environment.get("PATH"))
