"""Times and spans: arithmetic, bins, zones and text forms, with Kusto's documented answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]

TIMES: list[tuple[str, str, Cell]] = [
    ("1d / 2", "timespan", "12:00:00"),
    ("1d * 1.5", "timespan", "1.12:00:00"),
    ("1.5 * 1h", "timespan", "01:30:00"),
    ("1d / 1h", "real", 24.0),
    ("1d % 7h", "timespan", "03:00:00"),
    ("1h - 1d", "timespan", "-23:00:00"),
    ("(datetime(2020-01-02) - datetime(2020-01-01)) / 2", "timespan", "12:00:00"),
    ("datetime(2020-01-01) + 1d / 4", "datetime", "2020-01-01T06:00:00Z"),
    ("-1.5d", "timespan", "-1.12:00:00"),
    ("1d > 23h", "bool", True),
    ("tolong(1h)", "long", 36000000000),
    ("bin(1550ms, 100ms)", "timespan", "00:00:01.5000000"),
    ("bin(-1h, 1d)", "timespan", "-1.00:00:00"),
    ("bin(datetime(2020-01-01 10:07), 1h / 2)", "datetime", "2020-01-01T10:00:00Z"),
    ("bin(datetime(1970-05-11 13:45:07), 1d)", "datetime", "1970-05-11T00:00:00Z"),
    ("bin(datetime(2017-05-17 10:20), 7d)", "datetime", "2017-05-15T00:00:00Z"),
    ("bin(-7, 5)", "long", -10),
    ("bin(4.5, 1)", "real", 4.0),
    ("floor(7, 5)", "long", 5),
    ("bin_at(6.5, 2.5, 7)", "real", 4.5),
    ("bin_at(time(1h), 1d, 12h)", "timespan", "-12:00:00"),
    (
        "bin_at(datetime(2017-05-15 10:20:00.0), 1d, datetime(1970-01-01 12:00:00.0))",
        "datetime",
        "2017-05-14T12:00:00Z",
    ),
    (
        "bin_at(datetime(2017-05-17 10:20:00.0), 7d, datetime(2017-06-04 00:00:00.0))",
        "datetime",
        "2017-05-14T00:00:00Z",
    ),
    ("around(5, 4, 1)", "bool", True),
    ("around(datetime(2021-01-01 01:32), datetime(2021-01-01 01:30), 1min)", "bool", False),
    ("datetime_utc_to_local(datetime(2022-07-11 22:18:48), 'US/Pacific')", "datetime", "2022-07-11T15:18:48Z"),
    ("datetime_local_to_utc(datetime(2022-01-11 12:00), 'Europe/Brussels')", "datetime", "2022-01-11T11:00:00Z"),
    ("datetime_local_to_utc(datetime(2022-03-27 02:00), 'Europe/Brussels')", "datetime", "2022-03-27T00:00:00Z"),
    ("unixtime_seconds_todatetime(1546300899)", "datetime", "2019-01-01T00:01:39Z"),
    ("unixtime_milliseconds_todatetime(1546300800001)", "datetime", "2019-01-01T00:00:00.001Z"),
    ("unixtime_microseconds_todatetime(1546300800000001)", "datetime", "2019-01-01T00:00:00.000001Z"),
    ("unixtime_nanoseconds_todatetime(1546300800000001000)", "datetime", "2019-01-01T00:00:00.000001Z"),
    ("make_datetime(2017, 10, 1)", "datetime", "2017-10-01T00:00:00Z"),
    ("make_datetime(2017, 10, 1, 12, 10)", "datetime", "2017-10-01T12:10:00Z"),
    ("make_datetime(2017, 10, 1, 12, 11, 0.123456)", "datetime", "2017-10-01T12:11:00.123456Z"),
    ("make_datetime(2017, 13, 1)", "datetime", None),
    ("make_datetime(2017, 2, 29)", "datetime", None),
    ("make_timespan(1, 12)", "timespan", "01:12:00"),
    ("make_timespan(1, 12, 30.5)", "timespan", "01:12:30.5000000"),
    ("make_timespan(1, 12, 30, 55.123)", "timespan", "1.12:30:55.1230000"),
    ("make_timespan(25, 0)", "timespan", None),
    ("format_timespan(time(29.09:00:05.12345), 'dd.hh:mm:ss:FF')", "string", "29.09:00:05:12"),
    ("format_timespan(time(29.09:00:05.12345), 'ddd.h:mm:ss [fffffff]')", "string", "029.9:00:05 [1234500]"),
    ("format_timespan(1h, 'HH:mm')", "string", "01:00"),
    ("format_timespan(-90m, 'h:mm')", "string", "1:30"),
    ("format_timespan(5s, 's.FFF')", "string", "5."),
    ("todatetime('2015-12-24')", "datetime", "2015-12-24T00:00:00Z"),
    ("todatetime('Sat, 8 Nov 14 15:05:02 GMT')", "datetime", "2014-11-08T15:05:02Z"),
    ("todatetime('8 Nov 2014 15:05')", "datetime", "2014-11-08T15:05:00Z"),
    ("todatetime('Saturday, 08-Nov-14 15:05:02 GMT')", "datetime", "2014-11-08T15:05:02Z"),
    ("todatetime('2014-11-08T15:05:25 GMT')", "datetime", "2014-11-08T15:05:25Z"),
    ("todatetime('2014-05-25T08:20:03.123456+02:00')", "datetime", "2014-05-25T06:20:03.123456Z"),
    ("todatetime('yesterday')", "datetime", None),
    ("todatetime('')", "datetime", None),
    ("totimespan('1.02:03:04.5')", "timespan", "1.02:03:04.5000000"),
    ("totimespan('nothing')", "timespan", None),
    ("datetime_diff('week', datetime(2020-01-06), datetime(2020-01-05))", "long", 0),
    ("datetime_diff('week', datetime(2017-10-29 00:00), datetime(2017-09-30 23:59))", "long", 5),
    ("datetime_diff('week', datetime(2024-01-07), datetime(2024-01-06))", "long", 1),
    ("datetime_diff('week', datetime(2024-01-06), datetime(2024-01-07))", "long", -1),
    ("datetime_diff('Week', datetime(2020-01-05), datetime(2020-01-11 23:59:59))", "long", 0),
    ("datetime_diff('week', datetime(1960-01-03), datetime(1960-01-02 23:59))", "long", 1),
    ("datetime_diff('week', datetime(null), datetime(2020-01-01))", "long", None),
    ("datetime_diff('hour', datetime(2020-01-01 00:59), datetime(2020-01-01 01:01))", "long", -1),
    ("datetime_add('month', 1, datetime(2020-01-31))", "datetime", "2020-02-29T00:00:00Z"),
    ("dayofweek(datetime(2026-11-28))", "timespan", "6.00:00:00"),
    ("startofweek(datetime(2026-11-28), -1)", "datetime", "2026-11-15T00:00:00Z"),
    ("format_datetime(datetime(2017-01-29 19:00:05), 'yyyy-M-dd [h:mm:ss tt]')", "string", "2017-1-29 [7:00:05 PM]"),
    ("datetime(2020-01-01) between (datetime(2019-12-31) .. 1d)", "bool", True),
    ("now() == now()", "bool", True),
    ("ago(1h) == now() - 1h", "bool", True),
    ("tostring(datetime(2020-01-01 00:00:00.5))", "string", "2020-01-01T00:00:00.5000000Z"),
]


@pytest.mark.parametrize(("expression", "type_", "value"), TIMES)
def test_times_and_spans_answer_as_kusto_does(evaluated: Evaluate, expression: str, type_: str, value: Cell) -> None:
    assert evaluated(expression) == (type_, value)


@pytest.mark.parametrize(
    "expression",
    [
        "datetime_part('nanosecond', datetime(2020-01-01 00:00:00.1234567))",
        "datetime_diff('nanosecond', datetime(2020-01-01 00:00:00.1234567), datetime(2020-01-01))",
    ],
)
def test_digits_that_a_time_here_does_not_have_are_refused(evaluated: Evaluate, expression: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert "nanosecond" in str(refusal.value)


def test_the_parts_of_a_time_are_ints_and_ticks_print_as_zero(evaluated: Evaluate) -> None:
    assert evaluated("datetime_part('microsecond', datetime(2020-01-01 00:00:00.123456))") == ("int", 123456)
    assert evaluated("hourofday(datetime(2020-01-01 13:00)) * 1000000000") == ("long", 13_000_000_000)
    formatted = "format_datetime(datetime(2020-01-01 00:00:05.5), 'HH:mm:ss.fffffff [FFFFFFF]')"
    assert evaluated(formatted) == ("string", "00:00:05.5000000 [5000000]")
    assert evaluated("abs(-90m)") == ("timespan", "01:30:00")
