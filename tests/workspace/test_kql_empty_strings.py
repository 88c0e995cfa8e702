"""A string is never null in Kusto: what an operator fills in is the empty text for everything that comes after it.

Each source below yields rows whose column `b` was not in the input that the row came from; `rows` of them in all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from law_examples import IN_FULL
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

LEFT = "datatable(a:string, n:long)['x', 1, 'y', 2]"
RIGHT = "(datatable(a:string, b:string)['z', 'full'])"
NONE = "datatable(a:string, b:string, n:long)['x', 'full', 1] | where a == 'nobody'"

SOURCES = {
    "union of two": f"union ({LEFT}), {RIGHT} | where a != 'z'",
    "union behind a pipe": f"{LEFT} | union {RIGHT} | where a != 'z'",
    "union of a union": f"union ({LEFT}), (union {RIGHT}, (datatable(c:string)['w'])) | where a in ('x', 'y')",
    "union withsource": f"union withsource=Source ({LEFT}), {RIGHT} | where a != 'z'",
    "union bound by let": f"let T = union ({LEFT}), {RIGHT}; T | where a != 'z'",
    "union of many, which leaves out columns": (
        "union " + ", ".join(f"(datatable(a:string, c{i}:string)['v', 'w'])" for i in range(9)) + f", {RIGHT}, ({LEFT})"
        " | where a in ('x', 'y')"
    ),
    "union by type": "union (datatable(b:long)[1, 2]), (datatable(b:string)['full']) | project-rename b1 = b_long, "
    "b = b_string | where isnotnull(b1)",
    "leftouter join": f"{LEFT} | join kind=leftouter {RIGHT} on a",
    "rightouter join": "(datatable(a:string, b:string)['z', 'full']) "
    f"| join kind=rightouter ({LEFT}) on a | project b, n",
    "fullouter join": f"{LEFT} | join kind=fullouter {RIGHT} on a | where a != ''",
    "lookup": f"{LEFT} | lookup {RIGHT} on a",
    "join in a subquery": f"{LEFT} | where a in (({LEFT} | join kind=leftouter {RIGHT} on a | where b == '' "
    "| project a)) | extend b = ''",
    "max of no row": f"range n from 1 to 2 step 1 | extend k = 1 | join kind=inner ({NONE} | summarize b = max(b) "
    "| extend k = 1) on k",
    "arg_max of no row": f"range n from 1 to 2 step 1 | extend k = 1 | join kind=inner ({NONE} "
    "| summarize arg_max(n, b) | project b, k = 1) on k",
    "maxif by group": f"{LEFT} | summarize b = maxif(a, n > 9) by n",
    "minif by group": f"{LEFT} | summarize b = minif(a, n > 9) by n",
    "take_anyif by group": f"{LEFT} | summarize b = take_anyif(a, n > 9) by n",
    "anyif in an expression": f"{LEFT} | summarize b = tolower(anyif(a, n > 9)) by n",
    "pivot": "datatable(r:string, c:string, v:string)['p', 'one', '1', 'q', 'two', '2', 's', 'two', '3'] "
    "| evaluate pivot(c, take_any(v)) | where r != 'p' | project b = one",
    "bag_unpack": "datatable(d:dynamic)[dynamic({'b':'full'}), dynamic({'c':1}), dynamic({'c':2})] "
    "| evaluate bag_unpack(d) | where isnotnull(c)",
    "mv-expand": "datatable(d:dynamic)[dynamic(['', null])] | mv-expand b = d to typeof(string)",
    "mv-apply": f"{LEFT} | mv-apply e = dynamic([1]) to typeof(long) on (summarize b = maxif(a, e > 9))",
    "partition": f"{LEFT} | partition by a (summarize b = maxif(a, n > 9))",
    "prev": f"{LEFT} | sort by n asc | extend b = prev(a, 2)",
    "dynamic": f"{LEFT} | extend d = dynamic({{'q': 1}}) | extend b = tostring(d.nothing)",
    "split out of range": f"{LEFT} | extend b = tostring(split(a, ',')[7])",
    "extract without a match": f"{LEFT} | extend b = extract('(q)', 1, a)",
    "parse without a match": f"{LEFT} | parse a with 'q' b",
    "toscalar of nothing": f"{LEFT} | extend b = toscalar({NONE} | project b)",
    "toscalar of an aggregate of nothing": f"{LEFT} | extend b = toscalar({NONE} | summarize max(b))",
    "iff": f"{LEFT} | extend d = dynamic({{'q': 'full'}}) | extend b = iff(n == 7, d.q, d.nothing) "
    "| extend b = tostring(b)",
}

PROBES = {
    "==": "where b == '' | count",
    "=~": "where b =~ '' | count",
    "in": "where b in ('') | count",
    "!=": "where not(b != '') | count",
    "!in": "where not(b !in ('')) | count",
    "contains": "where b contains '' | count",
    "regex": "where b matches regex '^$' | count",
    "<": "where b < 'a' | count",
    "strlen": "where strlen(b) == 0 | count",
    "isnull": "where not(isnull(b)) | count",
    "isempty": "where isempty(b) | count",
    "iff": "where iff(b == '', 'none', b) == 'none' | count",
    "case": "where case(b == 'q', 1, b == '', 2, 3) == 2 | count",
    "coalesce": "where coalesce(b, 'other') == 'other' | count",
    "strcat": "where strcat('<', b, '>') == '<>' | count",
    "replace": "where replace_string(b, 'a', 'b') == '' and tolower(b) == '' and reverse(b) == '' | count",
    "indexof": "where indexof(b, 'q') == -1 | count",
    "pack": """where tostring(bag_pack('b', b)) == '{"b":""}' and tostring(pack_array(b)) == '[""]' | count""",
    "has": "where b !has 'q' and not(b has 'q') and b !contains 'q' and b !startswith 'q' | count",
    "group": "extend b = b | summarize count() by b | project count_",
    "group of a test": "summarize n = count() by t = (b == 'q') | where t == false | project n",
    "list": "summarize l = make_list(b) | project array_length(l)",
    "countif": "summarize countif(b == '')",
    "join": "join kind=inner (datatable(b:string, found:long)['', 1]) on b | summarize sum(found)",
    "leftanti join": "as Here | join kind=leftanti (datatable(b:string)['q']) on b | count",
    "union": "union (datatable(a:string)['only here'] | where a == '') | where b == '' | count",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """One Syslog row and two sign-ins, of which one has no address."""
    folder = tmp_path_factory.mktemp("texts")
    workspace = Workspace.open(folder / "workspace")
    time = {"TimeGenerated": "2024-07-02T00:00:00Z"}
    rows = {
        "Syslog": [{**time, "Computer": "srv-1"}],
        "SigninLogs": [{**time, "IPAddress": "192.0.2.1"}, time | {"ResultType": "0"}],
    }
    for table, items in rows.items():
        path = folder / f"{table}.jsonl"
        path.write_text("\n".join(json.dumps(item) for item in items))
        workspace.import_path(path, table=table)
    yield workspace
    workspace.close()


@pytest.mark.parametrize("source", SOURCES)
def test_a_text_that_an_operator_fills_in_is_empty_and_not_null(
    tables: Workspace, source: str, subtests: pytest.Subtests
) -> None:
    """Every probe counts both rows; a null would be missing from its answer. `make laws` tries each with each source,
    the suite a quarter of them with each, in turn."""
    place = list(SOURCES).index(source)
    for number, (probe, counted) in enumerate(PROBES.items()):
        if not (IN_FULL or probe == "==" or number % 4 == place % 4):
            continue
        with subtests.test(probe):
            assert tables.query(f"{SOURCES[source]} | {counted}").rows == [(2,)]


@pytest.mark.parametrize(
    ("kql", "rows"),
    [
        ("union Syslog, SigninLogs | where IPAddress == '' | count", 2),
        ("union Syslog, SigninLogs | summarize n = count() by IPAddress | where IPAddress == '' | project n", 2),
        ("union * | where IPAddress == '' | count", 2),
        ("union * | where IPAddress != '' | count", 1),
        ("union * | distinct * | where IPAddress == '' | count", 2),
        ("union * | distinct * | where strlen(HostName) == 0 | count", 3),
        ("search * | where IPAddress == '' | count", 2),
        ("SigninLogs | where IPAddress == '' | count", 1),
        ("Syslog | join kind=leftouter SigninLogs on TimeGenerated | where isempty(IPAddress) | count", 1),
        ("Syslog | lookup (SigninLogs | where ResultType == 'x') on TimeGenerated | where IPAddress == '' | count", 1),
    ],
)
def test_tables_without_the_column_have_the_empty_text(tables: Workspace, kql: str, rows: int) -> None:
    assert tables.query(kql).rows == [(rows,)]


@pytest.mark.parametrize(
    ("kql", "value"),
    [
        ("summarize strlen(max(b))", 0),
        ("summarize iff(max(b) == '', 'none', 'some')", "none"),
        ("summarize strcat('<', take_any(b), '>')", "<>"),
        ("summarize isempty(min(b))", True),
        ("summarize isnull(max(n))", True),
        ("summarize x = max(n) | where isnull(x) | count", 1),
    ],
)
def test_an_aggregate_of_no_row_is_empty_inside_its_expression_and_a_number_null(
    tables: Workspace, kql: str, value: object
) -> None:
    assert tables.query(f"{NONE} | {kql}").rows == [(value,)]


def test_other_types_stay_null_where_a_row_has_no_partner(tables: Workspace) -> None:
    kql = (
        f"{LEFT} | join kind=leftouter (datatable(a:string, t:datetime, v:real, d:dynamic, g:bool)"
        "['z', datetime(2024-01-01), 1.5, dynamic({}), true]) on a "
        "| where isnull(t) and isnull(v) and isnull(d) and isnull(g) and a1 == '' | count"
    )
    assert tables.query(kql).rows == [(2,)]


@pytest.mark.parametrize("count", [8, 9, 12])
def test_a_union_of_many_inputs_answers_if_some_have_no_column_that_is_read(tables: Workspace, count: int) -> None:
    inputs = ", ".join(f"(datatable(c{i}:string)['v'])" for i in range(count))
    assert tables.query(f"union {inputs} | where c3 == '' | count").rows == [(count - 1,)]
    assert tables.query(f"union {inputs} | summarize n = count() by c3 | sort by c3 asc").rows == [
        ("", count - 1),
        ("v", 1),
    ]
