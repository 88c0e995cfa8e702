"""The attacker controls the path of file_read and file_list, and may put links, pipes and devices into the folder that
is served, or swap them while a file is being opened. What lies outside the folder must not be read, nor its existence
told; what policy keeps back must not be read by another spelling; every refused call is on record.
"""

from __future__ import annotations

import json
import os
import socket
import string
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import QueryFailedError
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.upstream import McpHttpUpstream, Upstream
from sentinel_rag.tools.files import create_app, file_tools
from sentinel_rag.tools.files.file_tools import FileRoot, FileTools, parts_of
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.anyio

SECRET = "the-secret-outside"
INSIDE = "kept back by policy"
TOKEN = "files-token-of-the-tests"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a public and a confidential part, beside a secret that is not part of it."""
    folder = tmp_path / "root"
    (folder / "public" / "deep").mkdir(parents=True)
    (folder / "confidential").mkdir()
    (folder / "public" / "ok.txt").write_text("fine")
    (folder / "confidential" / "plan.txt").write_text(INSIDE)
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "root-not").mkdir()
    (tmp_path / "root-not" / "secret.txt").write_text(SECRET)
    return folder


async def run(root: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    return dict((await FileTools(FileRoot(root)).call(tool, arguments)).value)


HOSTILE = [
    "../secret.txt",
    "public/../../secret.txt",
    "public/../../../../../../../../etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "~/secret.txt",
    "public/./ok.txt",
    "./public/ok.txt",
    "public//ok.txt",
    "public/ok.txt/",
    "public/ok.txt/..",
    "public/ok.txt/.",
    "..",
    ".",
    "/",
    "",
    "..\\secret.txt",
    "public\\ok.txt",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "public/ok.txt\x00",
    "public/ok.txt\x00.md",
    "\x00",
    "public/ok.txt\n",
    "public/ok\u200b.txt",
    "public/\u202eok.txt",
    "public/ok.txt\u00ad",
    "public/\u2024\u2024/\u2024\u2024/secret.txt",
    "public/\uff0e\uff0e/\uff0e\uff0e/secret.txt",
    "public\u2215..\u2215..\u2215secret.txt",
    "public\uff0fok.txt",
    "\uff50ublic/ok.txt",
    "public/..;/secret.txt",
    "public/%2e%2e/%2e%2e/secret.txt",
    "..%2fsecret.txt",
    "public/ok.txt ",
    " public/ok.txt",
    "public /ok.txt",
    "public/ok.txt.",
    "public./ok.txt",
    "public/ok.txt::$DATA",
    "file:///etc/passwd",
    "PUBLIC/OK.TXT",
    "Public/ok.txt",
    "confıdential/plan.txt",
    "../root-not/secret.txt",
    "public/\ud800",
    "x" * 1001,
    "a/" * 400 + "b",
    "public/" + "n" * 300,
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
async def test_no_spelling_leads_out_or_to_a_second_name(root: Path, path: str) -> None:
    for answer in (
        await run(root, "file_read", file_path=path),
        await run(root, "file_read", file_path=path, read_as="base64"),
    ):
        assert answer["kind"] == "error", answer
        assert SECRET not in json.dumps(answer)
        assert str(root) not in json.dumps(answer)
    if path not in ("", "/", ".", "PUBLIC", "x"):
        listed = await run(root, "file_list", directory=path)
        assert listed.get("kind") == "error", listed


@pytest.mark.parametrize("name", ["secret.txt", "no-such-file.txt"])
async def test_what_exists_outside_is_answered_like_what_does_not(root: Path, name: str) -> None:
    answer = await run(root, "file_read", file_path=f"../{name}")
    assert answer["message"] == "file_path is not a path below the files folder: it holds a part . or ..."


LINKS = {
    "to a file outside": ("public/link", "../../secret.txt"),
    "to a file outside, absolute": ("public/link", "/etc/passwd"),
    "to the root's parent": ("public/link", ".."),
    "to a file inside": ("public/link", "ok.txt"),
    "to the confidential part": ("public/link", "../confidential/plan.txt"),
    "to itself": ("public/link", "link"),
    "to nothing": ("public/link", "nowhere"),
    "to the process": ("public/link", "/proc/self/environ"),
}


@pytest.mark.parametrize("case", LINKS, ids=str)
async def test_a_link_is_never_followed(root: Path, case: str) -> None:
    name, target = LINKS[case]
    (root / name).symlink_to(target)
    answer = await run(root, "file_read", file_path=name)
    assert (answer["kind"], answer["field"]) == ("error", "file_path")
    assert "link" in answer["message"]
    assert not {SECRET, INSIDE} & set(json.dumps(answer).split('"'))


@pytest.mark.parametrize("target", ["..", "../..", "/", "deep", "../confidential"])
async def test_a_linked_directory_is_not_entered(root: Path, target: str) -> None:
    (root / "public" / "door").symlink_to(target)
    for tool, argument, path in (
        ("file_read", "file_path", "public/door/secret.txt"),
        ("file_read", "file_path", "public/door/plan.txt"),
        ("file_list", "directory", "public/door"),
        ("file_list", "directory", "public/door/deep"),
    ):
        answer = await run(root, tool, **{argument: path})
        assert answer["kind"] == "error"
        assert "link" in answer["message"]


async def test_pipes_sockets_and_devices_are_not_opened(root: Path) -> None:
    os.mkfifo(root / "public" / "pipe")  # opening it for reading would wait for a writer for ever
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(root / "public")  # a socket's path may be a hundred bytes long only
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "socket"):
            answer = await run(root, "file_read", file_path=f"public/{name}")
            assert "no plain file" in answer["message"]


async def test_a_served_dev_folder_gives_no_device() -> None:
    for name in ("null", "zero", "tty", "random"):
        if Path("/dev", name).exists():
            answer = await run(Path("/dev"), "file_read", file_path=name, read_as="base64", limit=10)
            assert answer["kind"] == "error"


SWAPS = {
    "a link to the secret": lambda path, outside: path.symlink_to(outside),
    "another file": lambda path, outside: path.write_text(SECRET),
    "a pipe": lambda path, outside: os.mkfifo(path),
    "nothing": lambda path, outside: None,
    "a directory": lambda path, outside: path.mkdir(),
}


@pytest.mark.parametrize("case", SWAPS, ids=str)
async def test_a_file_swapped_between_the_look_and_the_opening_is_not_read(root: Path, case: str) -> None:
    victim = root / "public" / "ok.txt"
    looks: list[int] = []

    def swap() -> None:
        looks.append(1)
        if len(looks) == 2:  # public is open, ok.txt was looked at
            victim.rename(root / "public" / "aside")
            SWAPS[case](victim, root.parent / "secret.txt")

    answer = (await FileTools(FileRoot(root, between=swap)).call("file_read", {"file_path": "public/ok.txt"})).value
    assert answer["kind"] == "error"
    assert SECRET not in json.dumps(answer)
    assert answer["retry_possible"] is True


async def test_a_directory_swapped_for_a_link_on_the_way_is_not_entered(root: Path) -> None:
    (root / "public" / "deep" / "secret.txt").write_text("inside")
    looks: list[int] = []

    def swap() -> None:
        looks.append(1)
        if len(looks) == 2:  # public is open, deep was looked at
            (root / "public" / "deep").rename(root / "aside")
            (root / "public" / "deep").symlink_to(root.parent)

    tools = FileTools(FileRoot(root, between=swap))
    answer = (await tools.call("file_read", {"file_path": "public/deep/secret.txt"})).value
    assert answer["kind"] == "error"
    assert SECRET not in json.dumps(answer)


async def test_a_directory_moved_out_of_the_root_after_it_was_opened_leads_nowhere_else(root: Path) -> None:
    """An open directory keeps its own place: what was `public` stays that directory, wherever it is moved."""
    looks: list[int] = []

    def swap() -> None:
        looks.append(1)
        if len(looks) == 2:  # public is open, ok.txt was looked at
            (root / "public").rename(root.parent / "elsewhere")
            (root / "public").symlink_to(root.parent)
            (root.parent / "ok.txt").write_text(SECRET)

    answer = (await FileTools(FileRoot(root, between=swap)).call("file_read", {"file_path": "public/ok.txt"})).value
    assert answer.get("content") == "fine"


async def test_a_store_that_ignores_case_gives_a_file_by_its_own_name_only(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system calls of such a store, as macOS and Windows shares have it: any case opens, one name is listed."""
    real_open, real_stat = os.open, os.stat

    def folded(name: Any, dir_fd: int | None) -> Any:
        if dir_fd is None or not isinstance(name, str):
            return name
        return next((each for each in os.listdir(dir_fd) if each.casefold() == name.casefold()), name)

    def open_any_case(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return real_open(folded(path, dir_fd), flags, mode, dir_fd=dir_fd)

    def stat_any_case(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return real_stat(folded(path, dir_fd), dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(file_tools.os, "open", open_any_case)
    monkeypatch.setattr(file_tools.os, "stat", stat_any_case)
    with os.scandir(root):
        assert os.stat("CONFIDENTIAL", dir_fd=real_open(root, os.O_RDONLY)).st_ino  # the store answers to both
    for path in ("CONFIDENTIAL/plan.txt", "Confidential/plan.txt", "confidential/PLAN.TXT"):
        answer = await run(root, "file_read", file_path=path)
        assert answer["message"].startswith("There is no such")
    assert (await run(root, "file_read", file_path="confidential/plan.txt"))["content"] == INSIDE


@contextmanager
def without_roots_rights() -> Iterator[None]:
    """Root may read everything, so as root the block runs as nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_file_without_rights_is_told_and_not_read() -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders are closed to nobody
        folder = Path(made)
        (folder / "public").mkdir()
        (folder / "public" / "ok.txt").write_text(INSIDE)
        (folder / "public" / "closed.txt").write_text(INSIDE)
        (folder / "public" / "closed.txt").chmod(0)
        folder.chmod(0o755)
        with without_roots_rights():
            assert (await run(folder, "file_read", file_path="public/ok.txt"))["content"] == INSIDE
            answer = await run(folder, "file_read", file_path="public/closed.txt")
        assert answer["code"] == "access_denied"


_ALPHABET = st.text(alphabet=st.sampled_from(string.ascii_letters + "./\\ ~%\x00\u200b\u2215\uff0e:-"), max_size=30)


@given(_ALPHABET)
@example("public/ok.txt")
@example("a/../b")
def test_a_path_that_is_taken_is_spelled_in_one_way(path: str) -> None:
    """Law: whatever passes is relative, and joining its parts gives it back, so no rule can have seen another path."""
    try:
        parts = parts_of("file_path", path)
    except QueryFailedError:
        return
    assert "/".join(parts) == path
    assert os.path.normpath(path) == path
    assert not os.path.isabs(path)
    assert ".." not in parts


@pytest.fixture
def product(shipped_policy: Policy, root: Path, tmp_path: Path) -> Iterator[RunningGateway]:
    with serve(create_app(root, token=TOKEN)) as files, FakeToolServer().running() as others:
        shared = McpHttpUpstream(others.url)
        upstreams: dict[str, Upstream] = dict.fromkeys(shipped_policy.servers(), shared)
        upstreams["files"] = McpHttpUpstream(f"{files}/mcp", token=TOKEN, is_ours=True)
        with running_gateway(shipped_policy, tmp_path / "state", others, upstreams=upstreams) as gateway:
            yield gateway


def test_every_hostile_path_is_refused_by_the_product_and_on_record(product: RunningGateway) -> None:
    spelled = [path for path in HOSTILE if path != "public/\ud800"]  # half a pair does not get through the parser
    for path in spelled:
        answer = product.call("file_read", {"file_path": path})
        if path in ("public/./ok.txt", "./public/ok.txt", "public//ok.txt", "public/ok.txt/."):
            # Four spellings of one public file: the gateway forwards the one form, so the tool server reads it.
            assert answer.body["result"]["content"] == "fine"
            continue
        assert answer.status in (403, 422), path
        assert SECRET not in answer.content.decode()
        record = product.last_record()
        if record["kind"] == "refusal":
            assert record["http_status"] == answer.status
        else:
            assert (record["kind"], record["status"]) == ("outcome", "error")


@pytest.mark.parametrize(
    "path",
    [
        "confidential/plan.txt",
        "./confidential/plan.txt",
        "public/../confidential/plan.txt",
        "confidential//plan.txt",
        "confidential/./plan.txt",
        "public/deep/../../confidential/plan.txt",
    ],
)
def test_the_confidential_file_is_kept_back_by_every_way_there(product: RunningGateway, path: str) -> None:
    answer = product.call("file_read", {"file_path": path})
    assert (answer.status, answer.body["rule_id"]) == (403, "file_read_confidential")
    assert product.last_record()["rule_id"] == "file_read_confidential"
    assert INSIDE not in answer.content.decode()


def test_a_link_from_public_to_confidential_is_no_way_around_the_policy(product: RunningGateway, root: Path) -> None:
    (root / "public" / "plan.txt").symlink_to("../confidential/plan.txt")
    (root / "public" / "all").symlink_to("../confidential")
    for path in ("public/plan.txt", "public/all/plan.txt"):
        answer = product.call("file_read", {"file_path": path})
        assert answer.status == 422
        assert INSIDE not in answer.content.decode()
        assert product.last_record()["status"] == "error"
