"""Numbers that no type of a column holds exactly are kept as they were written, and never rounded or made infinite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.workspace.workspace import Workspace

ID = "12345678901234567890123"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("numbers"))
    yield opened
    opened.close()


@pytest.mark.requirement("DATA-5")
def test_ids_of_many_digits_stay_what_they_are(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "Ids_CL.csv"
    path.write_text(f"Id,Amount,Short\n{ID},1.5,123456789012345678\n{ID[:-1]}9,0.25,1\n")
    (report,) = workspace.import_path(path)
    assert (report.rows_stored, report.misfits) == (2, ())
    assert workspace.query("Ids_CL | project Id, Amount, Short | order by Amount desc").rows == [
        (ID, 1.5, 123456789012345678),
        (f"{ID[:-1]}9", 0.25, 1),
    ]


@pytest.mark.requirement("DATA-5")
def test_a_number_beyond_every_double_is_told_and_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "Sizes_CL.csv"
    path.write_text("Name,Size\na,1.5\nb,2.5e400\nc,-3.0\n")
    (report,) = workspace.import_path(path)
    assert report.rows_stored == 3
    (misfit,) = report.misfits
    assert (misfit.column, misfit.type, misfit.values) == ("Size", "real", ("2.5e400",))
    rows = workspace.query("Sizes_CL | where Name == 'b' | project Size, UnfitValues").rows
    assert rows[0][0] is None
    assert "2.5e400" in str(rows[0][1])


def test_json_numbers_of_thousands_of_digits_are_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "Digits_CL.json"
    path.write_text(f'[{{"Computer": "srv-1", "N": {"9" * 5_000}}}, {{"Computer": "srv-2", "N": 1}}]')
    (report,) = workspace.import_path(path)
    assert report.rows_stored == 2
    assert "9" * 5_000 in str(workspace.query("Digits_CL").rows)
