// What happened in an incident, in its order, by days; an alert with its severity and whom it names, a comment with its
// words.
import type { JSX } from "preact";
import { entityLink } from "../links.ts";
import { local } from "../times.ts";
import type { Alert, IncidentDetail } from "../tool_rows.ts";
import { visible } from "../visible.ts";

interface Moment {
  time: string | null;
  event: string;
}

const ALERT = "Alert: ";

export function Timeline(props: { moments: Moment[]; incident: IncidentDetail }): JSX.Element {
  const { moments, incident } = props;
  let day = "";
  return (
    <ol class="timeline">
      {moments.flatMap((moment, place) => {
        const told = moment.time === null ? null : local(moment.time);
        const today = told?.slice(0, 10) ?? "at a time that is not known";
        const begins = today !== day;
        day = today;
        const alert = alertOf(moment, incident);
        const sort = alert === null ? "change" : `alert ${(alert.severity ?? "").toLowerCase()}`;
        return [
          begins ? (
            <li key={`day ${place}`} class="day">
              {today}
            </li>
          ) : null,
          <li key={place} class={sort}>
            <time dateTime={moment.time ?? undefined} title={moment.time ?? undefined}>
              {told?.slice(11) ?? ""}
            </time>
            <span class="dot" />
            <div>
              {alert === null ? (
                <span class="event">{visible(moment.event)}</span>
              ) : (
                <>
                  <span class="event">{visible(moment.event.slice(ALERT.length))}</span>
                  <span class="unseen">, alert of severity {alert.severity ?? "not known"}</span>{" "}
                  {alert.compromised_entity ? (
                    <a class="quiet" href={entityLink(alert.compromised_entity)}>
                      {visible(alert.compromised_entity)}
                    </a>
                  ) : null}
                </>
              )}
              <Words of={moment} incident={incident} />
            </div>
          </li>,
        ];
      })}
    </ol>
  );
}

/** The alert that a moment tells of; null for one of another kind. */
function alertOf(moment: Moment, incident: IncidentDetail): Alert | null {
  if (!moment.event.startsWith(ALERT)) {
    return null;
  }
  const name = moment.event.slice(ALERT.length);
  const named = incident.alerts.filter((alert) => alert.name === name);
  return named.find((alert) => (alert.start_time ?? alert.time) === moment.time) ?? named[0] ?? null;
}

/** What was written at that moment: the comment of the same time. */
function Words({ of, incident }: { of: Moment; incident: IncidentDetail }): JSX.Element | null {
  const said = of.event.startsWith("Comment")
    ? incident.comments.find((comment) => comment.time === of.time)
    : undefined;
  return said === undefined ? null : <div class="quiet">“{visible(said.message ?? "")}”</div>;
}
