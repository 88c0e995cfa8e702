"""What is read out of a text, one line a form."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sentinel_rag.language.literals import Kind, Moment, Names, figure, row_time, scan

FORMS = [
    ("4.6 GB", Kind.NUMBER, 4.6),
    ("4,6 GB", Kind.NUMBER, 4.6),
    ("1.234.567 Ereignisse", Kind.NUMBER, 1234567),
    ("31 hours", Kind.DURATION, 31),
    ("zwei Tage", Kind.DURATION, 2),
    ("45 %", Kind.PERCENT, 45),
    ("the half", Kind.PERCENT, 50),
    ("la mitad", Kind.PERCENT, 50),
    ("ein Drittel", Kind.PERCENT, 33.3),
    ("catorce avisos", Kind.NUMBER, 14),
    ("siobhan.o'brien@woodgrove.example", Kind.ID, "siobhan o brien woodgrove example"),
    ("münchen-srv-01", Kind.ID, "munchen srv 01"),
    ("203.0.113.71", Kind.ID, "203 0 113 71"),
    ("203.0.113[.]71", Kind.ID, "203 0 113 71"),
    ("evil[.]example", Kind.ID, "evil example"),
    ("hxxps://evil[.]example/a", Kind.ID, "https evil example a"),
    ("2001:db8::1", Kind.ID, "2001 db8 1"),
    ("T1003.001", Kind.ID, "t1003 001"),
    (r"C:\it\inventory.ps1", Kind.ID, "c it inventory ps1"),
    ("⟦r1#/rows/0/name⟧", Kind.ID, "r1 rows 0 name"),
    ("„Wörter“", Kind.TEXT, "worter"),
    ("« des mots »", Kind.TEXT, "des mots"),
    ("`hxxps://evil[.]example`", Kind.TEXT, "https evil example"),
    ("`whoami /all`", Kind.TEXT, "whoami all"),
    ("it is Medium", Kind.STATE, "Medium"),
    ("ist hoch", Kind.SPOKEN, "High"),
    ("sin asignar", Kind.SPOKEN, "nobody"),
]


@pytest.mark.parametrize(("text", "kind", "value"), FORMS)
def test_a_literal_is_read(text: str, kind: Kind, value: object) -> None:
    found = scan(f"so {text} so").literals
    assert (kind, value) in [(each.kind, each.value) for each in found]


MOMENTS = [
    "2026-11-26 23:20 UTC",
    "2026-11-26T23:20:00Z",
    "11-26 23:20",
    "26 November 2026 at 23:20 UTC",
    "November 26, 2026, 11:20 PM UTC",
    "26. November 2026 um 23:20 UTC",
    "27. November um 00:20 MEZ",
    "el 26 de noviembre de 2026 a las 23:20",
    "le 26 novembre 2026 à 23:20",
    "23:20 on 26 November",
    "00:20 CET",
    "27 November 2026, 04:50 UTC+05:30",
    "26.11.2026",
    "26/11/2026",
    "11/26/2026",
    "November 2026",
]


@pytest.mark.parametrize("text", MOMENTS)
def test_a_moment_in_any_form_fits_the_time_that_it_means_and_no_other_day(text: str) -> None:
    moments = [each for each in scan(f"It was {text}, I think").literals if each.kind is Kind.MOMENT]
    assert moments, text
    at = datetime(2026, 11, 26, 23, 20, tzinfo=UTC)
    assert any(each.value.fits(at) for each in moments)
    assert not any(each.value.fits(datetime(2026, 12, 24, 9, 1, tzinfo=UTC)) for each in moments)


def test_a_time_without_a_zone_may_be_the_readers() -> None:
    at = datetime(2026, 11, 26, 23, 20, tzinfo=UTC)
    local = Moment(month=11, day=27, hour=0, minute=20)
    assert local.fits(at, ZoneInfo("Europe/Berlin"))
    assert not local.fits(at)


@pytest.mark.parametrize(
    ("text", "bound"),
    [("more than 5", ">"), ("weniger als 5", "<"), ("casi 5", "~"), ("over 5", ">"), ("exactly 5", "=")],
)
def test_the_words_before_a_number_bound_it(text: str, bound: str) -> None:
    assert [each.bound for each in scan(f"It took {text} GB").literals if each.kind is Kind.NUMBER] == [bound]


def test_names_are_found_in_any_script_and_shadow_what_stands_in_them() -> None:
    names = Names()
    for name in ("Åsa Öberg", "Unfamiliar sign-in properties", "محمد علي", "Windows 10 event log cleared", "山田"):
        names.add(name)
    found = scan("A: Åsa öberg, محمد علي and 山田: Windows 10 event log cleared", names).literals
    assert [each.raw for each in found] == ["Åsa öberg", "محمد علي", "山田", "Windows 10 event log cleared"]


@pytest.mark.parametrize(
    ("text", "value"), [("1,234", 1234), ("1.234,5", 1234.5), ("4,6", 4.6), ("0,123", 0.123), ("1.2.3.4.5", None)]
)
def test_a_figure_is_read_as_people_group_it(text: str, value: float | None) -> None:
    assert figure(text) == value


def test_only_a_whole_time_of_a_row_is_one() -> None:
    assert row_time("2026-11-26T23:56:00Z") == datetime(2026, 11, 26, 23, 56, tzinfo=UTC)
    assert row_time("2026-99-26T23:56:00Z") is None
    assert row_time("High") is None
