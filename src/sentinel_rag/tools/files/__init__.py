"""Zone C: the tools that read files of one folder, as an MCP server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.tools.files.file_tools import FileRoot, FileTools
from sentinel_rag.tools.mcp_frame import ToolAnswer, executor_app

SAMPLE_FOLDER = Path(__file__).resolve().parent / "sample"
"""Files of our own, served while no folder is configured: `public/` and `confidential/`, as the policy's rules name
them."""


def create_app(folder: Path | None, *, token: str) -> Starlette:
    """The ASGI application: `/mcp` (bearer `token`) and `/healthz`. None serves the shipped sample files."""
    tools = FileTools(FileRoot(folder or SAMPLE_FOLDER), bundled=folder is None)

    async def call(name: str, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> ToolAnswer:
        return await tools.call(name, arguments)

    return executor_app("files", FILE_TOOLS, call, token=token)
