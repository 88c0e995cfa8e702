"""An MCP server built with the official SDK that returns every kind of result; the reference for our clients.

Run as a program it serves standard input and output; `build` gives the server for HTTP. It also stands for a server
that a stranger wrote: nothing of the product is imported.
"""

from __future__ import annotations

import json
import os
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

VALUE: dict[str, Any] = {"rows": [{"n": 1, "text": "é \u0000 \U0001f600"}, {"n": 2.5, "text": None}], "ok": True}
UNICODE = '\u202e\u0000\ufeff🦊 é \u2028 \\ " \n\r\t'
LARGE = "0123456789abcdef" * 160_000
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
LINK = {"type": "resource_link", "uri": "https://example.com/x", "name": "x"}


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


def result(*content: Any, structured: Any = None, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=list(content), structured_content=structured, is_error=is_error)


def image() -> ImageContent:
    return ImageContent(type="image", data="aGk=", mime_type="image/png")


RESULTS: dict[str, CallToolResult] = {
    "structured": result(text(json.dumps(VALUE, indent=2)), structured=VALUE),
    "structured_alone": result(structured=VALUE),
    "structured_and_more": result(text("Read the manual."), structured=VALUE),
    "structured_and_image": result(text(json.dumps(VALUE)), image(), structured=VALUE),
    "wrapped_scalar": result(text("7"), structured={"result": 7}),
    "wrapped_text": result(text("00713"), structured={"result": "00713"}),
    "wrapped_array": result(text("1"), text("b"), structured={"result": [1, "b"]}),
    "text": result(text("00713")),
    "two_texts": result(text("one"), text("two")),
    "image": result(image()),
    "resource": result(
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="inside"),
        )
    ),
    "link": result(ResourceLink(type="resource_link", uri="https://example.com/x", name="x")),
    "empty": result(),
    "unicode": result(text(UNICODE)),
    "large": result(structured={"rows": [LARGE]}),
    "fails": result(text("no such row"), is_error=True),
    "scalar": result(text("7"), structured=7),
    "array": result(text("[1, 2]"), structured=[1, 2]),
    "array_and_more": result(text("more"), structured=[1, 2]),
}
"""What each tool returns. The last three are results of the era without sessions only."""


async def asks(context: Any) -> CallToolResult:
    """Ask the client for what it must refuse, on the stream of the call."""
    call = context.request_id
    question = "Your password?"
    heard = [
        await _answer_to("elicitation", lambda: context.session.elicit_form(question, EMPTY, related_request_id=call)),
        await _answer_to("sampling", lambda: context.session.create_message([], max_tokens=1, related_request_id=call)),
    ]
    return result(text(", ".join(heard)))


async def asks_roots(context: Any) -> CallToolResult:
    """A question that goes on no call's stream."""
    return result(text(await _answer_to("roots", lambda: context.session.list_roots())))


async def _answer_to(name: str, question: Any) -> str:
    try:
        await question()
    except (MCPError, ValueError):
        return f"{name}: refused"
    return f"{name}: answered"


async def progress(context: Any) -> CallToolResult:
    for step in range(3):
        await context.session.report_progress(step, 3, "working")
        await context.session.send_log_message("info", {"step": step})
    await context.session.send_tool_list_changed()
    return result(text("done"))


def build() -> Server[Any]:
    tools = [Tool(name=name, description=f"Returns {name}.", input_schema=EMPTY) for name in RESULTS]
    tools += [Tool(name=name, input_schema=EMPTY) for name in ("asks", "asks_roots", "progress", "environment")]
    tools.append(
        Tool(
            name="echo",
            description="Says the text again.",
            input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            output_schema={"type": "object"},
            annotations=ToolAnnotations(read_only_hint=True),
        )
    )

    place = {"type": "object", "properties": {"floor": {"type": "integer", "x-mcp-header": "Floor"}}}
    headed = {
        "city": {"type": "string", "x-mcp-header": "City"},
        "open": {"type": "boolean", "x-mcp-header": "Is-Open"},
        "place": place,
    }
    tools.append(Tool(name="headed", input_schema={"type": "object", "properties": headed}))

    async def list_tools(_: Any, __: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        match params.name:
            case "asks":
                return await asks(context)
            case "asks_roots":
                return await asks_roots(context)
            case "progress":
                return await progress(context)
            case "echo":
                return result(structured={"text": (params.arguments or {})["text"], "process": os.getpid()})
            case "headed":
                return result(structured=params.arguments)
            case "environment":
                return result(structured={"environment": dict(os.environ), "folder": os.getcwd()})
            case name if name in RESULTS:
                return RESULTS[name]
            case name:
                raise MCPError(code=-32602, message=f"there is no {name}")

    return Server("reference", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
