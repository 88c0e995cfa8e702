// What an incident touches: its graph as a picture, beside it the same as lists, and other incidents that touch it too.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asRefusal } from "../api.ts";
import { type EntityOfIncident, entitiesOf, graphOf, type Shared } from "../entity_graph.ts";
import { incidentAddress } from "../incident_address.ts";
import { entityLink } from "../links.ts";
import { look, type Rows } from "../look.ts";
import { signsOf } from "../outside.ts";
import { Card } from "../parts/card.tsx";
import { Facts } from "../parts/data_table.tsx";
import { GraphPicture } from "../parts/graph_picture.tsx";
import { breakable } from "../parts/linked.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Severity, Status, Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { rankOf } from "../severities.ts";
import type { Alert, Incident, IncidentDetail } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";

/** Each entity costs a query, so the telling ones are looked for at once and the others when somebody asks. */
const AT_ONCE = 8;
const SHOWN_OF_EACH = 6;

export function Entanglement(props: { incident: IncidentDetail; workspace: string | undefined }): JSX.Element {
  const { incident, workspace } = props;
  const entities = entitiesOf(incident);
  const [wanted, setWanted] = useState(AT_ONCE);
  const [chosen, setChosen] = useState<string | null>(null);
  const shared = useShared(incident, entities.slice(0, wanted), workspace);
  const address = (row: Incident): string => incidentAddress(workspace === undefined ? row : { ...row, workspace });
  const graph = graphOf(incident, entities, shared, address);
  const looked = entities.slice(0, wanted).length;
  const open = entities.slice(0, wanted).filter((each) => !shared.has(each.key)).length;
  const left = Object.entries(graph.left).filter(([, count]) => count > 0);
  return (
    <>
      <section class="card" aria-labelledby="touches">
        <header>
          <h2 id="touches">What it touches</h2>
          <span class="label">In the picture the arrows move, Enter chooses or follows. The list holds the same.</span>
        </header>
        {incident.alerts.length === 0 ? (
          <p>No alert of it has a row here, so it is not known what it touches.</p>
        ) : (
          <>
            <div class="in">
              <GraphPicture
                graph={graph}
                title={`What incident ${incident.number} touches`}
                chosen={chosen}
                onChoose={setChosen}
              />
            </div>
            {left.length === 0 ? null : (
              <p>Only in the list: {left.map(([name, count]) => `${count} ${name}`).join(", ")}.</p>
            )}
            <Chosen id={chosen} incident={incident} entities={entities} />
          </>
        )}
        {entities.length === 0 ? null : (
          <p role="status" class="label">
            {open > 0
              ? `Looking for other incidents that share an entity: ${looked - open} of ${looked} entities looked for.`
              : `Other incidents were looked for by ${looked} of ${entities.length} entities.`}{" "}
            {wanted < entities.length && open === 0 ? (
              <button type="button" onClick={() => setWanted(entities.length)}>
                Look for the other {entities.length - wanted}
              </button>
            ) : null}
          </p>
        )}
        {entities.length === 0 ? null : (
          <details>
            <summary>The same as a list: {entities.length} entities, and other incidents that name them</summary>
            <EntityTable entities={entities} shared={shared} counts={incident.entity_counts} address={address} />
          </details>
        )}
      </section>
      <AlertTable alerts={incident.alerts} without={incident.alert_ids_without_row.length} />
    </>
  );
}

/** The other incidents of each entity, one query after the other. */
function useShared(
  incident: IncidentDetail,
  entities: EntityOfIncident[],
  workspace: string | undefined,
): Map<string, Shared> {
  const [found, setFound] = useState<Map<string, Shared>>(new Map());
  const wanted = entities.map((each) => each.key).join("\n");
  useEffect(() => {
    const ended = new AbortController();
    const read = async (): Promise<void> => {
      for (const entity of entities.filter((each) => !found.has(each.key))) {
        const shared = await others(incident, entity, workspace, ended.signal);
        if (ended.signal.aborted) {
          return;
        }
        setFound((before) => new Map(before).set(entity.key, shared));
      }
    };
    void read();
    return () => ended.abort();
  }, [incident.number, wanted]);
  return found;
}

async function others(
  incident: IncidentDetail,
  entity: EntityOfIncident,
  workspace: string | undefined,
  signal: AbortSignal,
): Promise<Shared> {
  try {
    const given = { entity: entity.name, entity_kind: entity.kind, limit: SHOWN_OF_EACH + 1, workspace };
    const { result } = await look<Rows<Incident, unknown>>("query_incidents", given, signal);
    const rows = result.rows.filter((row) => row.number !== incident.number);
    const total = result.coverage.rows_total;
    const itself = result.rows.length > rows.length ? 1 : 0;
    return { rows: rows.slice(0, SHOWN_OF_EACH), total: total === null ? null : total - itself };
  } catch (error) {
    return asRefusal(error);
  }
}

function Chosen(props: {
  id: string | null;
  incident: IncidentDetail;
  entities: EntityOfIncident[];
}): JSX.Element | null {
  const { id, incident } = props;
  const entity = props.entities.find((each) => each.key === id);
  const alert = id?.startsWith("alert ") ? incident.alerts[Number(id.slice(6))] : undefined;
  const facts: [string, string][] =
    entity !== undefined
      ? [
          ["Kind", visible(entity.kind)],
          ["Alerts that name it", String(entity.alerts)],
          ...entity.facts.map(([name, value]): [string, string] => [visible(name), shown(value)]),
        ]
      : alert !== undefined
        ? alertFacts(alert)
        : [];
  return (
    <div role="status" class={facts.length === 0 ? "chosen" : "chosen in"}>
      {facts.length === 0 ? null : (
        <>
          <h3>{visible(entity?.name ?? alert?.name ?? "")}</h3>
          <Facts facts={facts} />
        </>
      )}
    </div>
  );
}

function alertFacts(alert: Alert): [string, string][] {
  return [
    ["Severity", visible(alert.severity ?? "not known")],
    ["Status", visible(alert.status ?? "not known")],
    ["Product", visible(alert.product ?? "not known")],
    ["What it says", visible(alert.description ?? "nothing")],
    ["Tactics", alert.tactics.map(visible).join(", ") || "none told"],
    ["Techniques", alert.techniques.map(visible).join(", ") || "none told"],
    ["Alert id", visible(alert.alert_id)],
  ];
}

function EntityTable(props: {
  entities: EntityOfIncident[];
  shared: Map<string, Shared>;
  counts: Record<string, number>;
  address: (incident: Incident) => string;
}): JSX.Element | null {
  const all = Object.values(props.counts).reduce((sum, count) => sum + count, 0);
  return props.entities.length === 0 ? null : (
    <Scroll label="Entities" tall>
      <Table
        caption={`Entities, ${props.entities.length} of ${all}`}
        rows={props.entities}
        keyOf={(entity) => entity.key}
        columns={[
          { title: "Kind", cell: (entity) => visible(entity.kind) },
          {
            title: "Name",
            names: true,
            class: "long",
            cell: (entity) => <a href={entityLink(entity.name)}>{visible(entity.name)}</a>,
          },
          { title: "Alerts", class: "num", cell: (entity) => entity.alerts },
          {
            title: "Other incidents",
            cell: (entity) => <Others shared={props.shared.get(entity.key)} address={props.address} />,
          },
        ]}
      />
    </Scroll>
  );
}

function Others(props: { shared: Shared | undefined; address: (incident: Incident) => string }): JSX.Element {
  const { shared } = props;
  if (shared === undefined) {
    return <span class="quiet">not looked for</span>;
  }
  if (!("rows" in shared)) {
    return <span class="refusal">{visible(shared.detail)}</span>;
  }
  const more = shared.total === null ? "an unknown number" : shared.total - shared.rows.length;
  return (
    <>
      {shared.rows.length === 0 ? <span class="quiet">none</span> : null}
      {shared.rows.map((row) => (
        <a
          key={row.number}
          class="numbered"
          href={`#/incidents/${encodeURIComponent(props.address(row))}`}
          title={`${visible(row.title ?? "")}, ${visible(row.severity ?? "")}, ${visible(row.status ?? "")}`}
        >
          {row.number}
        </a>
      ))}
      {more === 0 ? null : <span class="quiet"> and {more} more</span>}
    </>
  );
}

function AlertTable({ alerts, without }: { alerts: Alert[]; without: number }): JSX.Element {
  const worst = [...alerts].sort((one, other) => rankOf(one.severity) - rankOf(other.severity));
  return (
    <Card id="alerts" title="Alerts" note={alerts.length === 0 ? "" : `${alerts.length}, worst first`}>
      {without === 0 ? null : <p>Of {without} of its alerts there is no row here.</p>}
      {alerts.length === 0 ? null : (
        <Scroll label="Alerts">
          <Table
            class="fold"
            rows={worst}
            keyOf={(alert) => alert.alert_id}
            columns={[
              { title: "Severity", cell: (alert) => <Severity of={alert.severity} /> },
              {
                title: "Name, and what it says",
                names: true,
                class: "wide long",
                cell: (alert) => (
                  <>
                    {visible(alert.name ?? "without a name")}
                    {alert.description === null || signsOf(alert.description).length > 0 ? null : (
                      <div class="reason">{visible(alert.description)}</div>
                    )}
                    <div class="label spare">{visible(alert.product ?? "product not known")}</div>
                  </>
                ),
              },
              {
                title: "Where",
                class: "long",
                cell: (alert) => (
                  <>
                    {alert.compromised_entity ? (
                      <a href={entityLink(alert.compromised_entity)}>{breakable(visible(alert.compromised_entity))}</a>
                    ) : (
                      <span class="quiet">not told</span>
                    )}
                    <div class="label spare">
                      {alert.entity_count === 1 ? "names one entity" : `names ${alert.entity_count} entities`}
                    </div>
                  </>
                ),
              },
              { title: "Status", cell: (alert) => <Status of={alert.status} /> },
              { title: "Recorded", class: "end", cell: (alert) => <Time at={alert.time} /> },
            ]}
          />
        </Scroll>
      )}
    </Card>
  );
}
