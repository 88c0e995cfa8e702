// What is known of incidents like this one: past ones with how they were closed, and the steps of playbooks, each with
// what it shares with this incident.
import type { JSX } from "preact";
import { type Look, useLook } from "../look.ts";
import { unmarked } from "../marks.ts";
import { signsOf } from "../outside.ts";
import { Markdown } from "../parts/markdown.tsx";
import { HowFound, Reading } from "../parts/reading.tsx";
import { Severity, Time } from "../parts/signs.tsx";
import type { Hit, IncidentDetail, Knowledge } from "../tool_rows.ts";
import { visible } from "../visible.ts";

const MOST = 4;
/** Parts of playbooks that are looked through for steps, and how many of one are shown. */
const LOOKED = 12;
const MOST_OF_ONE = 2;
const MOST_SHARED = 3;
const LONGEST_QUERY = 1_000;

export function Like({ incident }: { incident: IncidentDetail }): JSX.Element {
  const words = wordsOf(incident);
  const like = useLook<Knowledge>("search_knowledge_base", {
    like_incident: String(incident.number),
    collection: "sentinel_incidents",
    limit: MOST,
  });
  // One that was not brought into the knowledge base is compared by its own words.
  const unknown = like.refusal?.reason === "invalid_argument";
  const byWords = useLook<Knowledge>(
    "search_knowledge_base",
    unknown ? { query: words, collection: "sentinel_incidents", limit: MOST } : null,
  );
  const steps = useLook<Knowledge>("search_knowledge_base", { query: words, collection: "playbooks", limit: LOOKED });
  const past: Look<Knowledge> = unknown ? byWords : like;
  return (
    <>
      <Reading id="playbook" title="Steps of playbooks" look={steps}>
        {(found) => (
          <>
            <Hits knowledge={found.result} hits={stepsOf(found.result.hits)} none="No playbook has a step for it." />
            <HowFound of={found} remarks={found.result.remarks} />
          </>
        )}
      </Reading>
      <Reading id="past" title="Past incidents like it" look={past}>
        {(found) => (
          <>
            {unknown ? (
              <p class="quiet in">
                {visible(like.refusal?.detail ?? "")} Compared by its title, tactics and techniques instead.
              </p>
            ) : null}
            <Hits
              knowledge={found.result}
              hits={found.result.hits.filter((hit) => hit.document_id !== `incident-${incident.number}`)}
              none="No past incident is like it."
            />
            <p class="label in">
              {found.result.freshness.incidents_as_of === null ? (
                <>
                  No past incident was read in yet: that is done in <a href="#/knowledge">Knowledge</a>.
                </>
              ) : (
                <>
                  Past incidents as of <Time at={found.result.freshness.incidents_as_of} />.
                </>
              )}
            </p>
            <HowFound of={found} remarks={found.result.remarks} />
          </>
        )}
      </Reading>
    </>
  );
}

/** What an attacker may have written is no good word to search by. */
function isOrdinary(name: string | null): boolean {
  return name !== null && signsOf(name).length === 0;
}

/** The incident in words to search by: title, names of its alerts, tactics as words, techniques. */
function wordsOf(incident: IncidentDetail): string {
  const tactics = incident.tactics.map((tactic) => tactic.replace(/(?<=[a-z])(?=[A-Z])/g, " "));
  const alerts = incident.alerts.flatMap((alert) => (isOrdinary(alert.name) ? [alert.name ?? ""] : []));
  const words = [incident.title ?? "", ...new Set(alerts), ...tactics, ...incident.techniques];
  return words.join(" ").trim().slice(0, LONGEST_QUERY) || "incident";
}

function Hits(props: { knowledge: Knowledge; hits: Hit[]; none: string }): JSX.Element {
  const { freshness } = props.knowledge;
  return (
    <>
      {props.hits.length === 0 ? (
        <p class="in">
          {props.none} {freshness.incidents} past incidents and {freshness.playbooks} playbooks were searched.
        </p>
      ) : null}
      <ul class="hits">
        {props.hits.map((hit, place) => (
          <li key={hit.citation}>
            <HitView hit={hit} open={place === 0 && !hit.document_id.startsWith("incident-")} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** What is a step by its form, a list or a table, before what only tells; a few of each playbook. */
function stepsOf(hits: Hit[]): Hit[] {
  const acts = (hit: Hit): boolean => /^\s*(?:\d+[.)]|[-*|])\s/m.test(hit.text);
  const kept = new Map<string, number>();
  return [...hits.filter(acts), ...hits.filter((hit) => !acts(hit))]
    .filter((hit) => {
      const before = kept.get(hit.document_id) ?? 0;
      kept.set(hit.document_id, before + 1);
      return before < MOST_OF_ONE;
    })
    .slice(0, MOST);
}

function HitView({ hit, open }: { hit: Hit; open: boolean }): JSX.Element {
  const number = /^incident-(\d+)$/.exec(hit.document_id)?.[1];
  return (
    <>
      {number === undefined ? (
        <a class="strong" href={`#/knowledge/${encodeURIComponent(hit.document_id)}`}>
          {visible(hit.citation)}
        </a>
      ) : (
        <>
          <a href={`#/incidents/${number}`}>
            #{number} {visible(hit.title)}
          </a>{" "}
          <Severity of={hit.severity || null} /> {visible(hit.status)}
          {hit.classification === "" ? "" : `, closed as ${visible(hit.classification)}`}, <Time at={hit.time} />
        </>
      )}
      <p class="reason">{why(hit)}</p>
      <details open={open}>
        <summary>{number === undefined ? "Read the step" : "Read what is kept of it"}</summary>
        <Markdown marked={unmarked(hit.text)} />
      </details>
    </>
  );
}

function why(hit: Hit): string {
  const shared: [string, string[]][] = [
    ["the same entities", hit.why.entities],
    ["the same techniques", hit.why.techniques],
    ["the same tactics", hit.why.tactics],
    ["the words", hit.why.words],
  ];
  const told = shared
    .filter(([, each]) => each.length > 0)
    .map(([words, each]) => {
      const more = each.length > MOST_SHARED ? ` and ${each.length - MOST_SHARED} more` : "";
      return `${words} ${each.slice(0, MOST_SHARED).map(visible).join(", ")}${more}`;
    });
  return told.length === 0 ? "Like it in meaning." : `It has ${told.join("; ")}.`;
}
