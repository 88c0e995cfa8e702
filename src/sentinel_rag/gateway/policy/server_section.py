"""The keys of a policy file on tool servers of other makers, and on what a person is shown before they decide.

Each function reads one key of a Section and notes every fault; `loading` decides whether the file is in force. A
credential stands here by reference only, as the name of a `SENTINEL_UPSTREAM_` variable; its value never does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from sentinel_rag.contracts.servers import LOOPBACK_NAMES, OWN_SERVERS
from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.fields import Path
from sentinel_rag.gateway.policy.model import (
    DEFAULT_SERVER,
    Deed,
    Effect,
    Parameter,
    Policy,
    Preview,
    ServerSpec,
    ToolPolicy,
)
from sentinel_rag.gateway.policy.section import Section

SERVER_KEYS = (
    *("name", "url", "token_variable", "insecure", "command", "environment", "secret_environment", "shared", "era"),
)
ERAS = ("2025-11-25", "2026-07-28")

_URL_ONLY = ("token_variable", "insecure")
_COMMAND_ONLY = ("environment", "secret_environment", "shared")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"SENTINEL_UPSTREAM_[A-Z0-9_]{1,100}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def servers(file: Section) -> dict[str, ServerSpec]:
    """The declared servers by name."""
    found: dict[str, ServerSpec] = {}
    for section in file.sections("servers", "a server", SERVER_KEYS):
        spec = _server(section)
        if spec.name in OWN_SERVERS:
            message = f"the server {spec.name!r} is part of the product and needs no entry: choose another name"
            section.fault("name", message)
        elif spec.name in found:
            message = f"the server {spec.name!r} stands twice; first on line {found[spec.name].line}"
            section.fault("name", message)
        elif spec.name:
            found[spec.name] = spec
    return found


def _server(section: Section) -> ServerSpec:
    name = section.text("name", required=True, pattern=_NAME)
    has_url = section.has("url")
    if section.is_mapping and has_url == section.has("command"):
        section.fault(section.start, f"the server {name!r} needs either a url or a command")
    else:
        for key in _COMMAND_ONLY if has_url else _URL_ONLY:
            if section.has(key):
                belongs = "command" if has_url else "url"
                section.fault(key, f"{key} belongs to a server with a {belongs}")
    environment = _texts(section, "environment")
    secret_environment = _texts(section, "secret_environment")
    for variable in secret_environment.values():
        _check_variable(section, "secret_environment", variable)
    for twice in environment.keys() & secret_environment.keys():
        message = f"{twice} stands in environment and in secret_environment"
        section.fault("secret_environment", message)
    token_variable = section.text("token_variable")
    if token_variable:
        _check_variable(section, "token_variable", token_variable)
    return ServerSpec(
        name=name,
        url=_url(section),
        command=_command(section),
        token_variable=token_variable,
        environment=environment,
        secret_environment=secret_environment,
        era=section.choice("era", ERAS, ""),
        shared=section.flag("shared"),
        line=section.line("name"),
    )


def _url(section: Section) -> str:
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
        section.fault("url", problem)
    return text


def _command(section: Section) -> tuple[str, ...]:
    items = section.items("command")
    words = [item.value for item in items if isinstance(item.value, str)]
    if len(words) < len(items) or (section.has("command") and not words):
        section.fault("command", "command must be a list of texts: the program, its arguments")
    elif words and (not words[0] or ("/" in words[0] and not words[0].startswith("/"))):
        message = f"the program {words[0]!r} must be a name to be found on PATH, or an absolute path"
        section.fault("command", message)
    elif any("\0" in word for word in words):
        section.fault("command", "command holds a NUL")
    return tuple(words)


def _texts(section: Section, key: str) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for name, value in section.mapping(key, "names to texts").items():
        if not _ENVIRONMENT_NAME.fullmatch(name):
            section.fault(value.key_line, f"{name!r} cannot be the name of an environment variable")
        elif not isinstance(value.value, str) or "\0" in value.value:
            section.fault(value.line, f"{key}: {name} must be a text, not {value.kind()}: write it in quotes")
        else:
            texts[name] = value.value
    return texts


def _check_variable(section: Section, key: str, name: str) -> None:
    if not _VARIABLE.fullmatch(name):  # it may be the secret itself, so it goes into no message
        message = "here stands the name of a variable such as SENTINEL_UPSTREAM_TOKEN, never the credential itself"
        section.fault(key, message)


def unknown_servers(policy: Policy) -> list[str]:
    """A sentence for each tool whose server is neither part of the product nor declared."""
    known = (*OWN_SERVERS, *policy.server_specs)
    return [
        f"The tool {tool.name!r} is on the server {tool.server!r}, which is not in servers{closest(tool.server, known)}"
        for tool in policy.tools.values()
        if tool.server not in known
    ]


KEYS = ("tool", "arguments", "number", "name", "state", "changes", "fields", "deeds")
MAX_DEED = 200

_TOOL_OR_ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PLACE = re.compile(r"\{([^{}]*)\}")
_OURS = frozenset(tool.name for tool in PREVIEW_TOOLS)


def deed(tool: Section, parameters: Mapping[str, Parameter]) -> str:
    """`deed`: what a call does, as a phrase such as `fetch {url}`."""
    text = tool.text("deed")
    if len(text) > MAX_DEED or not text.isprintable():
        tool.fault("deed", f"deed must be one line of at most {MAX_DEED} characters")
    for name in _PLACE.findall(text):
        if name not in parameters:
            message = f"deed speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            tool.fault("deed", message)
    return text


def preview(tool: Section, parameters: Mapping[str, Parameter]) -> Preview | None:
    """`preview`: how the gateway reads what the call is for; None if it is missing. See `check_previews`."""
    section = tool.section("preview", KEYS)
    if section is None:
        return None
    arguments = section.texts("arguments", pattern=_TOOL_OR_ARGUMENT)
    fields = _paths(section, "fields")
    for name in (*arguments, *fields):
        if name not in parameters:
            message = f"preview speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            section.fault("arguments", message)
    if section.has("changes") is section.has("fields"):
        section.fault(section.start, "preview has either changes or fields")
    return Preview(
        tool=section.text("tool", required=True, pattern=_TOOL_OR_ARGUMENT),
        arguments=tuple(arguments),
        number=section.place("number"),
        name=section.place("name"),
        state=_paths(section, "state"),
        changes=section.place("changes"),
        fields=fields,
        deeds=tuple(
            Deed(each.text("field", required=True), each.text("say", required=True), each.text("becomes"))
            for each in section.sections("deeds", "a deed", ("field", "becomes", "say"))
        ),
    )


def check_previews(tools: Sequence[tuple[ToolPolicy, Section]]) -> None:
    """Note what is wrong with the tools by which previews are read; each tool comes with its section. One that is not
    known to read only could change something before anybody was asked."""
    reading = {(tool.server, tool.name) for tool, _ in tools if tool.effect is Effect.READ}
    reading |= {(DEFAULT_SERVER, name) for name in _OURS}
    for tool, section in tools:
        if tool.preview is not None and (tool.server, tool.preview.tool) not in reading:
            fault = f"preview: {tool.preview.tool!r} is no tool of server {tool.server!r} with effect: read"
            section.fault("preview", fault)


def _paths(section: Section, key: str) -> dict[str, Path]:
    names = tuple(section.mapping(key, "names to paths"))
    named = section.section(key, names) if names else None
    return {} if named is None else {name: named.place(name) for name in names}
