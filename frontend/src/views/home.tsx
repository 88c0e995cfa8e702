// The first screen: the question, the queue with the worst on top and why each stands there, what is new since the last
// visit, what waits for a decision, and texts that attackers may have left.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { askNow, keep } from "../draft.ts";
import { incidentLink } from "../incident_address.ts";
import { type Look, type Rows, type Seen, useLook } from "../look.ts";
import { outsideTexts } from "../outside.ts";
import { Suggested } from "../parts/around.tsx";
import { Card } from "../parts/card.tsx";
import { Spark } from "../parts/chart.tsx";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Outside } from "../parts/outside.tsx";
import { HowFound, Reading, Warnings, WhyNone } from "../parts/reading.tsx";
import { KeptQuestions } from "../parts/saved.tsx";
import { Owner, Severity, Status, Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { trendOf } from "../parts/trend.tsx";
import { lastVisit, preferredWorkspace, seenAll, visit } from "../preferences.ts";
import { incidentOf, titleOf } from "../requests.ts";
import { ageOf, byPriority, rankOf } from "../severities.ts";
import { age, shortly, zone } from "../times.ts";
import type { Alert, Bucket, Incident, IncidentSummary, TrendSummary } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Approval, Session } from "../wire.ts";

const MOST = 100;
const SHOWN_NEW = 5;
const SHOWN_TEXTS = 3;

type Queue = Rows<Incident, IncidentSummary>;

export function HomeView({ session, waiting }: { session: Session; waiting: Approval[] }): JSX.Element {
  const workspace = preferredWorkspace(session);
  const [since, setSince] = useState(() => {
    visit(session.name);
    return lastVisit(session.name);
  });
  const queue = useLook<Queue>("query_incidents", { status: "Open", order: "severity", limit: MOST, workspace });
  const changed = useLook<Queue>(
    "query_incidents",
    since === null ? null : { time_field: "updated", start_time: since, order: "updated", limit: 50, workspace },
  );
  const alerts = useLook<Rows<Alert, unknown>>("query_alerts", { time_window: "last_14d", limit: MOST, workspace });
  const trend = useLook<Rows<Bucket, TrendSummary>>("get_alert_trend", {
    time_window: "last_14d",
    interval: "1d",
    timezone: zone(),
    workspace,
  });
  const place = (row: Incident): Incident => (workspace === "" ? row : { workspace, ...row });
  const news = newsOf(changed.found?.result.rows ?? [], alerts.found?.result.rows ?? [], since);
  const touched = new Set(news.map((each) => each.incident));
  const texts = outsideTexts(alerts.found?.result.rows ?? []);
  const holding = new Set(texts.map((each) => each.incident));
  const [worst] = [...(queue.found?.result.rows ?? [])].sort(byPriority);
  const seen = (): void => {
    seenAll(session.name);
    setSince(lastVisit(session.name));
  };
  return (
    <>
      <h1 class="unseen">Home</h1>
      <AskBox />
      <KeptQuestions name={session.name} onAsk={askNow} />
      <div class="under">
        <Suggested
          questions={[
            ...(worst === undefined ? [] : [`What is incident ${worst.number} about?`]),
            "Which incidents are open, most severe first?",
            "What happened in the last 24 hours?",
          ]}
          onAsk={askNow}
        />
        <AlertsADay look={trend} />
      </div>
      <div class="home stack-top">
        <QueueCard
          look={queue}
          place={place}
          reasons={(row) => reasonsOf(row, queue.found?.result.rows ?? [], touched, holding, waiting)}
          changed={touched}
          holding={holding}
          name={session.name}
        />
        <div>
          {waiting.some((each) => each.may_decide) ? <Requests waiting={waiting} /> : null}
          <News since={since} changed={changed} news={news} onSeen={seen} place={place} />
          {waiting.some((each) => each.may_decide) ? null : <Requests waiting={waiting} />}
          <Texts look={alerts} texts={texts} place={place} />
        </div>
      </div>
    </>
  );
}

function AskBox(): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const shown = box.current;
    if (document.activeElement === null || document.activeElement === document.body) {
      shown?.focus();
    }
    return () => keep(shown?.value ?? "");
  }, []);
  return (
    <form
      class="askbox"
      onSubmit={(event) => {
        event.preventDefault();
        const question = String(new FormData(event.currentTarget).get("question") ?? "");
        if (question.trim() !== "") {
          event.currentTarget.reset();
          askNow(question);
        }
      }}
    >
      <Icon name="search" />
      <label>
        <span class="unseen">Question</span>
        <textarea
          ref={box}
          class="question-text"
          name="question"
          rows={1}
          maxLength={8_000}
          placeholder="Ask about incidents, alerts, sign-ins, hosts"
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }
          }}
        />
      </label>
      <button type="submit" class="main">
        Ask
      </button>
    </form>
  );
}

function AlertsADay({ look }: { look: Look<Rows<Bucket, TrendSummary>> }): JSX.Element | null {
  const { found } = look;
  const last = found?.result.rows.at(-1);
  if (found === null || last === undefined) {
    return null;
  }
  return (
    <a class="spark" href="#/dashboard">
      <span class="nowrap">Alerts a day, {found.result.rows.length} days</span>
      <Spark title="Alerts a day" {...trendOf(found)} />
      <span class="nowrap">
        <strong>{last.count}</strong> today
      </span>
    </a>
  );
}

type Narrowed = "all" | "mine" | "nobody";

function QueueCard(props: {
  look: Look<Queue>;
  place: (row: Incident) => Incident;
  reasons: (row: Incident) => string[];
  changed: Set<number | null>;
  holding: Set<number | null>;
  name: string;
}): JSX.Element {
  const { found } = props.look;
  const [narrowed, setNarrowed] = useState<Narrowed>("all");
  const first = (row: Incident): number =>
    Number(!props.changed.has(row.number)) * 4 +
    Number(!props.holding.has(row.number)) * 2 +
    Number(row.owner !== null);
  const rows = [...(found?.result.rows ?? [])].sort(
    (one, other) =>
      rankOf(one.severity) - rankOf(other.severity) || first(one) - first(other) || byPriority(one, other),
  );
  const mine = rows.filter((row) => isMine(row, props.name));
  const nobody = rows.filter((row) => row.owner === null);
  const shown = narrowed === "mine" ? mine : narrowed === "nobody" ? nobody : rows;
  const total = found?.result.coverage.rows_total ?? null;
  const choices: [Narrowed, string][] = [
    ["mine", `Mine ${mine.length}`],
    ["nobody", `No owner ${nobody.length}`],
    ["all", `All ${rows.length}`],
  ];
  return (
    <Reading
      title="Queue"
      look={props.look}
      kept
      note={found === null ? "" : `${total ?? "an unknown number"} open, worst first`}
      choices={choices.map(([name, words]) => (
        <button
          key={name}
          type="button"
          class="link"
          aria-pressed={narrowed === name}
          onClick={() => setNarrowed(name)}
        >
          {words}
        </button>
      ))}
    >
      {(queue) => (
        <>
          <Warnings of={queue} notes={false} />
          {rows.length === 0 ? (
            <div class="empty">
              <WhyNone of={queue} none="No incident is open." />
            </div>
          ) : shown.length === 0 ? (
            <p class="quiet">
              {narrowed === "mine" ? "None of the open incidents is owned by you." : "Each open incident has an owner."}
            </p>
          ) : (
            <QueueTable {...props} rows={shown} found={queue} />
          )}
          <footer>
            {shown.length} of {total ?? "an unknown number of"} open incidents. By severity, then what changed, what
            holds text from outside, and what nobody owns. Bold: new since your last visit.{" "}
            {total !== null && total > rows.length ? <a href="#/incidents">All of them</a> : null}
            {queue.result.notes.map((note) => (
              <div key={note}>{visible(note)}</div>
            ))}
            <HowFound of={queue} />
          </footer>
        </>
      )}
    </Reading>
  );
}

function QueueTable(props: {
  rows: Incident[];
  found: Seen<Queue>;
  place: (row: Incident) => Incident;
  reasons: (row: Incident) => string[];
  changed: Set<number | null>;
}): JSX.Element {
  return (
    <Table
      class="fold"
      label="Open incidents by priority"
      rows={props.rows}
      keyOf={(row) => row.number ?? ""}
      rowClass={(row) => (props.changed.has(row.number) ? "changed" : "")}
      columns={[
        { title: "Severity", cell: (row) => <Severity of={row.severity} /> },
        { title: "No.", class: "num", cell: (row) => row.number },
        {
          title: "Incident, and why it stands here",
          names: true,
          class: "wide long",
          cell: (row) => {
            const reasons = props.reasons(row);
            return (
              <>
                <a class="title" href={incidentLink(props.place(row))}>
                  {visible(row.title ?? "") || "without a title"}
                </a>
                {reasons.length === 0 ? null : <div class="reason">{reasons.join("; ")}</div>}
              </>
            );
          },
        },
        { title: "Status", class: "spare", cell: (row) => <Status of={row.status} /> },
        { title: "Owner", cell: (row) => <Owner of={row.owner} /> },
        {
          title: "Open for",
          class: "num end",
          cell: (row) => {
            const seconds = ageOf(row, props.found.at);
            return seconds === null ? <span class="quiet">not known</span> : age(seconds);
          },
        },
        { title: "Alerts", class: "num spare", cell: (row) => row.alert_count ?? <span class="quiet">?</span> },
      ]}
    />
  );
}

/** Why a row stands where it does, from what is in its cells and beside them. */
function reasonsOf(
  row: Incident,
  rows: Incident[],
  touched: Set<number | null>,
  holding: Set<number | null>,
  waiting: Approval[],
): string[] {
  const request = waiting.find((each) => incidentOf(each.arguments) === String(row.number));
  const times = rows.map((each) => each.created_time ?? "").filter((time) => time !== "");
  const oldest = rows.length > 2 && row.created_time !== null && row.created_time === times.sort()[0];
  return [
    ...(touched.has(row.number) ? ["changed since your last visit"] : []),
    ...(request === undefined ? [] : [`${visible(titleOf(request))}: waits for a decision`]),
    ...(holding.has(row.number) ? ["holds text that may be written to be obeyed"] : []),
    ...(row.closed_time === null ? [] : ["has a closing time, and is still open"]),
    ...(row.alert_count === 0 ? ["no alert, made by hand"] : []),
    ...(oldest ? ["oldest open"] : []),
  ].map((each, place) => (place === 0 ? each.slice(0, 1).toUpperCase() + each.slice(1) : each));
}

function isMine(row: Incident, name: string): boolean {
  const owner = (row.owner ?? "").toLowerCase();
  const own = name.toLowerCase();
  return owner !== "" && (owner === own || owner.split("@")[0] === own.split("@")[0]);
}

interface NewsItem {
  key: string;
  incident: number | null;
  severity: string | null;
  at: string;
  words: string;
}

/** What came since then: alerts, new incidents, and changes of those that were there, the newest first. */
function newsOf(rows: Incident[], alerts: Alert[], since: string | null): NewsItem[] {
  if (since === null) {
    return [];
  }
  const from = Date.parse(since);
  const later = (time: string | null): boolean => time !== null && Date.parse(time) > from;
  const changes = rows
    .filter((row) => later(row.updated_time) || later(row.created_time))
    .map((row) => ({
      key: `incident ${row.number}`,
      incident: row.number,
      severity: row.severity,
      at: (later(row.updated_time) ? row.updated_time : row.created_time) ?? "",
      words: `${later(row.created_time) ? "New incident" : row.status === "Closed" ? "Closed" : "Changed"}: ${row.title ?? ""}`,
    }));
  const raised = alerts
    .filter((alert) => later(alert.time))
    .map((alert) => ({
      key: `alert ${alert.alert_id}`,
      incident: alert.incident_number ?? null,
      severity: alert.severity,
      at: alert.time ?? "",
      words: `New alert: ${alert.name ?? ""}${alert.compromised_entity ? `, ${alert.compromised_entity}` : ""}`,
    }));
  return [...raised, ...changes].sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
}

function News(props: {
  since: string | null;
  changed: Look<Queue>;
  news: NewsItem[];
  onSeen: () => void;
  place: (row: Incident) => Incident;
}): JSX.Element {
  const { since, news, changed } = props;
  const [all, setAll] = useState(false);
  const listed = all ? news : news.slice(0, SHOWN_NEW);
  return (
    <Card
      title="Since your last visit"
      note={since === null ? "" : shortly(since)}
      side={
        news.length === 0 ? null : (
          <button type="button" class="link" onClick={props.onSeen}>
            Mark as seen
          </button>
        )
      }
    >
      <RefusalNotice refusal={changed.refusal} />
      {listed.length === 0 ? (
        <p class="quiet">
          {since === null
            ? "This is your first visit in this browser. From the next one on, what is new stands here."
            : changed.busy
              ? "Reading..."
              : changed.refusal === null
                ? "Nothing has changed."
                : "What changed is not known."}
        </p>
      ) : (
        <ul class="listed">
          {listed.map((each) => (
            <li key={each.key}>
              <div class="row">
                <Severity of={each.severity} />
                {each.incident === null ? null : (
                  <a class="strong" href={incidentLink(props.place({ number: each.incident } as Incident))}>
                    {each.incident}
                  </a>
                )}
                <span class="when push">
                  <Time short at={each.at} />
                </span>
              </div>
              <div class="clip">{visible(each.words)}</div>
            </li>
          ))}
        </ul>
      )}
      {news.length > SHOWN_NEW && !all ? (
        <footer>
          <button type="button" class="link" onClick={() => setAll(true)}>
            Show all {news.length}
          </button>
        </footer>
      ) : null}
    </Card>
  );
}

function Requests({ waiting }: { waiting: Approval[] }): JSX.Element {
  const mine = waiting.filter((each) => each.may_decide);
  return (
    <Card
      id="requests"
      title="Approvals"
      note={
        <>
          {mine.length} for you{waiting.length > mine.length ? `, ${waiting.length - mine.length} for others` : ""}
        </>
      }
    >
      {waiting.length === 0 ? <p class="quiet">Nothing waits for a decision.</p> : null}
      <ul class="listed">
        {waiting.map((each) => (
          <li key={each.approval_id}>
            <div class="clip">{visible(titleOf(each))}</div>
            <div class="row between">
              <span class="when">
                asked <Time short at={each.asked_at} />, ends <Time short at={each.ends_at} />
              </span>
              <a class="button" href={`#/approvals/${encodeURIComponent(each.approval_id)}`}>
                {each.may_decide ? "Review" : "Look"}
              </a>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Texts(props: {
  look: Look<Rows<Alert, unknown>>;
  texts: ReturnType<typeof outsideTexts>;
  place: (row: Incident) => Incident;
}): JSX.Element {
  const { found, refusal, busy } = props.look;
  const [all, setAll] = useState(false);
  const listed = all ? props.texts : props.texts.slice(0, SHOWN_TEXTS);
  const read = found?.result.rows.length ?? 0;
  const total = found?.result.coverage.rows_total ?? null;
  useEffect(() => setAll(false), [props.look.found]);
  return (
    <Card
      title="Texts from attackers"
      side={props.texts.length === 0 ? null : <span class="chip foreign">{props.texts.length} found</span>}
    >
      <RefusalNotice refusal={refusal} />
      {busy && found === null ? <p class="quiet">Looking...</p> : null}
      {found !== null && props.texts.length === 0 ? <p class="quiet">None was found by its signs.</p> : null}
      <ul class="listed">
        {listed.map((each) => (
          <li key={each.text}>
            <div class="row">
              {each.incident === null ? null : (
                <a class="strong" href={incidentLink(props.place({ number: each.incident } as Incident))}>
                  {each.incident}
                </a>
              )}
              <span class="clip quiet">{visible(each.alert)}</span>
            </div>
            <Outside place={each.place} text={each.text} why={each.why} short />
          </li>
        ))}
      </ul>
      {found === null ? null : (
        <footer>
          {listed.length < props.texts.length ? (
            <button type="button" class="link" onClick={() => setAll(true)}>
              Show all {props.texts.length}
            </button>
          ) : null}{" "}
          What the list tells of {read} of {total ?? "an unknown number of"} alerts of 14 days was looked at, by signs
          alone. Shown as text, nothing of it is live.
        </footer>
      )}
    </Card>
  );
}
