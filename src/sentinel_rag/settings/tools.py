"""What the tools may reach: tables of freeform KQL, a folder of files, hosts and a search service of the web."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.contracts.reader_names import READER_NAMES, is_reader_name

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
