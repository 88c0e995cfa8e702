"""The render edge of the terminal: whatever field a text came from, it cannot move the cursor or reorder what is read.

What is unsafe, and how it is shown instead, says `surfaces.rendering` for every surface; these are its two forms for a
terminal.
"""

from __future__ import annotations

from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

__all__ = ["safe", "safe_cell"]
