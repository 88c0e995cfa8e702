"""A FastMCP proxy as its documentation builds one, run by the Python that has FastMCP: a bearer token, the structured
log with payloads, no sessions and plain JSON answers (its fastest way to serve).

Arguments: the tool server's URL and token, the port, the token of callers, the log file, `fresh` or `shared` for a
backend client of its own for each request or one that stays connected.
"""

import asyncio
import logging
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server import create_proxy
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.middleware.logging import StructuredLoggingMiddleware

URL, BACKEND_TOKEN, PORT, TOKEN, LOG, CLIENT = sys.argv[1:]


async def serve(backend):
    audit = logging.getLogger("audit")
    audit.addHandler(logging.FileHandler(LOG))
    audit.setLevel(logging.INFO)
    audit.propagate = False
    proxy = create_proxy(backend, name="peer", auth=StaticTokenVerifier({TOKEN: {"client_id": "bench", "scopes": []}}))
    proxy.add_middleware(StructuredLoggingMiddleware(logger=audit, include_payloads=True))
    await proxy.run_http_async(
        host="127.0.0.1", port=int(PORT), show_banner=False, log_level="error", stateless_http=True, json_response=True
    )


async def main():
    backend = Client(StreamableHttpTransport(URL, headers={"Authorization": f"Bearer {BACKEND_TOKEN}"}))
    if CLIENT == "fresh":
        await serve(backend)
    else:
        async with backend:
            await serve(backend)


asyncio.run(main())
