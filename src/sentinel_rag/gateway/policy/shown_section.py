"""The optional keys of a policy file that say what a person is shown before they decide: what a call is for, what of it
changes, and what people call that.

Each function reads one key of a Section and notes every fault; `loading` decides whether the file is in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sentinel_rag.contracts.tool_schemas import PREVIEW_TOOLS
from sentinel_rag.contracts.tool_servers import OWN_SERVERS
from sentinel_rag.gateway.policy.conditions import closest
from sentinel_rag.gateway.policy.fields import ANY, Path, parse_pointer
from sentinel_rag.gateway.policy.model import DEFAULT_SERVER, Deed, Effect, Parameter, Preview, ToolPolicy
from sentinel_rag.gateway.policy.section import Section
from sentinel_rag.gateway.policy.yaml_tree import Item, Problem

KEYS = ("tool", "arguments", "number", "name", "state", "changes", "fields", "deeds")
MAX_DEED = 200

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PLACE = re.compile(r"\{([^{}]*)\}")
_OURS = frozenset(tool.name for tool in PREVIEW_TOOLS)


def deed(tool: Section, parameters: Mapping[str, Parameter], problems: list[Problem]) -> str:
    """`deed`: what a call does, as a phrase such as `fetch {url}`."""
    text = tool.text("deed")
    if len(text) > MAX_DEED or not text.isprintable():
        problems.append(Problem(tool.line("deed"), f"deed must be one line of at most {MAX_DEED} characters"))
    for name in _PLACE.findall(text):
        if name not in parameters:
            message = f"deed speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            problems.append(Problem(tool.line("deed"), message))
    return text


def preview(tool: Section, parameters: Mapping[str, Parameter], problems: list[Problem]) -> Preview | None:
    """`preview`: how the gateway reads what the call is for; None if it is missing. See `preview_faults`."""
    item = tool.item("preview")
    if item is None:
        return None
    section = Section(item, "preview", KEYS, problems)
    arguments = section.texts("arguments", pattern=_NAME)
    fields = _paths(section, "fields", problems)
    for name in (*arguments, *fields):
        if name not in parameters:
            message = f"preview speaks about an unknown parameter {name!r}{closest(name, parameters)}"
            problems.append(Problem(section.line("arguments"), message))
    if (section.item("changes") is None) is (section.item("fields") is None):
        problems.append(Problem(item.line, "preview has either changes or fields"))
    return Preview(
        tool=section.text("tool", required=True, pattern=_NAME),
        arguments=tuple(arguments),
        number=_path(section, "number", problems),
        name=_path(section, "name", problems),
        state=_paths(section, "state", problems),
        changes=_path(section, "changes", problems),
        fields=fields,
        deeds=tuple(_deed(each, problems) for each in section.items("deeds")),
    )


def preview_faults(tools: Iterable[tuple[ToolPolicy, int]]) -> list[Problem]:
    """What is wrong with the tools by which previews are read; each tool comes with the line of its preview. One that
    is not known to read only could change something before anybody was asked."""
    placed = list(tools)
    reading = {(tool.server, tool.name) for tool, _ in placed if tool.effect is Effect.READ}
    return [
        Problem(line, f"preview: {tool.preview.tool!r} is no tool of server {tool.server!r} with effect: read")
        for tool, line in placed
        if tool.preview is not None
        and (tool.server, tool.preview.tool) not in reading
        and not (tool.server in OWN_SERVERS and tool.server == DEFAULT_SERVER and tool.preview.tool in _OURS)
    ]


def _deed(item: Item, problems: list[Problem]) -> Deed:
    section = Section(item, "a deed", ("field", "becomes", "say"), problems)
    return Deed(section.text("field", required=True), section.text("say", required=True), section.text("becomes"))


def _paths(section: Section, key: str, problems: list[Problem]) -> dict[str, Path]:
    item = section.item(key)
    if item is None:
        return {}
    if not isinstance(item.value, dict):
        problems.append(Problem(item.line, f"{key} must be a mapping of names to paths, not {item.kind()}"))
        return {}
    named = Section(item, key, tuple(item.value), problems)
    return {name: _path(named, name, problems) for name in item.value}


def _path(section: Section, key: str, problems: list[Problem]) -> Path:
    if section.item(key) is None:
        return ()
    try:
        path = parse_pointer(section.text(key))
    except ValueError as error:
        problems.append(Problem(section.line(key), f"{key}: {error}"))
        return ()
    if ANY in path:
        problems.append(Problem(section.line(key), f"{key} leads to one place, so it holds no *"))
    return path
