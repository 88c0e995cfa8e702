// Following a turn to its end over connections that may be lost: each event once, in order, whatever happens between.
import { lost, open, Refusal } from "./api.ts";

export interface TurnEvent {
  id: number;
  type: string;
  data: Record<string, unknown>;
}

/** A question to begin with, or a turn that is known. Sent twice under its `request_id`, a question is asked once. */
export type Begin = { question: Record<string, unknown> & { request_id: string } } | { turnId: string };

const LAST = new Set(["done", "error"]);
/** The server sends a comment every 15 s, so a connection that is silent for longer is dead. */
const SILENCE_MS = 45_000;
const LONGEST_PAUSE_MS = 5_000;

/** Every event of the turn. `onConnection` hears whether it is connected. Throws Refusal, or stops by `signal`. */
export async function* follow(
  begin: Begin,
  onConnection: (connected: boolean) => void,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent> {
  let turnId = "turnId" in begin ? begin.turnId : "";
  let seen = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await connect(begin, turnId, seen, signal);
      if (response.status === 204) {
        return;
      }
      onConnection(true);
      for await (const event of eventsOf(response, signal)) {
        failures = 0;
        if (event.id <= seen) {
          continue;
        }
        seen = event.id;
        if (event.type === "started") {
          turnId = String(event.data.turn_id);
        }
        yield event;
        if (LAST.has(event.type)) {
          return;
        }
      }
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (!(error instanceof Refusal) || !passes(error)) {
        throw error;
      }
    }
    onConnection(false);
    failures += 1;
    await pause(Math.min(LONGEST_PAUSE_MS, 250 * 2 ** failures), signal);
  }
}

/** Whether waiting may help: a lost connection, a server that starts again, too many streams. */
function passes(refusal: Refusal): boolean {
  return (
    refusal.status === 0 || refusal.status === 502 || refusal.status === 503 || refusal.reason === "too_many_streams"
  );
}

function connect(begin: Begin, turnId: string, seen: number, signal: AbortSignal): Promise<Response> {
  const stream = { Accept: "text/event-stream" };
  if (turnId === "" && "question" in begin) {
    return open("POST", "/chat", begin.question, signal, stream);
  }
  const behind = seen > 0 ? { ...stream, "Last-Event-ID": String(seen) } : stream;
  return open("GET", `/turns/${encodeURIComponent(turnId)}/events`, undefined, signal, behind);
}

async function* eventsOf(response: Response, signal: AbortSignal): AsyncGenerator<TurnEvent> {
  if (response.body === null) {
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await soon(reader.read(), signal);
      if (done) {
        return;
      }
      held += value;
      const blocks = held.split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event !== null) {
          yield event;
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parsed(block: string): TurnEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) {
      fields.set(line.slice(0, colon), line.slice(colon + 2));
    }
  }
  const data = fields.get("data");
  if (data === undefined) {
    return null;
  }
  return { id: Number(fields.get("id")), type: fields.get("event") ?? "", data: JSON.parse(data) };
}

/** What `read` gives; a lost connection if it fails or stays silent. */
function soon<T>(read: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const silent = setTimeout(() => reject(lost()), SILENCE_MS);
    read.then(resolve, (error: unknown) => reject(signal.aborted ? error : lost())).finally(() => clearTimeout(silent));
  });
}

/** Wait, but not past the moment at which the network comes back. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}
