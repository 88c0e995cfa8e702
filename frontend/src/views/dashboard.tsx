// The lead's screen: what is open by age and owner, how long closing takes, what waits, and alerts over time. Its title is
// the finding; no average hides a tail.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { incidentLink } from "../incident_address.ts";
import { entityLink } from "../links.ts";
import { type Look, type Rows, type Seen, useAnswer, useLook } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { Dots, Legend, Ranking } from "../parts/chart.tsx";
import { breakable } from "../parts/linked.tsx";
import { HowFound, Reading, State, Warnings, WhyNone } from "../parts/reading.tsx";
import { SaveReport } from "../parts/save_report.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Choice, Owner, Severity, Time, WorkspaceChoice, ZoneLine } from "../parts/signs.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { AlertTrend } from "../parts/trend.tsx";
import { preferredWorkspace } from "../preferences.ts";
import { spaced, titleOf } from "../requests.ts";
import { ageOf, rankOf, SEVERITIES } from "../severities.ts";
import { age, span, zone } from "../times.ts";
import type {
  Bucket,
  Counts,
  Incident,
  IncidentSummary,
  ThreatSummary,
  TopEntity,
  TrendSummary,
} from "../tool_rows.ts";
import { WINDOWS } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Approval, Session, Took, Usage } from "../wire.ts";
import { StateChip } from "./request.tsx";

const INTERVALS: [string, string][] = [
  ["1h", "an hour"],
  ["6h", "6 hours"],
  ["1d", "a day"],
  ["7d", "a week"],
];
/** The widths that leave a window with columns enough to see a course and few enough to read. */
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
const MOST = 100;
const DAY_S = 86_400;
const WEEKS = 4;

type Listed = Rows<Incident, IncidentSummary>;

const dash = <span class="quiet">–</span>;

export function DashboardView({ session, waiting }: { session: Session; waiting: Approval[] }): JSX.Element {
  const [workspace, setWorkspace] = useState(preferredWorkspace(session));
  const [reporting, setReporting] = useState(false);
  const leads = session.roles.includes("approver") || session.roles.includes("admin");
  const open = useLook<Listed>("query_incidents", { status: "Open", order: "severity", limit: MOST, workspace });
  const closed = useLook<Listed>("query_incidents", {
    status: "Closed",
    time_field: "closed",
    time_window: "last_30d",
    limit: MOST,
    workspace,
  });
  const place = (row: Incident): Incident => (workspace === "" ? row : { workspace, ...row });
  return (
    <div class="stack">
      <div class="row">
        <h1>{findingOf(open)}</h1>
        <span class="quiet">
          <ZoneLine />
        </span>
        <div class="push row">
          <WorkspaceChoice names={session.workspaces} value={workspace} onChange={setWorkspace} />
          <button
            type="button"
            onClick={() => {
              open.again();
              closed.again();
            }}
          >
            Read again
          </button>
          <button type="button" class="main" onClick={() => setReporting(true)}>
            Report…
          </button>
        </div>
      </div>
      {reporting ? <Report leads={leads} workspace={workspace} close={() => setReporting(false)} /> : null}
      <Figures open={open} closed={closed} waiting={waiting} place={place} />
      <div class="lead">
        <div class="five">
          <Reading title="Open by age and severity" look={open}>
            {(found) => <Ages found={found} />}
          </Reading>
        </div>
        <div class="seven">
          <Reading title="Time to close" look={closed}>
            {(found) => <TimeToClose found={found} />}
          </Reading>
        </div>
        <div class="seven">
          <Reading title="Owners" look={open}>
            {(found) => <Owners open={found} closed={closed.found} />}
          </Reading>
        </div>
        <div class="five">
          <Approvals waiting={waiting} session={session} />
        </div>
        <div class="seven">
          <Weeks closed={closed} workspace={workspace} />
        </div>
        <div class="five">
          <Cost session={session} />
        </div>
        <Trends workspace={workspace} />
      </div>
    </div>
  );
}

function findingOf({ found, busy }: Look<Listed>): string {
  if (found === null) {
    return busy ? "Reading..." : "Dashboard";
  }
  const { rows, coverage } = found.result;
  const nobody = rows.filter((row) => row.owner === null).length;
  const high = rows.filter((row) => row.severity === "High").length;
  const told = [
    `${coverage.rows_total ?? rows.length} open`,
    high === 0 ? "" : `${high} High`,
    nobody === 0 ? "" : `${nobody} without an owner`,
  ];
  return told.filter((each) => each !== "").join(", ");
}

/** Seconds from creation to closing; null where one of them is not known. */
function closingTime(row: Incident): number | null {
  const seconds = (Date.parse(row.closed_time ?? "") - Date.parse(row.created_time ?? "")) / 1_000;
  return Number.isNaN(seconds) || seconds < 0 ? null : seconds;
}

function medianOf(values: number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  return upper === undefined ? null : sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

function Figures(props: {
  open: Look<Listed>;
  closed: Look<Listed>;
  waiting: Approval[];
  place: (row: Incident) => Incident;
}): JSX.Element {
  const { found } = props.open;
  const rows = found?.result.rows ?? [];
  const oldest = [...rows].sort((one, other) => (one.created_time ?? "9").localeCompare(other.created_time ?? "9"))[0];
  const oldestAge = found === null || oldest === undefined ? null : ageOf(oldest, found.at);
  const times = (props.closed.found?.result.rows ?? []).flatMap((row) => closingTime(row) ?? []);
  const median = medianOf(times);
  const longest = Math.max(0, ...props.waiting.map((each) => (Date.now() - Date.parse(each.asked_at)) / 1_000));
  const severities = SEVERITIES.slice(0, 2)
    .map((name) => `${rows.filter((row) => row.severity === name).length} ${name}`)
    .join(", ");
  const unknown = found === null ? (props.open.busy ? "…" : "?") : null;
  return (
    <dl class="figures">
      <div>
        <dt>Open</dt>
        <dd>
          <div class="value">{unknown ?? found?.result.coverage.rows_total ?? rows.length}</div>
          <div class="label">{severities}</div>
        </dd>
      </div>
      <div>
        <dt>Oldest open</dt>
        <dd>
          <div class="value">{unknown ?? (oldestAge === null ? "none" : age(oldestAge))}</div>
          <div class="label inline">
            {oldest === undefined ? null : (
              <>
                <a href={incidentLink(props.place(oldest))}>{oldest.number}</a>, {visible(oldest.owner ?? "no owner")}
              </>
            )}
          </div>
        </dd>
      </div>
      <div>
        <dt>Time to close, median of 30 days</dt>
        <dd>
          <div class="value">{median === null ? (props.closed.busy ? "…" : "not known") : span(median)}</div>
          <div class="label">{times.length} closed</div>
        </dd>
      </div>
      <div>
        <dt>Approvals waiting</dt>
        <dd>
          <div class="value">{props.waiting.length}</div>
          <div class="label">{props.waiting.length === 0 ? "nobody waits" : `the longest for ${span(longest)}`}</div>
        </dd>
      </div>
    </dl>
  );
}

const AGES: [string, number, number][] = [
  ["< 1 d", 0, 1],
  ["1–3 d", 1, 3],
  ["3–7 d", 3, 7],
  ["7–14 d", 7, 14],
  ["> 14 d", 14, Number.POSITIVE_INFINITY],
];

function Ages({ found }: { found: Seen<Listed> }): JSX.Element {
  const { rows, coverage } = found.result;
  const known = [
    ...SEVERITIES,
    ...new Set(rows.flatMap((row) => (rankOf(row.severity) < 4 ? [] : [row.severity ?? ""]))),
  ];
  const within = (row: Incident, from: number, to: number): boolean => {
    const seconds = ageOf(row, found.at);
    return seconds !== null && seconds >= from * DAY_S && seconds < to * DAY_S;
  };
  return (
    <>
      <Warnings of={found} />
      <Scroll label="Open by age and severity">
        <Table
          class="ages"
          rows={known.map((name) => ({ name, of: rows.filter((row) => (row.severity ?? "") === name) }))}
          keyOf={(row) => row.name}
          columns={[
            { title: "Severity", names: true, cell: ({ name }) => <Severity of={name || null} /> },
            ...AGES.map(
              ([words, from, to]): Column<{ name: string; of: Incident[] }> => ({
                title: words,
                class: () => (from >= 14 ? "oldest" : from >= 7 ? "old" : ""),
                cell: ({ name, of }) => {
                  const count = of.filter((row) => within(row, from, to)).length;
                  return count === 0 ? dash : <a href={listOf(name)}>{count}</a>;
                },
              }),
            ),
            { title: "All", cell: ({ of }) => <strong>{of.length}</strong> },
          ]}
        />
      </Scroll>
      <footer>
        {coverage.rows_total !== null && coverage.rows_total > rows.length
          ? `The ${rows.length} worst of ${coverage.rows_total}. `
          : ""}
        Shaded: open for more than 7, and for more than 14 days.
        <HowFound of={found} />
      </footer>
    </>
  );
}

function listOf(severity: string): string {
  const filters = new URLSearchParams({ time_window: "", min_severity: severity, status: "Open", order: "oldest" });
  if (severity === "Informational" || !SEVERITIES.includes(severity)) {
    filters.set("min_severity", "");
  }
  return `#/incidents/${encodeURIComponent(`?${filters}`)}`;
}

function TimeToClose({ found }: { found: Seen<Listed> }): JSX.Element {
  const { rows, coverage } = found.result;
  const week = 7 * DAY_S * 1_000;
  const groups = Array.from({ length: WEEKS }, (_, at) => {
    const to = found.at - (WEEKS - 1 - at) * week;
    const dots = rows.flatMap((row) => {
      const seconds = closingTime(row);
      const closed = Date.parse(row.closed_time ?? "");
      return seconds === null || closed <= to - week || closed > to
        ? []
        : [
            {
              name: `${row.number} ${row.title ?? ""}`,
              value: seconds / 3_600,
              tone: (row.severity ?? "").toLowerCase(),
              closed,
            },
          ];
    });
    const label = (time: number): string => new Date(time).toISOString().slice(5, 10);
    return {
      label: `${label(to - week)} to ${label(to)}`,
      short: `to ${label(to)}`,
      dots: dots.sort((one, other) => one.closed - other.closed),
    };
  });
  const none = groups.every((group) => group.dots.length === 0);
  return (
    <div class="in">
      <Warnings of={found} />
      {none ? (
        <WhyNone of={found} none="No incident was closed in four weeks." />
      ) : (
        <>
          <div class="row between">
            <span class="label">
              Each dot is an incident, the line the week’s median; hours from creation to closing.
            </span>
            <Legend series={SEVERITIES.map((name) => ({ name, tone: name.toLowerCase() }))} />
          </div>
          <Dots title="Time to close by week" unit="h" groups={groups} />
        </>
      )}
      {coverage.rows_total !== null && coverage.rows_total > rows.length ? (
        <p class="label">
          {rows.length} of {coverage.rows_total} closed in 30 days are drawn.
        </p>
      ) : null}
      <HowFound of={found} />
    </div>
  );
}

function Owners({ open, closed }: { open: Seen<Listed>; closed: Seen<Listed> | null }): JSX.Element {
  const rows = open.result.rows;
  const done = closed?.result.rows ?? [];
  const names = [...new Set([...rows, ...done].map((row) => row.owner))];
  const table = names
    .map((owner) => {
      const own = rows.filter((row) => row.owner === owner);
      const ended = done.filter((row) => row.owner === owner);
      const ages = own.flatMap((row) => ageOf(row, open.at) ?? []);
      return {
        owner,
        open: own.length,
        high: own.filter((row) => row.severity === "High").length,
        oldest: ages.length === 0 ? null : Math.max(...ages),
        closed: ended.length,
        median: medianOf(ended.flatMap((row) => closingTime(row) ?? [])),
      };
    })
    .sort((one, other) => other.open - one.open || other.closed - one.closed);
  return (
    <>
      {table.length === 0 ? <p class="quiet">No incident is open, and none was closed in 30 days.</p> : null}
      <Scroll label="Owners">
        <Table
          class="fold"
          rows={table}
          keyOf={(row) => row.owner ?? ""}
          columns={[
            { title: "Owner", names: true, class: "wide", cell: (row) => <Owner of={row.owner} /> },
            { title: "Open", class: "num", told: true, cell: (row) => <strong>{row.open}</strong> },
            { title: "High", class: "num", told: true, cell: (row) => row.high || dash },
            {
              title: "Oldest",
              class: "num",
              told: true,
              cell: (row) => (row.oldest === null ? dash : age(row.oldest)),
            },
            { title: "Closed, 30 d", class: "num", told: true, cell: (row) => row.closed || dash },
            {
              title: "Median",
              class: "num",
              told: true,
              cell: (row) => (row.median === null ? dash : span(row.median)),
            },
          ]}
        />
      </Scroll>
    </>
  );
}

const SHIFTS: [string, string][] = [
  ["8", "the last 8 hours"],
  ["12", "the last 12 hours"],
  ["24", "the last 24 hours"],
  ["168", "the last 7 days"],
  ["720", "the last 30 days"],
];

/** The hand-over of a shift: the queue as it is, what changed in it and what was done; or the report of one incident. */
function Report(props: { leads: boolean; workspace: string; close: () => void }): JSX.Element {
  const [hours, setHours] = useState("12");
  const [incident, setIncident] = useState("");
  const [team, setTeam] = useState(props.leads);
  const place = props.workspace === "all" ? "" : props.workspace;
  return (
    <SaveReport
      title={incident === "" ? "Hand-over of a shift" : `Report of incident ${incident}`}
      path="/reports"
      more={{ hours, incident, workspace: place, team: String(team) }}
      close={props.close}
    >
      <div class="row">
        <Choice label="The shift was" value={hours} options={SHIFTS} onChange={setHours} />
        {props.leads ? (
          <label class="tick">
            <input type="checkbox" checked={team} onInput={(event) => setTeam(event.currentTarget.checked)} /> With what
            everybody had done
          </label>
        ) : null}
        <label>
          One incident alone <span class="quiet">(its number; empty: the queue)</span>
          <input
            inputMode="numeric"
            maxLength={10}
            value={incident}
            onInput={(event) => setIncident(event.currentTarget.value.replace(/\D/g, ""))}
          />
        </label>
      </div>
    </SaveReport>
  );
}

const WEEK_S = 7 * DAY_S;

/** Two weeks side by side, both to this hour: what came, what was closed, and how long that took. */
function Weeks({ closed, workspace }: { closed: Look<Listed>; workspace: string }): JSX.Element {
  const summary = useLook<Rows<Incident, ThreatSummary>>("get_threat_summary", { time_window: "last_7d", workspace });
  return (
    <Reading title="7 days against the 7 before" look={summary}>
      {(found) => <TwoWeeks came={found} closed={closed.found} />}
    </Reading>
  );
}

function TwoWeeks({
  came,
  closed,
}: {
  came: Seen<Rows<Incident, ThreatSummary>>;
  closed: Seen<Listed> | null;
}): JSX.Element {
  const { incidents, alerts, previous } = came.result.summary;
  const done = (from: number): number[] | null =>
    closed?.result.rows
      .filter((row) => {
        const ago = (closed.at - Date.parse(row.closed_time ?? "")) / 1_000;
        return ago >= from && ago < from + WEEK_S;
      })
      .flatMap((row) => closingTime(row) ?? []) ?? null;
  const [now, before] = [done(0), done(WEEK_S)];
  const rows: [string, number | null, number | null, (value: number) => string][] = [
    ["Incidents created", incidents.total, previous?.incidents ?? null, String],
    ["Incidents closed", now?.length ?? null, before?.length ?? null, String],
    ["Time to close, median", now && medianOf(now), before && medianOf(before), span],
    ["Alerts", alerts.total, previous?.alerts ?? null, String],
  ];
  const cut = closed !== null && (closed.result.coverage.rows_total ?? 0) > closed.result.rows.length;
  return (
    <>
      <Warnings of={came} />
      <Scroll label="Two weeks">
        <Table
          rows={rows}
          keyOf={([name]) => name}
          columns={[
            { title: "What", names: true, cell: ([name]) => name },
            {
              title: "Last 7 days",
              class: "num",
              cell: ([, one, , told]) => (one === null ? dash : <strong>{told(one)}</strong>),
            },
            {
              title: "The 7 before",
              class: "num",
              cell: ([, , other, told]) => (other === null ? dash : told(other)),
            },
            {
              title: "Change",
              class: "num",
              cell: ([, one, other]) => (one === null || other === null ? dash : changeOf(one, other)),
            },
          ]}
        />
      </Scroll>
      <footer>
        {cut ? "Closed: only the newest 100 of 30 days were read. " : ""}
        <HowFound of={came} />
      </footer>
    </>
  );
}

function changeOf(now: number, before: number): string {
  const sign = now > before ? "+" : "−";
  return now === before
    ? "none"
    : before === 0
      ? "new"
      : `${sign}${Math.round((Math.abs(now - before) / before) * 100)} %`;
}

/** What everybody's questions took, for who answers for them. */
function Cost({ session }: { session: Session }): JSX.Element {
  const leads = session.roles.includes("approver") || session.roles.includes("admin");
  const usage = useAnswer<Usage>(leads ? "/usage?days=7" : null);
  return (
    <Card id="cost" title="What questions took" note="7 days, and the 7 before">
      <State of={usage} />
      {leads ? null : <p class="quiet">For people with the role approver or admin.</p>}
      {usage.found === null ? null : <Figured found={usage.found} />}
    </Card>
  );
}

function Figured({ found: { last, before } }: { found: Usage }): JSX.Element {
  const rows: [string, string, string][] = [
    ["Questions", String(last.questions), String(before.questions)],
    ["People who asked", String(last.people), String(before.people)],
    ["Helped / did not", `${last.helped} / ${last.not_helped}`, `${before.helped} / ${before.not_helped}`],
    ["Requests to models", String(last.requests), String(before.requests)],
    ["Tokens in / out", tokensOf(last), tokensOf(before)],
    ["Cost", costOf(last), costOf(before)],
  ];
  return (
    <>
      <Scroll label="What questions took">
        <Table
          rows={rows}
          keyOf={([name]) => name}
          columns={[
            { title: "What", names: true, cell: ([name]) => name },
            { title: "Now", class: "num", cell: ([, now]) => now },
            { title: "Before", class: "num", cell: ([, , before]) => before },
          ]}
        />
      </Scroll>
      <footer>
        {last.requests === 0
          ? "No model was asked: the planner on this machine costs nothing. "
          : last.unpriced > 0
            ? `${last.unpriced} answers without a price: set SENTINEL_MODEL_PRICES. `
            : ""}
        What people deleted is not counted.
      </footer>
    </>
  );
}

function tokensOf(took: Took): string {
  return `${took.input_tokens.toLocaleString("en")} / ${took.output_tokens.toLocaleString("en")}`;
}

function costOf(took: Took): string {
  return took.requests === 0 ? "none" : took.unpriced > 0 ? "not known" : `${Number(took.cost_usd).toFixed(2)} USD`;
}

/** What was asked and decided of late, as far as this person may see it. */
function Approvals({ waiting, session }: { waiting: Approval[]; session: Session }): JSX.Element {
  const [found, setFound] = useState<Approval[]>([]);
  const decides = session.roles.includes("approver");
  useEffect(() => {
    ask<{ approvals: Approval[] }>("GET", "/approvals?limit=50").then(
      (page) => setFound(page.approvals),
      () => setFound(waiting),
    );
  }, [waiting]);
  const newest = [...found].sort((one, other) => Date.parse(other.asked_at) - Date.parse(one.asked_at)).slice(0, 6);
  return (
    <Card
      id="asked"
      title="Requests"
      note={decides ? "the newest" : "that are yours to confirm"}
      side={<a href="#/approvals">All of them</a>}
    >
      {newest.length === 0 ? <p class="quiet">None.</p> : null}
      <ul class="listed">
        {newest.map((each) => (
          <li key={each.approval_id}>
            <div class="row beside">
              <a href={`#/approvals/${encodeURIComponent(each.approval_id)}`}>{visible(titleOf(each))}</a>
              <StateChip state={each} mine={each.may_decide} />
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** Alerts over time by severity, what changed against the time before, and what most alerts name. */
function Trends({ workspace }: { workspace: string }): JSX.Element {
  const [window, setWindow] = useState("last_14d");
  const [interval, setInterval] = useState("1d");
  const [severity, setSeverity] = useState("");
  const [kind, setKind] = useState("account");
  const fitting = FITTING[window] ?? [];
  const width = fitting.includes(interval) ? interval : (fitting[0] ?? "1d");
  const both = { time_window: window, min_severity: severity, workspace };
  const trend = useLook<Rows<Bucket, TrendSummary>>("get_alert_trend", { ...both, interval: width, timezone: zone() });
  const summary = useLook<Rows<Incident, ThreatSummary>>("get_threat_summary", { time_window: window, workspace });
  const top = useLook<Rows<TopEntity, Record<string, number>>>("get_top_entities", { ...both, kind, limit: 10 });
  const words = WINDOWS.find(([name]) => name === window)?.[1] ?? "";
  return (
    <>
      <search class="filters">
        <Choice label="Alerts of" value={window} options={WINDOWS} onChange={setWindow} />
        <Choice
          label="One column is"
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
      </search>
      <div class="seven">
        <Reading title={`Alerts in ${words}`} look={trend}>
          {(found) => <Trend found={found} />}
        </Reading>
      </div>
      <div class="five">
        <Reading title="Against the time before" look={summary}>
          {(found) => <Difference found={found} />}
        </Reading>
      </div>
      <Reading
        title="What most alerts name"
        look={top}
        choices={<Choice label="Kind" value={kind} options={KINDS} onChange={setKind} />}
      >
        {(found) => <Top found={found} workspace={workspace} />}
      </Reading>
    </>
  );
}

function Trend({ found }: { found: Seen<Rows<Bucket, TrendSummary>> }): JSX.Element {
  return (
    <div class="in">
      <Warnings of={found} />
      {found.result.summary.total === 0 ? <WhyNone of={found} none="No alert in this window." /> : null}
      <AlertTrend found={found} />
      <HowFound of={found} />
    </div>
  );
}

function Difference({ found }: { found: Seen<Rows<Incident, ThreatSummary>> }): JSX.Element {
  const { incidents, alerts, previous, top_alert_names, tactics } = found.result.summary;
  const before = previous ?? { incidents: null, alerts: null };
  const named = top_alert_names.slice(0, 5).map(({ name, count }) => ({ label: name, full: name, values: [count] }));
  return (
    <div class="in">
      <Warnings of={found} />
      <p>
        <strong>{incidents.total}</strong> incidents created, {compared(incidents.total, before.incidents)};{" "}
        {incidents.open} of them are open. <strong>{alerts.total}</strong> alerts,{" "}
        {compared(alerts.total, before.alerts)}.
      </p>
      {named.length === 0 ? null : (
        <Ranking title="Commonest alerts" of="Alert" series={[{ name: "Alerts", tone: "" }]} points={named} />
      )}
      <ul class="counts" aria-label="Tactics">
        {highest(tactics).map(([name, count]) => (
          <li key={name}>
            {visible(spaced(name))} <strong>{count}</strong>
          </li>
        ))}
      </ul>
      <HowFound of={found} />
    </div>
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
  return Object.entries(counts).sort(([, one], [, other]) => other - one);
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
        <div class="in">
          <WhyNone of={found} none="No alert in this window names one of this kind." />
        </div>
      ) : (
        <TopTable rows={rows} workspace={props.workspace} />
      )}
      <footer>
        {rows.length} of {coverage.rows_total ?? "an unknown number"}, by the alerts that name them.
        <HowFound of={found} />
      </footer>
    </>
  );
}

function TopTable({ rows, workspace }: { rows: TopEntity[]; workspace: string }): JSX.Element {
  return (
    <Scroll label="Entities">
      <Table
        class="fold"
        rows={rows}
        keyOf={(row) => row.name}
        columns={[
          {
            title: "Name",
            names: true,
            class: "wide long",
            cell: (row) => <a href={entityLink(row.name)}>{breakable(visible(row.name))}</a>,
          },
          { title: "Alerts", class: "num", told: true, cell: (row) => row.alerts },
          { title: "High", class: "num", told: true, cell: (row) => row.high_alerts },
          { title: "First", class: "spare", cell: (row) => <Time at={row.first_seen} /> },
          { title: "Last", class: "spare", cell: (row) => <Time at={row.last_seen} /> },
          {
            title: "Incidents",
            cell: (row) => (
              <>
                {row.incident_numbers.length === 0 ? <span class="quiet">in none</span> : null}
                {row.incident_numbers.map((number) => (
                  <a key={number} class="numbered" href={incidentLink({ number, workspace })}>
                    {number}
                  </a>
                ))}
              </>
            ),
          },
        ]}
      />
    </Scroll>
  );
}
