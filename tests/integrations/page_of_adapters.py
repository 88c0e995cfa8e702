"""The boxes of docs/langchain.md, which are run as they stand but for the model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "langchain.md").read_text()
FIRST, BY_HAND, SDK, _ADAPTERS_OF_MCP = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(box: str, old: str, new: str, **names: Any) -> dict[str, Any]:
    """Execute a box with one thing replaced; its names afterwards."""
    assert box.count(old) == 1
    exec(compile(box.replace(old, new), "docs/langchain.md", "exec"), names)
    return names
