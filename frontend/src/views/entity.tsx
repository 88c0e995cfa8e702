// Everything that names one entity: the incidents and the alerts, the worst first, and questions that go on from it.

import type { JSX } from "preact";
import { askNow } from "../draft.ts";
import { incidentLink } from "../incident_address.ts";
import { entityLink } from "../links.ts";
import { type Rows, type Seen, useLook } from "../look.ts";
import { Suggested } from "../parts/around.tsx";
import { Card } from "../parts/card.tsx";
import { breakable } from "../parts/linked.tsx";
import { HowFound, Reading, Warnings, WhyNone } from "../parts/reading.tsx";
import { Owner, Severity, Status, Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { preferredWorkspace } from "../preferences.ts";
import { byPriority, rankOf } from "../severities.ts";
import type { Alert, Incident, IncidentSummary } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Session } from "../wire.ts";

const MOST = 100;

/** `id` is the name as alerts have it. */
export function EntityView({ id, session }: { id: string; session: Session }): JSX.Element {
  const workspace = preferredWorkspace(session);
  const asked = id === "" ? null : { entity: id.slice(0, 1_000), limit: MOST, workspace };
  const incidents = useLook<Rows<Incident, IncidentSummary>>("query_incidents", asked);
  const alerts = useLook<Rows<Alert, unknown>>("query_alerts", asked);
  const name = visible(id);
  // What an attacker may have written is no question of the person's: a name with a space or a bracket asks nothing.
  const plain = /^[\w.@:'-]{1,120}$/.test(id);
  if (id === "") {
    return (
      <>
        <h1>Which one?</h1>
        <p>Ctrl-K takes the name of a host, an account, an address or a hash.</p>
      </>
    );
  }
  return (
    <div class="stack">
      <h1 class="long">{breakable(name)}</h1>
      {plain ? (
        <Suggested questions={[`Alerts for ${id}`, `Sign-ins of ${id}`, `Which hosts talk to ${id}?`]} onAsk={askNow} />
      ) : null}
      <Reading title="Incidents that name it" look={incidents}>
        {(found) => <Incidents found={found} workspace={workspace} />}
      </Reading>
      {alerts.found === null ? null : <SeenWith alerts={alerts.found.result.rows} name={id} />}
      <Reading title="Alerts that name it" look={alerts}>
        {(found) => <Alerts found={found} workspace={workspace} />}
      </Reading>
    </div>
  );
}

const WITH = new Map([
  ["account", "Accounts"],
  ["host", "Hosts"],
  ["ip", "Addresses"],
  ["mailbox", "Mailboxes"],
]);
const MOST_WITH = 12;

/** The accounts, hosts and addresses that the same alerts name, those of most alerts first. */
function SeenWith({ alerts, name }: { alerts: Alert[]; name: string }): JSX.Element | null {
  const counts = new Map<string, number>();
  for (const alert of alerts) {
    for (const key of new Set(alert.entities.map((each) => `${each.kind} ${each.name}`))) {
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  const sorted = [...counts].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
  const kinds = [...WITH].flatMap(([kind, words]): [string, [string, number][]][] => {
    const of = sorted
      .filter(([key]) => key.startsWith(`${kind} `))
      .map(([key, count]): [string, number] => [key.slice(kind.length + 1), count])
      .filter(([other]) => other.toLowerCase() !== name.toLowerCase());
    return of.length === 0 ? [] : [[words, of]];
  });
  return kinds.length === 0 ? null : (
    <Card id="seen-with" title="Seen with" note="named by the same alerts">
      <div class="in">
        <dl class="facts">
          {kinds.map(([words, of]) => (
            <div key={words}>
              <dt>{words}</dt>
              <dd>
                {of.slice(0, MOST_WITH).map(([other, count], place) => (
                  <span key={other}>
                    {place === 0 ? "" : ", "}
                    <a href={entityLink(other)}>{visible(other)}</a> <span class="quiet">{count}</span>
                  </span>
                ))}
                {of.length > MOST_WITH ? `, and ${of.length - MOST_WITH} more` : ""}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </Card>
  );
}

function Incidents(props: { found: Seen<Rows<Incident, IncidentSummary>>; workspace: string }): JSX.Element {
  const { found, workspace } = props;
  const rows = [...found.result.rows].sort(byPriority);
  return (
    <>
      <Warnings of={found} />
      {rows.length === 0 ? (
        <div class="in">
          <WhyNone of={found} none="No incident has an alert that names it." />
        </div>
      ) : (
        <Table
          class="fold"
          label="Incidents"
          rows={rows}
          keyOf={(row) => row.number}
          columns={[
            { title: "Severity", cell: (row) => <Severity of={row.severity} /> },
            { title: "No.", cell: (row) => row.number },
            {
              title: "Incident",
              names: true,
              class: "wide long",
              cell: (row) => (
                <a class="title" href={incidentLink(workspace === "" ? row : { workspace, ...row })}>
                  {visible(row.title ?? "") || "without a title"}
                </a>
              ),
            },
            { title: "Status", cell: (row) => <Status of={row.status} /> },
            { title: "Owner", cell: (row) => <Owner of={row.owner} /> },
            { title: "Created", class: "end", cell: (row) => <Time at={row.created_time} /> },
          ]}
        />
      )}
      <footer>
        {rows.length} of {found.result.coverage.rows_total ?? "an unknown number"}.
        <HowFound of={found} />
      </footer>
    </>
  );
}

function Alerts(props: { found: Seen<Rows<Alert, unknown>>; workspace: string }): JSX.Element {
  const { found, workspace } = props;
  const rows = [...found.result.rows].sort((one, other) => rankOf(one.severity) - rankOf(other.severity));
  return (
    <>
      <Warnings of={found} />
      {rows.length === 0 ? (
        <div class="in">
          <WhyNone of={found} none="No alert names exactly this." />
        </div>
      ) : (
        <Table
          class="fold"
          label="Alerts"
          rows={rows}
          keyOf={(row) => row.alert_id}
          columns={[
            { title: "Severity", cell: (row) => <Severity of={row.severity} /> },
            { title: "Alert", names: true, class: "wide long", cell: (row) => visible(row.name ?? "without a name") },
            {
              title: "Incident",
              cell: ({ incident_number: number }) =>
                number ? (
                  <a class="numbered" href={incidentLink({ number, workspace })}>
                    {number}
                  </a>
                ) : (
                  <span class="quiet">none</span>
                ),
            },
            { title: "Status", cell: (row) => <Status of={row.status} /> },
            { title: "Recorded", class: "end", cell: (row) => <Time at={row.time} /> },
          ]}
        />
      )}
      <footer>
        {rows.length} of {found.result.coverage.rows_total ?? "an unknown number"}.
        <HowFound of={found} />
      </footer>
    </>
  );
}
