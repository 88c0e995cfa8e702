"""The tools that the gateway offers a key, as `GET /v1/tools` lists them; pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError
from sentinel_rag.integrations.gateway.answers import HttpReply, NoReply, body_of, refusal_of

READ = "read"
_log = logging.getLogger(__name__)
_MODEL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class GatewayTool:
    """One tool: `parameters` is the pinned JSON Schema of type object, `effect` is read, write or external."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(hash=False)
    effect: str = "external"


def chosen(offered: Iterable[GatewayTool], names: Collection[str] | None) -> list[GatewayTool]:
    """Those of `names`, all for None, without the ones whose name no model service takes, which the log names.

    Raises ConfigurationError if a name is not offered.
    """
    found = {tool.name: tool for tool in offered if names is None or tool.name in names}
    missing = sorted(set(names or ()) - found.keys())
    if missing:
        raise ConfigurationError(
            f"The gateway does not offer {', '.join(missing)}.",
            next_step="Look at `GET /v1/tools`; `sentinel doctor` says why a tool is withheld.",
        )
    unfit = [name for name in found if not _MODEL_NAME.fullmatch(name)]
    for name in unfit:
        _log.warning("The gateway's tool %r is left out: model services take no such name.", name)
    return [tool for name, tool in found.items() if name not in unfit]


def read_offers(reply: HttpReply | NoReply) -> tuple[GatewayTool, ...]:
    """The tools of an answer of `GET /v1/tools`, in the gateway's order.

    Raises UnavailableError if nothing or something else answered, ConfigurationError if the key is not taken.
    """
    if isinstance(reply, NoReply):
        raise UnavailableError(reply.message, next_step=reply.next_step)
    body = body_of(reply)
    if reply.status == 200 and body is not None and isinstance(body.get("tools"), list):
        return tuple(tool for entry in body["tools"] if (tool := _tool(entry)) is not None)
    raise _refused(reply, body)


def _refused(reply: HttpReply, body: Mapping[str, Any] | None) -> SentinelError:
    if reply.status in (401, 403) and body is not None and "detail" in body:
        return ConfigurationError(
            str(body["detail"]),
            next_step="Set SENTINEL_API_KEY to a key with the scope execute (`sentinel keys create`).",
        )
    if body is not None and "detail" in body:
        refusal = refusal_of(reply, body)
        return UnavailableError(refusal.message, next_step=refusal.next_step)
    return UnavailableError(
        f"What answered with status {reply.status} is not the gateway.",
        next_step="Check that SENTINEL_URL is the gateway and not a proxy or another service.",
    )


def _tool(entry: Any) -> GatewayTool | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return None
    parameters = entry.get("parameters")
    schema = dict(parameters) if isinstance(parameters, dict) else {}
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    schema["type"] = "object"
    return GatewayTool(
        entry["name"], str(entry.get("description") or ""), schema, str(entry.get("effect") or "external")
    )
