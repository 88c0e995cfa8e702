"""Attack: a hijacked agent asks the identity zone for tokens of Azure that open more than a model.

The attacker controls the agent's process: it knows the zone's address and its header, and sends any request. A web page
or another program of this machine knows the address only. There is no audit record: the zone judges no tool call.
"""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sentinel_rag.app.model_access import identity_app
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

RESOURCE = "https://cognitiveservices.azure.com"
HEADER = "the-header-of-this-run"


class _Credential:
    scopes: list[str]

    def __init__(self) -> None:
        self.scopes = []

    async def get_token(self, *scopes: str, **_: Any) -> SimpleNamespace:
        self.scopes += scopes
        if len(self.scopes) > 1:
            raise RuntimeError("tenant-canary-5d")
        return SimpleNamespace(token="token-canary-5d", expires_on=4_000_000_000)


@pytest.fixture
def zone() -> Iterator[tuple[str, _Credential]]:
    credential = _Credential()
    app = identity_app(credential, resource=RESOURCE, header=HEADER)  # type: ignore[arg-type]
    with serve(app) as url:
        yield url, credential


def _ask(url: str, headers: dict[str, str] | None = None, method: str = "GET", **query: str) -> tuple[int, str]:
    address = f"{url}/msi/token?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"X-IDENTITY-HEADER": HEADER, **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    "resource",
    [
        "https://api.loganalytics.io",
        "https://management.azure.com",
        "https://management.azure.com/",
        "https://graph.microsoft.com",
        "https://vault.azure.net",
        f"{RESOURCE}/.default",
        f"{RESOURCE} https://management.azure.com",
        f"{RESOURCE}.evil.example",
        RESOURCE.upper(),
        "",
    ],
)
def test_no_token_for_anything_but_models(zone: tuple[str, _Credential], resource: str) -> None:
    url, credential = zone
    status, body = _ask(url, resource=resource)
    assert status == 400
    assert "canary" not in body
    assert credential.scopes == []


def test_two_resources_in_one_request_never_reach_the_credential_as_another(zone: tuple[str, _Credential]) -> None:
    url, credential = zone
    for pair in ((RESOURCE, "https://management.azure.com"), ("https://management.azure.com", RESOURCE)):
        address = f"{url}/msi/token?" + urllib.parse.urlencode([("resource", part) for part in pair])
        request = urllib.request.Request(address, headers={"X-IDENTITY-HEADER": HEADER})
        try:
            urllib.request.urlopen(request, timeout=WAIT_S).close()
        except urllib.error.HTTPError as error:
            error.close()
    assert set(credential.scopes) <= {f"{RESOURCE}/.default"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-IDENTITY-HEADER": ""}, 401),
        ({"X-IDENTITY-HEADER": HEADER + "x"}, 401),
        ({"X-IDENTITY-HEADER": HEADER[:-1]}, 401),
        ({"Host": "rebound.example"}, 403),
        ({"Origin": "https://page.example"}, 403),
    ],
)
def test_no_token_for_who_is_not_the_agent(zone: tuple[str, _Credential], headers: dict[str, str], status: int) -> None:
    url, credential = zone
    assert _ask(url, headers, resource=RESOURCE)[0] == status
    assert credential.scopes == []


def test_another_method_gives_nothing(zone: tuple[str, _Credential]) -> None:
    assert _ask(zone[0], method="POST", resource=RESOURCE)[0] == 405


def test_a_failing_sign_in_shows_none_of_its_words(zone: tuple[str, _Credential]) -> None:
    url, _ = zone
    assert "token-canary" in _ask(url, resource=RESOURCE)[1]
    status, body = _ask(url, resource=RESOURCE)
    assert status == 400
    assert "tenant-canary" not in body
