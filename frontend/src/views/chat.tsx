// Asking: the turns of a conversation, the box for the next question, and what stands behind an answer beside them.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Refusal } from "../api.ts";
import { OpenConversation } from "../conversation.ts";
import { givenNow, keep, listenGiven, taken } from "../draft.ts";
import { useRequests } from "../held_calls.ts";
import { Recent, Suggested } from "../parts/around.tsx";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { KeptQuestions } from "../parts/saved.tsx";
import { foundAloneWanted, keepFoundAlone, options } from "../preferences.ts";
import type { TurnView } from "../turn_view.ts";
import { visible } from "../visible.ts";
import type { Approval, Conversation, Session } from "../wire.ts";
import { Carried, ConversationActions } from "./conversation_actions.tsx";
import { EvidencePanel, type Opened } from "./evidence.tsx";
import { TurnSection } from "./turn.tsx";

const EXAMPLES = [
  "How many high severity incidents came in this week?",
  "Which incidents are open, most severe first?",
  "How many alerts per day in the last two weeks?",
  "Which accounts have the most alerts?",
];
const WIDE = "(min-width: 1200px)";

const NONE = new Set([404, 422]);
const MISSING = new Refusal(404, "not_found", "There is no such conversation.", "The list has those that there are.");

export function ChatView(props: {
  id: string | null;
  go: (id: string | null) => void;
  session: Session;
  waiting: Approval[];
  conversations: Conversation[];
  reload: () => void;
}): JSX.Element {
  const { id, go, session, conversations: list, reload } = props;
  const [, redraw] = useState(0);
  const open = useRef<OpenConversation | null>(null);
  const [alone, setAlone] = useState(foundAloneWanted);
  const [opened, setOpened] = useState<Opened | null>(null);
  const wide = useWide();
  const box = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (open.current === null || open.current.id !== id) {
      open.current?.close();
      setOpened(null);
      open.current = new OpenConversation(
        id,
        () => redraw((count) => count + 1),
        (began) => {
          go(began);
          reload();
        },
        () => options(session),
      );
      const given = id === null ? givenNow() : "";
      if (given !== "") {
        open.current.put(given);
      }
      redraw((count) => count + 1);
    }
  }, [id]);
  useEffect(() => {
    listenGiven(() => open.current?.put(givenNow()));
    return () => {
      listenGiven(() => {});
      open.current?.close();
    };
  }, []);

  const conversation = open.current;
  const turns = conversation?.turns ?? [];
  const [requests, settled] = useRequests(conversation, props.waiting);
  // An id of no form that there is (422) names none either.
  const missing = id !== null && NONE.has(conversation?.refusal?.status ?? 0) && turns.length === 0;
  const title = list.find((each) => each.session_id === id)?.title ?? conversation?.title ?? "";
  const loaded = id !== null && turns.length > 0;
  const column = useRef<HTMLElement>(null);
  useEffect(() => {
    // Whoever opens a conversation goes on where it ended.
    if (loaded && conversation?.running === undefined) {
      column.current?.querySelector("article.turn:last-of-type")?.scrollIntoView({ block: "start" });
    }
  }, [conversation, loaded]);
  const shown = opened ?? (wide ? firstOf(turns) : null);
  const edit = (question: string): void => {
    if (box.current !== null) {
      box.current.value = question;
      box.current.focus();
    }
  };
  return (
    <div class="ask">
      <div class="talk">
        <section ref={column} class="column" aria-label="Conversation">
          <details class="conversations">
            <summary>Conversations</summary>
            <Recent list={list} id={id} />
          </details>
          {missing ? (
            <>
              <h1>No such conversation</h1>
              <RefusalNotice refusal={MISSING} />
              <a href="#/chat">Begin a new one</a>
            </>
          ) : (
            <>
              <div class="row">
                <h1 class={turns.length === 0 ? "" : "unseen"}>{visible(title) || "New conversation"}</h1>
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
              <RefusalNotice refusal={conversation?.refusal ?? null} />
              {conversation !== null && conversation.earlier > 0 ? (
                <button type="button" onClick={() => void conversation.showEarlier()}>
                  Show earlier questions
                </button>
              ) : null}
              {turns.map((turn) => (
                <TurnSection
                  key={turn.key}
                  turn={turn}
                  opened={shown}
                  requests={requests}
                  settled={settled}
                  waiting={props.waiting}
                  name={session.name}
                  newest={turn === turns.at(-1)}
                  foundAlone={alone}
                  onFoundAlone={(wanted) => {
                    keepFoundAlone(wanted);
                    setAlone(wanted);
                  }}
                  onStop={() => void conversation?.stop(turn)}
                  onAsk={(question) => conversation?.put(question)}
                  onEdit={edit}
                  onOpen={setOpened}
                  onThought={(opinion) => conversation?.thought(turn.key, opinion)}
                />
              ))}
              {conversation !== null && id === null && turns.length === 0 ? (
                <>
                  <KeptQuestions name={session.name} onAsk={(question) => conversation.put(question)} />
                  <Suggested questions={EXAMPLES} onAsk={(question) => conversation.put(question)} />
                </>
              ) : null}
              <Carried facts={conversation?.carried ?? null} />
              <Announcement text={announcement(conversation)} />
            </>
          )}
        </section>
        {conversation === null || missing ? null : (
          <QuestionBox
            box={box}
            first={turns.length === 0}
            fills={(session.stores?.workspaces ?? []).length > 0}
            onAsk={(question) => conversation.put(question)}
          />
        )}
      </div>
      <EvidencePanel
        turns={turns}
        opened={shown}
        chosen={opened !== null}
        wide={wide}
        onClose={() => setOpened(null)}
      />
    </div>
  );
}

/** What stands beside an answer before somebody chooses: what its first sentence with a source rests on. */
function firstOf(turns: TurnView[]): Opened | null {
  const turn = turns.findLast((each) => each.state === "answered" && each.tools.every((tool) => tool.status === "ok"));
  const sentence = turn?.sentences.find((each) => each.citations.length > 0);
  return turn === undefined || sentence === undefined ? null : { turn: turn.key, sentence: sentence.start };
}

function useWide(): boolean {
  const [wide, setWide] = useState(window.matchMedia(WIDE).matches);
  useEffect(() => {
    const asked = window.matchMedia(WIDE);
    const changed = (): void => setWide(asked.matches);
    asked.addEventListener("change", changed);
    return () => asked.removeEventListener("change", changed);
  }, []);
  return wide;
}

function QuestionBox(props: {
  box: { current: HTMLTextAreaElement | null };
  first: boolean;
  /** Whether files may be imported from here. */
  fills: boolean;
  onAsk: (question: string) => void;
}): JSX.Element {
  const { box, onAsk } = props;
  useLayoutEffect(() => {
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
    <div class="composer">
      <form
        class="askbox"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        {props.fills ? (
          <a class="button bare icon" href="#/data" aria-label="Import a file" title="Import a file and ask of it">
            <Icon name="upload" />
          </a>
        ) : null}
        <label>
          <span class="unseen">
            Question (Enter sends, Shift+Enter breaks the line, Escape goes to the newest answer)
          </span>
          <textarea
            ref={box}
            class="question-text"
            rows={1}
            maxLength={8_000}
            placeholder={props.first ? "Ask about incidents, alerts, sign-ins, hosts" : "Ask on"}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
                event.preventDefault();
                send();
              } else if (event.key === "Escape") {
                document.querySelector<HTMLElement>("article.turn:last-of-type")?.focus();
              }
            }}
          />
        </label>
        <button type="submit" class="main" aria-label="Ask" title="Enter sends, Shift+Enter breaks the line">
          <Icon name="send" />
        </button>
      </form>
    </div>
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
