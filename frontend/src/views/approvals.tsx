// Calls that wait for a person: what would happen, with exactly what, why a person is asked, and what was read before.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { moment } from "../parts/tool_status.tsx";
import { shown, visible } from "../visible.ts";
import type { Approval, Label, Raise, Violation } from "../wire.ts";

const EFFECTS: Record<string, string> = {
  read: "only reads",
  write: "changes something in your own systems",
  external: "sends data out, or acts outside of your systems",
};
const STATES = {
  pending: "waits for a decision",
  approved: "approved, not used yet",
  denied: "denied",
  used: "approved and used",
  expired: "expired",
};

/** `waiting` is another list after each change of any approval. */
export function ApprovalsView(props: {
  id: string | null;
  go: (id: string | null) => void;
  waiting: Approval[];
}): JSX.Element {
  const { id, go, waiting: change } = props;
  return id === null ? (
    <ApprovalList change={change} />
  ) : (
    <OneApproval key={id} id={id} back={() => go(null)} change={change} />
  );
}

function ApprovalList({ change }: { change: Approval[] }): JSX.Element {
  const [found, setFound] = useState<Approval[] | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    ask<{ approvals: Approval[] }>("GET", "/approvals").then(
      (page) => {
        setFound(page.approvals);
        setRefusal(null);
      },
      (error) => setRefusal(asRefusal(error)),
    );
  }, [change]);
  const waiting = found?.filter((each) => each.state === "pending") ?? [];
  const rest = found?.filter((each) => each.state !== "pending") ?? [];
  return (
    <>
      <h1>Approvals</h1>
      <RefusalNotice refusal={refusal} />
      {found !== null && waiting.length === 0 ? <p>Nothing waits for a decision.</p> : null}
      <Listed title="Waiting" approvals={waiting} />
      <Listed title="Decided or over" approvals={rest} />
    </>
  );
}

function Listed({ title, approvals }: { title: string; approvals: Approval[] }): JSX.Element | null {
  return approvals.length === 0 ? null : (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="listed">
        {approvals.map((each) => (
          <li key={each.approval_id}>
            <a href={`#/approvals/${encodeURIComponent(each.approval_id)}`}>{visible(each.tool)}</a>{" "}
            <span>{STATES[each.state]}</span>{" "}
            <span class="quiet">
              {each.state === "pending" ? `until ${moment(each.ends_at, "")}, ` : ""}asked {moment(each.asked_at, "")}{" "}
              by {askerOf(each)}, rule {visible(each.rule_id)}
            </span>
            <div>{withWhat(each)}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

const LONGEST = 200;

/** The arguments in one line, by which two calls of one tool can be told apart. */
function withWhat({ arguments: given }: Approval): string {
  if (given === null) {
    return "with what is not shown to you";
  }
  const told = Object.entries(given).map(([name, value]) => `${visible(name)}: ${shown(value)}`);
  const line = told.join(", ").replaceAll("\n", " ");
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line || "without arguments";
}

function askerOf(approval: Approval): string {
  return approval.reader === null
    ? `the agent, session ${visible(approval.session_id).slice(0, 8)}`
    : `${visible(approval.reader)}, without the agent`;
}

function OneApproval(props: { id: string; back: () => void; change: Approval[] }): JSX.Element {
  const { id, back, change } = props;
  const [found, setFound] = useState<Approval | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const path = `/approvals/${encodeURIComponent(id)}`;
  useEffect(() => {
    ask<Approval>("GET", path).then(setFound, (error) => setRefusal(asRefusal(error)));
  }, [path, change]);
  return (
    <>
      <button type="button" onClick={back}>
        All approvals
      </button>
      <RefusalNotice refusal={refusal} />
      {found === null ? null : (
        <article class="approval">
          <h1>{visible(found.tool)}</h1>
          <p role="status">
            <strong>{STATES[found.state]}</strong>, until {moment(found.ends_at, "")}
          </p>
          <Decided approval={found} />
          <h2>What will happen</h2>
          <p>
            {found.reader === null ? "The agent" : `${visible(found.reader)}, without the agent,`} calls{" "}
            <code>{visible(found.tool)}</code>, which {EFFECTS[found.effect] ?? visible(found.effect)}.{" "}
            {visible(found.description)}
          </p>
          <h2>With exactly this</h2>
          <Arguments approval={found} />
          <h2>Why a person is asked</h2>
          <ul>
            {reasons(found).map((reason) => (
              <li key={reason}>{visible(reason)}</li>
            ))}
          </ul>
          <h2>{found.reader === null ? "What the agent had read before" : "What had been read before"}</h2>
          <History approval={found} />
          <h2>Who asks</h2>
          <p>
            The key {visible(found.key_id)}
            {found.person === "" ? ", by itself," : ` for ${visible(found.person)}`} in session{" "}
            {visible(found.session_id)}, at {moment(found.asked_at, "")}. The tool server {visible(found.server)} would
            run it.
          </p>
          {found.words === "" ? null : (
            <>
              <p>Whose last words were:</p>
              <blockquote>{visible(found.words)}</blockquote>
            </>
          )}
          <Decide approval={found} path={path} onDecided={setFound} />
        </article>
      )}
    </>
  );
}

function Decided({ approval }: { approval: Approval }): JSX.Element | null {
  const ruling = approval.decision;
  return ruling === null ? null : (
    <p>
      {approval.state === "denied" ? "Denied" : "Approved"} by {visible(ruling.by)} at {moment(ruling.at, "")}
      {ruling.comment === "" ? "" : `: ${visible(ruling.comment)}`}
      {approval.used_at === null ? "" : `. Used at ${moment(approval.used_at, "")}`}
    </p>
  );
}

function Arguments({ approval }: { approval: Approval }): JSX.Element {
  if (approval.arguments === null) {
    return <p>The arguments are not shown to you: the policy names others who may decide.</p>;
  }
  const given = Object.entries(approval.arguments);
  return given.length === 0 ? (
    <p>It takes no arguments.</p>
  ) : (
    <Facts
      facts={given.map(([name, value]) => {
        const label = approval.argument_labels[name];
        const by = approval.named.includes(name) ? ", named by the person" : "";
        return [label === undefined ? name : `${name} (${spelled(label)}${by})`, shown(value)];
      })}
    />
  );
}

function History({ approval }: { approval: Approval }): JSX.Element {
  return (
    <>
      <p>The conversation holds data of the level {held(approval.context)}</p>
      {approval.raised_by.length === 0 ? (
        <p>No earlier result of this session raised its labels.</p>
      ) : (
        <Raises raises={approval.raised_by} />
      )}
      <p>All that the agent may remember is of the level {held(approval.memory)}</p>
      <Raises raises={approval.memory_raised_by} />
    </>
  );
}

function held(label: Label): string {
  const attacker = label.integrity === "UNTRUSTED" ? "; some of it may be written by an attacker." : ".";
  return visible(spelled(label)) + attacker;
}

function Raises({ raises }: { raises: Raise[] }): JSX.Element | null {
  return raises.length === 0 ? null : (
    <ol>
      {raises.map((each) => (
        <li key={each.audit_id}>
          {moment(each.at, "")}: <code>{visible(each.tool)}</code> raised it to {visible(spelled(each.label))}{" "}
          <span class="quiet">audit record {visible(each.audit_id)}</span>
        </li>
      ))}
    </ol>
  );
}

function Decide(props: {
  approval: Approval;
  path: string;
  onDecided: (approval: Approval) => void;
}): JSX.Element | null {
  const { approval } = props;
  const [comment, setComment] = useState("");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  if (approval.state !== "pending") {
    return null;
  }
  if (!approval.may_decide) {
    const named = approval.approvers.map(visible).join(", ");
    const others = named === "" ? "Another person decides this one." : `It may be decided by: ${named}.`;
    const asker = approval.reader === null ? "The agent asked this for you" : "You asked for this yourself";
    return <p>{approval.own ? `${asker}, so another person decides it.` : others}</p>;
  }
  const decide = async (decision: "approve" | "deny"): Promise<void> => {
    setBusy(true);
    try {
      const decided = await ask<Approval>("POST", `${props.path}/decision`, { decision, comment });
      props.onDecided({ ...approval, ...decided });
    } catch (error) {
      setRefusal(asRefusal(error));
      setBusy(false);
    }
  };
  return (
    <section aria-label="Decide">
      <h2>Decide, for this one call, with exactly this data, once</h2>
      {approval.outdated ? <p>The policy has changed since: a yes lets nothing run any more.</p> : null}
      <label>
        Comment <span class="quiet">(kept on record)</span>
        <input value={comment} maxLength={2_000} onInput={(event) => setComment(event.currentTarget.value)} />
      </label>
      <RefusalNotice refusal={refusal} />
      <p class="row">
        <button type="button" disabled={busy} onClick={() => void decide("deny")}>
          Deny
        </button>
        <button type="button" class="main" disabled={busy} onClick={() => void decide("approve")}>
          Approve
        </button>
      </p>
    </section>
  );
}

function reasons(approval: Approval): string[] {
  const why = approval.why === "the rule requires it";
  return [
    ...(why ? ["The policy lets nobody make this call without a person's approval."] : []),
    ...approval.violations.map(tooMuch),
    `Rule ${approval.rule_id}, where ${approval.condition}; the result is ${approval.taint_level}.`,
  ];
}

function tooMuch(violation: Violation): string {
  const what = violation.parameter || "The call itself";
  const link = violation.link ? " A link in it could carry data out." : "";
  return `${what} carries ${spelled(violation.label)}, and this tool takes at most ${spelled(violation.accepts)}.${link}`;
}

function spelled(label: Label): string {
  return `${label.sensitivity}, ${label.integrity}`;
}
