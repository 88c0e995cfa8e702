"""The keys of a policy file on tool servers of other makers, and on what a person is shown before they decide.

Each function reads one key of a Section and notes every fault; `loading` decides whether the file is in force. A
credential stands here by reference only, as the name of a `SENTINEL_UPSTREAM_` variable; its value never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from sentinel_rag.contracts.servers import LOOPBACK_NAMES, OWN_SERVERS
from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.fields import ANY, Path, parse_pointer
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
from sentinel_rag.gateway.policy.section import PolicyProblem, Section, YamlItem

SERVER_KEYS = (
    *("name", "url", "token_variable", "insecure", "command", "environment", "secret_environment", "shared", "era"),
)
ERAS = ("2025-11-25", "2026-07-28")

_URL_ONLY = ("token_variable", "insecure")
_COMMAND_ONLY = ("environment", "secret_environment", "shared")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"SENTINEL_UPSTREAM_[A-Z0-9_]{1,100}")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def servers(file: Section, problems: list[PolicyProblem]) -> dict[str, ServerSpec]:
    """The declared servers by name."""
    found: dict[str, ServerSpec] = {}
    for item in file.items("servers"):
        section = Section(item, "a server", SERVER_KEYS, problems)
        spec = _server(section, item, problems)
        if spec.name in OWN_SERVERS:
            message = f"the server {spec.name!r} is part of the product and needs no entry: choose another name"
            problems.append(PolicyProblem(section.line("name"), message))
        elif spec.name in found:
            message = f"the server {spec.name!r} stands twice; first on line {found[spec.name].line}"
            problems.append(PolicyProblem(section.line("name"), message))
        elif spec.name:
            found[spec.name] = spec
    return found


def _server(section: Section, item: YamlItem, problems: list[PolicyProblem]) -> ServerSpec:
    name = section.text("name", required=True, pattern=_NAME)
    has_url, has_command = (isinstance(item.value, dict) and key in item.value for key in ("url", "command"))
    if isinstance(item.value, dict) and has_url == has_command:
        problems.append(PolicyProblem(item.line, f"the server {name!r} needs either a url or a command"))
    elif isinstance(item.value, dict):
        for key in _COMMAND_ONLY if has_url else _URL_ONLY:
            if key in item.value:
                belongs = "command" if has_url else "url"
                problems.append(PolicyProblem(section.line(key), f"{key} belongs to a server with a {belongs}"))
    environment = _texts(section, "environment", problems)
    secret_environment = _texts(section, "secret_environment", problems)
    for variable in secret_environment.values():
        _check_variable(variable, section.line("secret_environment"), problems)
    for twice in environment.keys() & secret_environment.keys():
        message = f"{twice} stands in environment and in secret_environment"
        problems.append(PolicyProblem(section.line("secret_environment"), message))
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


def _url(section: Section, problems: list[PolicyProblem]) -> str:
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
        problems.append(PolicyProblem(section.line("url"), problem))
    return text


def _command(section: Section, problems: list[PolicyProblem]) -> tuple[str, ...]:
    items = section.items("command")
    words = [item.value for item in items if isinstance(item.value, str)]
    if len(words) < len(items) or (section.item("command") is not None and not words):
        problems.append(
            PolicyProblem(section.line("command"), "command must be a list of texts: the program, its arguments")
        )
    elif words and (not words[0] or ("/" in words[0] and not words[0].startswith("/"))):
        message = f"the program {words[0]!r} must be a name to be found on PATH, or an absolute path"
        problems.append(PolicyProblem(section.line("command"), message))
    elif any("\0" in word for word in words):
        problems.append(PolicyProblem(section.line("command"), "command holds a NUL"))
    return tuple(words)


def _texts(section: Section, key: str, problems: list[PolicyProblem]) -> Mapping[str, str]:
    item = section.item(key)
    if item is None:
        return {}
    if not isinstance(item.value, dict):
        problems.append(PolicyProblem(item.line, f"{key} must be a mapping of names to texts, not {item.kind()}"))
        return {}
    texts: dict[str, str] = {}
    for name, value in item.value.items():
        if not _ENVIRONMENT_NAME.fullmatch(name):
            problems.append(PolicyProblem(value.key_line, f"{name!r} cannot be the name of an environment variable"))
        elif not isinstance(value.value, str) or "\0" in value.value:
            problems.append(
                PolicyProblem(value.line, f"{key}: {name} must be a text, not {value.kind()}: write it in quotes")
            )
        else:
            texts[name] = value.value
    return texts


def _check_variable(name: str, line: int, problems: list[PolicyProblem]) -> None:
    if not _VARIABLE.fullmatch(name):  # it may be the secret itself, so it goes into no message
        message = "here stands the name of a variable such as SENTINEL_UPSTREAM_TOKEN, never the credential itself"
        problems.append(PolicyProblem(line, message))


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


def deed(tool: Section, parameters: Mapping[str, Parameter], problems: list[PolicyProblem]) -> str:
    """`deed`: what a call does, as a phrase such as `fetch {url}`."""
    text = tool.text("deed")
    if len(text) > MAX_DEED or not text.isprintable():
        problems.append(PolicyProblem(tool.line("deed"), f"deed must be one line of at most {MAX_DEED} characters"))
    for name in _PLACE.findall(text):
        if name not in parameters:
            message = f"deed speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            problems.append(PolicyProblem(tool.line("deed"), message))
    return text


def preview(tool: Section, parameters: Mapping[str, Parameter], problems: list[PolicyProblem]) -> Preview | None:
    """`preview`: how the gateway reads what the call is for; None if it is missing. See `preview_faults`."""
    item = tool.item("preview")
    if item is None:
        return None
    section = Section(item, "preview", KEYS, problems)
    arguments = section.texts("arguments", pattern=_TOOL_OR_ARGUMENT)
    fields = _paths(section, "fields", problems)
    for name in (*arguments, *fields):
        if name not in parameters:
            message = f"preview speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            problems.append(PolicyProblem(section.line("arguments"), message))
    if (section.item("changes") is None) is (section.item("fields") is None):
        problems.append(PolicyProblem(item.line, "preview has either changes or fields"))
    return Preview(
        tool=section.text("tool", required=True, pattern=_TOOL_OR_ARGUMENT),
        arguments=tuple(arguments),
        number=_path(section, "number", problems),
        name=_path(section, "name", problems),
        state=_paths(section, "state", problems),
        changes=_path(section, "changes", problems),
        fields=fields,
        deeds=tuple(_deed(each, problems) for each in section.items("deeds")),
    )


def preview_faults(tools: Iterable[tuple[ToolPolicy, int]]) -> list[PolicyProblem]:
    """What is wrong with the tools by which previews are read; each tool comes with the line of its preview. One that
    is not known to read only could change something before anybody was asked."""
    placed = list(tools)
    reading = {(tool.server, tool.name) for tool, _ in placed if tool.effect is Effect.READ}
    return [
        PolicyProblem(line, f"preview: {tool.preview.tool!r} is no tool of server {tool.server!r} with effect: read")
        for tool, line in placed
        if tool.preview is not None
        and (tool.server, tool.preview.tool) not in reading
        and not (tool.server in OWN_SERVERS and tool.server == DEFAULT_SERVER and tool.preview.tool in _OURS)
    ]


def _deed(item: YamlItem, problems: list[PolicyProblem]) -> Deed:
    section = Section(item, "a deed", ("field", "becomes", "say"), problems)
    return Deed(section.text("field", required=True), section.text("say", required=True), section.text("becomes"))


def _paths(section: Section, key: str, problems: list[PolicyProblem]) -> dict[str, Path]:
    item = section.item(key)
    if item is None:
        return {}
    if not isinstance(item.value, dict):
        problems.append(PolicyProblem(item.line, f"{key} must be a mapping of names to paths, not {item.kind()}"))
        return {}
    named = Section(item, key, tuple(item.value), problems)
    return {name: _path(named, name, problems) for name in item.value}


def _path(section: Section, key: str, problems: list[PolicyProblem]) -> Path:
    if section.item(key) is None:
        return ()
    try:
        path = parse_pointer(section.text(key))
    except ValueError as error:
        problems.append(PolicyProblem(section.line(key), f"{key}: {error}"))
        return ()
    if ANY in path:
        problems.append(PolicyProblem(section.line(key), f"{key} leads to one place, so it holds no *"))
    return path
