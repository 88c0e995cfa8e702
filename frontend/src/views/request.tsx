// A call that is held back until a person says yes, where it was asked: what would be written, who decides, and what
// became of it. Waiting is not failing.
import type { ComponentChildren, JSX } from "preact";
import { ask } from "../api.ts";
import { type Rows, useLook, useWork } from "../look.ts";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Owner, Severity, Time } from "../parts/signs.tsx";
import { CHANGES, doingOf, incidentOf, spaced, writtenBy } from "../requests.ts";
import type { DetailSummary, IncidentDetail } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Approval, RequestState, ToolTrace } from "../wire.ts";

const AGAIN = "do it now";

/** `approval` is there while it waits and the person may look at it. */
export function RequestCard(props: {
  tool: ToolTrace;
  state: RequestState;
  approval: Approval | undefined;
  /** What was asked when the call was held back. */
  question: string;
  onAsk: (question: string) => void;
}): JSX.Element {
  const { tool, state, approval } = props;
  const [run, busy, refusal] = useWork();
  const doing = doingOf({ tool: tool.name, arguments: tool.arguments, effect: "write" });
  // A change stands in the conversation and is named by what it is; a reading is asked for again.
  const again = (): void => props.onAsk(CHANGES.has(tool.name) ? AGAIN : props.question);
  const decide = (decision: "approve" | "deny"): void =>
    run(async () => {
      await ask("POST", `/approvals/${encodeURIComponent(state.approval_id)}/decision`, { decision, comment: "" });
      if (decision === "approve") {
        again();
      }
    });
  const mine = state.state === "pending" && approval?.may_decide === true;
  const live = state.state === "pending" || state.state === "approved";
  const number = incidentOf(tool.arguments);
  const workspace = typeof tool.arguments.workspace === "string" ? tool.arguments.workspace : undefined;
  const detail = useLook<Rows<IncidentDetail, DetailSummary>>(
    "get_incident_detail",
    number === null || !live ? null : { incident: number, workspace },
  );
  const rows = detail.found?.result.rows ?? [];
  const incident = live && rows.length === 1 ? (rows[0] ?? null) : null;
  return (
    <section
      class={live ? "card request" : "card request over"}
      aria-busy={live && detail.busy}
      aria-label={`Request: ${visible(doing)}`}
    >
      <header>
        <h3>{visible(doing.slice(0, 1).toUpperCase() + doing.slice(1))}</h3>
        <span class="push">
          <StateChip state={state} mine={mine} />
        </span>
      </header>
      {incident === null ? null : (
        <p class="quiet">
          {visible(incident.title ?? "")}, <Severity of={incident.severity} />, <Owner of={incident.owner} />
        </p>
      )}
      <Difference changes={writtenBy(tool.arguments)} compares={number !== null && live} incident={incident} />
      <div class="in">
        <p role="status">
          <Said state={state} mine={mine} ends={approval?.ends_at ?? null} />
        </p>
        <RefusalNotice refusal={refusal} />
        {mine ? (
          <div class="row">
            <button type="button" class="main" disabled={busy} onClick={() => decide("approve")}>
              Confirm, and do it
            </button>
            <button type="button" disabled={busy} onClick={() => decide("deny")}>
              Do not
            </button>
            <a href={`#/approvals/${encodeURIComponent(state.approval_id)}`}>All that is behind it</a>
          </div>
        ) : null}
        {state.state === "approved" ? (
          <button type="button" class="main" onClick={again}>
            Do it now
          </button>
        ) : null}
      </div>
    </section>
  );
}

export function StateChip({ state, mine }: { state: Pick<RequestState, "state">; mine: boolean }): JSX.Element {
  switch (state.state) {
    case "pending":
      return (
        <span class="chip warn">
          <Icon name="clock" />
          {mine ? "waits for you" : "waits"}
        </span>
      );
    case "approved":
      return (
        <span class="chip ok">
          <Icon name="check" />
          approved
        </span>
      );
    case "used":
      return (
        <span class="chip ok">
          <Icon name="check" />
          done
        </span>
      );
    case "denied":
      return <span class="chip bad">denied</span>;
    case "expired":
      return <span class="chip">over</span>;
  }
}

function Said({ state, mine, ends }: { state: RequestState; mine: boolean; ends: string | null }): JSX.Element {
  const ruling = state.decision;
  const by = ruling === null ? "" : visible(ruling.by);
  const comment = ruling === null || ruling.comment === "" ? "" : `: “${visible(ruling.comment)}”`;
  switch (state.state) {
    case "pending":
      return mine ? (
        <>
          Nothing is done yet. It is done with exactly this, once, when you confirm it before{" "}
          <Time short at={ends} none="it is over" />.
        </>
      ) : (
        <>
          Nothing is done yet. Another person decides; you see it here as soon as they have. Asked{" "}
          <Time short at={state.asked_at} />.
        </>
      );
    case "approved":
      return (
        <>
          {by} approved it{comment}, for exactly this, once.
        </>
      );
    case "used":
      return (
        <>
          {by} approved it{comment}, and it ran at <Time short at={state.used_at} />.
        </>
      );
    case "denied":
      return (
        <>
          {by} denied it{comment}. Nothing was done.
        </>
      );
    case "expired":
      return <>Nobody decided in time. Nothing was done; ask for it again.</>;
  }
}

/** What stands now in the field that an argument writes. */
const NOW: Record<string, (incident: IncidentDetail) => string | null> = {
  status: (incident) => incident.status,
  severity: (incident) => incident.severity,
  owner: (incident) => incident.owner ?? "no owner",
  classification: (incident) => incident.classification,
  classification_reason: (incident) => incident.classification_reason,
  classification_comment: (incident) => incident.classification_comment,
};
const STAYS = ["status", "severity", "owner", "classification"];

/** Fields before and after, and what stays as it is; `incident` is null while it is not known. */
export function Difference<T extends { name: string; label: string; after: string; before?: string }>(props: {
  changes: T[];
  compares: boolean;
  incident: IncidentDetail | null;
  from?: (change: T) => ComponentChildren;
}): JSX.Element {
  const { changes, incident, from } = props;
  const compares =
    changes.some((change) => change.before !== undefined) ||
    (props.compares && changes.some((change) => Object.hasOwn(NOW, change.name)));
  const stays = STAYS.filter((name) => !changes.some((change) => change.name === name));
  return (
    <table class="difference">
      <thead>
        <tr>
          <th scope="col">Field</th>
          {compares ? <th scope="col">Now</th> : null}
          <th scope="col">{compares ? "After" : "Value"}</th>
          {from === undefined ? null : <th scope="col">Where it comes from</th>}
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr key={change.name}>
            <th scope="row">{visible(change.label)}</th>
            {compares ? (
              <td class="quiet" data-label="now">
                {change.before ?? nowOf(incident, change.name)}
              </td>
            ) : null}
            <td class="after long words" data-label={compares ? "after" : undefined}>
              {change.after}
            </td>
            {from === undefined ? null : <td class="long">{from(change)}</td>}
          </tr>
        ))}
        {compares && incident !== null && stays.length > 0 ? (
          <tr class="stays">
            <th scope="row">{stays.map((name) => spaced(name)).join(", ")}</th>
            <td colSpan={3}>
              {stays.length === 1 ? "stays as it is" : "stay as they are"}:{" "}
              {stays.map((name) => nowOf(incident, name)).join(", ")}
            </td>
          </tr>
        ) : null}
      </tbody>
    </table>
  );
}

function nowOf(incident: IncidentDetail | null, name: string): string {
  if (incident === null || !Object.hasOwn(NOW, name)) {
    return "…";
  }
  return visible(NOW[name]?.(incident) ?? "not set");
}
