// What was asked about an incident from its page: the turns stand there, so that nobody leaves it to change it, and the
// incident is read again once a change was made.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { OpenConversation } from "../conversation.ts";
import { useRequests } from "../held_calls.ts";
import { Card } from "../parts/card.tsx";
import { foundAloneWanted, keepFoundAlone, options } from "../preferences.ts";
import { CHANGES } from "../requests.ts";
import type { TurnView } from "../turn_view.ts";
import type { Approval, Session } from "../wire.ts";
import { TurnSection } from "./turn.tsx";

/** How to ask, and the card of what was asked; `again` is called when a change was made. */
export function useAsked(props: {
  session: Session;
  waiting: Approval[];
  again: () => void;
  reload: () => void;
}): [(question: string) => void, JSX.Element | null] {
  const { session, waiting, again, reload } = props;
  const [, redraw] = useState(0);
  const [alone, setAlone] = useState(foundAloneWanted);
  const open = useRef<OpenConversation | null>(null);
  useEffect(() => () => open.current?.close(), []);
  const [requests, settled] = useRequests(open.current, waiting);
  const turns = open.current?.turns ?? [];
  const made = turns.filter(changed).length;
  useEffect(() => {
    if (made > 0) {
      again();
    }
  }, [made]);
  const put = (question: string): void => {
    open.current ??= new OpenConversation(
      null,
      () => redraw((count) => count + 1),
      reload,
      () => options(session),
    );
    open.current.put(question);
  };
  const conversation = open.current;
  if (conversation === null || turns.length === 0) {
    return [put, null];
  }
  const there = `#/chat/${encodeURIComponent(conversation.id ?? "")}`;
  return [
    put,
    <Card
      key="asked"
      title="What you asked for here"
      class="asked-here"
      side={conversation.id === null ? null : <a href={there}>The conversation</a>}
    >
      <div class="in">
        {turns.map((turn) => (
          <TurnSection
            key={turn.key}
            turn={turn}
            opened={null}
            requests={requests}
            settled={settled}
            waiting={waiting}
            name={session.name}
            newest={turn === turns.at(-1)}
            brief
            foundAlone={alone}
            onFoundAlone={(wanted) => {
              keepFoundAlone(wanted);
              setAlone(wanted);
            }}
            onStop={() => void conversation.stop(turn)}
            onAsk={put}
            onOpen={() => {
              location.hash = there;
            }}
            onThought={(opinion) => conversation.thought(turn.key, opinion)}
          />
        ))}
      </div>
    </Card>,
  ];
}

/** Whether it wrote to an incident. */
function changed(turn: TurnView): boolean {
  return turn.state !== "running" && turn.tools.some((tool) => tool.status === "ok" && CHANGES.has(tool.name));
}
