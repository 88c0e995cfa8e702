"""How a benchmark sorts the queries of a collection: not a query, outside data, and the schema that one belongs to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.kql_binding import bind
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser

SCHEMAS = (
    {"Log": {"TimeGenerated": "datetime", "Who": "string"}, "Bags": {"Bag": "dynamic"}},
    {"Log": {"Timestamp": "datetime"}, "Bags": {"Bag": "dynamic", "Timestamp": "datetime"}},
)


@pytest.fixture(scope="module")
def parser() -> Iterator[OfficialParser]:
    with microsoft_parser() as parser:
        yield parser


@pytest.mark.parametrize("kql", ["let a = 1;", "Log | where", "where x > 1 |"])
def test_a_text_without_an_answer_is_no_query(parser: OfficialParser, kql: str) -> None:
    assert bind(parser, [kql], SCHEMAS)[0].syntax_error


@pytest.mark.parametrize(
    "kql",
    [
        "Log | invoke FileProfile('SHA1', 10) | where GlobalPrevalence < 3",
        "arg('').Resources | take 1",
        "Log | join (workspace('other').Log) on Who",
        "externaldata(a: string)['https://contoso.example/a.csv']",
    ],
)
def test_what_asks_others_reads_outside_data_whether_it_binds_or_not(parser: OfficialParser, kql: str) -> None:
    [bound] = bind(parser, [kql], SCHEMAS)
    assert (bound.outside_data, bound.binds) == (True, False)


def test_a_query_belongs_to_the_first_schema_that_it_binds_to(parser: OfficialParser) -> None:
    texts = ["Log | project Who", "Log | project Timestamp", "Bags | evaluate bag_unpack(Bag) | project Timestamp"]
    assert [bound.schema for bound in bind(parser, texts, SCHEMAS)] == [0, 1, 1]
    [unknown] = bind(parser, ["Badges | project Who"], SCHEMAS)
    assert (unknown.binds, unknown.unknown) == (False, ("Badges",))


def test_a_watchlist_has_the_columns_that_a_query_reads(parser: OfficialParser) -> None:
    vips = "let vips = _GetWatchlist('vips') | project Mail, Since = todatetime(Joined);"
    kql = f"{vips} Log | join vips on $left.Who == $right.Mail"
    [bound] = bind(parser, [kql], SCHEMAS)
    assert bound.watchlist == ("Joined", "Mail")
    assert bound.columns == (
        ("TimeGenerated", "datetime"), ("Who", "string"), ("Mail", "string"), ("Since", "datetime"),
    )  # fmt: skip
    [bound] = bind(parser, ["Log | where Who in (_GetWatchlist('vips') | project Mail) | project Missing"], SCHEMAS)
    assert not bound.binds
