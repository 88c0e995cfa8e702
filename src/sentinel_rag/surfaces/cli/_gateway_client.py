"""Reading the gateway's audit and catalogue from the terminal, over the standard library's HTTP client."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import UnavailableError


def call_gateway(url: str, key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and decoded JSON body of one request. Raises UnavailableError if the gateway is away."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=60)
    try:
        payload = None if body is None else json.dumps(body).encode()
        connection.request(method, path, payload, {"X-API-Key": key, "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(
            f"The gateway at {parts.netloc} did not answer: {error}.", next_step="Run: sentinel status"
        ) from None
    finally:
        connection.close()
