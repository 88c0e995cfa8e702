"""The files of the page as they are served: what is built, what is not, and what a browser may do with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fastapi import FastAPI
from running_web import RunningWeb
from tests.support.web_client import Client

from sentinel_rag.surfaces.web.routes.page import KINDS, load_page, page_router
from sentinel_rag_testing.loopback import serve


def page_of(folder: Path, *, oidc: bool = False) -> FastAPI:
    app = FastAPI()
    app.include_router(page_router(load_page(folder, oidc=oidc)))
    return app


@pytest.fixture
def built(tmp_path: Path) -> Path:
    for name in KINDS:
        (tmp_path / name).write_text(f'{name} <div data-oidc="no">')
    return tmp_path


@pytest.mark.requirement("SURF-4")
def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path, built: Path) -> None:
    with serve(page_of(tmp_path / "nothing")) as url:
        answer = Client(url).get("/")
    assert answer.status == 503
    assert b"make page" in answer.content
    (built / "page.css").unlink()
    assert load_page(built) == {}


def test_the_files_are_sent_with_their_kind_and_again_only_when_they_changed(built: Path) -> None:
    with serve(page_of(built)) as url:
        client = Client(url)
        for path, name in {"/": "index.html", "/page/page.js": "page.js", "/page/page.css": "page.css"}.items():
            answer = client.get(path)
            assert (answer.status, answer.headers["content-type"]) == (200, KINDS[name])
            again = client.request("GET", path, headers={"If-None-Match": answer.headers["etag"]})
            assert (again.status, again.content) == (304, b"")


def test_the_files_are_packed_for_whoever_can_unpack_them_and_nothing_else_is(built: Path, web: RunningWeb) -> None:
    with serve(page_of(built)) as url:
        client = Client(url)
        plain = client.get("/page/page.js")
        packed = client.request("GET", "/page/page.js", headers={"Accept-Encoding": "gzip, br"})
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.content) == plain.content
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
        assert plain.headers["etag"] != packed.headers["etag"]
        again = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]}
        assert client.request("GET", "/page/page.js", headers=again).status == 304
    # Secrets beside texts that others may choose: their length would tell of them.
    dana = web.person("dana-packed")
    assert "content-encoding" not in dana.request("GET", "/session", headers={"Accept-Encoding": "gzip"}).headers


def test_the_way_in_by_the_identity_provider_is_offered_where_there_is_one(built: Path) -> None:
    assert b'data-oidc="no"' in load_page(built)["index.html"].content
    assert b'data-oidc="yes"' in load_page(built, oidc=True)["index.html"].content
    assert b'data-oidc="no"' in load_page(built, oidc=True)["page.js"].content


@pytest.mark.requirement("SURF-5")
def test_the_page_may_load_and_run_what_is_of_this_host_alone(web: RunningWeb) -> None:
    answer = web.stranger().get("/")
    rules = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    for path in ("/page/index.html", "/page/..%2F_app.py", "/page/_app.py", "/page/"):
        assert web.stranger().get(path).status == 404
