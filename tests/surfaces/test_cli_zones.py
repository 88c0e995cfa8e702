"""How commands ask the gateway: where its address says, below its path too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sentinel_rag.surfaces.cli._zones import call_gateway

pytestmark = pytest.mark.requirement("SURF-1")


class _Gateway(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["X-API-Key"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"approvals": []}')

    def log_message(self, *_: object) -> None:
        """Nothing goes to standard error."""


@pytest.fixture
def address() -> Iterator[str]:
    _Gateway.asked = []
    with HTTPServer(("127.0.0.1", 0), _Gateway) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("below", "asked"), [("", "/v1/approvals"), ("/soc", "/soc/v1/approvals"), ("/", "/v1/approvals")]
)
def test_a_gateway_is_asked_below_the_path_of_its_address(address: str, below: str, asked: str) -> None:
    assert call_gateway(address + below, "a key", "GET", "/v1/approvals") == (200, {"approvals": []})
    assert _Gateway.asked == [(asked, "a key")]
