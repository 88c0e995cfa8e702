"""What the gateway's MCP server costs beside its own API: the same call by the same client over `/mcp` and over
`POST /v1/proxy-execute`, in one run, alternating.

In the tables `gateway` is `/mcp`, and `direct` the gateway's own API.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import uvloop

from bench.bench_gateway import compare
from bench.gateway_processes import LEAN_EXECUTOR, Gateway, executor, http_client, interceptor, straight, through
from bench.harness import write


async def ways(gateway: Gateway) -> dict[str, Any]:
    async with http_client() as client:
        own, mcp = through(client, gateway, "bench"), straight(client, f"{gateway.url}/mcp", gateway.key)
        return {f"concurrency_{concurrency}": await compare(own, mcp, concurrency, gateway) for concurrency in (1, 16)}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, executor(LEAN_EXECUTOR) as url, interceptor(url, Path(folder)) as one:
        measured = uvloop.run(ways(one))
    write(
        "mcp_gateway",
        measured,
        claim="A call over the gateway's MCP server beside one over its own API: the same policy and record, and about "
        "the same cost.",
        figures={
            "p50 over p50, one at a time": measured["concurrency_1"]["p50_ratio"],
            "throughput, 16 at once": measured["concurrency_16"]["throughput_ratio"],
            "gateway CPU ms a call, 16 at once": measured["concurrency_16"]["gateway_cpu_ms_a_call"],
        },
        group="speed",
    )


if __name__ == "__main__":
    main()
