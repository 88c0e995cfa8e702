"""A client of the embedded workspace's REST API that knows nothing but HTTP, for the tests of this folder."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.applications import Starlette

from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from waiting import WAIT_S

MANAGEMENT = "https://management.azure.com"
IDENTITY_HEADER = "identity-header-of-the-tests"
ADMIN_TOKEN = "admin-token-of-the-tests"
WORKSPACE_ID = "6f3a1c52-0d7e-4b1a-9c55-5e3f0a51a7e0"
PATH = f"{EMBEDDED_RESOURCE_ID}/providers/Microsoft.SecurityInsights"


def app_over(workspace: Workspace, **options: Any) -> Starlette:
    return create_app(
        workspace,
        workspace_id=WORKSPACE_ID,
        identity_header=IDENTITY_HEADER,
        admin_token=ADMIN_TOKEN,
        **options,
    )


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> tuple[str, str]:
        error = self.body["error"]
        return error["code"], error["message"]


class ArmClient:
    """Speaks to the server at `url` with a token for `audience`."""

    def __init__(self, url: str, *, audience: str = MANAGEMENT) -> None:
        self.url = url
        self.token = self._token(audience)

    def _token(self, audience: str) -> str:
        path = f"/msi/token?api-version=2019-08-01&resource={quote(audience, safe='')}"
        reply = self.send("GET", path, headers={"x-identity-header": IDENTITY_HEADER})
        assert reply.status == 200, reply.raw
        token: str = reply.body["access_token"]
        return token

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=WAIT_S)
        try:
            raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            sent = {"content-type": "application/json"} if raw is not None else {}
            connection.request(method, path, raw, {**sent, **(headers or {})})
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def arm(self, method: str, path: str, body: Any = None, *, if_match: str | None = None, **parameters: Any) -> Reply:
        """A call below the provider's path; `parameters` become `$name=value`."""
        query = urlencode({"api-version": "2025-09-01", **{f"${k}": str(v) for k, v in parameters.items()}})
        headers = {"authorization": f"Bearer {self.token}"}
        if if_match is not None:
            headers["if-match"] = if_match
        return self.send(method, f"{PATH}/{path}?{query}", body, headers)

    def follow(self, link: str) -> Reply:
        parts = urlsplit(link)
        return self.send("GET", f"{parts.path}?{parts.query}", headers={"authorization": f"Bearer {self.token}"})

    def admin(self, method: str, path: str, body: Any = None, token: str = ADMIN_TOKEN) -> Reply:
        return self.send(method, f"/admin/{path}", body, {"authorization": f"Bearer {token}"})

    def kql(self, query: str) -> list[list[Any]]:
        reply = self.admin("POST", "query", {"kql": query})
        assert reply.status == 200, reply.raw
        rows: list[list[Any]] = reply.body["rows"]
        return rows
