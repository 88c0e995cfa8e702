"""Operators of KQL with answers reasoned out from Kusto's pages: values, names and types, and the edges of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.workspace.queries import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

SALES = (
    "datatable(who:string, what:string, n:long)"
    "['ann','tea',1, 'bob','tea',2, 'ann','milk',3, 'cid','tea',4, 'ann','milk',5]"
)
BAGS = (
    "datatable(id:long, d:dynamic)[1, dynamic({'name':'x','n':1}), 2, dynamic({'name':'y','n':2.5,'on':true}), "
    "3, dynamic(null)]"
)
LISTS = "datatable(id:long, d:dynamic)[1, dynamic([3,1,2]), 2, dynamic([]), 3, dynamic(null), 4, dynamic([9])]"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three Syslog rows, two AuditLogs rows and two sign-ins."""
    folder = tmp_path_factory.mktemp("operators")
    rows = {
        "Syslog": [
            {"TimeGenerated": f"2024-07-02T0{hour}:00:00Z", "Computer": f"srv-{hour}", "ProcessID": hour,
             "SyslogMessage": f"login of ann from 192.0.2.{hour}"} for hour in range(3)
        ],
        "SigninLogs": [
            {"TimeGenerated": "2024-07-02T00:00:00Z", "UserPrincipalName": "ann@contoso.example",
             "IPAddress": "192.0.2.1", "ResultType": code} for code in ("0", "50126", "none")
        ],
        "AADUserRiskEvents": [
            {"TimeGenerated": "2024-07-02T00:00:00Z", "UserPrincipalName": "ann@contoso.example",
             "IpAddress": "192.0.2.9", "Location": {"city": "Oslo"}}
        ],
    }  # fmt: skip
    workspace = Workspace.open(folder / "workspace")
    for table, items in rows.items():
        path = folder / f"{table}.jsonl"
        path.write_text("\n".join(json.dumps(item) for item in items))
        workspace.import_path(path, table=table)
    yield workspace
    workspace.close()


def shape(workspace: Workspace, kql: str) -> str:
    return " ".join(f"{column.name}:{column.type}" for column in workspace.query(kql).columns)


CASES = {
    "mv-apply: a list of its own for each row; a null is one element, an empty list is none": (
        f"{LISTS} | mv-apply d to typeof(long) on (summarize s = sum(d), n = count())",
        "id:long s:long n:long",
        [(1, 6, 3), (2, 0, 0), (3, 0, 1), (4, 9, 1)],
    ),
    "mv-apply: order inside a row's list, and the column beside the new one": (
        f"{LISTS} | mv-apply x = d to typeof(long) on (order by x asc | summarize l = make_list(x))",
        "id:long d:dynamic l:dynamic",
        [(1, "[3,1,2]", "[1,2,3]"), (2, "[]", "[]"), (3, None, "[]"), (4, "[9]", "[9]")],
    ),
    "mv-apply: top inside each row, and the index": (
        f"{LISTS} | mv-apply with_itemindex=i d to typeof(long) on (top 1 by d) | project id, d, i",
        "id:long d:long i:long",
        [(1, 3, 0), (3, None, 0), (4, 9, 0)],
    ),
    "mv-apply: reads columns of the row and values of let": (
        "let least = 2; datatable(k:string, d:dynamic)['a', dynamic([1,2,3])] "
        "| mv-apply d to typeof(long) on (where d >= least | project kd = strcat(k, d))",
        "k:string kd:string",
        [("a", "a2"), ("a", "a3")],
    ),
    "mv-apply: an inner result replaces the row's column in its place": (
        "datatable(a:string, d:dynamic, b:long)['x', dynamic([7]), 1] | mv-apply d on (project b = tolong(d))",
        "a:string b:long",
        [("x", 7)],
    ),
    "mv-apply in mv-apply": (
        "print d = dynamic([{'p':[1,2]},{'p':[3]}]) | mv-apply d on (mv-apply q = d.p to typeof(long) on "
        "(summarize s = sum(q)) | project s)",
        "s:long",
        [(3,), (3,)],
    ),
    "union: one name with two types is two columns, together at its place": (
        "union (print a = 1, b = 'x'), (print b = 2.5, c = true)",
        "a:long b_string:string b_real:real c:bool",
        [(1, "x", None, None), (None, "", 2.5, True)],
    ),
    "union: a name with one type stays one column": (
        "print a = 1 | union (print a = 2, z = 'q')", "a:long z:string", [(1, ""), (2, "q")],
    ),
    "union: int and long are two types": (
        "union (print a = int(1)), (print a = 2)", "a_int:int a_long:long", [(1, None), (None, 2)],
    ),
    "union kind=inner keeps what all have": (
        "union kind=inner (print a = 1, b = 2), (print a = 3, c = 4)", "a:long", [(1,), (3,)],
    ),
    "union withsource names tables, also through a name for one, and numbers the rest": (
        "let t = Syslog; union withsource=src t, SigninLogs, (Syslog | where ProcessID == 0) "
        "| summarize n = count() by src",
        "src:string n:long",
        [("SigninLogs", 3), ("Syslog", 3), ("union_arg2", 1)],
    ),
    "union of a pattern": (
        "union withsource=src Sys*, Signin* | summarize n = count() by src",
        "src:string n:long",
        [("SigninLogs", 3), ("Syslog", 3)],
    ),
    "union of every table": (
        "union withsource=src * | summarize n = count() by src",
        "src:string n:long",
        [("AADUserRiskEvents", 1), ("SigninLogs", 3), ("Syslog", 3)],
    ),
    "union isfuzzy leaves out what does not exist, the first too": (
        "union isfuzzy=true Nope, Syslog, Neither | count", "Count:long", [(3,)],
    ),
    "search over all tables tells the table": (
        "search 'ann' | summarize n = count() by $table",
        "$table:string n:long",
        [("AADUserRiskEvents", 1), ("SigninLogs", 3), ("Syslog", 3)],
    ),
    "search finds whole terms, an address too": (
        "search in (Syslog, SigninLogs) '192.0.2.1' | summarize n = count() by $table",
        "$table:string n:long",
        [("SigninLogs", 3), ("Syslog", 1)],
    ),
    "search: a part of a term is not found, with a star it is": (
        "search in (Syslog) 'logi' or 'zzz' | count", "Count:long", [(0,)],
    ),
    "search: prefix, column and connectives": (
        "search in (Syslog) 'logi*' and Computer:'srv' and not(ProcessID == 2) | project ProcessID",
        "ProcessID:int",
        [(0,), (1,)],
    ),
    "search: a column that a table does not have finds nothing there": (
        "search in (Syslog, SigninLogs) UserPrincipalName:'ann' | summarize n = count() by $table",
        "$table:string n:long",
        [("SigninLogs", 3)],
    ),
    "search after a table": (
        "Syslog | search 'ann' | project $table, ProcessID | take 1 | project $table", "$table:string", [("Syslog",)],
    ),
    "where * has": ("Syslog | where * has 'srv' and ProcessID > 1 | project ProcessID", "ProcessID:int", [(2,)]),
    "a text equals a number when it is the number": (
        "SigninLogs | where ResultType == 0 | count", "Count:long", [(1,)],
    ),
    "a text is in a list of numbers, and is not": (
        "SigninLogs | summarize countif(ResultType in (0, 50126)), countif(ResultType !in (0, 50126))",
        "countif_:long countif_1:long",
        [(2, 1)],
    ),
    "a number equals a text; a text that is no number equals none": (
        "Syslog | summarize countif(ProcessID == '2'), countif(ProcessID == 'two'), countif(ProcessID != 'two')",
        "countif_:long countif_1:long countif_2:long",
        [(1, 0, 3)],
    ),
    "a time equals a text that is one": (
        "Syslog | where TimeGenerated == '2024-07-02T01:00:00Z' | count", "Count:long", [(1,)],
    ),
    "a text and a dynamic compare by what they say, whatever the text is": (
        "datatable(s:string, d:dynamic)['x', dynamic('x'), '{', dynamic('y')] "
        "| summarize countif(s == d), countif(s != d)",
        "countif_:long countif_1:long",
        [(1, 1)],
    ),
    "pack_all packs the columns at its place": (
        "datatable(a:long, b:string)[1, 'x'] | extend c = a + 1 | project p = pack_all()",
        "p:dynamic",
        [('{"a":1,"b":"x","c":2}',)],
    ),
    "names that differ only in case stay apart": (
        "datatable(foo:long)[1, 2] | extend Foo = foo + 100 | summarize sum(foo), sum(Foo)",
        "sum_foo:long sum_Foo:long",
        [(3, 203)],
    ),
    "names that differ only in case, from two tables": (
        "AADUserRiskEvents | join kind=inner (SigninLogs | where ResultType == '0') on UserPrincipalName "
        "| project IpAddress, IPAddress",
        "IpAddress:string IPAddress:string",
        [("192.0.2.9", "192.0.2.1")],
    ),
    "pivot counts; nothing counted is 0; columns by name": (
        f"{SALES} | project who, what | evaluate pivot(what)",
        "who:string milk:long tea:long",
        [("ann", 2, 1), ("bob", 0, 1), ("cid", 0, 1)],
    ),
    "pivot with an aggregate and a list of columns": (
        f"{SALES} | evaluate pivot(what, max(n), who)",
        "who:string milk:long tea:long",
        [("ann", 5, 1), ("bob", None, 2), ("cid", None, 4)],
    ),
    "pivot: what is aggregated is no column of the result": (
        f"{SALES} | summarize s = sum(n) by what | evaluate pivot(what, sum(s))", "milk:long tea:long", [(8, 7)],
    ),
    "pivot inside a let, joined": (
        f"let t = {SALES}; let p = t | project who, what | evaluate pivot(what); "
        "t | where n == 4 | join kind=inner p on who | project who, tea",
        "who:string tea:long",
        [("cid", 1)],
    ),
    "pivot of nothing": (f"{SALES} | where n > 9 | evaluate pivot(what, sum(n))", "who:string", []),
    "pivot of nothing without other columns": (
        f"{SALES} | where n > 9 | project what | evaluate pivot(what)", "", [],
    ),
    "bag_unpack: types by what the bags hold, mixed ones stay dynamic": (
        f"{BAGS} | evaluate bag_unpack(d)",
        "id:long n:dynamic name:string on:bool",
        [(1, "1", "x", None), (2, "2.5", "y", True), (3, None, "", None)],
    ),
    "bag_unpack with a prefix and what is left out": (
        f"{BAGS} | evaluate bag_unpack(d, 'p_', 'error', dynamic(['n'])) | where p_name == 'y'",
        "id:long p_name:string p_on:bool",
        [(2, "y", True)],
    ),
    "bag_unpack: the column or the key wins": (
        "print id = 1, d = dynamic({'id': 7}) | evaluate bag_unpack(d, '', 'keep_source') "
        "| union (print id = 1, d = dynamic({'id': 7}) | evaluate bag_unpack(d, '', 'replace_source'))",
        "id:long",
        [(1,), (7,)],
    ),
    "bag_unpack with the schema said": (
        f"{BAGS} | evaluate bag_unpack(d) : (id:long, n:real, missing:string)",
        "id:long n:real missing:string",
        [(1, 1.0, ""), (2, 2.5, ""), (3, None, "")],
    ),
    "top-nested: the first of each level and what they were ranked by": (
        f"{SALES} | top-nested 2 of who by sum(n), top-nested 1 of what by n = count()",
        "who:string aggregated_who:long what:string n:long",
        [("ann", 9, "milk", 2), ("cid", 4, "tea", 1)],
    ),
    "top-nested: all values, lowest first": (
        f"{SALES} | top-nested of what by max(n) asc", "what:string aggregated_what:long", [("milk", 5), ("tea", 4)],
    ),
    "top-hitters": (
        f"{SALES} | top-hitters 1 of who by n", "who:string approximate_sum_who:long", [("ann", 9)],
    ),
    "sample-distinct": (f"{SALES} | sample-distinct 9 of what | summarize count()", "count_:long", [(2,)]),
    "partition: the query for each value": (
        f"{SALES} | partition hint.strategy=native by who (top 1 by n | project who, n)",
        "who:string n:long",
        [("ann", 5), ("bob", 2), ("cid", 4)],
    ),
    "partition: a null key is a group": (
        "datatable(k:long, v:long)[1, 2, long(null), 3, long(null), 4] | partition by k (summarize s = sum(v))",
        "s:long",
        [(2,), (7,)],
    ),
    "row_number, prev, next and row_cumsum look along the order": (
        "range x from 1 to 4 step 1 | sort by x desc | extend r = row_number(), p = prev(x), f = next(x, 2, -1), "
        "c = row_cumsum(x) | project x, r, p, f, c",
        "x:long r:long p:long f:long c:long",
        [(1, 4, 2, -1, 10), (2, 3, 3, -1, 9), (3, 2, 4, 1, 7), (4, 1, None, 2, 4)],
    ),
    "row_number and row_cumsum start again": (
        f"{SALES} | sort by who asc, n asc | extend r = row_number(1, who != prev(who)), "
        "c = row_cumsum(n, who != prev(who)) | project who, n, r, c",
        "who:string n:long r:long c:long",
        [("ann", 1, 1, 1), ("ann", 3, 2, 4), ("ann", 5, 3, 9), ("bob", 2, 1, 2), ("cid", 4, 1, 4)],
    ),
    "serialize makes the order count; a text before the first row is empty": (
        "datatable(s:string)['a', 'b'] | serialize n = row_number(10), p = prev(s) | where isempty(p) | project n, s",
        "n:long s:string",
        [(10, "a")],
    ),
    "window functions in where": (
        "range x from 10 to 14 step 1 | where row_number() % 2 == 0 | project x", "x:long", [(11,), (13,)],
    ),
    "parse may begin with a column and name one with a space": (
        "print s = 'Event: ab=12, cd=x y' | parse s with word ':' * 'ab=' ['the number']:long ', cd=' rest",
        "s:string word:string the number:long rest:string",
        [("Event: ab=12, cd=x y", "Event", 12, "x y")],
    ),
    "make-series without bounds: each series over its own bins": (
        "datatable(k:string, t:datetime)['a', datetime(2024-07-02T00:10:00Z), 'a', datetime(2024-07-02T02:30:00Z), "
        "'b', datetime(2024-07-02T05:00:00Z)] | make-series n = count() on t step 1h by k "
        "| project k, n, tostring(t[0])",
        "k:string n:dynamic t_0:string",
        [("a", "[1,0,1]", "2024-07-02T00:00:00.0000000Z"), ("b", "[1]", "2024-07-02T05:00:00.0000000Z")],
    ),
    "make-series with one bound, and a default below zero": (
        "datatable(t:datetime, v:long)[datetime(2024-07-02T00:10:00Z), 1, datetime(2024-07-02T02:30:00Z), 2, "
        "datetime(2024-07-02T05:00:00Z), 7] | make-series s=sum(v) default=-1 on t to datetime(2024-07-02T04:00:00Z) "
        "step 1h | project s",
        "s:dynamic",
        [("[1,-1,2,-1]",)],
    ),
    "a function with a table inside, a number of rows and the name of a table": (
        "let f = (t:string, n:long = 2) { let all = table(t) | summarize make_set(Computer); "
        "table(t) | extend known = toscalar(all) | where ProcessID >= 0 | top n by ProcessID | project ProcessID }; "
        "f('Syslog')",
        "ProcessID:int",
        [(1,), (2,)],
    ),
    "a tabular function called twice": (
        "let f = (n:long) { Syslog | where ProcessID == n | project ProcessID }; f(0) | union (f(2))",
        "ProcessID:int",
        [(0,), (2,)],
    ),
    "as gives a name to what stands before it": (
        f"{SALES} | summarize n = sum(n) by who | as T | extend share = 100.0 * n / toscalar(T | summarize sum(n)) "
        "| where share > 50 | project who, share",
        "who:string share:real",
        [("ann", 60.0)],
    ),
    "as and then a join with it": (
        "range x from 1 to 3 step 1 | as T | join kind=inner (T | where x > 2) on x", "x:long x1:long", [(3, 3)],
    ),
    "x in (T) tests the first column of T": (
        "let wanted = datatable(p:int)[1, 2]; Syslog | where ProcessID in (wanted) | project ProcessID",
        "ProcessID:int",
        [(1,), (2,)],
    ),
    "the older path with a dot before the bracket": (
        "print d = dynamic([{'a': 5}]) | extend x = d.[0].a, y = d.[0].['a'] | project x, y",
        "x:dynamic y:dynamic",
        [("5", "5")],
    ),
    "a column hides a let of its name": (
        "let n = 9; range n from 1 to 2 step 1 | extend m = n", "n:long m:long", [(1, 1), (2, 2)],
    ),
    "iff with text and dynamic is text": (
        "print d = dynamic({'a': 1}) | project r = iff(isnull(d.b), d.a, 'none'), q = iff(isnull(d.a), d.a, 'none')",
        "r:string q:string",
        [("1", "none")],
    ),
    "a real divided by nothing is infinite, a whole number by nothing is null": (
        "datatable(x:real, n:long)[1.5, 7, -2.0, 0] | project a = x / n, b = x / 0, c = n / 0",
        "a:real b:real c:long",
        [(1.5 / 7, "Infinity", None), ("-Infinity", "-Infinity", None)],
    ),
    "a column may be called table": (
        "print x = dynamic(['a', 'b']) | mv-expand table = x to typeof(string) | where ['table'] == 'b' "
        "| summarize n = count() by ['table']",
        "table:string n:long",
        [("b", 1)],
    ),
    "getschema": (
        "print a = 1, b = 'x' | getschema | project ColumnName, ColumnOrdinal, ColumnType",
        "ColumnName:string ColumnOrdinal:long ColumnType:string",
        [("a", 0, "long"), ("b", 1, "string")],
    ),
    "project-away with a pattern, project-reorder with numbers in order": (
        "print a10 = 1, a9 = 2, b = 3 | project-away b* | project-reorder a* granny-asc", "a9:long a10:long", [(2, 1)],
    ),
    "lookup drops the key of the right and is left outer": (
        "datatable(k:long)[1, 2] | lookup (datatable(k:long, v:string)[1, 'x']) on k", "k:long v:string",
        [(1, "x"), (2, "")],
    ),
    "join is innerunique unless it says otherwise": (
        "datatable(k:long)[1, 1] | join (datatable(k:long, v:long)[1, 7, 1, 8]) on k | project v", "v:long",
        [(7,), (8,)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_answers_as_kusto_does(logs: Workspace, name: str) -> None:
    kql, columns, rows = CASES[name]
    answer = logs.query(kql)
    assert shape(logs, kql) == columns
    assert sorted(answer.rows, key=repr) == sorted(rows, key=repr)


@pytest.mark.parametrize(
    ("kql", "name"),
    [
        ("Syslog | fork (take 1) (count)", "fork"),
        ("Syslog | reduce by Computer", "reduce"),
        ("Syslog | scan with (step a: true;)", "scan"),
        ("Syslog | evaluate autocluster()", "evaluate autocluster"),
        ("Syslog | top-nested 1 of Computer with others='rest' by count()", "top-nested with others"),
        ("search '4625'", "search"),
        ("Syslog | mv-apply d = pack_array(1) on (evaluate bag_unpack(d))", "bag_unpack"),
        ("Syslog | parse-kv SyslogMessage as (a:string) with (regex='(.*)=(.*)')", "parse-kv"),
        ("Syslog | partition by Computer { Syslog | take 2 }", "partition"),
        ("externaldata(x:string)['https://contoso.example/x']", "externaldata"),
    ],
)
def test_what_is_not_run_is_refused_by_name(logs: Workspace, kql: str, name: str) -> None:
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    assert name in str(refusal.value)
    assert refusal.value.next_step


@pytest.mark.parametrize(
    ("kql", "line", "position", "token", "nearest"),
    [
        ("Syslog\n| where Computr == 'x'", 2, 8, "Computr", "Computer"),
        ("Syslog\n| project P = ProcessID\n| extend z = processid", 3, 13, "processid", ""),
        ("Syslog | summarize n = count() by Computer | where  N > 1", 1, 52, "N", "n"),
        ("Syslog | project-keep Computr", 1, 22, "Computr", "Computer"),
        ("Syslog | mv-apply d = pack_array(ProcessId) on (where true)", 1, 33, "ProcessId", "ProcessID"),
    ],
)
@pytest.mark.requirement("TOOL-5")
def test_an_unknown_column_is_told_with_its_place_and_what_was_meant(
    logs: Workspace, kql: str, line: int, position: int, token: str, nearest: str
) -> None:
    """Field report H1, H2: a wrong column is told where it stands, with the columns there are."""
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    error = refusal.value
    assert (error.kql_code, error.line, error.position, error.token) == ("SEM0100", line, position, token)
    assert (nearest in error.suggestions) if nearest else not error.suggestions


@pytest.mark.parametrize(
    ("kql", "line", "position", "token", "nearest"),
    [
        ("Syslog | take 1\n| join kind=inner (Sysolg) on Computer", 2, 19, "Sysolg", "Syslog"),
        ("// Syslgo\nlet a = 'Syslgo';\nSyslgo | take 1", 3, 0, "Syslgo", "Syslog"),
        ("Syslog\n| extend x = tolowr(Computer)", 2, 13, "tolowr", "tolower"),
        ("Syslog\n| summarize make_sett(Computer)", 2, 12, "make_sett", "make_set"),
        ("Syslog\n| evaluate autocluster()", 2, 2, "evaluate autocluster", ""),
    ],
)
def test_an_unknown_table_function_or_operator_is_told_with_its_place(
    logs: Workspace, kql: str, line: int, position: int, token: str, nearest: str
) -> None:
    """Field report H2: what was meant is offered."""
    with pytest.raises(KqlError) as refusal:
        logs.query(kql)
    error = refusal.value
    assert (error.line, error.position, error.token) == (line, position, token)
    assert (nearest in error.suggestions) if nearest else not error.suggestions


def test_window_functions_over_rows_without_an_order_are_refused_as_kusto_refuses_them(logs: Workspace) -> None:
    for kql in (
        "Syslog | extend row_number()",
        "Syslog | sort by ProcessID | summarize n = count() by Computer | extend p = prev(n)",
        "Syslog | sort by ProcessID | union SigninLogs | extend p = prev(ProcessID)",
    ):
        with pytest.raises(KqlError, match="serialized"):
            logs.query(kql)


def test_the_time_range_reaches_tables_through_every_operator(logs: Workspace) -> None:
    window = "2024-07-02T01:00:00Z/PT2H"
    for kql in (
        "union withsource=src Sys* | where src == 'Syslog' | count",
        "search in (Syslog) 'ann' | count",
        "Syslog | project t = bag_pack('k', ProcessID) | evaluate bag_unpack(t) | count",
        "Syslog | partition by Computer (take 1) | count",
        "let f = (t:string) { table(t) | where true }; f('Syslog') | as T | join kind=inner T on Computer | count",
    ):
        assert logs.query(kql, timespan=window).rows == [(2,)], kql
    pivoted = logs.query("Syslog | project Computer, ProcessID | evaluate pivot(Computer, count())", timespan=window)
    assert [column.name for column in pivoted.columns] == ["ProcessID", "srv-1", "srv-2"]


def test_columns_named_by_data_follow_the_data(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path / "workspace")
    path = tmp_path / "Syslog.jsonl"
    kql = "Syslog | project Computer | evaluate pivot(Computer)"
    for name in ("one", "two"):
        path.write_text(json.dumps({"TimeGenerated": "2024-07-02T00:00:00Z", "Computer": name}))
        workspace.import_path(path, table="Syslog")
        assert name in [column.name for column in workspace.query(kql).columns]
    assert workspace.query(kql).rows == [(1, 1)]
    workspace.close()
