"""Credentials of other people's tool servers, and where a newer one is to be had: tokens expire while we run.

`SENTINEL_UPSTREAM_NAME` holds the credential, or `SENTINEL_UPSTREAM_NAME_FILE` the absolute path of a file with nothing
else in it. A value of the process environment cannot change; one of `.env` or of a file is read anew when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings.env_file import read_env_file
from sentinel_rag.settings.shapes import Secret
from sentinel_rag.settings.values import SettingReader
from sentinel_rag.settings.variables import UPSTREAM_PREFIX

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
