"""`sentinel watchlist` on an embedded workspace that no zone serves: put in, listed, read in KQL, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("SURF-1")


def test_a_list_is_put_in_read_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("vip.csv").write_text("Account,Why\nkim@x.example,the boss\nlee@x.example,\x1b[2J\n")
    assert main(["watchlist", "put", "VIP", "vip.csv", "--key", "Why"]) == 0
    assert capsys.readouterr().out.endswith(
        "holds 2 items. Its keys in KQL: Watchlist | where WatchlistAlias == 'VIP' | project SearchKey\n"
        "Workspace: default\n"
    )
    assert main(["watchlist", "put", "VIP", "vip.csv"]) == 2
    assert main(["watchlist", "put", "vip", "vip.csv"]) == 2
    assert main(["watchlist", "put", "VIP", "vip.csv", "--key", "Nobody", "--replace"]) == 2
    assert main(["watchlist", "put", "VIP", "absent.csv", "--replace"]) == 2
    assert main(["watchlist", "put", "VIP", "vip.csv", "--workspace", "sample"]) == 2
    told = capsys.readouterr().err
    for words in (
        "VIP already",
        "vip already",
        "no column 'Nobody'",
        "absent.csv cannot be read",
        "made anew by sentinel demo",
    ):
        assert words in told
    assert main(["watchlist", "list", "--json"]) == 0
    [listed] = json.loads(capsys.readouterr().out)["rows"]
    assert (listed["Alias"], listed["Items"], listed["Source"]) == ("VIP", 2, "vip.csv")
    assert main(["watchlist", "show", "VIP"]) == 0
    shown = capsys.readouterr().out
    assert "the boss" in shown
    assert "\x1b[2J" not in shown
    assert main(["watchlist", "show", "VIP'"]) == 2
    assert main(["watchlist", "remove", "VIP"]) == 0
    assert main(["watchlist", "remove", "VIP"]) == 2
    assert main(["watchlist", "list"]) == 3
