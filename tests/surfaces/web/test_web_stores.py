"""Filling stores over the surface, with the zones that own them: playbooks, past incidents, rows of files."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from running_stores import running_stores
from running_web import RunningWeb, running_web
from tests.support.web_client import Client

from sentinel_rag.surfaces.users import Role
from sentinel_rag.surfaces.web import _stores
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway
from waiting import until

pytestmark = pytest.mark.requirement("SURF-4")

FILE = {"Content-Type": "application/octet-stream"}
PLAYBOOK = b"# Lost laptop\n\n## Containment\n\nLock it in Intune.\n"
SIGN_INS = (
    "TimeGenerated,UserPrincipalName,IPAddress,ResultType,AppDisplayName\n"
    "2026-11-28T10:00:00Z,kim@fabrikam.example,192.0.2.7,0,Portal\n"
    "2026-11-28T10:05:00Z,kim@fabrikam.example,192.0.2.7,50126,Portal\n"
)


@pytest.fixture(scope="module")
def web(web_gateway: RunningGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    """The surface of the folder above, beside stores."""
    with (
        running_stores(tmp_path_factory.mktemp("home")) as stores,
        running_web(web_gateway, tmp_path_factory.mktemp("surface"), stores=stores) as running,
    ):
        yield running


@pytest.fixture
def ada(web: RunningWeb) -> Client:
    return web.person("ada", Role.ANALYST, Role.ADMIN)


def put(client: Client, path: str, content: bytes, **query: str) -> HttpAnswer:
    return client.request("PUT", f"{path}?{urlencode(query)}", content, FILE)


def held(client: Client) -> list[str]:
    return list(client.get("/knowledge/playbooks").body["playbooks"])


def test_a_playbook_is_put_in_replaced_only_when_asked_and_removed_alone(ada: Client) -> None:
    shipped = held(ada)
    assert "phishing.md" in shipped
    added = put(ada, "/knowledge/playbooks", PLAYBOOK, name="lost-laptop.md")
    assert (added.status, added.body["added"], added.body["chunks"]) == (200, 1, 1)
    other = PLAYBOOK.replace(b"Intune", b"Jamf")
    refused = put(ada, "/knowledge/playbooks", other, name="lost-laptop.md")
    assert (refused.status, refused.body["reason"]) == (409, "exists")
    changed = put(ada, "/knowledge/playbooks", other, name="lost-laptop.md", replace="true")
    assert (changed.status, changed.body["changed"]) == (200, 1)
    assert held(ada) == sorted([*shipped, "lost-laptop.md"])
    for expected in (204, 422):  # and a second time there is none
        assert ada.delete("/knowledge/playbooks?name=lost-laptop.md").status == expected
    assert held(ada) == shipped


def test_of_several_playbooks_of_one_name_at_once_one_is_kept_and_the_others_are_told(ada: Client) -> None:
    contents = [PLAYBOOK.replace(b"Intune", f"Intune {number}".encode()) for number in range(4)]
    with ThreadPoolExecutor(len(contents)) as pool:
        answers = list(pool.map(lambda content: put(ada, "/knowledge/playbooks", content, name="at-once.md"), contents))
    refused = [answer.body["reason"] for answer in answers if answer.status == 409]
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert set(refused) <= {"exists", "ingest_runs"}
    [kept] = [content for content, answer in zip(contents, answers, strict=True) if answer.status == 200]
    again = put(ada, "/knowledge/playbooks", kept, name="at-once.md", replace="true")
    assert again.body["unchanged"] == 1, "what is kept is what was told to be"


def test_rows_of_a_file_are_imported_and_asked_about_and_the_same_file_adds_nothing(ada: Client) -> None:
    def stored() -> int:
        tables = ada.get("/data?workspace=default").body["tables"]
        return sum(each["rows"] for each in tables if each["table"] == "SigninLogs")

    before = stored()
    tried = put(ada, "/data", SIGN_INS.encode(), workspace="default", name="sign-ins.csv", trial="true")
    assert tried.status == 200, tried.content
    [report] = tried.body["reports"]
    assert (report["trial"], report["rows_stored"], len(report["first"]), stored()) == (True, 2, 2, before)
    assert tried.body["questions"] == []
    first = put(ada, "/data", SIGN_INS.encode(), workspace="default", name="sign-ins.csv")
    assert first.status == 200, first.content
    [report] = first.body["reports"]
    assert (report["file"], report["table"], report["rows_stored"]) == ("sign-ins.csv", "SigninLogs", 2)
    assert first.body["questions"] == [
        "sign-ins of kim@fabrikam.example",
        "sign-ins from 192.0.2.7",
        "what data do you have?",
    ]
    again = put(ada, "/data", SIGN_INS.encode(), workspace="default", name="sign-ins.csv")
    assert (again.body["reports"][0]["duplicates_skipped"], again.body["questions"]) == (2, [])
    other = SIGN_INS.replace("kim", "lee").replace("192.0.2.7", "192.0.2.8")
    beside = put(ada, "/data", other.encode(), workspace="default", name="lee.csv", table="SigninLogs")
    assert beside.body["questions"][0] == "sign-ins of lee@fabrikam.example"  # its own rows, not the table's
    assert stored() == before + 4


def test_what_is_put_in_and_removed_is_on_record_with_size_and_hash_and_none_of_its_words(
    web: RunningWeb, ada: Client
) -> None:
    assert put(ada, "/knowledge/playbooks", PLAYBOOK, name="on-record.md").status == 200
    assert put(ada, "/knowledge/playbooks", PLAYBOOK + b"more", name="on-record.md").status == 409
    assert ada.delete("/knowledge/playbooks?name=on-record.md").status == 204
    others = SIGN_INS.replace("kim", "ole").replace("192.0.2.7", "192.0.2.9").encode()
    assert put(ada, "/data", others, workspace="default", name="on-record.csv").status == 200
    found = web.person("olga-audits", Role.AUDITOR).get("/audit?before=0&limit=100&kind=store_changed").body
    records = [each["record"] for each in reversed(found["records"])]
    mine = [each for each in records if each["name"].startswith("on-record")]
    assert {found["names"][each["key_id"]] for each in mine} == {"ada"}
    told = [(each["store"], each["change"], each["state"], each["bytes"], each["sha256"]) for each in mine]
    size, sha256 = len(PLAYBOOK), hashlib.sha256(PLAYBOOK).hexdigest()
    refused = len(PLAYBOOK) + 4, hashlib.sha256(PLAYBOOK + b"more").hexdigest()
    rows = len(others), hashlib.sha256(others).hexdigest()
    assert told == [
        ("knowledge", "put", "asked", size, sha256),
        ("knowledge", "put", "done", size, sha256),
        ("knowledge", "put", "asked", *refused),
        ("knowledge", "put", "refused", *refused),
        ("knowledge", "removed", "asked", None, None),
        ("knowledge", "removed", "done", None, None),
        ("workspace default", "imported", "asked", *rows),
        ("workspace default", "imported", "done", *rows),
    ]
    assert [one["audit_id"] for one in mine[::2]] == [other["audit_id"] for other in mine[1::2]]
    assert "Intune" not in str(found)


def test_a_watchlist_is_put_in_read_replaced_when_asked_and_removed(web: RunningWeb, ada: Client) -> None:
    def listed() -> list[tuple[str, int]]:
        rows = ada.get("/data/watchlists?workspace=default").body["rows"]
        return [(row["Alias"], row["Items"]) for row in rows]

    vip = b"Name,Why\nkim,boss\nlee,\n"
    given = {"workspace": "default", "alias": "VIP", "name": "vip.csv"}
    made = put(ada, "/data/watchlists", vip, **given, key="Why")
    assert (made.status, made.body["items"], made.body["columns"]) == (200, 2, ["Name", "Why"])
    assert put(ada, "/data/watchlists", vip, **given).body["reason"] == "exists"
    wrong = put(ada, "/data/watchlists", vip, **given, key="Nobody", replace="true")
    assert (wrong.status, wrong.body["detail"]) == (422, "It has no column 'Nobody'.")
    assert listed() == [("VIP", 2)]
    shown = ada.get("/data/watchlists?workspace=default&alias=VIP").body
    assert {(row["SearchKey"], row["Name"]) for row in shown["rows"]} == {("boss", "kim"), ("", "lee")}
    dana = web.person("dana-fills")
    for answer in (
        dana.get("/data/watchlists?workspace=default"),
        put(dana, "/data/watchlists", vip, **given),
        dana.delete("/data/watchlists?workspace=default&alias=VIP"),
    ):
        assert (answer.status, answer.body["reason"]) == (403, "missing_role")
    assert ada.get("/data/watchlists?workspace=default&alias=x%27)").status == 422
    assert [ada.delete("/data/watchlists?workspace=default&alias=VIP").status for _ in range(2)] == [204, 422]
    assert listed() == []


@pytest.mark.parametrize(
    ("path", "query", "content", "status", "said"),
    [
        ("/knowledge/playbooks", {"name": "x.png"}, b"\x89PNG\r\n", 422, "Files that are read end in"),
        ("/knowledge/playbooks", {"name": "a/../x.md"}, PLAYBOOK, 422, "This is no name of a file."),
        ("/knowledge/playbooks", {"name": "a\u202e.md"}, PLAYBOOK, 422, "This is no name of a file."),
        ("/knowledge/playbooks", {"name": "ä" * 150 + ".md"}, PLAYBOOK, 422, "too long"),
        ("/knowledge/playbooks", {"name": "x.md"}, b"", 422, "The file is empty."),
        ("/knowledge/playbooks", {}, PLAYBOOK, 422, "name is missing"),
        ("/data", {"name": "x.png", "workspace": "default"}, b"\x89PNG\x00\x00", 422, "x.png is a binary file"),
        ("/data", {"name": "x.csv", "workspace": "sample"}, b"a,b\n1,2\n", 422, "Nothing can be imported into"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence_and_changes_nothing(
    ada: Client, path: str, query: dict[str, str], content: bytes, status: int, said: str
) -> None:
    before = held(ada), ada.get("/data?workspace=default").body
    refused = put(ada, path, content, **query)
    assert (refused.status, refused.body["next_step"] != "") == (status, True), refused.content
    assert refused.body["detail"].startswith(said) or said in refused.body["detail"]
    assert "/uploads/" not in refused.content.decode()
    assert (held(ada), ada.get("/data?workspace=default").body) == before


def test_only_administrators_fill_stores_and_only_from_their_own_page(web: RunningWeb, ada: Client) -> None:
    dana = web.person("dana-fills")
    assert dana.get("/session").body["stores"] is None
    assert ada.get("/session").body["stores"] == {"knowledge": True, "workspaces": ["default"]}
    before = held(ada)
    for answer in (
        put(dana, "/knowledge/playbooks", PLAYBOOK, name="mine.md"),
        put(dana, "/data", b"a,b\n1,2\n", workspace="default", name="mine.csv"),
        dana.delete("/knowledge/playbooks?name=phishing.md"),
        dana.post("/knowledge/incidents"),
    ):
        assert (answer.status, answer.body["reason"]) == (403, "missing_role")
    assert put(web.stranger(), "/data", b"a,b\n1,2\n", workspace="default", name="x.csv").status == 401
    forged = Client(web.url, cookie=ada.cookie, csrf="another")
    assert put(forged, "/knowledge/playbooks", PLAYBOOK, name="mine.md").body["reason"] == "csrf"
    form = ada.request("PUT", "/knowledge/playbooks?name=mine.md", PLAYBOOK, {"Content-Type": "text/plain"})
    assert form.status == 415
    assert held(ada) == before


def test_a_file_that_is_too_large_is_refused_and_nothing_of_it_stays(
    web: RunningWeb, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stores, "LARGEST_FILE", 1024**2)
    refused = put(ada, "/data", b"a,b\n" + b"1,2\n" * 300_000, workspace="default", name="large.csv")
    assert (refused.status, refused.body["detail"]) == (413, "The file may have at most 1 MB here.")
    assert web.web.stores is not None
    assert list(web.web.stores.folder.iterdir()) == []


def test_a_file_whose_connection_ends_in_the_middle_is_not_read_and_not_kept(web: RunningWeb, ada: Client) -> None:
    assert web.web.stores is not None
    folder = web.web.stores.folder
    before = ada.get("/data?workspace=default").body
    with half_sent(web, ada, "cut.csv", 100_000):
        until(lambda: folder.exists() and list(folder.iterdir()))
    until(lambda: not list(folder.iterdir()))
    assert ada.get("/data?workspace=default").body == before


def test_a_file_whose_sender_loses_the_role_meanwhile_is_not_read(web: RunningWeb, ada: Client) -> None:
    assert web.web.stores is not None
    folder = web.web.stores.folder
    mallory, before = web.browser("mallory", Role.ADMIN), ada.get("/data?workspace=default").body
    rest = SIGN_INS.encode()
    with half_sent(web, mallory, "late.csv", len(BEGUN) + len(rest)) as sending:
        until(lambda: folder.exists() and list(folder.iterdir()))
        assert web.person("ada").delete("/users/mallory").status == 200
        sending.sendall(rest)
        assert sending.recv(4096).startswith(b"HTTP/1.1 401 ")
    assert list(folder.iterdir()) == []
    assert ada.get("/data?workspace=default").body == before


BEGUN = b"a,b\n1,2\n"


def half_sent(web: RunningWeb, client: Client, name: str, length: int) -> socket.socket:
    """A connection over which the person at `client` has begun to send a file of that length."""
    address = urlsplit(web.url)
    sending = socket.create_connection((str(address.hostname), int(address.port or 0)))
    head = (
        f"PUT /data?workspace=default&name={name} HTTP/1.1",
        f"Host: {address.netloc}",
        f"Cookie: {client.cookie}",
        f"X-CSRF-Token: {client.csrf}",
        f"Content-Type: {FILE['Content-Type']}",
        f"Content-Length: {length}",
    )
    sending.sendall("\r\n".join((*head, "", "")).encode() + BEGUN)
    return sending


def test_a_surface_apart_from_the_stores_says_where_they_are_filled(
    web_gateway: RunningGateway, tmp_path: Path
) -> None:
    with running_web(web_gateway, tmp_path) as apart:
        refused = put(apart.person("ada", Role.ADMIN), "/knowledge/playbooks", PLAYBOOK, name="x.md")
    assert (refused.status, refused.body["reason"]) == (409, "elsewhere")
    assert "on the machine of the stores" in refused.body["next_step"]
