// What can be done with an incident: each becomes a question in the person's words, which they see before it is sent, and
// a change ends in its confirmation.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { askNow } from "../draft.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { SaveReport } from "../parts/save_report.tsx";
import { keepOwnAddress, ownAddress } from "../preferences.ts";
import { SEVERITIES } from "../severities.ts";
import type { IncidentDetail } from "../tool_rows.ts";
import type { Session } from "../wire.ts";

/** As people say them, and as the planner reads them. */
const CLASSES = [
  "true positive (suspicious activity)",
  "benign positive (suspicious but expected)",
  "false positive (incorrect alert logic)",
  "false positive (inaccurate data)",
  "undetermined",
];

const REPORTED_H = 720;

/** What is asked for in a dialog. */
export type Action = "comment" | "assign" | "status" | "severity" | "close" | "reopen" | "report";

export function IncidentActions(props: {
  incident: IncidentDetail;
  workspace: string | undefined;
  again: () => void;
  act: (action: Action) => void;
}): JSX.Element {
  const { incident, act } = props;
  const where = placeOf(props.workspace);
  return (
    <div class="row buttons">
      <button type="button" class="main" onClick={() => askNow(`What is incident ${incident.number} about${where}?`)}>
        <Icon name="ask" />
        Explain
      </button>
      <button type="button" onClick={() => askNow(`What should I do about incident ${incident.number}${where}?`)}>
        What to do
      </button>
      <button type="button" onClick={() => act("comment")}>
        Comment…
      </button>
      <button type="button" onClick={() => act("assign")}>
        Assign…
      </button>
      {incident.status === "Closed" ? (
        <button type="button" onClick={() => act("reopen")}>
          Reopen…
        </button>
      ) : (
        <>
          <button type="button" onClick={() => act("status")}>
            Change…
          </button>
          <button type="button" onClick={() => act("close")}>
            Close…
          </button>
        </>
      )}
      <button type="button" onClick={() => act("report")}>
        Report…
      </button>
      <button type="button" class="bare icon" aria-label="Read again" title="Read again" onClick={props.again}>
        <Icon name="again" />
      </button>
    </div>
  );
}

/** The dialog of what was chosen; `ask` is called with the words that ask for it. */
export function ActionDialog(props: {
  action: Action;
  incident: IncidentDetail;
  workspace: string | undefined;
  session: Session;
  ask: (question: string) => void;
  close: () => void;
}): JSX.Element {
  const { incident, workspace } = props;
  const where = placeOf(workspace);
  const shared = { number: incident.number, where, ask: props.ask, close: props.close };
  switch (props.action) {
    case "report":
      return (
        <SaveReport
          title={`Report of incident ${incident.number}`}
          path="/reports"
          more={{
            hours: String(REPORTED_H),
            incident: String(incident.number),
            ...(workspace === undefined ? {} : { workspace }),
          }}
          close={props.close}
        >
          <p class="label">
            The incident is read now, with your rights. What you asked about it in the last 30 days is in the annex.
          </p>
        </SaveReport>
      );
    case "comment":
      return <Comment {...shared} />;
    case "assign":
      return <Assign {...shared} name={props.session.name} />;
    case "status":
    case "severity":
      return <Change {...shared} incident={incident} first={props.action} />;
    case "close":
      return <Close {...shared} />;
    case "reopen":
      return (
        <Asking
          {...shared}
          title={`Reopen incident ${incident.number}`}
          words={() => `reopen incident ${incident.number}${where}`}
        />
      );
  }
}

function placeOf(workspace: string | undefined): string {
  return workspace === undefined ? "" : ` in the workspace ${workspace}`;
}

interface Shared {
  number: number;
  where: string;
  ask: (question: string) => void;
  close: () => void;
}

function Comment(props: Shared): JSX.Element {
  return (
    <Asking
      {...props}
      title={`Comment on incident ${props.number}`}
      words={(form) => `add a comment to incident ${props.number}${props.where}: ${form.get("text")}`}
    >
      <label>
        Comment
        <textarea name="text" rows={4} required maxLength={3_000} />
      </label>
    </Asking>
  );
}

function Assign(props: Shared & { name: string }): JSX.Element {
  const [owner, setOwner] = useState(() => ownAddress(props.name));
  const [mine, setMine] = useState(false);
  return (
    <Asking
      {...props}
      ask={(question) => {
        if (mine) {
          keepOwnAddress(props.name, owner);
        }
        props.ask(question);
      }}
      title={`Assign incident ${props.number}`}
      words={(form) => `assign incident ${props.number}${props.where} to ${form.get("owner")}`}
    >
      <label>
        To whom <span class="quiet">(an address, as Sentinel knows it)</span>
        <input
          name="owner"
          required
          maxLength={254}
          value={owner}
          onInput={(event) => setOwner(event.currentTarget.value)}
        />
      </label>
      {owner !== "" && owner === ownAddress(props.name) ? (
        <p class="label">That is you.</p>
      ) : (
        <label class="tick">
          <input type="checkbox" checked={mine} onChange={(event) => setMine(event.currentTarget.checked)} />
          This is my own address: begin with it the next time
        </label>
      )}
    </Asking>
  );
}

const OPEN_STATUSES = ["New", "Active"];

/** Its status and severity; what stays as it is, is not asked for. */
function Change(props: Shared & { incident: IncidentDetail; first: "status" | "severity" }): JSX.Element {
  const { number, where, incident } = props;
  const words = (form: FormData): string => {
    const told = (["severity", "status"] as const)
      .map((name): [string, string] => [name, String(form.get(name) ?? "")])
      .filter(([, to]) => to !== "");
    const [one, other] = told;
    const behind = other === undefined ? "" : ` and the ${other[0]} to ${other[1]}`;
    return one === undefined ? "" : `set the ${one[0]} of incident ${number}${where} to ${one[1]}${behind}`;
  };
  const field = (name: "status" | "severity", values: string[]): JSX.Element => (
    <label>
      {name === "status" ? "Status" : "Severity"}
      <select name={name} autofocus={name === props.first}>
        <option value="">as it is ({incident[name] ?? "not known"})</option>
        {values
          .filter((each) => each !== incident[name])
          .map((each) => (
            <option key={each}>{each}</option>
          ))}
      </select>
    </label>
  );
  return (
    <Asking {...props} title={`Change incident ${number}`} words={words}>
      {field("status", OPEN_STATUSES)}
      {field("severity", SEVERITIES)}
    </Asking>
  );
}

function Close(props: Shared): JSX.Element {
  return (
    <Asking
      {...props}
      title={`Close incident ${props.number}`}
      words={(form) => {
        const comment = String(form.get("comment") ?? "").trim();
        const behind = comment === "" ? "" : ` with comment: ${comment}`;
        return `close incident ${props.number}${props.where} as ${form.get("class")}${behind}`;
      }}
    >
      <label>
        As
        <select name="class">
          {CLASSES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        Comment <span class="quiet">(kept with the incident)</span>
        <input name="comment" maxLength={1_000} />
      </label>
    </Asking>
  );
}

/** A dialog whose fields become a question; it shows the question as it stands, and sends it. */
function Asking(
  props: Shared & { title: string; words: (form: FormData) => string; children?: ComponentChildren },
): JSX.Element {
  const [said, setSaid] = useState(() => (props.children === undefined ? props.words(new FormData()) : ""));
  const read = (form: HTMLFormElement): string => props.words(new FormData(form)).trim();
  return (
    <Dialog title={props.title} onClose={props.close}>
      <form
        onInput={(event) => setSaid(read(event.currentTarget))}
        onSubmit={(event) => {
          event.preventDefault();
          const question = read(event.currentTarget);
          if (question !== "") {
            props.close();
            props.ask(question);
          }
        }}
      >
        {props.children}
        <p class="label">
          It asks for this in your name, and nothing is written before it is confirmed
          {said === "" ? "." : ":"}
        </p>
        {said === "" ? null : <blockquote class="said">{said}</blockquote>}
        <button type="submit" class="main">
          Ask for it
        </button>
      </form>
    </Dialog>
  );
}
