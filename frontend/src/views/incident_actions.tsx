// What can be done with an incident: each becomes a question in the person's words, which they see before it is sent, and
// a change ends in its confirmation.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { askNow } from "../draft.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { SaveReport } from "../parts/save_report.tsx";
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

type Asked = "comment" | "assign" | "close" | "reopen" | "report" | null;

export function IncidentActions(props: {
  incident: IncidentDetail;
  workspace: string | undefined;
  session: Session;
  again: () => void;
}): JSX.Element {
  const { incident } = props;
  const [asked, setAsked] = useState<Asked>(null);
  const where = props.workspace === undefined ? "" : ` in the workspace ${props.workspace}`;
  const closed = incident.status === "Closed";
  const explain = (): void => askNow(`What is incident ${incident.number} about${where}?`);
  const shared = { number: incident.number, where, close: () => setAsked(null) };
  return (
    <div class="row buttons">
      <button type="button" class="main" onClick={explain}>
        <Icon name="ask" />
        Explain
      </button>
      <button type="button" onClick={() => askNow(`What should I do about incident ${incident.number}${where}?`)}>
        What to do
      </button>
      <button type="button" onClick={() => setAsked("comment")}>
        Comment…
      </button>
      <button type="button" onClick={() => setAsked("assign")}>
        Assign…
      </button>
      <button type="button" onClick={() => setAsked(closed ? "reopen" : "close")}>
        {closed ? "Reopen…" : "Close…"}
      </button>
      <button type="button" onClick={() => setAsked("report")}>
        Report…
      </button>
      <button type="button" class="bare icon" aria-label="Read again" title="Read again" onClick={props.again}>
        <Icon name="again" />
      </button>
      {asked === "report" ? (
        <SaveReport
          title={`Report of incident ${incident.number}`}
          path="/reports"
          more={{
            hours: String(REPORTED_H),
            incident: String(incident.number),
            ...(props.workspace === undefined ? {} : { workspace: props.workspace }),
          }}
          close={shared.close}
        >
          <p class="label">
            The incident is read now, with your rights. What you asked about it in the last 30 days is in the annex.
          </p>
        </SaveReport>
      ) : null}
      {asked === "comment" ? <Comment {...shared} /> : null}
      {asked === "assign" ? <Assign {...shared} name={props.session.name} /> : null}
      {asked === "close" ? <Close {...shared} /> : null}
      {asked === "reopen" ? (
        <Asking
          {...shared}
          title={`Reopen incident ${incident.number}`}
          words={() => `reopen incident ${incident.number}${where}`}
        />
      ) : null}
    </div>
  );
}

interface Shared {
  number: number;
  where: string;
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
  return (
    <Asking
      {...props}
      title={`Assign incident ${props.number}`}
      words={(form) => `assign incident ${props.number}${props.where} to ${form.get("owner")}`}
    >
      <label>
        To whom <span class="quiet">(an address, as Sentinel knows it)</span>
        <input name="owner" required maxLength={254} defaultValue={props.name.includes("@") ? props.name : ""} />
      </label>
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
          props.close();
          askNow(question);
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
