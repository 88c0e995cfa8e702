"""Which workspaces questions can go to: those of a file, of the variables, or one that is embedded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sentinel_rag.settings.values import SettingReader
from sentinel_rag.settings.workspace_file import (
    PUBLIC,
    NamedWorkspace,
    http_url,
    logs_audience,
    management_audience,
    read_workspace_file,
    same_workspace,
    workspace_guid,
    workspace_name,
    workspace_resource,
)


def _by_name(text: str, convert: Callable[[str], str], form: str) -> dict[str, str]:
    """`prod=VALUE,dev=VALUE`, or one VALUE under the name azure."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().rpartition("=")
        value = convert(value)
        name = workspace_name(name) if equals else "azure"
        if name in found:
            raise ValueError(f"two workspaces are named {name!r}: write name={form} for each")
        found[name] = value
    return found


def _azure_ids(text: str) -> Mapping[str, str]:
    return _by_name(text, workspace_guid, "GUID")


def _azure_resources(text: str) -> Mapping[str, str]:
    return _by_name(text, workspace_resource, "ID")


def _embedded_names(text: str) -> tuple[str, ...]:
    names = tuple(workspace_name(part.strip()) for part in text.split(","))
    if len(set(names)) < len(names):
        raise ValueError("a workspace is named twice")
    return names


_AZURE_BY_VARIABLES = (
    "SENTINEL_WORKSPACE_ID",
    "SENTINEL_WORKSPACE_RESOURCE_ID",
    "SENTINEL_LOGS_ENDPOINT",
    "SENTINEL_ARM_ENDPOINT",
)


def read_workspaces(reader: SettingReader, home: Path) -> tuple[str | None, tuple[NamedWorkspace, ...]]:
    """The name of one embedded workspace, and every workspace of a list, the default one first."""
    none: tuple[str, ...] = ()
    names = reader.read("SENTINEL_WORKSPACE", _embedded_names, none)
    file = home / "workspaces.yaml"
    listed = reader.read("SENTINEL_WORKSPACES", lambda text: Path(text).expanduser().absolute(), None)
    try:
        own = file.is_file()
    except OSError as error:  # a folder that this account may not enter, or whose name no disk takes
        reader.problems.append(f"SENTINEL_HOME: the folder {home} cannot be used: {error.strerror}")
        return None, ()
    if listed is not None or own:
        return None, _listed_workspaces(reader, listed or file, names)
    azure = _azure_workspaces(reader)
    if azure:
        return None, azure
    if len(names) > 1:
        return None, tuple(NamedWorkspace(name=name) for name in names)
    return (names[0] if names else None), ()


def _listed_workspaces(reader: SettingReader, file: Path, names: tuple[str, ...]) -> tuple[NamedWorkspace, ...]:
    found = read_workspace_file(file)
    reader.problems += found.problems
    for variable in _AZURE_BY_VARIABLES:
        if reader.values.get(variable, "").strip():
            reader.problems.append(f"{variable}: {file} lists the workspaces: write it there, or remove the file")
    if not names or found.problems:
        return found.workspaces
    known = [workspace.name for workspace in found.workspaces]
    if len(names) > 1 or names[0] not in known:
        reader.problems.append(f"SENTINEL_WORKSPACE: names the default workspace, one of: {', '.join(known)}")
    return tuple(sorted(found.workspaces, key=lambda workspace: workspace.name != names[0]))


def _azure_workspaces(reader: SettingReader) -> tuple[NamedWorkspace, ...]:
    """The workspaces of SENTINEL_WORKSPACE_ID, all at one endpoint."""
    none: Mapping[str, str] = {}
    ids = reader.read("SENTINEL_WORKSPACE_ID", _azure_ids, none)
    resources = reader.read("SENTINEL_WORKSPACE_RESOURCE_ID", _azure_resources, none)
    logs = reader.read("SENTINEL_LOGS_ENDPOINT", http_url, PUBLIC.logs)
    management = reader.read("SENTINEL_ARM_ENDPOINT", http_url, PUBLIC.management)
    for name in sorted(resources.keys() - ids.keys()):
        reader.problems.append(f"SENTINEL_WORKSPACE_RESOURCE_ID: SENTINEL_WORKSPACE_ID names no workspace {name!r}")
    named = tuple(
        NamedWorkspace(
            name=name,
            workspace_id=guid,
            resource_id=resources.get(name),
            logs_endpoint=logs,
            logs_audience=logs_audience(logs),
            arm_endpoint=management,
            arm_audience=management_audience(management),
        )
        for name, guid in ids.items()
    )
    for place, workspace in enumerate(named):
        if twin := same_workspace(workspace, named[:place]):
            reader.problems.append(f"SENTINEL_WORKSPACE_ID, SENTINEL_WORKSPACE_RESOURCE_ID: {twin}")
    return named
