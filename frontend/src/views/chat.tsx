// Asking: the list of conversations, the turns of one, and the box for the next question.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, Refusal } from "../api.ts";
import { OpenConversation } from "../conversation.ts";
import { keep, taken } from "../draft.ts";
import { RefusalNotice } from "../parts/notices.tsx";
import { foundAloneWanted, keepFoundAlone, options } from "../preferences.ts";
import { visible } from "../visible.ts";
import type { Conversation, Session } from "../wire.ts";
import { Carried, ConversationActions } from "./conversation_actions.tsx";
import { TurnSection } from "./turn.tsx";

const EXAMPLES = [
  "How many high severity incidents came in this week?",
  "Which incidents are open, newest first?",
  "Show failed sign-ins by country over the last 7 days.",
];

const NONE = new Set([404, 422]);
const MISSING = new Refusal(404, "not_found", "There is no such conversation.", "The list has those that there are.");

export function ChatView(props: { id: string | null; go: (id: string | null) => void; session: Session }): JSX.Element {
  const { id, go, session } = props;
  const [, redraw] = useState(0);
  const open = useRef<OpenConversation | null>(null);
  const [list, setList] = useState<Conversation[]>([]);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [alone, setAlone] = useState(foundAloneWanted);

  const reload = (): void => {
    ask<{ conversations: Conversation[] }>("GET", "/conversations?limit=100").then(
      (found) => {
        setList(found.conversations);
        setRefusal(null);
      },
      (error) => setRefusal(asRefusal(error)),
    );
  };
  useEffect(() => {
    if (open.current === null || open.current.id !== id) {
      open.current?.close();
      open.current = new OpenConversation(
        id,
        () => redraw((count) => count + 1),
        (began) => {
          go(began);
          reload();
        },
        () => options(session),
      );
      redraw((count) => count + 1);
    }
  }, [id]);
  useEffect(() => {
    reload();
    return () => open.current?.close();
  }, []);

  const conversation = open.current;
  // An id of no form that there is (422) names none either.
  const missing = id !== null && NONE.has(conversation?.refusal?.status ?? 0) && conversation?.turns.length === 0;
  const title = list.find((each) => each.session_id === id)?.title ?? conversation?.title ?? "";
  const loaded = id !== null && conversation !== null && conversation.turns.length > 0;
  const turns = useRef<HTMLElement>(null);
  useEffect(() => {
    // Whoever opens a conversation goes on where it ended.
    if (loaded && conversation.running === undefined) {
      turns.current?.querySelector("article.turn:last-of-type")?.scrollIntoView({ block: "start" });
    }
  }, [conversation, loaded]);
  if (missing) {
    return (
      <div class="chat">
        <Conversations list={list} id={id} />
        <section class="turns" aria-label="Conversation">
          <h1>No such conversation</h1>
          <RefusalNotice refusal={MISSING} />
          <a href="#/chat">Begin a new one</a>
        </section>
      </div>
    );
  }
  return (
    <div class="chat">
      <Conversations list={list} id={id} />
      <section ref={turns} class="turns" aria-label="Conversation">
        <div class="row">
          <h1>{visible(title) || "New conversation"}</h1>
          {id === null ? null : (
            <ConversationActions
              key={id}
              id={id}
              title={title}
              onRenamed={(renamed) => {
                conversation?.now({ title: renamed });
                reload();
              }}
              onCleared={(carried) => conversation?.now({ carried })}
              onDeleted={() => {
                go(null);
                reload();
              }}
            />
          )}
        </div>
        <RefusalNotice refusal={refusal ?? conversation?.refusal ?? null} />
        {conversation !== null && conversation.earlier > 0 ? (
          <button type="button" onClick={() => void conversation.showEarlier()}>
            Show earlier questions
          </button>
        ) : null}
        {conversation?.turns.map((turn) => (
          <TurnSection
            key={turn.key}
            turn={turn}
            foundAlone={alone}
            onFoundAlone={(wanted) => {
              keepFoundAlone(wanted);
              setAlone(wanted);
            }}
            onStop={() => void conversation.stop(turn)}
            onAsk={(question) => conversation.put(question)}
          />
        ))}
        {conversation !== null && id === null && conversation.turns.length === 0 ? (
          <Suggested questions={EXAMPLES} onAsk={(question) => conversation.put(question)} />
        ) : null}
        <Carried facts={conversation?.carried ?? null} />
        <Announcement text={announcement(conversation)} />
        {conversation === null ? null : <QuestionBox onAsk={(question) => conversation.put(question)} />}
      </section>
    </div>
  );
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

function Conversations({ list, id }: { list: Conversation[]; id: string | null }): JSX.Element {
  return (
    <details class="conversations" open={window.matchMedia("(min-width: 800px)").matches}>
      <summary>Conversations</summary>
      <nav aria-label="Conversations">
        <a href="#/chat" aria-current={id === null ? "true" : undefined}>
          New conversation
        </a>
        {list.map((each) => (
          <a
            key={each.session_id}
            href={`#/chat/${encodeURIComponent(each.session_id)}`}
            aria-current={each.session_id === id ? "true" : undefined}
          >
            {visible(each.title)}
          </a>
        ))}
      </nav>
    </details>
  );
}

function QuestionBox({ onAsk }: { onAsk: (question: string) => void }): JSX.Element {
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const shown = box.current;
    if (shown !== null) {
      shown.value = taken() || shown.value;
      shown.focus();
    }
    return () => keep(shown?.value ?? "");
  }, []);
  const send = (): void => {
    const question = box.current?.value ?? "";
    if (box.current !== null && question.trim() !== "") {
      onAsk(question);
      box.current.value = "";
    }
  };
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label>
        Question <span class="quiet">(Enter sends, Shift+Enter breaks the line)</span>
        <textarea
          ref={box}
          rows={2}
          maxLength={8_000}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
              event.preventDefault();
              send();
            }
          }}
        />
      </label>
      <button type="submit" class="main">
        Ask
      </button>
    </form>
  );
}

/** What a screen reader says while an answer is made. */
function Announcement({ text }: { text: string }): JSX.Element {
  return (
    <p class="announcement" role="status">
      {text}
    </p>
  );
}

function announcement(conversation: OpenConversation | null): string {
  const last = conversation?.turns.at(-1);
  if (last === undefined) {
    return "";
  }
  if (last.state === "running") {
    return last.connected ? visible(last.status) : "The connection is lost; trying again.";
  }
  return last.state === "answered" ? "The answer is complete." : visible(last.problem);
}
