// A turn as the page shows it, built from its events as they come or from its record afterwards. Pure.
import type { TurnEvent } from "./follow.ts";
import type { Evidence, Opinion, Sentence, Table, ToolTrace, Turn } from "./wire.ts";

export interface TurnView {
  /** Of this page; the turn's id once there is one. */
  key: string;
  turnId: string;
  number: number;
  question: string;
  state: "running" | "answered" | "failed" | "stopped";
  status: string;
  /** When it began, by this page's clock (performance.now). */
  began: number;
  connected: boolean;
  /** When each call that runs began, by this page's clock. */
  since: Map<string, number>;
  tools: ToolTrace[];
  text: string;
  /** What the check says of parts of `text`. */
  sentences: Sentence[];
  tables: Table[];
  evidence: Evidence[];
  footnote: string[];
  suggestions: string[];
  problem: string;
  opinion: Opinion | null;
}

export function beginning(key: string, question: string, now: number): TurnView {
  return {
    key,
    turnId: "",
    number: 0,
    question,
    state: "running",
    status: "Sending the question...",
    began: now,
    connected: true,
    since: new Map(),
    tools: [],
    text: "",
    sentences: [],
    tables: [],
    evidence: [],
    footnote: [],
    suggestions: [],
    problem: "",
    opinion: null,
  };
}

/** A recorded turn; one that still runs begins empty, to be followed from its first event. */
export function recorded(turn: Turn, now: number): TurnView {
  const view = { ...beginning(turn.turn_id, turn.question, now), turnId: turn.turn_id, number: turn.number };
  if (turn.state === "running") {
    return { ...view, status: "Joining the answer..." };
  }
  const answer = turn.answer;
  if (answer === null) {
    const stopped = turn.state === "stopped";
    const problem = stopped ? "The question was stopped before its answer." : "The question had no answer.";
    const sentences = turn.written_sentences ?? [];
    return { ...view, state: turn.state, status: "", text: turn.written ?? "", sentences, problem };
  }
  return {
    ...view,
    state: turn.state,
    status: "",
    tools: answer.tools,
    text: answer.answer,
    sentences: answer.sentences ?? [],
    tables: answer.tables,
    evidence: answer.evidence.map((piece, place) => ({ ...piece, number: place + 1 })),
    footnote: answer.footnote,
    suggestions: answer.suggestions,
    opinion: turn.opinion ?? null,
  };
}

/** The turn after one more event. */
export function told(view: TurnView, event: TurnEvent, now: number): TurnView {
  const data = event.data;
  switch (event.type) {
    case "started":
      return { ...view, turnId: String(data.turn_id), number: Number(data.number), status: "Thinking..." };
    case "status":
      return { ...view, status: String(data.text) };
    case "tool.started": {
      const call = { ...NEW_CALL, ...(data as Partial<ToolTrace>) };
      const since = new Map(view.since).set(call.call_id, now);
      return { ...view, status: String(data.text), since, tools: [...without(view.tools, call.call_id), call] };
    }
    case "tool.finished": {
      const ended = data as Partial<ToolTrace>;
      const before = view.tools.find((tool) => tool.call_id === ended.call_id) ?? NEW_CALL;
      return { ...view, tools: [...without(view.tools, before.call_id), { ...before, ...ended }] };
    }
    case "text":
      return { ...view, status: "Writing the answer...", text: view.text + String(data.text) };
    case "sentence": {
      const sentence = data as unknown as Sentence;
      const others = view.sentences.filter((each) => each.start !== sentence.start);
      return { ...view, sentences: [...others, sentence] };
    }
    case "withdrawn":
      return { ...view, status: String(data.text), text: "", sentences: [] };
    case "table":
      return { ...view, tables: [...view.tables, data as unknown as Table] };
    case "evidence":
      return { ...view, evidence: [...view.evidence, data as unknown as Evidence] };
    case "done":
      return {
        ...view,
        state: "answered",
        status: "",
        footnote: (data.footnote ?? []) as string[],
        suggestions: (data.suggestions ?? []) as string[],
      };
    case "error": {
      const state = data.reason === "cancelled" || data.reason === "stopped" ? "stopped" : "failed";
      return { ...view, state, status: "", problem: `${data.detail} ${data.next_step}` };
    }
    default:
      return view;
  }
}

const NEW_CALL: ToolTrace = {
  call_id: "",
  name: "",
  arguments: {},
  status: "running",
  detail: "",
  audit_id: "",
  duration_ms: 0,
  coverage: null,
};

function without(tools: ToolTrace[], callId: string): ToolTrace[] {
  return tools.filter((tool) => tool.call_id !== callId);
}
