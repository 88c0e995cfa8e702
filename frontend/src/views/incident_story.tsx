// The story of an incident, told from its cells alone: what it is, who and where, how it began and where it stands, then
// the steps in the order in which they happened.
import type { ComponentChildren, JSX } from "preact";
import { entityLink } from "../links.ts";
import { Icon } from "../parts/icon.tsx";
import { breakable } from "../parts/linked.tsx";
import { Severity, Time } from "../parts/signs.tsx";
import { spaced } from "../requests.ts";
import { rankOf } from "../severities.ts";
import { age, local, span } from "../times.ts";
import type { Alert, Entity, IncidentDetail } from "../tool_rows.ts";
import { visible } from "../visible.ts";

const MOST_STEPS = 12;
const MOST_NAMES = 3;

export function Story({ incident, at }: { incident: IncidentDetail; at: number }): JSX.Element {
  const alerts = inOrder(incident.alerts);
  const [first] = alerts;
  const last = alerts.at(-1);
  const warnings = warningsOf(incident, at);
  return (
    <section class="card" aria-labelledby="story">
      <h2 id="story" class="unseen">
        Story
      </h2>
      <div class="story">
        <div>
          <p>
            {incident.description === null ? null : <>{visible(incident.description)} </>}
            <WhatItIs incident={incident} />
          </p>
          {first === undefined ? (
            <p>No alert of it has a row here, so it is not known how it began.</p>
          ) : (
            <p>
              It began with “{visible(first.name ?? "an alert without a name")}”{atWhom(first)} at{" "}
              <Time at={startOf(first)} />
              {last === undefined || last === first ? null : (
                <>
                  , and its last alert is “{visible(last.name ?? "one without a name")}”{atWhom(last)} at{" "}
                  <Time at={startOf(last)} />
                  {passed(first, last)}
                </>
              )}
              .
            </p>
          )}
          <p>
            <Standing incident={incident} />
          </p>
        </div>
        {warnings.length === 0 ? null : (
          <div class="stack">
            {warnings.map(([title, words]) => (
              <div key={title} class="notice">
                <Icon name="warn" />
                <div>
                  <strong>{title}</strong> {words}
                </div>
              </div>
            ))}
          </div>
        )}
      </div>
      {alerts.length < 2 ? null : (
        <ol class="path">
          {alerts.slice(0, MOST_STEPS).map((alert) => (
            <li key={alert.alert_id}>
              <span class="label">{(local(startOf(alert) ?? "") ?? "").slice(5)}</span>
              <div class="strong">{visible(spaced(alert.tactics[0] ?? "Alert"))}</div>
              <Severity of={alert.severity} />
              <span class="label">{visible(alert.name ?? "without a name")}</span>
              {alert.compromised_entity ? (
                <span class="label">
                  <a href={entityLink(alert.compromised_entity)}>{breakable(shortName(alert.compromised_entity))}</a>
                </span>
              ) : null}
            </li>
          ))}
          {alerts.length > MOST_STEPS ? (
            <li class="quiet">and {alerts.length - MOST_STEPS} later alerts, below</li>
          ) : null}
        </ol>
      )}
    </section>
  );
}

function WhatItIs({ incident }: { incident: IncidentDetail }): JSX.Element {
  const { entities, entity_counts: counts, alerts } = incident;
  const named = (kind: string, one: string, many: string): ComponentChildren => {
    const count = counts[kind] ?? 0;
    const known = (entities[kind] ?? []).slice(0, MOST_NAMES);
    return count === 0 ? null : (
      <>
        {count === 1 ? `the ${one} ` : `${count} ${many} (`}
        {names(known)}
        {count > known.length ? ", …" : ""}
        {count === 1 ? "" : ")"}
      </>
    );
  };
  const parts = [named("account", "account", "accounts"), named("host", "host", "hosts")].filter(
    (each) => each !== null,
  );
  const high = alerts.filter((alert) => alert.severity === "High").length;
  const count = incident.alert_count ?? alerts.length;
  return (
    <>
      {count === 0 ? "No alert" : count === 1 ? "One alert" : `${count} alerts`}
      {high === 0 ? "" : count === 1 ? ", High," : `, ${high} of them High,`}
      {parts.length === 0 ? " without an account or a host" : count === 1 ? " that touches " : " that touch "}
      {parts.map((part, place) => (
        <span key={place}>
          {place === 0 ? "" : " and "}
          {part}
        </span>
      ))}
      {incident.tactics.length === 0 ? "" : `: ${incident.tactics.map((each) => visible(spaced(each))).join(", ")}`}.
    </>
  );
}

function names(entities: Entity[]): ComponentChildren {
  return entities.map(({ name }, place) => (
    <span key={name}>
      {place === 0 ? "" : ", "}
      <a href={entityLink(name)} title={visible(name)}>
        {shortName(name)}
      </a>
    </span>
  ));
}

/** Where it stands: who has it, what was said last. */
function Standing({ incident }: { incident: IncidentDetail }): JSX.Element {
  const said = incident.comments.at(-1);
  if (incident.status === "Closed") {
    return (
      <>
        It is closed{incident.classification === null ? "" : ` as ${visible(spaced(incident.classification))}`}
        {incident.closed_time === null ? "" : <> since {<Time at={incident.closed_time} />}</>}.
      </>
    );
  }
  return (
    <>
      It is {visible(incident.status ?? "in a state that is not known")}, and{" "}
      {incident.owner === null ? "nobody owns it" : <>{visible(incident.owner)} owns it</>}.
      {said === undefined || said.message === null ? null : (
        <>
          {" "}
          The last comment, at <Time at={said.time} />: “{visible(said.message)}”
        </>
      )}
    </>
  );
}

/** What a reader must not miss, each from cells that contradict or endanger each other. */
function warningsOf(incident: IncidentDetail, at: number): [string, string][] {
  const told: [string, string][] = [];
  const owner = (incident.owner ?? "").toLowerCase();
  const own = (incident.entities.account ?? []).find((account) =>
    [account.name, account.display_name, account.upn].some(
      (each) => owner !== "" && String(each ?? "").toLowerCase() === owner,
    ),
  );
  if (own !== undefined && incident.status !== "Closed") {
    const name = visible(own.name);
    told.push([
      "Its owner’s account is one of those it touches.",
      `${name} is named by ${own.alerts === 1 ? "one alert" : `${own.alerts} alerts`}. Whoever holds that account can change this incident: hand it over first.`,
    ]);
  }
  if (incident.closed_time !== null && incident.status !== "Closed") {
    told.push([
      "It has a closing time, and is not closed.",
      `${local(incident.closed_time)}: closed and opened again, or half closed.`,
    ]);
  }
  const created = Date.parse(incident.created_time ?? "");
  if (
    incident.owner === null &&
    incident.status !== "Closed" &&
    rankOf(incident.severity) < 2 &&
    !Number.isNaN(created)
  ) {
    told.push(["Nobody owns it.", `It has been open for ${age((at - created) / 1_000)}.`]);
  }
  return told;
}

function inOrder(alerts: Alert[]): Alert[] {
  const time = (alert: Alert): number => Date.parse(startOf(alert) ?? "") || Number.MAX_SAFE_INTEGER;
  return [...alerts].sort((one, other) => time(one) - time(other));
}

function startOf(alert: Alert): string | null {
  return alert.start_time ?? alert.time;
}

function atWhom(alert: Alert): ComponentChildren {
  const name = alert.compromised_entity;
  return name ? (
    <>
      {" "}
      on{" "}
      <a href={entityLink(name)} title={visible(name)}>
        {shortName(name)}
      </a>
    </>
  ) : null;
}

function passed(first: Alert, last: Alert): string {
  const seconds = (Date.parse(startOf(last) ?? "") - Date.parse(startOf(first) ?? "")) / 1_000;
  return Number.isNaN(seconds) || seconds < 60 ? "" : `, ${span(seconds)} later`;
}

/** The first part of a name of a host or an account, which people say; the whole of every other one. */
function shortName(name: string): string {
  const parts = /^([^@.\s]+(?:[.'’][^@.\s]+)*)@|^([a-z0-9-]+)\.[a-z][a-z0-9.-]*$/i.exec(name);
  return visible(parts?.[1] ?? parts?.[2] ?? name);
}
