// What stands in or around several views: the list of conversations, what waits for a person, questions to ask next.
import type { JSX } from "preact";
import { titleOf } from "../requests.ts";
import { visible } from "../visible.ts";
import type { Approval, Conversation } from "../wire.ts";
import { Icon } from "./icon.tsx";

export function Recent(props: {
  list: Conversation[];
  id: string | null;
  class?: string;
  heading?: boolean;
}): JSX.Element {
  return (
    <nav class={props.class} aria-label="Conversations">
      {props.heading ? <h2>Conversations</h2> : null}
      <a href="#/chat">New conversation</a>
      {props.list.map((each) => (
        <a
          key={each.session_id}
          href={`#/chat/${encodeURIComponent(each.session_id)}`}
          aria-current={each.session_id === props.id ? "true" : undefined}
        >
          {visible(each.title)}
        </a>
      ))}
    </nav>
  );
}

/** Told wherever the person is, and by a screen reader as soon as it is so. */
export function Waits({ approvals }: { approvals: Approval[] }): JSX.Element {
  const [first] = approvals;
  return (
    <div aria-live="polite" class={first === undefined ? "" : "notice waits"}>
      {first === undefined ? null : (
        <>
          <Icon name="clock" />
          <div>
            <span class="wide-only">
              {approvals.length === 1 ? "A request waits" : `${approvals.length} requests wait`} for your decision:{" "}
            </span>
            <a href={approvals.length === 1 ? `#/approvals/${encodeURIComponent(first.approval_id)}` : "#/approvals"}>
              {visible(titleOf(first))}
              {approvals.length === 1 ? "" : ` and ${approvals.length - 1} more`}
            </a>
          </div>
        </>
      )}
    </div>
  );
}

/** The first letters of a name, for the eye alone. */
export function Avatar({ name }: { name: string }): JSX.Element {
  const letters = [...visible(name)].slice(0, 2).join("").toUpperCase();
  return <span class="avatar" aria-hidden="true" data-letters={letters} />;
}

export function Suggested(props: { questions: string[]; onAsk: (question: string) => void }): JSX.Element | null {
  return props.questions.length === 0 ? null : (
    <ul class="suggested" aria-label="Questions to ask next">
      {props.questions.map((question) => (
        <li key={question}>
          <button type="button" onClick={() => props.onAsk(question)}>
            {visible(question)}
          </button>
        </li>
      ))}
    </ul>
  );
}
