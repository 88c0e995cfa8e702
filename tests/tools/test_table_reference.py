"""The data files that are written from Microsoft's table reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import table_reference


def test_names_and_types_are_written_without_footnotes_and_in_one_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_reference, "FOLDER", tmp_path)
    logs = {
        "AADBadges": {"Type": "string", "Door": "double", "door": "string", "TimeGenerated": "datetime"},
        "DeviceFileBadges": {"Type": "string", "Timestamp": "datetime", "ISP": "string"},
        "Kiln": {"Type": "string"},
    }
    earlier, later = tmp_path / "earlier.json", tmp_path / "later.json"
    hunting = {"DeviceFileBadges": {"Timestamp": "datetime", "Held*": "object", "Isp": "string"}}
    earlier.write_text(json.dumps({"sentinel": {"tables": {}}, "m365": {"tables": {"Retired": {"Name": "string"}}}}))
    later.write_text(json.dumps({"sentinel": {"tables": logs}, "m365": {"tables": hunting}}))

    table_reference.main([str(earlier), str(later)])

    def paragraphs(file: str) -> list[str]:
        return [each.strip() for each in (tmp_path / file).read_text().split("\n\n")[1:]]

    assert paragraphs("log_tables.txt") == [
        "AADBadges =\n  TimeGenerated:t Type Door:r",
        "DeviceFileBadges =\n  TimeGenerated:t Type ISP",
    ]
    assert paragraphs("hunting_tables.txt") == [
        "DeviceFileBadges =\n  Timestamp:t Held:d ISP",
        "Retired =\n  Name",
    ]
