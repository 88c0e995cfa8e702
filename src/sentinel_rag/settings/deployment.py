"""Zones that run apart: the certificate of this one, where the others are, and the token at each border.

Nothing here is needed by `sentinel up`, which makes all of it anew at each start. Plain http stays within a machine, as
for every other address in the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from sentinel_rag.contracts.tool_servers import OWN_SERVERS
from sentinel_rag.settings.shapes import DeploymentSettings, Secret, TlsFiles
from sentinel_rag.settings.values import SettingReader
from sentinel_rag.settings.workspace_file import http_url

T = TypeVar("T")

LEAST_TOKEN = 32


def read_deployment(reader: SettingReader) -> DeploymentSettings:
    """What is set; a certificate without its key, and an address without its token, are problems."""
    read, none = reader.read, {}  # type: ignore[var-annotated]  # empty, of either kind
    certificate = read("SENTINEL_TLS_CERTIFICATE", _file, None)
    key = read("SENTINEL_TLS_KEY", _file, None)
    if _given(reader, "SENTINEL_TLS_CERTIFICATE") != _given(reader, "SENTINEL_TLS_KEY"):
        lacking = "SENTINEL_TLS_KEY" if certificate is not None else "SENTINEL_TLS_CERTIFICATE"
        reader.problems.append(f"{lacking}: is missing; a certificate and its key go together")
    tools: Mapping[str, str] = read("SENTINEL_TOOLS", _by_zone(_base_url), none)
    tokens: Mapping[str, Secret] = read("SENTINEL_TOOLS_TOKENS", _by_zone(_token), none)
    lacking_tokens = sorted(tools.keys() - tokens.keys())
    if lacking_tokens:
        reader.problems.append(f"SENTINEL_TOOLS_TOKENS: has none for {', '.join(lacking_tokens)} of SENTINEL_TOOLS")
    agent_url = read("SENTINEL_AGENT_URL", _base_url, None)
    agent_token = read("SENTINEL_AGENT_TOKEN", _token, None)
    if agent_url is not None and not _given(reader, "SENTINEL_AGENT_TOKEN"):
        reader.problems.append("SENTINEL_AGENT_TOKEN: is missing; the agent at SENTINEL_AGENT_URL asks for it")
    return DeploymentSettings(
        tls=None if certificate is None or key is None else TlsFiles(certificate, key),
        tls_ca=read("SENTINEL_TLS_CA", _file, None),
        zone_token=read("SENTINEL_ZONE_TOKEN", _token, None),
        tools=tools,
        tools_tokens=tokens,
        agent_url=agent_url,
        agent_token=agent_token,
    )


def _given(reader: SettingReader, name: str) -> bool:
    return bool(reader.values.get(name, "").strip())


def _file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise ValueError(f"{text!r} cannot be read: {error.strerror}") from None


def _base_url(text: str) -> str:
    """An address without a path: what is served there is known."""
    url = http_url(text)
    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("an address is to be no more than https://HOST or https://HOST:PORT")
    return url


def _token(text: str) -> Secret:
    """Never quoted in what it raises."""
    if len(text) < LEAST_TOKEN:
        raise ValueError(f"a token is shorter than {LEAST_TOKEN} characters, so it could be guessed")
    if not text.isascii() or not text.isprintable() or " " in text or "," in text:
        raise ValueError(
            "a token holds a blank, a comma or a character that cannot be sent: make it of letters and digits"
        )
    return Secret(text)


def _by_zone(convert: Callable[[str], T]) -> Callable[[str], Mapping[str, T]]:
    """`sentinel=VALUE,files=VALUE` with the names of tool servers."""

    def read(text: str) -> Mapping[str, T]:
        found: dict[str, T] = {}
        for part in text.split(","):
            name, equals, value = part.strip().partition("=")
            if not equals or name not in OWN_SERVERS:
                raise ValueError(f"is not of the form NAME=VALUE,NAME=VALUE with names of {', '.join(OWN_SERVERS)}")
            if name in found:
                raise ValueError(f"{name} stands twice")
            found[name] = convert(value)
        return found

    return read
