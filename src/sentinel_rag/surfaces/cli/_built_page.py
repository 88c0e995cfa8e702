"""Whether the web page was built into this installation, found out without importing what serves it."""

from __future__ import annotations

from pathlib import Path

from sentinel_rag import surfaces

HOW_TO_BUILD = "make page (in a clone)"


def page_is_built() -> bool:
    """True if `sentinel up --web` serves a page, and not the HTTP API alone."""
    return (Path(surfaces.__file__).parent / "web" / "page" / "index.html").is_file()
