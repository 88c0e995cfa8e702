// Trends: alerts over time by severity, what changed against the time before, and what most alerts name.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { incidentLink } from "../incident_address.ts";
import { type Rows, type Seen, useLook } from "../look.ts";
import { Bars } from "../parts/bars.tsx";
import { HowFound, Reading, Warnings, WhyNone } from "../parts/reading.tsx";
import { Choice, Severity, Time, WorkspaceChoice, ZoneLine } from "../parts/signs.tsx";
import { preferredWorkspace } from "../preferences.ts";
import { zone } from "../times.ts";
import type { Bucket, Counts, Incident, ThreatSummary, TopEntity, TrendSummary } from "../tool_rows.ts";
import { SEVERITIES, WINDOWS } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Session } from "../wire.ts";

const INTERVALS: [string, string][] = [
  ["1h", "an hour"],
  ["6h", "6 hours"],
  ["1d", "a day"],
  ["7d", "a week"],
];
/** The widths that leave a window with bars enough to see a course and few enough to read. */
const FITTING: Record<string, string[]> = {
  last_1h: ["1h"],
  last_24h: ["1h", "6h"],
  last_3d: ["1h", "6h", "1d"],
  last_7d: ["1d", "6h", "1h"],
  last_14d: ["1d", "6h"],
  last_30d: ["1d", "6h", "7d"],
  "": ["7d", "1d"],
};
const KINDS: [string, string][] = [
  ["account", "accounts"],
  ["host", "hosts"],
  ["ip", "addresses"],
  ["url", "URLs"],
  ["file", "files"],
  ["filehash", "hashes"],
  ["mailbox", "mailboxes"],
  ["process", "processes"],
];

export function TrendsView({ session }: { session: Session }): JSX.Element {
  const [workspace, setWorkspace] = useState(preferredWorkspace(session));
  const [window, setWindow] = useState("last_7d");
  const [interval, setInterval] = useState("1d");
  const [severity, setSeverity] = useState("");
  const [kind, setKind] = useState("account");
  const fitting = FITTING[window] ?? [];
  const width = fitting.includes(interval) ? interval : (fitting[0] ?? "1d");
  const both = { time_window: window, min_severity: severity, workspace };
  const trend = useLook<Rows<Bucket, TrendSummary>>("get_alert_trend", { ...both, interval: width, timezone: zone() });
  const summary = useLook<Rows<Incident, ThreatSummary>>("get_threat_summary", { time_window: window, workspace });
  const top = useLook<Rows<TopEntity, Record<string, number>>>("get_top_entities", { ...both, kind, limit: 10 });
  const again = (): void => {
    trend.again();
    summary.again();
    top.again();
  };
  const words = WINDOWS.find(([name]) => name === window)?.[1] ?? "";
  return (
    <>
      <div class="row">
        <h1>Trends</h1>
        <button type="button" onClick={again}>
          Read again
        </button>
      </div>
      <search class="filters">
        <Choice label="Window" value={window} options={WINDOWS} onChange={setWindow} />
        <Choice
          label="One bar is"
          value={width}
          options={INTERVALS.filter(([name]) => fitting.includes(name))}
          onChange={setInterval}
        />
        <Choice
          label="Severity of alerts"
          value={severity}
          options={[
            ["", "any"],
            ["Low", "Low or higher"],
            ["Medium", "Medium or higher"],
            ["High", "High"],
          ]}
          onChange={setSeverity}
        />
        <WorkspaceChoice names={session.workspaces} value={workspace} onChange={setWorkspace} />
      </search>
      <p>
        <ZoneLine />
      </p>
      <Reading title={`Alerts in ${words}`} look={trend}>
        {(found) => <Trend found={found} />}
      </Reading>
      <Reading title="Against the time before" look={summary}>
        {(found) => <Change found={found} />}
      </Reading>
      <Reading
        title="What most alerts name"
        look={top}
        choices={
          <div class="filters">
            <Choice label="Kind" value={kind} options={KINDS} onChange={setKind} />
          </div>
        }
      >
        {(found) => <Top found={found} workspace={workspace} />}
      </Reading>
    </>
  );
}

function Trend({ found }: { found: Seen<Rows<Bucket, TrendSummary>> }): JSX.Element {
  const { rows, summary, coverage } = found.result;
  return (
    <>
      <Warnings of={found} />
      {summary.total === 0 ? <WhyNone of={found} none="No alert in this window." /> : null}
      <Bars
        buckets={rows}
        interval={summary.interval}
        oldest={coverage.table_oldest}
        newest={coverage.table_newest}
        at={found.at}
      />
      <HowFound of={found} />
    </>
  );
}

function Change({ found }: { found: Seen<Rows<Incident, ThreatSummary>> }): JSX.Element {
  const { incidents, alerts, previous, top_alert_names, tactics } = found.result.summary;
  const before = previous ?? { incidents: null, alerts: null };
  return (
    <>
      <Warnings of={found} />
      <ul class="tiles">
        <Tile title="Incidents created" count={incidents.total} before={before.incidents} />
        <Tile title="Alerts" count={alerts.total} before={before.alerts} />
        <li>
          <strong>{incidents.open}</strong> of these incidents are open
        </li>
      </ul>
      <ul class="counts" aria-label="Incidents by severity">
        {SEVERITIES.filter((name) => Object.hasOwn(incidents.by_severity, name)).map((name) => (
          <li key={name}>
            <Severity of={name} /> {incidents.by_severity[name]}
          </li>
        ))}
      </ul>
      <div class="beside">
        <Ranked title="Commonest alerts" counts={top_alert_names.map((each) => [each.name, each.count])} />
        <Ranked title="Tactics" counts={highest(tactics)} />
      </div>
      <HowFound of={found} />
    </>
  );
}

function Tile(props: { title: string; count: number; before: number | null }): JSX.Element {
  return (
    <li>
      {props.title}: <strong>{props.count}</strong>
      <br />
      <span class="quiet">{compared(props.count, props.before)}</span>
    </li>
  );
}

function compared(count: number, before: number | null): string {
  if (before === null) {
    return "how many there were before is not known";
  }
  const change = count - before;
  const by = change === 0 ? "as many as" : `${Math.abs(change)} ${change > 0 ? "more" : "fewer"} than`;
  const share =
    before === 0 || change === 0 ? "" : `, ${change > 0 ? "+" : "−"}${Math.round((Math.abs(change) / before) * 100)} %`;
  return `${by} in the same time before (${before}${share})`;
}

function highest(counts: Counts): [string, number][] {
  return Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .slice(0, 8);
}

function Ranked({ title, counts }: { title: string; counts: [string, number][] }): JSX.Element | null {
  return counts.length === 0 ? null : (
    <table>
      <caption>{title}</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Alerts</th>
        </tr>
      </thead>
      <tbody>
        {counts.map(([name, count]) => (
          <tr key={name}>
            <th scope="row">{visible(name)}</th>
            <td>{count}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Top(props: { found: Seen<Rows<TopEntity, Record<string, number>>>; workspace: string }): JSX.Element {
  const { found } = props;
  const { rows, summary, coverage } = found.result;
  const unreadable = summary.alerts_with_unreadable_entities ?? 0;
  return (
    <>
      <Warnings of={found} />
      {unreadable === 0 ? null : <p>The entities of {unreadable} alerts could not be read and are not counted.</p>}
      {rows.length === 0 ? (
        <WhyNone of={found} none="No alert in this window names one of this kind." />
      ) : (
        <>
          <p>
            {rows.length} of {coverage.rows_total ?? "an unknown number"}, by the alerts that name them.
          </p>
          <TopTable rows={rows} workspace={props.workspace} />
        </>
      )}
      <HowFound of={found} />
    </>
  );
}

function TopTable({ rows, workspace }: { rows: TopEntity[]; workspace: string }): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="scroll" aria-label="Entities" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Alerts</th>
            <th scope="col">High</th>
            <th scope="col">First</th>
            <th scope="col">Last</th>
            <th scope="col">Incidents</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{visible(row.name)}</th>
              <td>{row.alerts}</td>
              <td>{row.high_alerts}</td>
              <td>
                <Time at={row.first_seen} />
              </td>
              <td>
                <Time at={row.last_seen} />
              </td>
              <td>
                {row.incident_numbers.length === 0 ? <span class="quiet">in none</span> : null}
                {row.incident_numbers.map((number) => (
                  <a key={number} class="numbered" href={incidentLink({ number, workspace })}>
                    {number}
                  </a>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
