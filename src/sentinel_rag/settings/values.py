"""Texts of the environment and of `.env` as values.

A converter takes the text of one variable and raises ValueError with the end of a sentence about it; `SettingReader`
collects these, so that a person mends all in one go.

The workspaces that questions can go to, each by name, and the file that lists several: `workspaces.yaml`.

Below `settings`, which says which file that is and what stands in the environment instead. Nothing here opens a
connection; a name, an id or an address that cannot be right is a problem with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.servers import LOOPBACK_NAMES

if TYPE_CHECKING:
    from dotenv.parser import Original
    from yaml.nodes import Node


T = TypeVar("T")
MOST_SECONDS = 3_600.0


class Secret(str):
    """A string that shows as asterisks wherever it is printed or logged by accident; `reveal` gives the value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'********'"

    def __str__(self) -> str:
        return "********"

    def __format__(self, spec: str) -> str:
        return format("********", spec)

    def reveal(self) -> str:
        return "".join(self)


def setting(variable: str, convert: Callable[[str], object], default: object, *, repr: bool = True) -> Any:
    """A field of a settings class: the variable that it is read from, how, and its value where nothing is set."""
    source = {"variable": variable, "convert": convert, "default": default}
    if default == {}:
        return field(default_factory=dict, metadata=source, repr=repr)
    return field(default=default, metadata=source, repr=repr)


def variables_of(*kinds: Any) -> Iterator[str]:
    """The variables of settings classes."""
    return (each.metadata["variable"] for kind in kinds for each in fields(kind) if each.metadata)


class SettingReader:
    """Collects problems while values are read, so that a person fixes them in one go."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.problems: list[str] = []

    def is_set(self, name: str) -> bool:
        """Whether the variable holds anything."""
        return bool(self.values.get(name, "").strip())

    def of(self, kind: Callable[..., T], **given: object) -> T:
        """An object of a settings class: what is `given`, and each other field from its variable."""
        for each in fields(kind):  # type: ignore[arg-type]  # it is a dataclass
            if each.metadata and each.name not in given:
                source = each.metadata
                given[each.name] = self.read(source["variable"], source["convert"], source["default"])
        return kind(**given)

    def read(self, name: str, convert: Callable[[str], T], default: T) -> T:
        text = self.values.get(name, "").strip()
        if not text:
            return default
        try:
            return convert(text)
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return default


def one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    """One of `allowed`, in their spelling whatever its case."""

    def convert(text: str) -> str:
        for value in allowed:
            if value.casefold() == text.casefold():
                return value
        raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")

    return convert


def seconds(text: str) -> float:
    """1 to 3600 seconds, with fractions."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds") from None
    if not 1 <= value <= MOST_SECONDS:
        raise ValueError(f"{text} is outside 1 to 3600 seconds")
    return value


def between(least: int, most: int) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise ValueError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return convert


def yes_or_no(text: str) -> bool:
    """`true` or `false`."""
    return one_of(("true", "false"))(text) == "true"


def on_or_off(text: str) -> bool:
    """`on` or `off`; `true` and `false` mean the same."""
    return one_of(("on", "off"))({"true": "on", "false": "off"}.get(text.lower(), text)) == "on"


def folder(text: str) -> Path:
    """The absolute path of a folder that is there."""
    found = Path(text).expanduser().absolute()
    if not found.is_dir():
        raise ValueError(f"{text!r} is not a folder")
    return found


def path(text: str) -> Path:
    """An absolute path, whether or not something is there."""
    return Path(text).expanduser().absolute()


def key_text(text: str) -> Secret:
    """A secret of at least 16 characters."""
    if len(text) < 16:
        raise ValueError("is shorter than 16 characters, so it could be guessed")
    return Secret(text)


def timezone(text: str) -> str:
    """An IANA name that this machine knows."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text!r} is no IANA time zone such as UTC or Europe/Berlin") from None
    return text


def read_env_file(path: Path) -> dict[str, str]:
    """The assignments of a `.env` file; empty if there is none. Raises ConfigurationError with line numbers."""
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"byte {error.start + 1} is not UTF-8"
        raise ConfigurationError(
            f"The settings file {path} cannot be read: {why}.", next_step="Make it a readable UTF-8 text file."
        ) from None
    wrong = tuple(
        f"{path}:{_first_line(binding.original)}: not of the form NAME=value"
        for binding in bindings
        if binding.error or (binding.key is not None and binding.value is None)
    )
    if wrong:
        lines = "a line" if len(wrong) == 1 else f"{len(wrong)} lines"
        raise ConfigurationError(
            f"The settings file {path} has {lines} that cannot be read.",
            problems=wrong,
            next_step="Correct the lines above; .env.example shows the form.",
        )
    return {b.key: b.value for b in bindings if b.key is not None and b.value is not None}


def _first_line(original: Original) -> int:
    """The line of the text itself: the parser counts the blank lines before it in."""
    return original.line + len(original.string) - len(original.string.lstrip("\n"))


ALL_WORKSPACES = "all"
"""What a tool's `workspace` may be beside a name; so no workspace is named so."""
LARGEST_FILE_BYTES = 100_000
MOST_WORKSPACES = 100
"""As many as one cross-workspace query of Log Analytics may name."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RESOURCE_ID = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.OperationalInsights/workspaces/[^/]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cloud:
    """Addresses of one of Microsoft's clouds; `authority` is where its identities sign in."""

    logs: str
    management: str
    authority: str


CLOUDS: Mapping[str, Cloud] = {
    "public": Cloud("https://api.loganalytics.io", "https://management.azure.com", "https://login.microsoftonline.com"),
    "usgovernment": Cloud(
        "https://api.loganalytics.us", "https://management.usgovcloudapi.net", "https://login.microsoftonline.us"
    ),
    "china": Cloud(
        "https://api.loganalytics.azure.cn", "https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"
    ),
}
PUBLIC = CLOUDS["public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWorkspace:
    """One workspace. Without `workspace_id` it is an embedded one; without `resource_id` it is read only.

    An audience is the resource that tokens are asked for; `authority` None is the one of the environment.
    """

    name: str
    workspace_id: str | None = None
    resource_id: str | None = None
    logs_endpoint: str = PUBLIC.logs
    logs_audience: str = PUBLIC.logs
    arm_endpoint: str = PUBLIC.management
    arm_audience: str = PUBLIC.management
    authority: str | None = None

    @property
    def embedded(self) -> bool:
        """True for a workspace on this machine."""
        return self.workspace_id is None


def logs_audience(endpoint: str, cloud: Cloud = PUBLIC) -> str:
    """The resource that tokens for a Log Analytics endpoint are for: a known cloud's own, else that of `cloud`."""
    return endpoint if endpoint in {each.logs for each in CLOUDS.values()} else cloud.logs


def management_audience(endpoint: str, cloud: Cloud = PUBLIC) -> str:
    """The resource that tokens for a Resource Manager are for: itself, or that of `cloud` for one on this machine."""
    return endpoint if endpoint.startswith("https://") else cloud.management


def workspace_name(text: str) -> str:
    """`text` if it can name a workspace, and so a folder. Raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a workspace name: use a-z, 0-9, - and _, at most 40")
    if text == ALL_WORKSPACES:
        raise ValueError(f"{text!r} means every workspace, so none can be named so")
    return text


def workspace_guid(text: str) -> str:
    """`text` as the id of a Log Analytics workspace. Raises ValueError."""
    if not _GUID.fullmatch(text):
        raise ValueError(f"{text!r} is not a workspace id (a GUID, as the portal's Overview page shows)")
    return text.lower()


def workspace_resource(text: str) -> str:
    """`text` as the Azure Resource ID of a workspace. Raises ValueError."""
    if not _RESOURCE_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not a workspace's Resource ID, as the portal's Properties page shows it")
    return text


def http_url(text: str) -> str:
    """`text` if it is https, or http on this machine. Raises ValueError."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not an http or https URL")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_NAMES:
        raise ValueError("plain http is for this machine only: use https, or keys and answers travel unprotected")
    return text.rstrip("/")


def same_workspace(workspace: NamedWorkspace, others: Iterable[NamedWorkspace]) -> str:
    """What is wrong if one of `others` is the same workspace of Azure under another name, else empty.

    Under two names each of its rows would count twice, and a rule that keeps one name shut would leave the other open.
    """
    for other in others:
        for key in ("workspace_id", "resource_id"):
            value = getattr(workspace, key)
            if value is not None and value.casefold() == (getattr(other, key) or "").casefold():
                return f"{workspace.name!r} and {other.name!r} are one workspace: they have the same {key}"
    return ""


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """What the file says: its workspaces in order, the default one first; or the `problems` that keep it from use."""

    workspaces: tuple[NamedWorkspace, ...]
    problems: tuple[str, ...] = ()


def read_workspace_file(path: Path) -> WorkspaceFile:
    """Read `path`; every problem comes with the line that it is about. Never raises for what the file holds."""
    import yaml

    try:
        content = path.read_bytes()
        if len(content) > LARGEST_FILE_BYTES:
            return _unusable(path, 1, f"is larger than {LARGEST_FILE_BYTES:,} bytes")
        root = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except OSError as error:
        return _unusable(path, 1, f"cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return _unusable(path, 1, "is not UTF-8 text")
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or type(error).__name__
        return _unusable(path, 1 if mark is None else mark.line + 1, f"is not valid YAML: {reason}")
    reader = _FileReader(path)
    workspaces = reader.workspaces(root)
    return WorkspaceFile(() if reader.problems else workspaces, tuple(reader.problems))


def _unusable(path: Path, line: int, reason: str) -> WorkspaceFile:
    return WorkspaceFile((), (f"{path}:{line}: {reason}",))


_KEYS: Mapping[str, Callable[[str], str]] = {
    "name": workspace_name,
    "workspace_id": workspace_guid,
    "resource_id": workspace_resource,
    "logs_endpoint": http_url,
    "arm_endpoint": http_url,
    "logs_audience": http_url,
    "arm_audience": http_url,
}


class _FileReader:
    """Walks the tree of one file and collects every problem."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems: list[str] = []

    def workspaces(self, root: Node | None) -> tuple[NamedWorkspace, ...]:
        top = dict(self._pairs(root, ("default", "workspaces"), "a mapping with the key workspaces"))
        listed = top.get("workspaces")
        items = getattr(listed, "value", None)
        if type(listed).__name__ != "SequenceNode" or not items:
            if not self.problems:
                self._problem(root, "needs a list 'workspaces' with at least one entry")
            return ()
        if len(items) > MOST_WORKSPACES:
            self._problem(items[MOST_WORKSPACES], f"there are more than {MOST_WORKSPACES} workspaces")
            return ()
        found: dict[str, NamedWorkspace] = {}
        for item in items:
            workspace = self._workspace(item)
            if workspace is None:
                continue
            if workspace.name in found:
                self._problem(item, f"two workspaces are named {workspace.name!r}")
            elif twin := same_workspace(workspace, found.values()):
                self._problem(item, twin)
            found[workspace.name] = workspace
        default = self._text(top["default"]) if "default" in top else next(iter(found), None)
        if default not in found and found:
            self._problem(top.get("default"), f"default names no workspace of the list: {', '.join(found)}")
        return tuple(sorted(found.values(), key=lambda workspace: workspace.name != default))

    def _workspace(self, item: Node) -> NamedWorkspace | None:
        before = len(self.problems)
        nodes = dict(self._pairs(item, (*_KEYS, "cloud", "embedded"), "a workspace, as name: ..., workspace_id: ..."))
        if len(self.problems) > before:
            return None
        values: dict[str, Any] = {}
        for key, convert in _KEYS.items():
            if key in nodes:
                try:
                    values[key] = convert(self._text(nodes[key]))
                except ValueError as error:
                    self._problem(nodes[key], f"{key}: {error}")
        embedded = "embedded" in nodes and self._yes(nodes["embedded"])
        cloud = self._cloud(nodes.get("cloud"))
        if "name" not in nodes:
            self._problem(item, "a workspace needs a name")
        if embedded and (others := sorted(nodes.keys() - {"name", "embedded"})):
            self._problem(nodes[others[0]], f"an embedded workspace has no {others[0]}")
        if not embedded and "workspace_id" not in nodes:
            self._problem(item, "a workspace needs a workspace_id, or embedded: true")
        if len(self.problems) > before:
            return None
        if embedded:
            return NamedWorkspace(name=values["name"])
        logs, management = values.get("logs_endpoint", cloud.logs), values.get("arm_endpoint", cloud.management)
        return NamedWorkspace(
            **{
                "logs_endpoint": logs,
                "arm_endpoint": management,
                "logs_audience": logs_audience(logs, cloud),
                "arm_audience": management_audience(management, cloud),
                "authority": cloud.authority if "cloud" in nodes else None,
                **values,
            }
        )

    def _pairs(self, node: Node | None, known: tuple[str, ...], what: str) -> Iterator[tuple[str, Node]]:
        if node is None or type(node).__name__ != "MappingNode":
            self._problem(node, f"is not {what}")
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value) if type(key).__name__ == "ScalarNode" else ""
            if name not in known:
                near = get_close_matches(name, known, 1)
                self._problem(key, f"there is no key {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
            elif name in seen:
                self._problem(key, f"{name} stands twice")
            else:
                seen.add(name)
                yield name, value

    def _text(self, node: Node) -> str:
        return str(node.value).strip() if type(node).__name__ == "ScalarNode" else ""

    def _yes(self, node: Node) -> bool:
        text = self._text(node).lower()
        if text not in ("true", "false"):
            self._problem(node, "embedded is true or false")
        return text == "true"

    def _cloud(self, node: Node | None) -> Cloud:
        if node is None:
            return PUBLIC
        found = CLOUDS.get(self._text(node).lower())
        if found is None:
            self._problem(node, f"cloud is one of {', '.join(CLOUDS)}")
        return found or PUBLIC

    def _problem(self, node: Node | None, text: str) -> None:
        line = 1 if node is None else node.start_mark.line + 1
        self.problems.append(f"{self._path}:{line}: {text}")
