"""Texts of the environment and of `.env` as values.

A converter takes the text of one variable and raises ValueError with the end of a sentence about it; `SettingReader`
collects these, so that a person mends all in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sentinel_rag.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from dotenv.parser import Original


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
