"""Functions of duckdb-kql that ours stand in the place of, and what stood there before."""

from __future__ import annotations

from typing import Any

original: dict[str, Any] = {}
"""The library's own functions by name, for those that add to them."""


def replace(module: Any, name: str, replacement: Any) -> Any:
    """Put `replacement` in the place of `module.name`; what stood there just before. The first that stood there is kept
    in `original`."""
    before = getattr(module, name)
    original.setdefault(name, before)
    setattr(module, name, replacement)
    return before
