// A call that is held back until a person says yes, where it was asked: what would be written, who decides, and what
// became of it. Waiting is not failing.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Time } from "../parts/signs.tsx";
import { doingOf, spaced } from "../requests.ts";
import { shown, visible } from "../visible.ts";
import type { Approval, RequestState, ToolTrace } from "../wire.ts";

const AGAIN = "do it now";
const CHANGES = new Set(["update_incident", "add_incident_comment"]);

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
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const doing = doingOf({ tool: tool.name, arguments: tool.arguments, effect: "write" });
  // A change stands in the conversation and is named by what it is; a reading is asked for again.
  const again = (): void => props.onAsk(CHANGES.has(tool.name) ? AGAIN : props.question);
  const decide = async (decision: "approve" | "deny"): Promise<void> => {
    setBusy(true);
    try {
      await ask("POST", `/approvals/${encodeURIComponent(state.approval_id)}/decision`, { decision, comment: "" });
      setRefusal(null);
      if (decision === "approve") {
        again();
      }
    } catch (error) {
      setRefusal(asRefusal(error));
    }
    setBusy(false);
  };
  const mine = state.state === "pending" && approval?.may_decide === true;
  return (
    <section class="card request" aria-label={`Request: ${visible(doing)}`}>
      <header>
        <h3>{visible(doing.slice(0, 1).toUpperCase() + doing.slice(1))}</h3>
        <span class="push">
          <StateChip state={state} mine={mine} />
        </span>
      </header>
      <table class="difference">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Will be</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(tool.arguments).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{visible(spaced(name))}</th>
              <td class="after long">{shown(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="in">
        <p role="status">
          <Said state={state} mine={mine} ends={approval?.ends_at ?? null} />
        </p>
        <RefusalNotice refusal={refusal} />
        {mine ? (
          <div class="row">
            <button type="button" class="main" disabled={busy} onClick={() => void decide("approve")}>
              Confirm, and do it
            </button>
            <button type="button" disabled={busy} onClick={() => void decide("deny")}>
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
          <Time at={ends} none="it is over" />.
        </>
      ) : (
        <>
          Nothing is done yet. Another person decides; you see it here as soon as they have. Asked{" "}
          <Time at={state.asked_at} />.
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
          {by} approved it{comment}, and it ran at <Time at={state.used_at} />.
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
