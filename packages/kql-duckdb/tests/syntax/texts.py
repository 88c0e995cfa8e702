"""Texts of KQL that together have every operator, statement, literal and way to write a name."""

from __future__ import annotations

TEXTS = r"""
T | where a == 1 and b has 'x' or (c in ('a',"b") and not(d))
let f=(a:long, b:string="x", T:(x:int,*)){ let y = 1; T | where x==a }; f(1, (U|take 1))
print datetime(2024-01-01), dynamic({'a':[1,2, 1d]}), x.['a'][0], -5, - x, a-1*(b+c), time(-1d), real(inf), h@"a""b"
print 'a\n\'b', "\u00e9\x41\101", ```many
lines```, "two" 'parts', 0x1F, 1e3, 1., guid(74be27de-1e4e-49d9-b579-fe0b331d3642), decimal(1.5), int(null), bool(1)
union isfuzzy=true withsource=src T*, (A | where x), B | summarize make_set(x, 10), (m,n)=arg_max(a,*) by bin(T,1h), y=z
T | join kind=inner hint.strategy=shuffle (U | project a) on $left.a == $right.b, c
T | mv-expand with_itemindex=i kind=array a, b=c.d to typeof(string) limit 10
T | mv-apply x=y to typeof(long), z limit 4 on (where x > 1 | summarize sum(x))
T | parse kind=regex flags=i msg with * "a" b:long "c" * | parse-where msg with c:string ";" d
T | parse-kv m as (a:string, b:long) with (pair_delimiter=",", kv_delimiter="=", greedy=true)
T | make-series kind=nonempty n=count() default=0, avg(x) on TimeGenerated from ago(1d) to now() step 1h by a, b
T | make-series n=count() on TimeGenerated in range(ago(1d), now(), 1h)
T | top-nested 3 of a with others="o" by count() desc, top-nested of b by sum(x) | top-hitters 5 of a by b
T | sample 3 | sample-distinct 4 of x | top 5 by a asc nulls first, b | sort by a desc, b asc nulls last
T | partition hint.strategy=native by a (top 1 by b) | partition by x { U | where x == y }
T | fork (count) z=(take 1 | count) | facet by a, b with (take 1)
search in (A, B*) "x" and Col:"y*" or z == 1 | take 1
find withsource=t in (A,B) where x == 'a' project a, b:string, pack(*)
T | evaluate bag_unpack(x, 'p_', columnsConflict='keep_source') : (*, a:long) | invoke f(1) | as hint.materialized=true X
T | scan with_match_id=m declare (a:long=0) with (step s1: x == 1; step s2 output=all: y > 2 => a = s1.a + 1;)
T | render timechart with (xcolumn=a, title="x y", kind=stacked) | reduce by x with threshold=0.1 | consume | getschema
T | project-away a*, *b, ['c d'] | project-reorder x asc, y*, z granny-asc | project-rename a=b | project-keep x
cluster('a').database("b").T | where * has "x" and d between (1 .. 2) and e !between (ago(1d) .. now())
let x = datatable(a:string, ['b c']:long)["x", 1, "y", 2]; let y = view () { x }; set notruncation; y | count as N
declare query_parameters(a:long = 1); T | where a matches regex "x" and b !has "c" and c notcontains "d" and x =~ "y"
externaldata(a:string)[@"https://contoso.example/x"] with (format="csv", ignoreFirstRecord=true) | where a !in~ (x)
range i from 1 to 10 step 1 | order by i desc nulls first, j | distinct *
T | lookup kind=leftouter U on a | serialize r=row_number() | summarize count() by a, b bin=1h | limit 3
let m = materialize(T | where x); toscalar(m | count) + 1
T | graph-match (a)-[b]->(c) where x project y | take 1
alias database d = cluster('a').database('b'); restrict access to (T); T
T | where (a | take 1) in ((b | project c)) and a has_any (dynamic(['x'])) and b has_all ('y', 'z') // the end
T | where a endswith_cs "x" | extend (a, b) = f(c), ["kind"] = d["e f"].g[-1] | project Hour = bin(t, 1.5h), 1h / 30m
""".strip().split("\n")

_JOINED = {place for place, text in enumerate(TEXTS) if text.endswith("```many")}
TEXTS = [
    f"{text}\n{TEXTS[place + 1]}" if place in _JOINED else text
    for place, text in enumerate(TEXTS)
    if place - 1 not in _JOINED
]
