"""The fallback parser in a Python process of its own.

A process that imports nothing but the fallback starts small, and can be ended when a query takes long.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from sentinel_rag.sentinel.kql_guard.analysis import Schema, TextLimits
from sentinel_rag.sentinel.kql_guard.parser_process import ParserClient, ParserProcess

_MOST_SCHEMAS = 8
FALLBACK_LIMITS = TextLimits(characters=6_000, depth=24)
"""What the slower parser, which recurses in Python, is given at most."""


class FallbackParser(ParserClient):
    """The parser of kql_duckdb, for machines without node."""

    def __init__(self, *, timeout_s: float = 20.0, start_timeout_s: float = 60.0) -> None:
        command = (sys.executable, "-I", "-m", "sentinel_rag.sentinel.kql_guard.fallback_process")
        process = ParserProcess([command], start_timeout_s=start_timeout_s, advice="Install Sentinel RAG again.")
        super().__init__(process, timeout_s=timeout_s)


def serve() -> None:
    """Answer the lines of standard input until it ends."""
    schemas: dict[str, Schema] = {}
    for line in sys.stdin.buffer:
        request: dict[str, Any] = msgspec.json.decode(line)
        try:
            answer = _answer(request, schemas)
        except RecursionError:
            answer = {"failed": "too deep"}
        sys.stdout.buffer.write(msgspec.json.encode({**answer, "id": request["id"]}) + b"\n")
        sys.stdout.buffer.flush()


def _answer(request: dict[str, Any], schemas: dict[str, Schema]) -> dict[str, Any]:
    from sentinel_rag.sentinel.kql_guard.fallback_parser import fallback_analysis  # in this process only

    match request["op"]:
        case "ready":
            fallback_analysis("print 1", {})
            return {"ready": True}
        case "schema":
            schemas.pop(request["schema"], None)
            schemas[request["schema"]] = request["tables"]
            if len(schemas) > _MOST_SCHEMAS:
                del schemas[next(iter(schemas))]
            return {"tables": len(request["tables"])}
        case "analyze" if request["schema"] not in schemas:
            return {"unknown_schema": True}
        case "analyze":
            told: dict[str, Any] = msgspec.to_builtins(fallback_analysis(request["kql"], schemas[request["schema"]]))
            return told
    return {"failed": "unknown operation"}


if __name__ == "__main__":
    serve()
