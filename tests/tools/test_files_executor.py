"""file_read and file_list over MCP on a real socket: texts, pages, encodings, and what is no text."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.session import ClientSession  # a test has no start-up to keep short
from mcp.client.streamable_http import streamable_http_client  # the same

from sentinel_rag.contracts.file_tools import FILE_TOOLS
from sentinel_rag.tools.files import create_app
from sentinel_rag.tools.files.file_tools import MAX_TEXT_BYTES
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

TOKEN = "files-token-of-the-tests"
Call = Callable[..., Any]


@asynccontextmanager
async def session(url: str) -> AsyncIterator[ClientSession]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await client.initialize()
        yield client


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "public" / "deep").mkdir(parents=True)
    (folder / "public" / "a.txt").write_text("first\nsecond ünïcode 🐼\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def url(root: Path) -> Iterator[str]:
    with serve(create_app(root, token=TOKEN)) as address:
        yield address


@pytest.fixture
def call(url: str) -> Call:
    async def one(tool: str, **arguments: Any) -> Any:
        async with session(url) as client:
            return await client.call_tool(tool, arguments)

    return one


async def error_of(call: Call, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await call(tool, **arguments)
    assert answer.is_error is True
    assert set(answer.structured_content) >= {"kind", "code", "message", "next_step", "field"}
    return dict(answer.structured_content)


async def test_the_tools_are_served_with_the_schemas_of_the_contracts(url: str) -> None:
    async with session(url) as client:
        listed = (await client.list_tools()).tools
    assert [(tool.name, tool.description, tool.input_schema) for tool in listed] == [
        (tool.name, tool.description, tool.parameters) for tool in FILE_TOOLS
    ]
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in listed)


async def test_a_file_is_read_whole_with_its_encoding_and_size(call: Call, root: Path) -> None:
    os.utime(root / "public" / "a.txt", (1_700_000_000, 1_700_000_000))
    answer = await call("file_read", file_path="public/a.txt")
    assert answer.structured_content == {
        "file_path": "public/a.txt",
        "content": "first\nsecond ünïcode 🐼\n",
        "encoding": "utf-8",
        "size_bytes": 28,
        "modified": "2023-11-14T22:13:20Z",
        "unit": "characters",
        "offset": 0,
        "returned": 23,
        "total": 23,
        "next_offset": None,
    }
    assert [block.text for block in answer.content] == ["23 of 23 characters."]


async def test_pages_join_to_the_whole_text(call: Call, root: Path) -> None:
    text = "".join(f"line {number} 🐼\n" for number in range(40))
    (root / "public" / "long.txt").write_text(text, encoding="utf-8")
    read, offset = "", 0
    while offset is not None:
        page = (await call("file_read", file_path="public/long.txt", offset=offset, limit=101)).structured_content
        assert page["total"] == len(text)
        assert page["returned"] == len(page["content"]) <= 101
        read += page["content"]
        offset = page["next_offset"]
    assert read == text


async def test_a_text_longer_than_a_page_says_where_it_goes_on(call: Call, root: Path) -> None:
    (root / "public" / "big.txt").write_text("x" * 50_000)
    page = (await call("file_read", file_path="public/big.txt")).structured_content
    assert (page["returned"], page["total"], page["next_offset"]) == (20_000, 50_000, 20_000)


@pytest.mark.parametrize(
    ("raw", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"plain\r\nwindows\r\n", "utf-8", "plain\r\nwindows\r\n"),
        (b"\xef\xbb\xbfwith mark \xc3\xa9", "utf-8 with BOM", "with mark é"),
        (b"\xff\xfe" + "zwei Bytes 🐼".encode("utf-16-le"), "utf-16-le", "zwei Bytes 🐼"),
        (b"\xfe\xff" + "zwei Bytes".encode("utf-16-be"), "utf-16-be", "zwei Bytes"),
        (b"\xff\xfe\x00\x00" + "vier".encode("utf-32-le"), "utf-32-le", "vier"),
        (b"MZ is how this text begins", "utf-8", "MZ is how this text begins"),
        (b"\x1b[31mred\x1b[0m", "utf-8", "\x1b[31mred\x1b[0m"),
    ],
)
async def test_encodings_are_handled_and_told(call: Call, root: Path, raw: bytes, encoding: str, text: str) -> None:
    (root / "public" / "encoded.txt").write_bytes(raw)
    result = (await call("file_read", file_path="public/encoded.txt")).structured_content
    assert (result["encoding"], result["content"], result["size_bytes"]) == (encoding, text, len(raw))


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"%PDF-1.7\nbinary", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG image"),
        (b"PK\x03\x04\x14\x00\x00", "a ZIP archive"),
        (b"MZ\x90\x00\x03", "a Windows program"),
        (b"\x7fELF\x02\x01", "an ELF program"),
        (b"nul\x00inside", "binary data"),
        (b"caf\xe9 in latin-1", "not UTF-8"),
        (b"\xff\xfe\x00\xd8\x00\x00", "damaged UTF-16-LE text"),
        (bytes(range(256)), "binary data"),
    ],
)
async def test_what_is_no_text_is_refused_with_kind_and_size_and_given_as_base64_if_asked(
    call: Call, root: Path, raw: bytes, kind: str
) -> None:
    (root / "public" / "binary").write_bytes(raw)
    error = await error_of(call, "file_read", file_path="public/binary")
    assert (error["code"], error["field"], error["allowed"]) == ("invalid_argument", "read_as", ["base64"])
    assert kind in error["message"]
    assert f"({len(raw)} bytes)" in error["message"]
    result = (await call("file_read", file_path="public/binary", read_as="base64")).structured_content
    assert base64.b64decode(result["content"]) == raw
    assert (result["encoding"], result["unit"], result["total"]) == ("base64", "bytes", len(raw))


async def test_a_file_over_the_limit_is_refused_with_its_size_and_read_in_bytes(call: Call, root: Path) -> None:
    with (root / "public" / "huge.log").open("wb") as file:
        file.truncate(MAX_TEXT_BYTES + 1)
    error = await error_of(call, "file_read", file_path="public/huge.log")
    assert str(MAX_TEXT_BYTES + 1) in error["message"]
    result = (
        await call("file_read", file_path="public/huge.log", read_as="base64", offset=MAX_TEXT_BYTES - 1, limit=10)
    ).structured_content
    assert base64.b64decode(result["content"]) == b"\x00\x00"
    assert result["next_offset"] is None


async def test_a_directory_is_listed_by_name_with_kinds_and_sizes(call: Call, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("12345")
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("b.txt")
    os.mkfifo(tmp_path / "pipe")
    with serve(create_app(tmp_path, token=TOKEN)) as url:
        async with session(url) as client:
            result = (await client.call_tool("file_list", {})).structured_content
            first = (await client.call_tool("file_list", {"limit": 3})).structured_content
            rest = (await client.call_tool("file_list", {"offset": 3})).structured_content
    assert [(entry["name"], entry["path"], entry["type"], entry["size_bytes"]) for entry in result["entries"]] == [
        ("a", "a", "directory", None),
        ("b.txt", "b.txt", "file", 5),
        ("link", "link", "link", None),
        ("pipe", "pipe", "other", None),
    ]
    assert (result["directory"], result["total"], result["omitted"], result["next_offset"]) == ("", 4, 0, None)
    assert first["next_offset"] == 3
    assert first["entries"] + rest["entries"] == result["entries"]


@pytest.mark.parametrize("directory", ["public", "public/", "public/deep"])
async def test_a_directory_may_end_in_a_slash(call: Call, directory: str) -> None:
    result = (await call("file_list", directory=directory)).structured_content
    assert result["directory"] == directory.rstrip("/")


async def test_names_that_cannot_be_written_are_counted_and_not_hidden(call: Call, tmp_path: Path) -> None:
    for name in (b"ok.txt", b"not\xffutf8", "e\u0301.txt".encode(), b"line\nbreak", "ze\u200bro".encode(), b"a\\b"):
        (Path(os.fsdecode(bytes(tmp_path) + b"/" + name))).write_text("x")
    with serve(create_app(tmp_path, token=TOKEN)) as url:
        async with session(url) as client:
            result = (await client.call_tool("file_list", {})).structured_content
    assert [entry["name"] for entry in result["entries"]] == ["ok.txt"]
    assert result["omitted"] == 5


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("file_read", {}, "file_path"),
        ("file_read", {"file_path": 7}, "file_path"),
        ("file_read", {"file_path": ""}, "file_path"),
        ("file_read", {"file_path": "public/a.txt", "offset": -1}, "offset"),
        ("file_read", {"file_path": "public/a.txt", "offset": 24}, "offset"),
        ("file_read", {"file_path": "public/a.txt", "limit": 0}, "limit"),
        ("file_read", {"file_path": "public/a.txt", "limit": "10"}, "limit"),
        ("file_read", {"file_path": "public/a.txt", "limit": 10**30}, "limit"),
        ("file_read", {"file_path": "public/a.txt", "read_as": "hex"}, "read_as"),
        ("file_read", {"file_path": "public/a.txt", "mode": "r"}, "mode"),
        ("file_read", {"file_path": "public/none.txt"}, "file_path"),
        ("file_read", {"file_path": "none/a.txt"}, "file_path"),
        ("file_read", {"file_path": "public"}, "file_path"),
        ("file_read", {"file_path": "public/a.txt/b"}, "file_path"),
        ("file_list", {"directory": "public/a.txt"}, "directory"),
        ("file_list", {"directory": "none"}, "directory"),
        ("file_list", {"offset": 9_999}, "offset"),
        ("file_write", {"file_path": "public/a.txt"}, "tool_name"),
    ],
)
async def test_a_bad_argument_names_its_field_and_the_next_step(
    call: Call, tool: str, arguments: dict[str, Any], field: str
) -> None:
    error = await error_of(call, tool, **arguments)
    assert (error["code"], error["field"]) == ("invalid_argument", field)
    assert error["message"].endswith(".")
    assert error["next_step"]


async def test_a_folder_that_is_gone_is_an_error_and_the_server_stays_up(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    with serve(create_app(folder, token=TOKEN)) as url:
        async with session(url) as client:
            gone = await client.call_tool("file_list", {})
            folder.mkdir()
            found = await client.call_tool("file_list", {})
    assert (gone.structured_content["code"], gone.structured_content["retry_possible"]) == ("unavailable", True)
    assert str(tmp_path) not in str(gone.structured_content)
    assert found.structured_content["entries"] == []


async def test_the_shipped_samples_are_marked_as_such() -> None:
    with serve(create_app(None, token=TOKEN)) as url:
        async with session(url) as client:
            listed = (await client.call_tool("file_list", {})).structured_content
            read = (await client.call_tool("file_read", {"file_path": "public/README.md"})).structured_content
    assert [entry["name"] for entry in listed["entries"]] == ["confidential", "public"]
    assert listed["source"] == read["source"] == "bundled sample"
    assert "describe no real company" in read["content"]


def test_an_idle_server_holds_neither_the_protocols_library_nor_a_database() -> None:
    code = (
        "import sys; from sentinel_rag.tools.files import create_app as f; "
        "from sentinel_rag.tools.web import create_app as w, WebOptions; "
        "f(None, token='t'); w(WebOptions(), token='t'); "
        "print([n for n in ('mcp', 'pydantic', 'aiohttp', 'duckdb', 'azure', 'sentinel_rag.sentinel', "
        "'sentinel_rag.workspace', 'sentinel_rag.gateway', 'sentinel_rag.agent') if n in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
