"""The attacker controls the URL of web_fetch, the DNS of names of their own, and what their own server answers: pages,
redirects, compressed bodies. They want the web tool server to reach what is not on the public internet: this machine,
the private network, a cloud's metadata; or to learn what is there. Nothing of it may be connected to, every refusal
reads the same, and every call is on record.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.query_results import QueryFailedError
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag.tools.web import WebOptions, create_app
from sentinel_rag.tools.web.fetching import (
    WEB_PORTS,
    FetchBounds,
    PageFetcher,
    is_public,
    page_address,
    pinned_connector,
)
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

PUBLIC, INSIDE = "127.0.0.1", "127.0.0.2"
"""In these tests the first stands for the public internet and the second for the private network."""
CANARY = "canary-of-the-inside"
NO_PUBLIC = "The page is not fetched: its host has no public address."


class Inside:
    """A server of the private network; `hits` counts who got there."""

    def __init__(self) -> None:
        self.hits = 0

    async def answer(self, _: Request) -> Response:
        self.hits += 1
        return PlainTextResponse(CANARY)

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.answer)])


@pytest.fixture
def inside() -> Iterator[tuple[Inside, int]]:
    server = Inside()
    with serve(server.app(), host=INSIDE) as url:
        yield server, int(url.rpartition(":")[2])


class Names:
    """The attacker's DNS: each name's answers one after the other, the last one repeating."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    async def lookup(self, name: str) -> list[str]:
        self.asked.append(name)
        answers = self._answers.get(name, [[]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def fetcher(names: Names, *ports: int) -> PageFetcher:
    bounds = FetchBounds(ports=frozenset(ports), timeout_s=WAIT_S)
    return PageFetcher(bounds, lookup=names.lookup, may_connect=lambda address: address == PUBLIC)


async def refusal(fetch: PageFetcher, url: str) -> str:
    with pytest.raises(QueryFailedError) as fault:
        await fetch.fetch(url)
    text = json.dumps(fault.value.error.to_dict())
    assert CANARY not in text
    return fault.value.error.message


NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1",
    "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1",
    "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1",
    "ff02::1", "fe80::1%eth0", "2606:4700::1%1",
    "localhost", "", "1", "0x7f000001", "2130706433", "127.1", "017700000001", "8.8.8.8 ", "８.８.８.８",
]  # fmt: skip
PUBLIC_ONES = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1",
    "168.63.129.15", "169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.255.255",
    "192.169.0.1", "198.17.255.255", "198.20.0.1", "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888",
    "2a00:1450::1", "2003::1", "3ffe::1",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC, ids=ascii)
def test_an_address_that_is_not_of_the_public_internet_is_none(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC_ONES)
def test_a_neighbour_of_a_closed_block_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_no_form_that_carries_an_ipv4_address_inside_is_public(address: Any) -> None:
    """Law: mapped, compatible, 6to4, NAT64 and Teredo forms are closed, whatever they carry."""
    number = int(address)
    carried = [
        number,
        (0xFFFF << 32) | number,
        (0x64FF9B << 96) | number,
        (0x2002 << 112) | (number << 80),
        (0x20010000 << 96) | (number ^ 0xFFFFFFFF),
        (0x20010000 << 96) | (number << 64),
    ]
    assert not any(is_public(str(IPv6Address(each))) for each in carried)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address: Any) -> None:
    """Law: ours is at least as strict as the standard library's in every release."""
    closed = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    if closed or address.is_reserved or address.is_unspecified:
        assert not is_public(str(address))


LITERALS = [f"[{text}]" if ":" in text else text for text in NOT_PUBLIC[: NOT_PUBLIC.index("fe80::1%eth0")]]

HOSTILE_URLS = [
    "http://user@site.example/", "http://user:pw@site.example/", "http://site.example@127.0.0.1/",
    "http://@site.example/",
    "http://127.0.0.1#@site.example/x\\", "http://site.example\\@127.0.0.1/", "http:\\\\127.0.0.1/",
    "http:/site.example/",
    "http:site.example", "//site.example/", "site.example", "", " http://site.example/", "http://site.example/ x",
    "http://site.example/\r\nHost: x", "http://site.example/\x00", "http://site.example/\t", "ht\ntp://site.example/",
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://127.1/", "http://127.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/", "http://0/", "http://127.0.0.1./", "http://127.0.0.0x1/", "http://1.1.1.01/",
    "http://256.1.1.1/",
    "http://1.1.1.1.1/", "http://site.example./", "http://site..example/", "http://localhost/", "http://intranet/",
    "http://-/", "http://a_b/", "http://site.example:22/", "http://site.example:8080/", "http://site.example:0/",
    "http://site.example:65536/", "http://site.example:-1/", "http://site.example:80a/", "http://site.example:443:80/",
    "ftp://site.example/", "file:///etc/passwd", "gopher://site.example/_x", "javascript:alert(1)", "data:text/plain,x",
    "ws://site.example/", "unix:///var/run/docker.sock", "http+unix://x/", "jar:http://site.example!/",
    "http://[::1]:22/",
    "http://x[::1]/", "http://[::1][::1]/", "http://site.example:80:80/", "http://[::1]80/",
    "http://[::1", "http://::1/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[v1.x]/",
    "http://[127.0.0.1]/",
    "http://[::ffff:7f00:1]x/", "http://ⓛocalhost.example/", "http://site。example/", "http://①②⑦.0.0.1/",
    "http://exa­mple.com/",
    "http://%31%32%37.0.0.1/", "http://site.example%2f@127.0.0.1/", "http://site.example%00.evil.example/",
    "http://*.example/",
    "http://" + "a" * 64 + ".example/", "http://" + "a." * 130 + "example/",
    "http://site.example/" + "x" * 2_000, "http://?x",
    "http:///x", "https://", "http://.example/", "HTTP://SITE.EXAMPLE:99/",
]  # fmt: skip


@pytest.mark.parametrize("url", HOSTILE_URLS, ids=ascii)
async def test_a_url_that_could_be_read_in_two_ways_is_refused_before_any_lookup(url: str) -> None:
    names = Names({})
    fetch = PageFetcher(lookup=names.lookup, may_connect=lambda _: True)
    message = await refusal(fetch, url)
    assert message.startswith("The page is not fetched: ")
    assert names.asked == []


@pytest.mark.parametrize("host", LITERALS)
async def test_a_literal_address_that_is_not_public_is_refused(host: str) -> None:
    assert await refusal(PageFetcher(), f"http://{host}/") == NO_PUBLIC


@pytest.mark.parametrize(
    "answers", [[INSIDE], ["10.0.0.5"], ["169.254.169.254"], ["::1"], [PUBLIC, INSIDE], [INSIDE, PUBLIC], []]
)
async def test_a_name_with_an_address_inside_is_refused_whatever_else_it_has(
    inside: tuple[Inside, int], answers: list[str]
) -> None:
    server, port = inside
    names = Names({"evil.example": [answers]})
    assert await refusal(fetcher(names, port), f"http://evil.example:{port}/") == NO_PUBLIC
    assert server.hits == 0


async def test_a_name_that_is_rebound_after_it_was_judged_is_not_asked_again(inside: tuple[Inside, int]) -> None:
    server, port = inside
    names = Names({"rebind.example": [[PUBLIC], [INSIDE]]})
    with serve(Starlette(routes=[Route("/", lambda _: PlainTextResponse("outside"))])) as url:
        outside = int(url.rpartition(":")[2])
        page = await fetcher(names, outside, port).fetch(f"http://rebind.example:{outside}/")
    assert page.page.text == "outside"
    assert names.asked == ["rebind.example"]
    assert await refusal(fetcher(names, port), f"http://rebind.example:{port}/") == NO_PUBLIC
    assert server.hits == 0


@pytest.mark.parametrize(
    "target",
    [
        "http://{inside}/",
        "http://inside.example:{port}/",
        "//{inside}/",
        "http://127.0.0.1.nip.example:{port}/",
        "http://2130706434:{port}/",
        "http://0x7f000002:{port}/",
        "http://127.2:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "http://x@{inside}/",
        "http://site.example:{port}@{inside}/",
        "file:///etc/passwd",
        "gopher://{inside}/_GET",
        "http://site.example:22/",
        "http:/\\{inside}/",
        "http://{inside}\\@site.example/",
    ],
)
async def test_a_redirect_to_the_inside_is_judged_like_any_url(inside: tuple[Inside, int], target: str) -> None:
    server, port = inside
    names = Names({"site.example": [[PUBLIC]], "inside.example": [[INSIDE]], "127.0.0.1.nip.example": [[INSIDE]]})
    location = target.format(inside=f"{INSIDE}:{port}", port=port)

    async def redirect(_: Request) -> Response:
        return Response(status_code=302, headers={"Location": location})

    with serve(Starlette(routes=[Route("/", redirect)])) as url:
        outside = int(url.rpartition(":")[2])
        message = await refusal(fetcher(names, outside, port), f"http://site.example:{outside}/")
    assert message.startswith("The page is not fetched: ")
    assert server.hits == 0


async def test_a_name_that_does_not_exist_reads_like_one_of_the_inside() -> None:
    names = Names({"wiki.corp.example": [["10.1.2.3"]]})
    fetch = PageFetcher(lookup=names.lookup)
    assert await refusal(fetch, "http://wiki.corp.example/") == await refusal(fetch, "http://none.corp.example/")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_a_proxy_of_the_environment_is_not_used(
    inside: tuple[Inside, int], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    server, port = inside
    monkeypatch.setenv(variable, f"http://{INSIDE}:{port}")
    with serve(Starlette(routes=[Route("/", lambda _: PlainTextResponse("direct"))])) as url:
        outside = int(url.rpartition(":")[2])
        page = await fetcher(Names({"site.example": [[PUBLIC]]}), outside).fetch(f"http://site.example:{outside}/")
    assert page.page.text == "direct"
    assert server.hits == 0


async def test_the_socket_is_the_last_gate(inside: tuple[Inside, int]) -> None:
    """Even a library that asks for another address than the judged one gets no socket for it."""
    import aiohttp

    server, port = inside
    async with aiohttp.ClientSession(connector=pinned_connector(frozenset({PUBLIC}))) as session:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await session.get(f"http://{INSIDE}:{port}/")
    assert server.hits == 0


def test_no_setting_opens_the_inside() -> None:
    """The wiring that settings reach builds the fetcher with the product's own lookup, addresses and ports."""
    import inspect

    from sentinel_rag.tools import web as wiring

    assert set(inspect.signature(WebOptions).parameters) == {"provider", "url", "key", "allowed_hosts"}
    built = wiring._web_tools(WebOptions(allowed_hosts=("localhost", "127.0.0.1")))._fetcher
    assert built._may_connect is is_public
    assert set(built._bounds.ports) == WEB_PORTS == {80, 443}


@given(st.text(alphabet="htps:/\\@.#?%[]0123456789abcx-_ \t", max_size=40))
def test_a_url_that_is_taken_reads_back_as_itself(text: str) -> None:
    """Law: what passes has one host, and its canonical text leads to the same parts again."""
    try:
        address = page_address(f"http://{text}", ports=WEB_PORTS)
    except QueryFailedError:
        return
    again = page_address(str(address), ports=WEB_PORTS)
    assert again == address
    assert "@" not in str(address).partition("/")[2].partition("/")[2].partition("/")[0]


POLICY = """
tools:
  - name: web_fetch
    server: web
    effect: external
    parameters: [{name: url, type: string, required: true}]
    taint_rules: [{rule_id: any_page, condition: "true", taint_level: LOW}]
"""


@pytest.fixture
def product(tmp_path: Path) -> Iterator[RunningGateway]:
    token = "the token of the gateway"
    with serve(create_app(WebOptions(), token=token)) as web, FakeToolServer().running() as unused:
        upstreams = {"web": McpHttpUpstream(f"{web}/mcp", token=token, is_ours=True)}
        with running_gateway(parse_policy(POLICY), tmp_path, unused, upstreams=upstreams) as gateway:
            yield gateway


def test_the_product_refuses_its_own_machine_and_records_each_try(product: RunningGateway) -> None:
    port = product.url.rpartition(":")[2]
    for url in (
        product.url,
        f"http://localhost:{port}/",
        "http://127.0.0.1/",
        "http://127.0.0.1:80/healthz",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://0/",
        "http://[::ffff:169.254.169.254]/",
    ):
        answer = product.call("web_fetch", {"url": url})
        assert answer.status == 422, url
        assert answer.body["error"]["field"] == "url"
        *_, intent, outcome = product.records()
        assert (intent["tool"], intent["arguments"]) == ("web_fetch", {"url": url})
        assert (outcome["kind"], outcome["status"], outcome["reason"]) == ("outcome", "error", "invalid_argument")


async def test_many_hostile_pages_at_once_leave_no_socket_behind() -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    fetch = PageFetcher()
    results = await asyncio.gather(*(fetch.fetch("http://127.0.0.1/") for _ in range(50)), return_exceptions=True)
    assert all(isinstance(result, QueryFailedError) for result in results)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before + 1
