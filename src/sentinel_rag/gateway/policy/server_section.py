"""The `servers` of the policy file: tool servers of other makers, each reached by a URL or started as a command.

A credential stands here by reference only, as the name of a `SENTINEL_UPSTREAM_` variable; its value never does. The
servers of this product are known and need no entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.contracts.tool_servers import OWN_SERVERS
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.model import Policy, ServerSpec
from sentinel_rag.gateway.policy.section import Section
from sentinel_rag.gateway.policy.yaml_tree import Item, Problem

SERVER_KEYS = (
    *("name", "url", "token_variable", "insecure", "command", "environment", "secret_environment", "shared", "era"),
)
ERAS = ("2025-11-25", "2026-07-28")

_URL_ONLY = ("token_variable", "insecure")
_COMMAND_ONLY = ("environment", "secret_environment", "shared")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"SENTINEL_UPSTREAM_[A-Z0-9_]{1,100}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def servers(file: Section, problems: list[Problem]) -> dict[str, ServerSpec]:
    """The declared servers by name."""
    found: dict[str, ServerSpec] = {}
    for item in file.items("servers"):
        section = Section(item, "a server", SERVER_KEYS, problems)
        spec = _server(section, item, problems)
        if spec.name in OWN_SERVERS:
            message = f"the server {spec.name!r} is part of the product and needs no entry: choose another name"
            problems.append(Problem(section.line("name"), message))
        elif spec.name in found:
            message = f"the server {spec.name!r} stands twice; first on line {found[spec.name].line}"
            problems.append(Problem(section.line("name"), message))
        elif spec.name:
            found[spec.name] = spec
    return found


def _server(section: Section, item: Item, problems: list[Problem]) -> ServerSpec:
    name = section.text("name", required=True, pattern=_NAME)
    has_url, has_command = (isinstance(item.value, dict) and key in item.value for key in ("url", "command"))
    if isinstance(item.value, dict) and has_url == has_command:
        problems.append(Problem(item.line, f"the server {name!r} needs either a url or a command"))
    elif isinstance(item.value, dict):
        for key in _COMMAND_ONLY if has_url else _URL_ONLY:
            if key in item.value:
                belongs = "command" if has_url else "url"
                problems.append(Problem(section.line(key), f"{key} belongs to a server with a {belongs}"))
    environment = _texts(section, "environment", problems)
    secret_environment = _texts(section, "secret_environment", problems)
    for variable in secret_environment.values():
        _check_variable(variable, section.line("secret_environment"), problems)
    for twice in environment.keys() & secret_environment.keys():
        message = f"{twice} stands in environment and in secret_environment"
        problems.append(Problem(section.line("secret_environment"), message))
    token_variable = section.text("token_variable")
    if token_variable:
        _check_variable(token_variable, section.line("token_variable"), problems)
    return ServerSpec(
        name=name,
        url=_url(section, problems),
        command=_command(section, problems),
        token_variable=token_variable,
        environment=environment,
        secret_environment=secret_environment,
        era=section.choice("era", ERAS, ""),
        shared=section.flag("shared"),
        line=section.line("name"),
    )


def _url(section: Section, problems: list[Problem]) -> str:
    text = section.text("url")
    insecure = section.flag("insecure")
    if not text:
        return ""
    problem = ""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        problem = f"{text!r} is not a URL"
    else:
        if parts.username is not None or parts.password is not None:
            problem = "a URL with a user or password in it is not taken: name a token_variable"
        elif parts.scheme not in ("http", "https") or not host or parts.fragment:
            problem = f"{text!r} is not an http or https URL"
        elif parts.scheme == "http" and host not in LOOPBACK_NAMES and not insecure:
            problem = "plain http to another machine: use https, or accept that all can be read with insecure: true"
    if problem:
        problems.append(Problem(section.line("url"), problem))
    return text


def _command(section: Section, problems: list[Problem]) -> tuple[str, ...]:
    items = section.items("command")
    words = [item.value for item in items if isinstance(item.value, str)]
    if len(words) < len(items) or (section.item("command") is not None and not words):
        problems.append(Problem(section.line("command"), "command must be a list of texts: the program, its arguments"))
    elif words and (not words[0] or ("/" in words[0] and not words[0].startswith("/"))):
        message = f"the program {words[0]!r} must be a name to be found on PATH, or an absolute path"
        problems.append(Problem(section.line("command"), message))
    elif any("\0" in word for word in words):
        problems.append(Problem(section.line("command"), "command holds a NUL"))
    return tuple(words)


def _texts(section: Section, key: str, problems: list[Problem]) -> Mapping[str, str]:
    item = section.item(key)
    if item is None:
        return {}
    if not isinstance(item.value, dict):
        problems.append(Problem(item.line, f"{key} must be a mapping of names to texts, not {item.kind()}"))
        return {}
    texts: dict[str, str] = {}
    for name, value in item.value.items():
        if not _ENVIRONMENT_NAME.fullmatch(name):
            problems.append(Problem(value.key_line, f"{name!r} cannot be the name of an environment variable"))
        elif not isinstance(value.value, str) or "\0" in value.value:
            problems.append(
                Problem(value.line, f"{key}: {name} must be a text, not {value.kind()}: write it in quotes")
            )
        else:
            texts[name] = value.value
    return texts


def _check_variable(name: str, line: int, problems: list[Problem]) -> None:
    if not _VARIABLE.fullmatch(name):  # it may be the secret itself, so it goes into no message
        message = "here stands the name of a variable such as SENTINEL_UPSTREAM_TOKEN, never the credential itself"
        problems.append(Problem(line, message))


def unknown_servers(policy: Policy) -> list[str]:
    """A sentence for each tool whose server is neither part of the product nor declared."""
    known = (*OWN_SERVERS, *policy.server_specs)
    return [
        f"The tool {tool.name!r} is on the server {tool.server!r}, which is not in servers{closest(tool.server, known)}"
        for tool in policy.tools.values()
        if tool.server not in known
    ]
