"""What the tools may reach: tables, files, hosts, a search service, and servers of others with their credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import READER_NAMES, is_reader_name
from sentinel_rag.contracts.servers import LOOPBACK_NAMES
from sentinel_rag.settings.values import Secret, SettingReader, read_env_file

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
SEARCH_PROVIDERS = ("bundled", "searxng", "brave", "tavily")


def table_names(text: str) -> tuple[str, ...]:
    """Names by comma, each once."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not _TABLE.fullmatch(name):
            raise ValueError(f"{name!r} is not a table name such as SigninLogs or Own_CL")
    return names


def reader_names(text: str) -> tuple[str, ...]:
    """Names by comma, each once, of people or groups."""
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not is_reader_name(name):
            raise ValueError(f"{name[:80]!r} is no name of a reader. {READER_NAMES}")
    return names


def host_names(text: str) -> tuple[str, ...]:
    """Host names by comma, in lower case, each once."""
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(f"{name!r} is not a host name such as learn.microsoft.com (no scheme, port, path or *)")
    return names


def files_root(home: Path) -> Callable[[str], Path]:
    """A converter to a folder that neither holds `home` nor lies in one of its private folders."""

    def convert(text: str) -> Path:
        root = Path(text).expanduser().absolute()
        if not root.is_dir():
            raise ValueError(f"{text!r} is not a folder")
        root = root.resolve()
        state = home.resolve()
        private = [state / name for name in ("agent", "gateway", "run", "logs", "workspaces", "knowledge")]
        if state.is_relative_to(root) or any(root.is_relative_to(folder) for folder in private):
            raise ValueError("holds SENTINEL_HOME or lies in it, with its keys and its journal: choose another folder")
        return root

    return convert


def search_problems(provider: str, url: str | None, *, has_key: bool) -> list[str]:
    """What a search provider lacks."""
    if provider == "searxng" and url is None:
        return ["SENTINEL_SEARCH_URL: is missing; searxng needs the address of your instance"]
    if provider in ("brave", "tavily") and not has_key:
        return [f"SENTINEL_SEARCH_API_KEY: is missing; {provider} needs a key"]
    if provider == "bundled" and (url is not None or has_key):
        return ["SENTINEL_SEARCH_PROVIDER: is missing; an address or a key is set, but not whose they are"]
    return []


def search_address(text: str) -> str:
    """An http or https URL; plain http to any host, because a SearXNG instance takes no key."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{text!r} is not an http or https URL")
    return text.rstrip("/")


def protects_keys(url: str) -> bool:
    """True if what is sent there is not readable on the way: https, or this machine itself."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


# `SENTINEL_UPSTREAM_NAME` holds the credential, or `SENTINEL_UPSTREAM_NAME_FILE` the absolute path of a file with
# nothing else in it. A value of the process environment cannot change; one of `.env` or of a file is read anew when
# asked for.
UPSTREAM_PREFIX = "SENTINEL_UPSTREAM_"
"""Variables that begin so are credentials for tool servers of other makers; the policy refers to them by name."""

_IN_A_FILE = "_FILE"


def read_upstream_credentials(reader: SettingReader) -> dict[str, Secret]:
    """By variable; one that a file holds stands under the variable without `_FILE`."""
    given = {name: text.strip() for name, text in reader.values.items() if name.startswith(UPSTREAM_PREFIX)}
    found = {name: Secret(text) for name, text in given.items() if text}
    for name, path in _files(given).items():
        token = _text_of(path)
        if token:
            found[name] = Secret(token)
        else:
            reader.problems.append(f"{name}{_IN_A_FILE}: the file {path} cannot be read, or is empty")
    return found


def credential_places(values: Mapping[str, str], from_file: Mapping[str, str], env_file: Path) -> dict[str, str]:
    """Variable -> where a newer value may appear, as `env:PATH` or `file:PATH`; `values` are all settings, those of
    `.env` included."""
    given = {name: text.strip() for name, text in values.items() if name.startswith(UPSTREAM_PREFIX)}
    places = {name: f"env:{env_file.absolute()}" for name in given if from_file.get(name) == values[name]}
    return places | {name: f"file:{path}" for name, path in _files(given).items()}


def newest_credential(name: str, place: str) -> str | None:
    """What `place` of `credential_places` holds for the variable now; None if nothing can be read there."""
    form, _, path = place.partition(":")
    if form == "file":
        return _text_of(path)
    try:
        return read_env_file(Path(path)).get(name, "").strip() or None
    except ConfigurationError:
        return None  # half written, perhaps: the old value stays


def _files(given: Mapping[str, str]) -> dict[str, str]:
    """Variable -> path, of those given as `..._FILE` with an absolute path and not by themselves."""
    named = {name.removesuffix(_IN_A_FILE): text for name, text in given.items() if name.endswith(_IN_A_FILE)}
    return {name: text for name, text in named.items() if text.startswith("/") and not given.get(name)}


def _text_of(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
