// Requests that wait for a person, reviewed like a change: who wants to do what, what will be written in place of what,
// where each value comes from, the words that were said, and what was read before.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { incidentLink } from "../incident_address.ts";
import { type Seen as Found, type Rows, useAnswer, useLook, useWork } from "../look.ts";
import { outsideTexts, signsOf } from "../outside.ts";
import { Card } from "../parts/card.tsx";
import { Icon } from "../parts/icon.tsx";
import { breakable } from "../parts/linked.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Outside } from "../parts/outside.tsx";
import { State } from "../parts/reading.tsx";
import { Owner, Severity, Status, Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { moment } from "../parts/tool_status.tsx";
import { askerOf, type Change, changesOf, incidentOf, titleOf } from "../requests.ts";
import { span } from "../times.ts";
import type { Alert, DetailSummary, IncidentDetail } from "../tool_rows.ts";
import { shown, visible } from "../visible.ts";
import type { Approval, Label, Raise, Session, Violation } from "../wire.ts";
import { Difference, StateChip } from "./request.tsx";

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
export function ApprovalsView(props: { id: string | null; session: Session; waiting: Approval[] }): JSX.Element {
  const { id, session, waiting: change } = props;
  return id === null ? (
    <ApprovalList change={change} />
  ) : (
    <OneApproval key={id} id={id} session={session} change={change} />
  );
}

function ApprovalList({ change }: { change: Approval[] }): JSX.Element {
  const approvals = useAnswer<{ approvals: Approval[] }>("/approvals", change);
  const found = approvals.found?.approvals ?? null;
  const waiting = found?.filter((each) => each.state === "pending") ?? [];
  const rest = (found?.filter((each) => each.state !== "pending") ?? []).sort(
    (one, other) => Date.parse(endedAt(other)) - Date.parse(endedAt(one)),
  );
  return (
    <div class="stack">
      <h1>{waiting.length === 0 ? "Approvals" : `${waiting.length} waiting`}</h1>
      <State of={approvals} shown={found !== null} />
      {found !== null && waiting.length === 0 ? (
        <p class="card empty">
          Nothing waits for a decision. Whoever asks for a change that needs you brings it here, and the tab says so.
        </p>
      ) : null}
      <Listed title="Waiting" approvals={waiting} />
      <Listed title="Decided or over" approvals={rest} />
    </div>
  );
}

/** When it was decided, or over. */
function endedAt(approval: Approval): string {
  return approval.decision?.at ?? approval.ends_at;
}

function Listed({ title, approvals }: { title: string; approvals: Approval[] }): JSX.Element | null {
  return approvals.length === 0 ? null : (
    <Card title={title} note={approvals.length}>
      <Table
        class="fold"
        rows={approvals}
        keyOf={(each) => each.approval_id}
        columns={[
          {
            title: "Request",
            names: true,
            class: "wide long",
            cell: (each) => (
              <>
                <a class="title" href={`#/approvals/${encodeURIComponent(each.approval_id)}`}>
                  {visible(titleOf(each))}
                </a>
                <div class="reason">
                  {each.words === "" ? withWhat(each) : `“${visible(each.words).slice(0, LONGEST)}”`}
                </div>
              </>
            ),
          },
          { title: "State", cell: (each) => <StateChip state={each} mine={each.may_decide} /> },
          { title: "Asked", cell: (each) => <Time at={each.asked_at} /> },
          {
            title: title === "Waiting" ? "Ends" : "Decided by",
            class: "end",
            cell: (each) => (
              <>
                {each.state === "pending" ? null : (
                  <>{visible(each.decision === null ? "nobody" : deciderOf(each.decision))}, </>
                )}
                <Time at={endedAt(each)} />
              </>
            ),
          },
        ]}
      />
    </Card>
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

type Detail = Rows<IncidentDetail, DetailSummary>;

function OneApproval(props: { id: string; session: Session; change: Approval[] }): JSX.Element {
  const { id, change, session } = props;
  const [found, setFound] = useState<Approval | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const path = `/approvals/${encodeURIComponent(id)}`;
  useEffect(() => {
    ask<Approval>("GET", path).then(setFound, (error) => setRefusal(asRefusal(error)));
  }, [path, change]);
  const number = found === null ? null : incidentOf(found.arguments);
  const reads = session.roles.includes("analyst");
  const workspace = typeof found?.arguments?.workspace === "string" ? found.arguments.workspace : undefined;
  const detail = useLook<Detail>(
    "get_incident_detail",
    number === null || !reads ? null : { incident: number, workspace, detail: "full" },
  );
  const rows = detail.found?.result.rows ?? [];
  const incident = rows.length === 1 ? (rows[0] ?? null) : null;
  if (found === null) {
    return (
      <>
        <RefusalNotice refusal={refusal} />
        {refusal === null ? <p class="quiet">Reading...</p> : <a href="#/approvals">All approvals</a>}
      </>
    );
  }
  return (
    <article class="review approval">
      <div>
        <Decide approval={found} incident={incident} path={path} onDecided={setFound} />
        <Written approval={found} incident={incident} reads={reads} look={detail.refusal} />
        <Words approval={found} />
        <ReadBefore approval={found} incident={incident} />
        {detail.found === null || incident === null ? null : (
          <EvidenceAbout incident={incident} found={detail.found} workspace={workspace} />
        )}
        <Behind approval={found} />
      </div>
      <Course approval={found} />
    </article>
  );
}

/** Who asks what, in a sentence, and the decision beside it. */
function Decide(props: {
  approval: Approval;
  incident: IncidentDetail | null;
  path: string;
  onDecided: (approval: Approval) => void;
}): JSX.Element {
  const { approval, incident } = props;
  const [comment, setComment] = useState("");
  const [run, busy, refusal] = useWork();
  const [lifted, setLifted] = useState(false);
  const decide = (decision: "approve" | "deny" | "lift"): void =>
    run(async () => {
      const decided = await ask<Approval>("POST", `${props.path}/decision`, { decision, comment });
      setLifted(decision === "lift");
      props.onDecided({ ...approval, ...decided });
    });
  const open = approval.state === "pending";
  const doubtful = changesOf(approval).some((change) => change.from === "outside");
  const title = visible(titleOf(approval));
  const { subject } = approval;
  return (
    <section class="decide" aria-label="Decide">
      <div class="row">
        <div>
          <h1>{title.slice(0, 1).toUpperCase() + title.slice(1)}</h1>
          <p class="quiet">
            {incident === null && subject !== null ? (
              <>
                {visible(subject.name)}, {Object.values(subject.state).map(shown).join(", ")}.{" "}
              </>
            ) : null}
            {incident === null ? null : (
              <>
                {approval.reader === null ? "" : `${visible(incident.title ?? "")}, `}
                <Severity of={incident.severity} />, {visible(incident.status ?? "not known")},{" "}
                <Owner of={incident.owner} />.{" "}
              </>
            )}
            Asked <Time short at={approval.asked_at} />, ends <Time short at={approval.ends_at} />. For this one call,
            with exactly this data, once.
          </p>
        </div>
        {open && approval.may_decide ? (
          <div class="row buttons">
            <button type="button" disabled={busy} onClick={() => decide("deny")}>
              Deny
            </button>
            <button type="button" class={doubtful ? "" : "main"} disabled={busy} onClick={() => decide("approve")}>
              <Icon name="check" />
              Approve
            </button>
          </div>
        ) : null}
      </div>
      <p role="status" class="row">
        {open ? <Icon name="clock" /> : <StateChip state={approval} mine={false} />}
        <strong>{STATES[approval.state]}</strong>
        {approval.decision === null ? null : (
          <span>
            by {visible(deciderOf(approval.decision))} at <Time at={approval.decision.at} />
            {approval.decision.comment === "" ? "" : `: ${visible(approval.decision.comment)}`}
          </span>
        )}
      </p>
      {approval.may_lift ? (
        <p class="row">
          {lifted ? (
            "The no binds no more: the next such call is asked about."
          ) : (
            <>
              <span class="quiet">The same call is refused for a while without asking anybody again.</span>
              <button type="button" disabled={busy} onClick={() => decide("lift")}>
                Take the no back
              </button>
            </>
          )}
        </p>
      ) : null}
      {open && approval.outdated ? (
        <p class="notice">
          <Icon name="warn" />
          <span>The policy has changed since: a yes lets nothing run any more.</span>
        </p>
      ) : null}
      {open && approval.may_decide ? (
        <label>
          <span class="unseen">Comment, kept on record</span>
          <input
            value={comment}
            maxLength={2_000}
            placeholder={`Note to ${visible(askerOf(approval))}, kept on record`}
            onInput={(event) => setComment(event.currentTarget.value)}
          />
        </label>
      ) : null}
      {open && !approval.may_decide ? <p>{whyNot(approval)}</p> : null}
      <RefusalNotice refusal={refusal} />
    </section>
  );
}

function whyNot(approval: Approval): string {
  const named = approval.approvers.map(visible).join(", ");
  const others = named === "" ? "Another person decides this one." : `It may be decided by: ${named}.`;
  const asker = approval.reader === null ? "The agent asked this for you" : "You asked for this yourself";
  return approval.own ? `${asker}, so another person decides it.` : others;
}

/** Every field that will be written, before and after, and where each value comes from. */
function Written(props: {
  approval: Approval;
  incident: IncidentDetail | null;
  reads: boolean;
  look: Refusal | null;
}): JSX.Element {
  const { approval, incident } = props;
  const changes = changesOf(approval);
  const number = incidentOf(approval.arguments);
  return (
    <Card
      id="written"
      title={approval.effect === "read" ? "What will be read with" : "What will be written"}
      note={
        <>
          {number === null ? "" : `incident ${visible(number)}, `}
          {changes.length === 1 ? "one field" : `${changes.length} fields`}
        </>
      }
    >
      {approval.arguments === null ? (
        <p>The arguments are not shown to you: the policy names others who may decide.</p>
      ) : changes.length === 0 ? (
        <p>It takes no arguments.</p>
      ) : (
        <Difference
          changes={changes}
          compares={number !== null}
          incident={incident}
          from={(change) => (
            <>
              {change.from === "outside" ? (
                <span class="chip warn">
                  <Icon name="warn" />
                  {FROM.outside}
                </span>
              ) : (
                FROM[change.from]
              )}
              <div class="label">label {labelOf(approval, change.name)}</div>
            </>
          )}
        />
      )}
      {number !== null && incident === null && (props.reads || approval.subject === null) ? (
        <footer>
          {props.reads
            ? props.look === null
              ? "Reading what stands there now..."
              : visible(props.look.detail)
            : "What stands there now is for people with the role analyst."}
        </footer>
      ) : null}
    </Card>
  );
}

const FROM: Record<Change["from"], string> = {
  words: "stands in the words below",
  named: "named by the person",
  trusted: "set by the agent, from what nobody outside can write",
  filled: "filled in by the tool",
  outside: "may come from text that somebody outside wrote",
};

function labelOf(approval: Approval, name: string): string {
  const label = approval.argument_labels[name];
  return label === undefined ? "" : visible(spelled(label));
}

function Words({ approval }: { approval: Approval }): JSX.Element | null {
  return approval.words === "" ? null : (
    <Card
      id="words"
      title={<>In the words of {visible(askerOf(approval))}</>}
      note={
        <>
          said last, before <Time at={approval.asked_at} />
        </>
      }
    >
      <div class="in">
        <blockquote class="said">{visible(approval.words)}</blockquote>
      </div>
    </Card>
  );
}

/** What had been read before, and whether any of it may have steered the call. */
function ReadBefore({ approval, incident }: { approval: Approval; incident: IncidentDetail | null }): JSX.Element {
  const reached = changesOf(approval).some((change) => change.from === "outside");
  const texts = incident === null ? [] : outsideTexts(incident.alerts);
  return (
    <Card
      title={approval.reader === null ? "What the agent had read before" : "What had been read before"}
      side={
        reached ? (
          <span class="chip warn">may have reached a value above</span>
        ) : (
          <span class="chip ok">
            <Icon name="check" />
            each value is the person’s own, or trusted
          </span>
        )
      }
    >
      <div class="in">
        <p>The conversation holds data of the level {held(approval.context)}</p>
        {approval.raised_by.length === 0 ? (
          <p class="quiet">No earlier result of this session raised its labels.</p>
        ) : (
          <Raises raises={approval.raised_by} />
        )}
        <Seen approval={approval} />
        {texts.map((each) => (
          <Outside key={each.text} {...each} place={`${each.place} of this incident`} />
        ))}
        <details>
          <summary>All that the agent may remember is of the level {visible(spelled(approval.memory))}</summary>
          <Raises raises={approval.memory_raised_by} />
        </details>
      </div>
    </Card>
  );
}

/** What the conversation had looked at by then, what is about this very thing first. */
function Seen({ approval: { evidence } }: { approval: Approval }): JSX.Element {
  const sorted = [...evidence].sort((one, other) => Number(other.about) - Number(one.about));
  return sorted.length === 0 ? (
    <p>Nothing had been looked at in this conversation.</p>
  ) : (
    <details open={sorted.some((each) => each.about)}>
      <summary>
        {sorted.length === 1 ? "One reading" : `${sorted.length} readings`} before it,{" "}
        {sorted.filter((each) => each.about).length} of this very thing
      </summary>
      <ol class="steps-of">
        {sorted.map((each) => (
          <li key={each.audit_id}>
            <Icon name={each.about ? "check" : "audit"} />
            <span>
              <code>{visible(each.tool)}</code> {each.about ? "of this very thing" : ""}
              <div class="label">audit record {visible(each.audit_id)}</div>
            </span>
            <span class="when">{moment(each.at, "")}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function held(label: Label): string {
  const attacker = label.integrity === "UNTRUSTED" ? "; some of it may be written by an attacker." : ".";
  return visible(spelled(label)) + attacker;
}

function Raises({ raises }: { raises: Raise[] }): JSX.Element | null {
  return raises.length === 0 ? null : (
    <ol class="steps-of">
      {raises.map((each) => (
        <li key={each.audit_id}>
          <Icon name="audit" />
          <span>
            <code>{visible(each.tool)}</code> raised it to {visible(spelled(each.label))}
            <div class="label">audit record {visible(each.audit_id)}</div>
          </span>
          <span class="when">{moment(each.at, "")}</span>
        </li>
      ))}
    </ol>
  );
}

function EvidenceAbout(props: {
  incident: IncidentDetail;
  found: Found<Detail>;
  workspace: string | undefined;
}): JSX.Element {
  const { incident, workspace } = props;
  const address = workspace === undefined ? incident : { ...incident, workspace };
  return (
    <Card
      id="evidence-about"
      title={<>Evidence about {incident.number}</>}
      note={incident.alerts.length === 1 ? "one alert" : `${incident.alerts.length} alerts`}
      side={<a href={incidentLink(address)}>Open incident</a>}
    >
      {incident.alerts.length === 0 ? <p class="quiet">No alert of it has a row here.</p> : null}
      <Table
        class="fold"
        rows={incident.alerts}
        keyOf={(alert) => alert.alert_id}
        columns={[
          { title: "Severity", cell: (alert) => <Severity of={alert.severity} /> },
          {
            title: "Alert",
            names: true,
            class: "wide long",
            cell: (alert) => (
              <>
                {visible(alert.name ?? "without a name")}
                <AlertWords alert={alert} />
              </>
            ),
          },
          {
            title: "Names",
            class: "long spare",
            cell: (alert) =>
              alert.entities.slice(0, 3).map((each) => <div key={each.name}>{breakable(visible(each.name))}</div>),
          },
          { title: "Status", cell: (alert) => <Status of={alert.status} /> },
          { title: "Recorded", class: "end", cell: (alert) => <Time at={alert.time} /> },
        ]}
      />
    </Card>
  );
}

function AlertWords({ alert }: { alert: Alert }): JSX.Element | null {
  const ordinary = alert.description !== null && signsOf(alert.description).length === 0;
  return ordinary ? <div class="reason">{visible(alert.description ?? "")}</div> : null;
}

/** Why a person is asked, and by which rule: folded, for it is the same for every call of its kind. */
function Behind({ approval }: { approval: Approval }): JSX.Element {
  return (
    <section class="card" aria-label="Rule and audit">
      <details>
        <summary>Why a person is asked, the rule and the audit</summary>
        <div class="in">
          <p>
            {approval.reader === null ? "The agent" : `${visible(approval.reader)}, without the agent,`} calls{" "}
            <code>{visible(approval.tool)}</code>, which {EFFECTS[approval.effect] ?? visible(approval.effect)}.{" "}
            {visible(approval.description)}
          </p>
          <ul class="listed">
            {reasons(approval).map((reason) => (
              <li key={reason}>{visible(reason)}</li>
            ))}
          </ul>
          <p class="label">
            The key {visible(approval.key_id)}
            {approval.person === "" ? ", by itself," : ` for ${visible(approval.person)}`} in session{" "}
            {visible(approval.session_id)}, at {moment(approval.asked_at, "")}. The tool server{" "}
            {visible(approval.server)} would run it. Audit record {visible(approval.approval_id)}.
          </p>
        </div>
      </details>
    </section>
  );
}

function deciderOf(ruling: { by: string; name: string }): string {
  return ruling.name || `the key ${ruling.by}`;
}

/** What has happened and what comes, and what the asker sees of it. */
function Course({ approval }: { approval: Approval }): JSX.Element {
  const asker = visible(askerOf(approval));
  const ruling = approval.decision;
  const left = (Date.parse(approval.ends_at) - Date.now()) / 1_000;
  const after: Record<Approval["state"], string> = {
    pending: approval.runs_at_yes
      ? `It runs at the yes, exactly this and once; ${asker} sees it in the conversation, with the note.`
      : `As soon as somebody decides, ${asker} sees it in the conversation, with the note, and does it with one press. Nothing runs before.`,
    approved: approval.runs_at_yes
      ? `It was approved and runs now, exactly this and once; ${asker} sees what came of it.`
      : `${asker} sees that it is approved, and does it with one press: exactly this, once.`,
    used: `It ran, once. ${asker} sees that it is done. A second time needs a second approval.`,
    denied: `${asker} sees that it was denied, with the note. Nothing was done.`,
    expired: "Nobody decided in time. Nothing was done; it can be asked for again.",
  };
  const failed = approval.outcome !== null && approval.outcome.status !== "success" ? approval.outcome : null;
  const again = failed?.approval_id ?? null;
  return (
    <Card label="Course of the request" title={`What ${asker} sees`} side={<StateChip state={approval} mine={false} />}>
      <div class="in">
        {failed === null ? (
          <p>{after[approval.state]}</p>
        ) : (
          <p>
            {again === null
              ? `It was approved and did not run: ${(failed.reason ?? failed.status).replaceAll("_", " ")}. Nothing was done.`
              : "It was approved and did not run: what it would change had changed since it was asked. "}
            {again === null ? null : (
              <a href={`#/approvals/${encodeURIComponent(again)}`}>The request as it reads now</a>
            )}
          </p>
        )}
        <ol class="steps-of">
          <li>
            <Icon name="check" />
            <span>{asker} asked</span>
            <span class="when">
              <Time short at={approval.asked_at} />
            </span>
          </li>
          <li>
            <Icon name={ruling === null ? "clock" : approval.state === "denied" ? "cross" : "check"} />
            <span>
              {ruling === null
                ? approval.state === "expired"
                  ? "nobody decided"
                  : `a person decides${left > 0 ? `, ${span(left)} left` : ""}`
                : `${visible(deciderOf(ruling))} ${approval.state === "denied" ? "denied it" : "approved it"}`}
            </span>
            <span class="when">
              <Time short at={ruling?.at ?? approval.ends_at} />
            </span>
          </li>
          {approval.state === "denied" || approval.state === "expired" ? null : (
            <li>
              <Icon name={failed !== null ? "cross" : approval.used_at === null ? "clock" : "check"} />
              <span>{failed !== null ? "it did not run" : approval.used_at === null ? "it runs once" : "it ran"}</span>
              <span class="when">
                <Time short at={approval.used_at} none="" />
              </span>
            </li>
          )}
        </ol>
      </div>
    </Card>
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
