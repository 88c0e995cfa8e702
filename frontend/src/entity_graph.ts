// The graph of an incident as data: the incident, its alerts, what they name, and other incidents that name it too.
import type { Refusal } from "./api.ts";
import type { GraphEdge } from "./graph_layout.ts";
import { SEVERITIES } from "./severities.ts";
import type { Alert, Incident, IncidentDetail } from "./tool_rows.ts";
import { visible } from "./visible.ts";

export const MOST_ALERTS = 12;
export const MOST_ENTITIES = 14;
export const MOST_OTHERS = 10;

/** Kinds that tell most about whether two incidents belong together, the telling ones first. */
const TELLING = ["account", "host", "ip", "filehash", "url", "mailbox", "file", "process"];

/** How many kinds further on the second entity of a kind stands. */
const NEXT_OF_KIND = 3;

export interface EntityOfIncident {
  key: string;
  kind: string;
  name: string;
  alerts: number;
  facts: [string, unknown][];
}

/** What is known of the incidents that share an entity: some of them, how many there are, or why nothing is known. */
export type Shared = { rows: Incident[]; total: number | null } | Refusal;

export interface Spot {
  id: string;
  column: number;
  sort: "incident" | "alert" | "entity" | "other";
  kind: string;
  label: string;
  /** Of an alert, if it is one of Sentinel's. */
  severity?: string;
  /** Where it leads, for another incident. */
  href?: string;
}

export interface EntityGraph {
  spots: Spot[];
  edges: GraphEdge[];
  /** What is in the lists and not in the picture. */
  left: { alerts: number; entities: number; others: number };
}

export function keyOf(entity: { kind: string; name: string }): string {
  return `${entity.kind} ${entity.name}`;
}

/** All entities of an incident in an order that tells soon: most named first within a kind, telling kinds before others,
 * and no kind only after the last one of another. */
export function entitiesOf(incident: IncidentDetail): EntityOfIncident[] {
  const told = (kind: string): number => (TELLING.includes(kind) ? TELLING.indexOf(kind) : TELLING.length);
  const place = (entity: { kind: string; rank: number }): number => told(entity.kind) + NEXT_OF_KIND * entity.rank;
  return Object.entries(incident.entities)
    .flatMap(([kind, entities]) =>
      [...entities]
        .sort((one, other) => other.alerts - one.alerts)
        .map(({ name, alerts, ...facts }, rank) => ({
          rank,
          key: keyOf({ kind, name }),
          kind,
          name,
          alerts,
          facts: Object.entries(facts),
        })),
    )
    .sort((one, other) => place(one) - place(other) || one.rank - other.rank);
}

export function graphOf(
  incident: IncidentDetail,
  entities: EntityOfIncident[],
  shared: Map<string, Shared>,
  address: (incident: Incident) => string,
): EntityGraph {
  const others = new Map<string, { row: Incident; through: string[] }>();
  for (const { key } of entities) {
    const found = shared.get(key);
    if (found !== undefined && "rows" in found) {
      for (const row of found.rows) {
        const known = others.get(address(row)) ?? { row, through: [] };
        known.through.push(key);
        others.set(address(row), known);
      }
    }
  }
  const nearest = [...others.entries()].sort(([, one], [, other]) => other.through.length - one.through.length);
  const drawnOthers = nearest.slice(0, MOST_OTHERS);
  const linking = new Set(drawnOthers.flatMap(([, { through }]) => through));
  // What links to another incident is drawn first, then in the order of the list.
  const byUse = [...entities].sort((one, other) => Number(linking.has(other.key)) - Number(linking.has(one.key)));
  const drawnEntities = byUse.slice(0, MOST_ENTITIES);
  const drawnAlerts = severest(incident.alerts);
  const spots: Spot[] = [
    { id: "incident", column: 0, sort: "incident", kind: "incident", label: `#${incident.number}` },
    ...drawnAlerts.map(alertSpot),
    ...drawnEntities.map((each) => ({
      id: each.key,
      column: 2,
      sort: "entity" as const,
      kind: each.kind,
      label: visible(each.name),
    })),
    ...drawnOthers.map(([id, { row }]) => ({
      id: `other ${id}`,
      column: 3,
      sort: "other" as const,
      kind: "other incident",
      label: `#${row.number} ${visible(row.title ?? "")}`,
      href: `#/incidents/${encodeURIComponent(id)}`,
    })),
  ];
  const edges = [
    ...drawnAlerts.map(({ at }) => ({ from: "incident", to: `alert ${at}` })),
    ...drawnAlerts.flatMap(({ alert, at }) =>
      [...new Set(alert.entities.map(keyOf))].map((key) => ({ from: `alert ${at}`, to: key })),
    ),
    ...drawnOthers.flatMap(([id, { through }]) => through.map((key) => ({ from: key, to: `other ${id}` }))),
  ];
  const drawn = new Set(spots.map((spot) => spot.id));
  return {
    spots,
    edges: edges.filter((edge) => drawn.has(edge.from) && drawn.has(edge.to)),
    left: {
      alerts: incident.alerts.length - drawnAlerts.length,
      entities: entities.length - drawnEntities.length,
      others: others.size - drawnOthers.length,
    },
  };
}

interface PlacedAlert {
  alert: Alert;
  /** Its place among all alerts of the incident. */
  at: number;
}

/** As many alerts as there is room for, the severe before the others, in the order of the incident. */
function severest(alerts: Alert[]): PlacedAlert[] {
  const rank = ({ alert }: PlacedAlert): number => {
    const place = SEVERITIES.indexOf(alert.severity ?? "");
    return place < 0 ? SEVERITIES.length : place;
  };
  return alerts
    .map((alert, at) => ({ alert, at }))
    .sort((one, other) => rank(one) - rank(other) || one.at - other.at)
    .slice(0, MOST_ALERTS)
    .sort((one, other) => one.at - other.at);
}

function alertSpot({ alert, at }: PlacedAlert): Spot {
  return {
    id: `alert ${at}`,
    column: 1,
    sort: "alert",
    ...(SEVERITIES.includes(alert.severity ?? "") ? { severity: (alert.severity ?? "").toLowerCase() } : {}),
    kind: `alert, ${alert.severity ?? "of unknown severity"}`,
    label: visible(alert.name ?? ""),
  };
}
