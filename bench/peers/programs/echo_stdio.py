"""An MCP server over stdio that answers each call with its own arguments, in the standard library alone.

It runs under any peer's Python and does next to nothing, so that a call costs what stands in front of it. It lets pass
an `initialize` with empty parameters, which one of the peers sends and the official SDK refuses.
"""

import json
import sys

TOOL = {
    "name": "query_incidents",
    "description": "Lists incidents.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "min_severity": {"type": "string"},
            "time_window": {"type": "string"},
            "limit": {"type": "integer"},
        },
    },
}


def result_of(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-11-25"),
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "echo", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        value = {"tool": params["name"], "arguments": params.get("arguments") or {}}
        text = {"type": "text", "text": json.dumps(value)}
        return {"content": [text], "structuredContent": value, "isError": False}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        result = result_of(message["method"], message.get("params") or {})
        if result is None:
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = result
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
