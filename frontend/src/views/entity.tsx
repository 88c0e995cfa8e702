// Everything that names one entity: the incidents and the alerts, the worst first, and questions that go on from it.
import type { JSX } from "preact";
import { askNow } from "../draft.ts";
import { incidentLink } from "../incident_address.ts";
import { type Rows, type Seen, useLook } from "../look.ts";
import { Suggested } from "../parts/around.tsx";
import { HowFound, Reading, Warnings, WhyNone } from "../parts/reading.tsx";
import { Owner, Severity, Status, Time } from "../parts/signs.tsx";
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
      <h1 class="long">{name}</h1>
      {plain ? (
        <Suggested questions={[`Alerts for ${id}`, `Sign-ins of ${id}`, `Which hosts talk to ${id}?`]} onAsk={askNow} />
      ) : null}
      <Reading title="Incidents that name it" look={incidents}>
        {(found) => <Incidents found={found} workspace={workspace} />}
      </Reading>
      <Reading title="Alerts that name it" look={alerts}>
        {(found) => <Alerts found={found} workspace={workspace} />}
      </Reading>
    </div>
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
        <table class="fold" aria-label="Incidents">
          <thead>
            <tr>
              {["Severity", "No.", "Incident", "Status", "Owner", "Created"].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.number}>
                <td>
                  <Severity of={row.severity} />
                </td>
                <td>{row.number}</td>
                <th scope="row" class="wide long">
                  <a class="title" href={incidentLink(workspace === "" ? row : { workspace, ...row })}>
                    {visible(row.title ?? "") || "without a title"}
                  </a>
                </th>
                <td>
                  <Status of={row.status} />
                </td>
                <td>
                  <Owner of={row.owner} />
                </td>
                <td class="end">
                  <Time at={row.created_time} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
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
        <table class="fold" aria-label="Alerts">
          <thead>
            <tr>
              {["Severity", "Alert", "Incident", "Status", "Recorded"].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.alert_id}>
                <td>
                  <Severity of={row.severity} />
                </td>
                <th scope="row" class="wide long">
                  {visible(row.name ?? "without a name")}
                </th>
                <td>
                  {row.incident_number ? (
                    <a class="numbered" href={incidentLink({ number: row.incident_number, workspace })}>
                      {row.incident_number}
                    </a>
                  ) : (
                    <span class="quiet">none</span>
                  )}
                </td>
                <td>
                  <Status of={row.status} />
                </td>
                <td class="end">
                  <Time at={row.time} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <footer>
        {rows.length} of {found.result.coverage.rows_total ?? "an unknown number"}.
        <HowFound of={found} />
      </footer>
    </>
  );
}
