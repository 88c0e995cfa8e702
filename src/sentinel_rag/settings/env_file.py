"""The `.env` file, read as assignments with their lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from dotenv.parser import Original


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
