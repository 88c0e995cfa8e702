"""From the policy's `servers` to upstreams: finds programs, puts credentials where the policy refers to them.

A server whose program or credential is missing becomes one that says so, with one sentence for the operator; the other
servers are not touched by it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.settings import Settings, newest_credential, tool_server_environment

if TYPE_CHECKING:
    from sentinel_rag.gateway.policy import Policy, ServerSpec
    from sentinel_rag.gateway.upstream import Renewal, Upstream


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
        from sentinel_rag.gateway.policy.server_section import unknown_servers

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
