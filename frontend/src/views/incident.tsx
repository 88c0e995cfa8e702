// One incident: its facts, how it was closed, what happened, what it touches, and what is known of its like.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { suggest } from "../draft.ts";
import { type Rows, type Seen, useLook } from "../look.ts";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { HowFound, Warnings } from "../parts/reading.tsx";
import { Severity, Time, ZoneLine } from "../parts/signs.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { local, span } from "../times.ts";
import type { DetailSummary, IncidentDetail } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";
import { Entanglement } from "./incident_entities.tsx";
import { Like } from "./incident_like.tsx";

type Detail = Rows<IncidentDetail, DetailSummary>;

/** `id` is that of the address: a reference of Sentinel's, with `@` and a workspace where it is not the default one. */
export function IncidentView({ id, back }: { id: string; back: () => void }): JSX.Element {
  const [reference, workspace] = id.split("@");
  const detail = useLook<Detail>("get_incident_detail", { incident: reference ?? id, workspace, detail: "full" });
  const { found, refusal, busy } = detail;
  const rows = found?.result.rows ?? [];
  return (
    <>
      <p class="row">
        <button type="button" onClick={back}>
          All incidents
        </button>
        <button type="button" onClick={detail.again}>
          Read again
        </button>
      </p>
      <RefusalNotice refusal={refusal} />
      {busy && found === null ? <p role="status">Reading the incident...</p> : null}
      {found === null ? null : (
        <>
          <Warnings of={found} />
          {rows.length === 0 ? <p>There is no incident {visible(reference ?? id)} here.</p> : null}
          {rows.length > 1 ? <Which rows={rows} workspace={workspace} /> : null}
          {rows.length === 1 && rows[0] !== undefined ? (
            <OneIncident incident={rows[0]} found={found} workspace={workspace} />
          ) : (
            <HowFound of={found} />
          )}
        </>
      )}
    </>
  );
}

/** A reference that may mean several incidents: each by its GUID, which means one. */
function Which({ rows, workspace }: { rows: IncidentDetail[]; workspace: string | undefined }): JSX.Element {
  return (
    <>
      <h1>Which of these?</h1>
      <ul>
        {rows.map((row) => {
          const guid = `${row.incident_name ?? row.number}${workspace === undefined ? "" : `@${workspace}`}`;
          return (
            <li key={guid}>
              <a href={`#/incidents/${encodeURIComponent(guid)}`}>
                #{row.number} {visible(row.title ?? "")}
              </a>{" "}
              <Severity of={row.severity} />, {visible(row.status ?? "")}, created <Time at={row.created_time} />
            </li>
          );
        })}
      </ul>
    </>
  );
}

function OneIncident(props: {
  incident: IncidentDetail;
  found: Seen<Detail>;
  workspace: string | undefined;
}): JSX.Element {
  const { incident, workspace } = props;
  const left = Object.entries(props.found.result.summary.left_out);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // The link that led here is gone, and the focus with it.
    if (document.activeElement === null || document.activeElement === document.body) {
      heading.current?.focus();
    }
    const before = document.title;
    document.title = `#${incident.number} - ${before}`;
    return () => {
      document.title = before;
    };
  }, [incident.number]);
  const where = workspace === undefined ? "" : ` in the workspace ${workspace}`;
  return (
    <article class="incident">
      <h1 ref={heading} tabIndex={-1}>
        #{incident.number} {visible(incident.title ?? "")}
      </h1>
      <p class="row">
        <span>
          <Severity of={incident.severity} /> <strong>{visible(incident.status ?? "status not known")}</strong>
        </span>
        <button
          type="button"
          class="main"
          onClick={() => suggest(`What happened in incident ${incident.number}${where}?`)}
        >
          Ask about this incident
        </button>
      </p>
      {incident.description === null ? null : <p class="words">{visible(incident.description)}</p>}
      {left.length === 0 ? null : (
        <p>
          Left out, because there is too much: {left.map(([name, count]) => `${count} ${leftOut(name)}`).join(", ")}.
        </p>
      )}
      <p>
        <ZoneLine />
      </p>
      <div class="halves">
        <div>
          <section aria-labelledby="facts">
            <h2 id="facts">Facts</h2>
            <Facts facts={factsOf(incident, props.found.at)} />
            <HowFound of={props.found} />
          </section>
          <Closing incident={incident} />
          <Comments incident={incident} />
        </div>
        <section aria-labelledby="timeline">
          <h2 id="timeline">What happened</h2>
          {incident.timeline.length === 0 ? (
            <p>Nothing is told of its course.</p>
          ) : (
            <>
              <p class="quiet">
                An alert stands here where its events began; the table of alerts tells when it was recorded.
              </p>
              <Timeline moments={incident.timeline} />
            </>
          )}
        </section>
      </div>
      <Entanglement incident={incident} workspace={workspace} />
      <Like incident={incident} />
    </article>
  );
}

const UNKNOWN = "not known";

const LEFT_OUT: Record<string, string> = {
  alert_entities: "entities of alerts",
  entity_properties: "properties of entities",
  timeline: "events",
  values: "labels, techniques and ids",
  cut_texts: "texts cut short",
};

function leftOut(name: string): string {
  return visible(Object.hasOwn(LEFT_OUT, name) ? (LEFT_OUT[name] ?? "") : name.replaceAll("_", " "));
}

function factsOf(incident: IncidentDetail, at: number): [string, string][] {
  const time = (text: string | null, none: string): string => (text === null ? none : (local(text) ?? visible(text)));
  const length = (seconds: number | null, none: string): string => (seconds === null ? none : span(seconds));
  const closed = incident.status === "Closed";
  return [
    ["Owner", visible(incident.owner ?? "nobody")],
    ["Created", time(incident.created_time, UNKNOWN)],
    ["Last changed", time(incident.updated_time, UNKNOWN)],
    ["Closed", time(incident.closed_time, closed ? UNKNOWN : "not closed")],
    ["First change after", length(incident.first_response_s, UNKNOWN)],
    ["Open for", openFor(incident, at)],
    ["Alerts", incident.alert_count === null ? UNKNOWN : String(incident.alert_count)],
    ["Tactics", incident.tactics.map(visible).join(", ") || "none told"],
    ["Techniques", incident.techniques.map(visible).join(", ") || "none told"],
    ["Labels", incident.labels.map(visible).join(", ") || "none"],
    ["Defender id", visible(incident.provider_incident_id ?? UNKNOWN)],
    ["GUID", visible(incident.incident_name ?? UNKNOWN)],
    ["Comes from", visible(incident.provider ?? UNKNOWN)],
    ["In the Azure portal", visible(incident.url ?? UNKNOWN)],
    ["In the Defender portal", visible(incident.defender_url ?? UNKNOWN)],
    ...Object.entries(incident.custom_details).map(([name, value]): [string, string] => [visible(name), shown(value)]),
  ];
}

/** `at` is when it was read. */
function openFor(incident: IncidentDetail, at: number): string {
  if (incident.open_duration_s !== null) {
    return span(incident.open_duration_s);
  }
  const created = Date.parse(incident.created_time ?? "");
  if (incident.status === "Closed") {
    return UNKNOWN;
  }
  return Number.isNaN(created) ? "still open" : `${span((at - created) / 1_000)}, still open`;
}

function Comments({ incident }: { incident: IncidentDetail }): JSX.Element {
  return (
    <section aria-labelledby="comments">
      <h2 id="comments">Comments</h2>
      {incident.comments.length === 0 ? <p>None.</p> : null}
      {incident.comments.map((comment, place) => (
        <figure key={place} class="said">
          <figcaption>
            {visible(comment.author ?? "somebody")}, <Time at={comment.time} />
          </figcaption>
          <blockquote class="words">{visible(comment.message ?? "")}</blockquote>
        </figure>
      ))}
    </section>
  );
}

function Closing({ incident }: { incident: IncidentDetail }): JSX.Element | null {
  if (incident.classification === null && incident.status !== "Closed") {
    return null;
  }
  return (
    <section aria-labelledby="closing">
      <h2 id="closing">{incident.status === "Closed" ? "How it was closed" : "How it was closed before"}</h2>
      <Facts
        facts={[
          ["Classification", visible(incident.classification ?? UNKNOWN)],
          ["Reason", visible(incident.classification_reason ?? "not told")],
          ["Comment", visible(incident.classification_comment ?? "not told")],
        ]}
      />
    </section>
  );
}
