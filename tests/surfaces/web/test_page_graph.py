"""The picture of what an incident touches, as the page's own code lays it out: laws over generated graphs."""

from __future__ import annotations

from typing import Any

import pytest
from page_modules import told_by

RUN = """
import { buildSync } from "esbuild";
const contents = 'export * from "./src/graph_layout.ts"; export * from "./src/entity_graph.ts";';
const [{ text }] = buildSync({
  stdin: { contents, resolveDir: process.cwd(), loader: "ts" }, bundle: true, write: false, format: "esm",
}).outputFiles;
const { layered, crossings, graphOf, entitiesOf } = await import("data:text/javascript," + encodeURIComponent(text));
let seed = 20261128;
const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
const range = (count) => [...Array(count).keys()];
const layouts = range(60).map(() => {
  const nodes = range(1 + random(24)).map((at) => ({ id: `n${at}`, column: random(4) }));
  const edges = range(random(40)).map(() => ({ from: `n${random(26)}`, to: `n${random(26)}` }));
  const width = Math.max(...nodes.map((node) => node.column)) + 1;
  const given = range(width).map((column) => nodes.filter((node) => node.column === column).map((node) => node.id));
  const { columns, place, rows } = layered(nodes, edges);
  const again = layered(nodes, edges).columns;
  return { given, columns, again, rows, place: [...place], before: crossings(given, edges),
           after: crossings(columns, edges) };
});
const crossed = ["a1", "a2", "b1", "b2"].map((id) => ({ id, column: id[0] === "a" ? 0 : 1 }));
const straight = layered(crossed, [{ from: "a1", to: "b2" }, { from: "a2", to: "b1" }]).columns;
const incident = (number) => ({ number, title: `t${number}` });
const names = range(30).map((at) => ({ name: `h${at}`, alerts: at % 5 }));
const alerts = range(15).map((at) => ({
  name: `a${at}`, severity: at === 14 ? "High" : "Low",
  entities: [{ kind: "host", name: `h${at}` }, { kind: "ip", name: "10.0.0.1" }],
}));
const whole = { ...incident(1), alerts, entities: { url: [{ name: "u", alerts: 9 }], host: names,
                ip: [{ name: "10.0.0.1", alerts: 15 }] } };
const entities = entitiesOf(whole);
const refused = { status: 503, reason: "upstream_failed", detail: "away", nextStep: "" };
const shared = new Map([["host h0", { rows: range(20).map((at) => incident(100 + at)), total: 20 }],
                        ["url u", refused], ["host h1", { rows: [incident(119)], total: 1 }]]);
const graph = graphOf(whole, entities, shared, (row) => String(row.number));
console.log(JSON.stringify({ layouts, straight, first: entities.slice(0, 4).map((each) => each.key), graph }));
"""


@pytest.fixture(scope="module")
def drawn() -> Any:
    """What the page's own code makes of generated graphs."""
    return told_by(RUN)


def test_every_node_has_one_place_in_its_column_and_the_same_graph_the_same_picture(drawn: Any) -> None:
    for each in drawn["layouts"]:
        assert [sorted(column) for column in each["columns"]] == [sorted(column) for column in each["given"]]
        assert each["columns"] == each["again"]
        places = {(column, row): node for column, nodes in enumerate(each["columns"]) for row, node in enumerate(nodes)}
        assert {(place["column"], place["row"]): node for node, place in each["place"]} == places
        assert each["rows"] == max(map(len, each["columns"]))


def test_a_picture_has_never_more_crossings_than_the_order_in_which_its_nodes_came(drawn: Any) -> None:
    counted = [(each["before"], each["after"]) for each in drawn["layouts"]]
    assert [pair for pair in counted if pair[1] > pair[0]] == []
    assert sum(after for _, after in counted) < sum(before for before, _ in counted) / 2
    assert drawn["straight"] in ([["a1", "a2"], ["b2", "b1"]], [["a2", "a1"], ["b1", "b2"]])


def test_what_has_no_room_is_counted_and_no_edge_leads_to_it(drawn: Any) -> None:
    graph = drawn["graph"]
    ids = [spot["id"] for spot in graph["spots"]]
    assert len(ids) == len(set(ids))
    columns = [[spot["id"] for spot in graph["spots"] if spot["column"] == column] for column in range(4)]
    assert list(map(len, columns)) == [1, 12, 14, 10]
    assert graph["left"] == {"alerts": 3, "entities": 18, "others": 10}
    assert {end for edge in graph["edges"] for end in edge.values()} <= set(ids)
    # The incident that shares two entities is among those that have room, and both its edges are there.
    assert {edge["from"] for edge in graph["edges"] if edge["to"] == "other 119"} == {"host h0", "host h1"}
    # The severe alerts have room before the others.
    assert "alert 14" in ids
    assert "alert 13" not in ids
    assert drawn["first"] == ["host h4", "ip 10.0.0.1", "url u", "host h9"]
