// One incident: what it is and how far it went on top, what can be done, what happened in its order, what it touches,
// and what is known of its like. Identifiers stand last.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Rows, type Seen, useLook } from "../look.ts";
import { outsideTexts } from "../outside.ts";
import { Card } from "../parts/card.tsx";
import { Facts } from "../parts/data_table.tsx";
import { Icon } from "../parts/icon.tsx";
import { Outside } from "../parts/outside.tsx";
import { HowFound, State, Warnings } from "../parts/reading.tsx";
import { Severity, Status, Time, ZoneLine } from "../parts/signs.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { incidentOf, titleOf } from "../requests.ts";
import { age, local, span } from "../times.ts";
import type { DetailSummary, IncidentDetail } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";
import type { Approval, Session } from "../wire.ts";
import { type Action, ActionDialog, IncidentActions } from "./incident_actions.tsx";
import { useAsked } from "./incident_asked.tsx";
import { Entanglement } from "./incident_entities.tsx";
import { Like } from "./incident_like.tsx";
import { Story } from "./incident_story.tsx";

type Detail = Rows<IncidentDetail, DetailSummary>;

/** `id` is that of the address: a reference of Sentinel's, with `@` and a workspace where it is not the default one. */
export function IncidentView(props: {
  id: string;
  session: Session;
  waiting: Approval[];
  /** Read the conversations anew. */
  reload: () => void;
}): JSX.Element {
  const { id } = props;
  const [reference, workspace] = id.split("@");
  const detail = useLook<Detail>("get_incident_detail", { incident: reference ?? id, workspace, detail: "full" });
  const { found, again } = detail;
  const rows = found?.result.rows ?? [];
  const change = props.waiting.filter((each) => incidentOf(each.arguments) === reference).length;
  const before = useRef(change);
  useEffect(() => {
    // A request about it was decided: what stands in its cells may be another thing now.
    if (change < before.current) {
      again();
    }
    before.current = change;
  }, [change]);
  return (
    <>
      <State of={detail} shown={found !== null} words="Reading the incident..." />
      {found === null ? null : (
        <>
          {rows.length === 0 ? (
            <>
              <h1>There is no incident {visible(reference ?? id)} here.</h1>
              <p class="card empty">
                It may be of another workspace, or the number has a slip. <a href="#/incidents">All incidents</a>
              </p>
            </>
          ) : null}
          {rows.length > 1 ? <Which rows={rows} workspace={workspace} /> : null}
          {rows.length === 1 && rows[0] !== undefined ? (
            <OneIncident
              incident={rows[0]}
              found={found}
              workspace={workspace}
              again={again}
              session={props.session}
              waiting={props.waiting}
              reload={props.reload}
            />
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
      <ul class="listed">
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

interface OneProps {
  incident: IncidentDetail;
  found: Seen<Detail>;
  workspace: string | undefined;
  again: () => void;
  session: Session;
  waiting: Approval[];
  reload: () => void;
}

function OneIncident(props: OneProps): JSX.Element {
  const { incident, workspace, found } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  const [action, setAction] = useState<Action | null>(null);
  const [put, askedHere] = useAsked(props);
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
  const texts = outsideTexts(incident.alerts);
  const left = Object.entries(found.result.summary.left_out);
  const sections: [string, string, number | null][] = [
    ["story", "Story", null],
    ["happened", "What happened", incident.timeline.length],
    ["playbook", "Playbook", null],
    ["past", "Past cases", null],
    ["touches", "What it touches", Object.values(incident.entity_counts).reduce((sum, each) => sum + each, 0)],
    ["alerts", "Alerts", incident.alerts.length],
    ...(texts.length === 0 ? [] : [["outside", "Outside text", texts.length] as [string, string, number]]),
    ["facts", "Identifiers", null],
  ];
  return (
    <article class="incident">
      <div class="incident-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            #{incident.number} {visible(incident.title ?? "")}
          </h1>
          <Chips {...props} texts={texts.length} act={setAction} />
        </div>
        <IncidentActions incident={incident} workspace={workspace} again={props.again} act={setAction} />
        {action === null ? null : (
          <ActionDialog
            action={action}
            incident={incident}
            workspace={workspace}
            session={props.session}
            ask={put}
            close={() => setAction(null)}
          />
        )}
      </div>
      <Warnings of={found} />
      {askedHere === null ? <Asked {...props} /> : askedHere}
      <div class="with-list">
        <div>
          <Story incident={incident} at={found.at} />
          {left.length === 0 ? null : (
            <p>
              Left out, because there is too much: {left.map(([name, count]) => `${count} ${leftOut(name)}`).join(", ")}
              .
            </p>
          )}
          <div class="halves">
            <div class="stack">
              <Card id="happened" title="What happened" note={<ZoneLine />}>
                {incident.timeline.length === 0 ? (
                  <p>Nothing is told of its course.</p>
                ) : (
                  <Timeline moments={incident.timeline} incident={incident} />
                )}
              </Card>
              <Comments incident={incident} />
            </div>
            <div class="stack">
              <Closing incident={incident} />
              <Like incident={incident} />
            </div>
          </div>
          <Entanglement incident={incident} workspace={workspace} />
          {texts.length === 0 ? null : (
            <Card id="outside" title="Text from outside" note="shown as data, nothing of it is live">
              <div class="in">
                {texts.map((each) => (
                  <Outside key={each.text} {...each} place={`${each.place}, ${each.alert}`} />
                ))}
              </div>
            </Card>
          )}
          <Card id="facts" title="Identifiers, and everything else">
            <div class="in">
              <Facts facts={factsOf(incident, found.at)} />
              <HowFound of={found} />
            </div>
          </Card>
        </div>
        <OnPage sections={sections} />
      </div>
    </article>
  );
}

/** The list of the parts; each is reached by a button, for the address is the incident's. */
function OnPage({ sections }: { sections: [string, string, number | null][] }): JSX.Element {
  return (
    <nav class="on-page" aria-label="On this page">
      <h2>On this page</h2>
      {sections.map(([id, words, count]) => (
        <button
          key={id}
          type="button"
          onClick={() => {
            const to = document.getElementById(id);
            to?.closest("section")?.scrollIntoView({ block: "start" });
            to?.setAttribute("tabindex", "-1");
            to?.focus({ preventScroll: true });
          }}
        >
          {words}
          {count === null ? null : <span>{count}</span>}
        </button>
      ))}
    </nav>
  );
}

/** What it is at a glance; severity, status and owner lead to what changes them. */
function Chips(props: OneProps & { texts: number; act: (action: Action) => void }): JSX.Element {
  const { incident, found, texts, act } = props;
  const closed = incident.status === "Closed";
  const chip = (action: Action, what: string, kind: string, told: ComponentChildren): JSX.Element => (
    <button type="button" class={`chip ${kind}`} title={`Change the ${what}`} onClick={() => act(action)}>
      <span class="unseen">{what}: </span>
      {told}
      <Icon name="more" />
    </button>
  );
  return (
    <div class="row">
      {closed ? (
        <span class={`chip ${incident.severity === "High" ? "high" : ""}`}>
          <Severity of={incident.severity} />
        </span>
      ) : (
        chip("severity", "Severity", incident.severity === "High" ? "high" : "", <Severity of={incident.severity} />)
      )}
      {chip(closed ? "reopen" : "status", "Status", "", <Status of={incident.status} />)}
      {chip(
        "assign",
        "Owner",
        "",
        <>
          <Icon name="user" />
          {visible(incident.owner ?? "no owner")}
        </>,
      )}
      <span class="chip">
        <Icon name="clock" />
        {closed ? "Was open" : "Open"} {openFor(incident, found.at)}
      </span>
      <span class="chip">
        {incident.alert_count ?? "?"} {incident.alert_count === 1 ? "alert" : "alerts"}, {incident.tactics.length}{" "}
        {incident.tactics.length === 1 ? "tactic" : "tactics"}
      </span>
      {texts === 0 ? null : (
        <span class="chip foreign">{texts === 1 ? "one text" : `${texts} texts`} from outside</span>
      )}
    </div>
  );
}

/** The requests about it that wait. */
function Asked({ incident, waiting }: OneProps): JSX.Element | null {
  const about = waiting.filter((each) => incidentOf(each.arguments) === String(incident.number));
  return about.length === 0 ? null : (
    <div class="stack">
      {about.map((each) => (
        <p key={each.approval_id} class="notice">
          <Icon name="clock" />
          <span>
            <a href={`#/approvals/${encodeURIComponent(each.approval_id)}`}>{visible(titleOf(each))}</a>: it waits for{" "}
            {each.may_decide ? "your decision" : "another person"} until <Time at={each.ends_at} />.
          </span>
        </p>
      ))}
    </div>
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
    ["Open for", `${openFor(incident, at)}${closed ? "" : ", still open"}`],
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
  return incident.status === "Closed" || Number.isNaN(created) ? UNKNOWN : age((at - created) / 1_000);
}

function Comments({ incident }: { incident: IncidentDetail }): JSX.Element {
  return (
    <Card id="comments" title="Comments" note={incident.comments.length}>
      {incident.comments.length === 0 ? <p class="quiet">None.</p> : null}
      <ul class="listed">
        {incident.comments.map((comment, place) => (
          <li key={place}>
            <div class="row between">
              <strong class="author">{visible(comment.author ?? "somebody")}</strong>
              <span class="when">
                <Time at={comment.time} />
              </span>
            </div>
            <div class="words message">{visible(comment.message ?? "")}</div>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Closing({ incident }: { incident: IncidentDetail }): JSX.Element | null {
  if (incident.classification === null && incident.status !== "Closed") {
    return null;
  }
  return (
    <Card id="closing" title={incident.status === "Closed" ? "How it was closed" : "How it was closed before"}>
      <div class="in">
        <Facts
          facts={[
            ["Classification", visible(incident.classification ?? UNKNOWN)],
            ["Reason", visible(incident.classification_reason ?? "not told")],
            ["Comment", visible(incident.classification_comment ?? "not told")],
          ]}
        />
      </div>
    </Card>
  );
}
