"""Watchlists: put in whole or not at all, replaced only when asked, and read by `_GetWatchlist` as in Sentinel."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.watchlists import LISTED, rows_of
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-5")

VIP = 'Name,Why\nkim@x.example,"boss, ""chief"""\nlee@x.example,\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path / "workspace")
    yield opened
    opened.close()


def put(workspace: Workspace, folder: Path, content: str | bytes, alias: str = "VIP", **given: object) -> object:
    file = folder / "vip.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return workspace.watchlists.put(alias, file, **{"search_key": None, "replaces": False, **given})  # type: ignore[arg-type]


def items(workspace: Workspace, alias: str = "VIP") -> list[tuple[object, ...]]:
    return list(workspace.query(f"{rows_of(alias)} | project SearchKey, Name, Why | order by Name asc").rows)


def test_a_list_is_read_as_sentinel_reads_it_and_joins_by_its_key(workspace: Workspace, tmp_path: Path) -> None:
    assert put(workspace, tmp_path, VIP) == {"alias": "VIP", "items": 2, "columns": ["Name", "Why"]}
    assert items(workspace) == [
        ("kim@x.example", "kim@x.example", 'boss, "chief"'),
        ("lee@x.example", "lee@x.example", ""),
    ]
    joined = "print User='kim@x.example' | join kind=inner (_GetWatchlist('VIP')) on $left.User == $right.SearchKey"
    assert workspace.query(f"{joined} | project Why").rows == [('boss, "chief"',)]
    put(workspace, tmp_path, VIP, alias="Other", search_key="Why")
    assert {key for key, _, _ in items(workspace, "Other")} == {'boss, "chief"', ""}
    assert [(row[0], row[2]) for row in workspace.query(LISTED).rows] == [("Other", 2), ("VIP", 2)]


def test_a_list_is_replaced_whole_and_only_when_asked_and_removed_alone(workspace: Workspace, tmp_path: Path) -> None:
    put(workspace, tmp_path, VIP)
    put(workspace, tmp_path, VIP, alias="Other")
    with pytest.raises(UsageError, match="already"):
        put(workspace, tmp_path, "Name,Why\nx,y\n")
    with pytest.raises(UsageError, match="Line 3 has 1 cells"):
        put(workspace, tmp_path, "Name,Why\nx,y\nz\n", replaces=True)
    assert len(items(workspace)) == 2, "a list that cannot be read leaves the one that is there"
    put(workspace, tmp_path, "Name,Why\nx,y\n", replaces=True)
    assert items(workspace) == [("x", "x", "y")]
    workspace.watchlists.remove("VIP")
    assert [(row[0], row[2]) for row in workspace.query(LISTED).rows] == [("Other", 2)]
    with pytest.raises(UsageError, match="no watchlist 'VIP'"):
        workspace.watchlists.remove("VIP")


def test_of_several_lists_of_one_alias_at_once_one_is_kept_whole(workspace: Workspace, tmp_path: Path) -> None:
    def try_one(number: int) -> int:
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            put(workspace, folder, f"Name,Why\n{number},a\n{number},b\n")
        except UsageError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(try_one, range(4))) == 1
    kept = items(workspace)
    assert (len(kept), len({name for _, name, _ in kept})) == (2, 1)


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        ("", {}, "must name each column"),
        ("Name,Name\na,b\n", {}, "must name each column"),
        ("Name,Why\n", {}, "no item"),
        ("Name,Why\na,b\n", {"search_key": "Nam"}, "no column 'Nam'"),
        ('Name,Why\n"a,b\n', {}, "no CSV file"),
        (b"Name,Why\n\xff,b\n", {}, "no CSV file in UTF-8"),
        ("Name,Why\na,b\n", {"alias": "a'); Watchlist"}, "no alias"),
        ("Name\n" + "a\n" * 100_001, {}, "beyond the 100,000 items"),
        ("Name\n" + "a" * (16 << 20), {}, "may have 16 MB"),
    ],
)
def test_what_is_no_list_is_refused_with_what_to_do(
    workspace: Workspace, tmp_path: Path, content: str | bytes, given: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        put(workspace, tmp_path, content, **given)
    assert refused.value.next_step
    with pytest.raises(UsageError, match="no alias"):
        rows_of("x') | take 1 //")
