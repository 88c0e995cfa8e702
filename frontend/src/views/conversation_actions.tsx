// What is done with a whole conversation: another title, starting over, a report of it, deleting it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useWork } from "../look.ts";
import { Dialog } from "../parts/dialog.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { SaveReport } from "../parts/save_report.tsx";
import { visible } from "../visible.ts";
import type { CarriedFact, Conversation } from "../wire.ts";

interface Props {
  id: string;
  title: string;
  onRenamed: (title: string) => void;
  onCleared: (carried: CarriedFact[]) => void;
  onDeleted: () => void;
}

export function ConversationActions(props: Props): JSX.Element {
  const [asked, setAsked] = useState<"rename" | "clear" | "save" | "delete" | null>(null);
  const close = (): void => setAsked(null);
  return (
    <details class="actions push" open={window.matchMedia("(min-width: 720px)").matches}>
      <summary>What to do with it</summary>
      <div class="row">
        <button type="button" class="small" onClick={() => setAsked("rename")}>
          Rename
        </button>
        <button type="button" class="small" onClick={() => setAsked("clear")}>
          Start over
        </button>
        <button type="button" class="small" onClick={() => setAsked("save")}>
          Save a report
        </button>
        <button type="button" class="small" onClick={() => setAsked("delete")}>
          Delete
        </button>
      </div>
      {asked === "rename" ? <Rename {...props} close={close} /> : null}
      {asked === "clear" ? <Clear {...props} close={close} /> : null}
      {asked === "save" ? <SaveReport title="Save a report" path={`${pathOf(props.id)}/export`} close={close} /> : null}
      {asked === "delete" ? <Delete {...props} close={close} /> : null}
    </details>
  );
}

type DialogProps = Props & { close: () => void };

function Rename({ id, title, onRenamed, close }: DialogProps): JSX.Element {
  return (
    <Asking
      title="Another title"
      action="Rename"
      close={close}
      carryOut={async (form) => {
        const given = { title: String(form.get("title")) };
        onRenamed((await ask<Conversation>("PATCH", pathOf(id), given)).title);
      }}
    >
      <label>
        Title
        <input name="title" defaultValue={title} required maxLength={200} />
      </label>
    </Asking>
  );
}

function Clear({ id, onCleared, close }: DialogProps): JSX.Element {
  return (
    <Asking
      title="Start over?"
      action="Start over"
      close={close}
      carryOut={async (form) => {
        const carry = form.get("carry") !== null;
        onCleared((await ask<{ carried: CarriedFact[] }>("POST", `${pathOf(id)}/clear`, { carry })).carried);
      }}
    >
      <p>The agent forgets what was said. The questions and answers stay here to be read, and in the audit.</p>
      <label class="tick">
        <input type="checkbox" name="carry" defaultChecked /> Facts that evidence supports go on with it
      </label>
    </Asking>
  );
}

function Delete({ id, onDeleted, close }: DialogProps): JSX.Element {
  return (
    <Asking
      title="Delete this conversation?"
      action="Delete"
      close={close}
      carryOut={async () => {
        await ask("DELETE", pathOf(id));
        onDeleted();
      }}
    >
      <p>Its questions and answers cannot be brought back. What was called stays in the audit.</p>
    </Asking>
  );
}

/** A dialog that does one thing, or says why it could not. */
function Asking(props: {
  title: string;
  action: string;
  close: () => void;
  carryOut: (form: FormData) => Promise<void>;
  children: ComponentChildren;
}): JSX.Element {
  const [run, busy, refusal] = useWork();
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    run(() => props.carryOut(form).then(props.close));
  };
  return (
    <Dialog title={props.title} onClose={props.close}>
      <form onSubmit={send}>
        {props.children}
        <RefusalNotice refusal={refusal} />
        <button type="submit" class="main" disabled={busy}>
          {props.action}
        </button>
      </form>
    </Dialog>
  );
}

/** What goes on with the agent after a conversation was started over. */
export function Carried({ facts }: { facts: CarriedFact[] | null }): JSX.Element | null {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.scrollIntoView({ block: "center" }), [facts]);
  return facts === null ? null : (
    <div ref={place} class="notice plain" role="status">
      <p>
        Started over: the agent has forgotten what stands above
        {facts.length === 0 ? "." : `, but for ${facts.length === 1 ? "one fact" : `${facts.length} facts`}:`}
      </p>
      <ul>
        {facts.map((fact) => (
          <li key={`${fact.call_id}${fact.pointer}${fact.text}`}>
            {visible(fact.text)} <span class="quiet">as of {visible(fact.at)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function pathOf(id: string): string {
  return `/conversations/${encodeURIComponent(id)}`;
}
