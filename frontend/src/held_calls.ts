// The calls of a conversation that are held back until a person says yes, and what became of them.
import { useEffect, useState } from "preact/hooks";
import { ask } from "./api.ts";
import type { OpenConversation } from "./conversation.ts";
import type { Approval, RequestState } from "./wire.ts";

const ASK_AGAIN_MS = 4_000;

/** What became of the calls of this conversation that were held back, by the audit record of each; read again while one
 * of them may change. And whether it is known of all of them yet. */
export function useRequests(
  conversation: OpenConversation | null,
  waiting: Approval[],
): [Map<string, RequestState>, boolean] {
  const [found, setFound] = useState<{ of: string; held: string; states: RequestState[] }>({
    of: "",
    held: "",
    states: [],
  });
  const id = conversation?.id ?? "";
  const held = (conversation?.turns ?? [])
    .filter((turn) => turn.state !== "running")
    .flatMap((turn) => turn.tools.filter((tool) => tool.status === "denied").map((tool) => tool.audit_id))
    .join();
  const states = found.of === id ? found.states : [];
  const open = states.some((each) => each.state === "pending" || each.state === "approved");
  const turns = conversation?.turns.filter((turn) => turn.state !== "running").length ?? 0;
  const change = waiting.map((each) => each.approval_id).join();
  useEffect(() => {
    if (id === "" || held === "") {
      return undefined;
    }
    const ended = new AbortController();
    const read = (): void => {
      ask<{ requests: RequestState[] }>(
        "GET",
        `/conversations/${encodeURIComponent(id)}/requests`,
        undefined,
        ended.signal,
      ).then(
        (answer) => setFound({ of: id, held, states: answer.requests }),
        // The calls stand as they were told then.
        () => ended.signal.aborted || setFound((before) => ({ ...before, of: id, held })),
      );
    };
    read();
    const timer = open ? setInterval(read, ASK_AGAIN_MS) : undefined;
    return () => {
      ended.abort();
      clearInterval(timer);
    };
  }, [id, held, turns, change, open]);
  return [
    new Map(states.map((each) => [each.audit_id, each])),
    held === "" || (found.of === id && found.held === held),
  ];
}
