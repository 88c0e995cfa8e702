// What the HTTP API says, as types. `docs/http-api.md` and GET /openapi.json describe it; nothing here is looked at
// twice, so a field that the page does not use is not named.

export interface Session {
  name: string;
  roles: string[];
  clearance: string;
  csrf_token: string;
  has_password: boolean;
  workspaces: string[];
  /** What this person may fill from here; null for whoever has not the role, or where the stores are elsewhere. */
  stores: { knowledge: boolean; workspaces: string[] } | null;
}

/** What became of a playbook that was read in. */
export interface PlaybookReport {
  added: number;
  changed: number;
  unchanged: number;
  chunks: number;
  lines: string[];
  by_words_only: boolean;
  lacking: string;
}

/** What became of the past incidents of a workspace. */
export interface IncidentsReport {
  workspace: string;
  ingested: { added: number; changed: number; unchanged: number; removed: number };
  fault: string;
  next_step: string;
}

/** What an import did with one file, or one table of it. */
export interface ImportReport {
  file: string;
  table: string;
  rows_read: number;
  rows_stored: number;
  duplicates_skipped: number;
  rows_rejected: number;
  misfits: { column: string; type: string; count: number }[];
  rejects: { line: number | null; reason: string }[];
  new_columns: Record<string, string>;
  notes: string[];
  /** To the minute, UTC; empty where no row has a time. */
  oldest: string;
  newest: string;
  columns: string[];
  first: string[][];
  /** Nothing was stored. */
  trial: boolean;
  error: string;
  next_step: string;
}

export interface TableInfo {
  table: string;
  rows: number;
  oldest: string | null;
  newest: string | null;
}

export interface Token {
  token_id: string;
  name: string;
  created_at: string;
  used_at: string | null;
  ends_at: string;
}

export interface NewToken {
  token_id: string;
  name: string;
  token: string;
}

export interface CarriedFact {
  text: string;
  at: string;
  call_id: string;
  pointer: string;
}

export interface Label {
  sensitivity: string;
  integrity: string;
}

export interface Coverage {
  workspace: string;
  tables: string[];
  window: { start: string | null; end: string | null };
  rows_returned: number;
  rows_total: number | null;
  query: string;
  partial: boolean;
  partial_reason: string;
  table_rows: number | null;
  table_oldest: string | null;
  table_newest: string | null;
}

/** What runs here; a part is `ok`, or says what is wrong. */
export interface SystemState {
  parts: Record<string, string>;
  versions: { page: string; agent: string | null };
  /** Empty for the planner, null where the agent does not answer. */
  model: string | null;
  workspaces: string[];
  keep_days: number;
}

export interface ToolTrace {
  call_id: string;
  name: string;
  arguments: Record<string, unknown>;
  status: "ok" | "denied" | "failed" | "running";
  detail: string;
  audit_id: string;
  duration_ms: number;
  coverage: Coverage | null;
}

export interface Table {
  title: string;
  columns: string[];
  rows: string[][];
}

export interface Evidence {
  number: number;
  text: string;
  call_id: string;
  tool: string;
  pointer: string;
  value: unknown;
}

export interface EvidenceRow extends Evidence {
  row: Record<string, unknown>;
  call: ToolTrace | null;
}

export type SentenceState = "values_found" | "source_given" | "own_words" | "not_found" | "contradicted";

export interface Citation {
  ref: string;
  call_id: string;
  tool: string;
  pointer: string;
  /** Places in the text where the writer put it; none if another sentence or the check gave it. */
  at?: number[];
}

export interface Mark {
  start: number;
  end: number;
  found: boolean;
  call_id: string;
  pointer: string;
  value: unknown;
}

export interface Sentence {
  start: number;
  end: number;
  text: string;
  state: SentenceState;
  reason: string;
  citations: Citation[];
  marks: Mark[];
  cited_by: "writer" | "block" | "check" | "nobody";
}

export interface Answer {
  outcome: string;
  answer: string;
  tables: Table[];
  footnote: string[];
  suggestions: string[];
  tools: ToolTrace[];
  evidence: Omit<Evidence, "number">[];
  /** An answer of an earlier version has none. */
  sentences?: Sentence[];
}

export interface Turn {
  turn_id: string;
  session_id: string;
  number: number;
  request_id: string | null;
  question: string;
  state: "running" | "answered" | "failed" | "stopped";
  asked_at: string;
  answer: Answer | null;
  /** What was shown of an answer that did not come to its end; null where there is an answer. */
  written: string | null;
  written_sentences: Sentence[] | null;
  opinion?: Opinion | null;
}

export interface Conversation {
  session_id: string;
  title: string;
  used_at: string;
  turns: number;
}

export interface ConversationPage extends Conversation {
  items: Turn[];
  next_after: number;
}

export interface Violation {
  parameter: string;
  label: Label;
  accepts: Label;
  link: boolean;
}

export interface Raise {
  audit_id: string;
  tool: string;
  label: Label;
  at: string;
}

export interface Subject {
  name: string;
  state: Record<string, unknown>;
  /** What would be written, with what the tool fills in. */
  changes: { field: string; before: unknown; after: unknown }[];
}

export interface Approval {
  approval_id: string;
  state: "pending" | "approved" | "denied" | "used" | "expired";
  asked_at: string;
  ends_at: string;
  used_at: string | null;
  key_id: string;
  session_id: string;
  tool: string;
  effect: string;
  server: string;
  description: string;
  rule_id: string;
  condition: string;
  taint_level: string;
  why: string;
  context: Label;
  arguments: Record<string, unknown> | null;
  /** Who wants what, as one sentence of the gateway. */
  title: string;
  /** The thing that the call is for, as the gateway read it before it asked. */
  subject: Subject | null;
  /** Earlier calls of the conversation that read something; `about` this very thing or not. */
  evidence: { audit_id: string; tool: string; at: string; about: boolean }[];
  /** Whether it runs as soon as somebody has approved it. */
  runs_at_yes: boolean;
  /** What came of a call that runs at the yes; `approval_id` is the request that was made in its place, if one was. */
  outcome: { status: string; reason: string | null; approval_id: string | null } | null;
  argument_labels: Record<string, Label>;
  violations: Violation[];
  raised_by: Raise[];
  /** What the agent may remember of all its conversations, and the calls that raised it. */
  memory: Label;
  memory_raised_by: Raise[];
  /** Whom the agent asks for (empty for nobody), and the words that they said last. */
  person: string;
  words: string;
  /** Arguments that hold nothing but what the person named. */
  named: string[];
  /** Arguments whose value stands in the person's words, as the gateway reads them. */
  said: string[];
  decided_by: "asker" | "other";
  approvers: string[];
  /** `name` is the person's, empty where it is not known here. */
  decision: { by: string; name: string; comment: string; at: string } | null;
  more_of_tool: number;
  may_decide: boolean;
  /** A denial that whoever looks may take back. */
  may_lift: boolean;
  outdated: boolean;
  own: boolean;
  /** Who asked with their own key, without the agent. */
  reader: string | null;
}

/** What became of a call of a conversation that a person was asked about. */
export interface RequestState {
  approval_id: string;
  /** The audit record of the call that was held back. */
  audit_id: string;
  tool: string;
  state: "pending" | "approved" | "denied" | "used" | "expired";
  asked_at: string;
  decision: { by: string; comment: string; at: string } | null;
  used_at: string | null;
}

/** What a person thought of an answer. */
export interface Opinion {
  good: boolean;
  reason: string;
}

export interface Person {
  name: string;
  roles: string[];
  clearance: string;
  groups: string[];
  state: string;
  signs_in_with: string[];
  created_at: string;
}

/** An account after a change, and how its person chooses a password where they have to. */
export interface Changed {
  user: Person;
  invitation?: { token: string; ends_at: string } | null;
}

/** What questions of some days took, as counts. */
export interface Took {
  questions: number;
  people: number;
  helped: number;
  not_helped: number;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  /** Answers of a model that nobody gave a price. */
  unpriced: number;
  cost_usd: string;
}

export interface Usage {
  last: Took;
  before: Took;
}

export interface AuditEntry {
  record: { seq: number; kind: string; at?: string } & Record<string, unknown>;
  hash: string;
  outcome: string | null;
}

export interface Verification {
  intact: boolean;
  records: number;
  sealed: number;
  unsealed: number;
  anchored: boolean;
  broken_at: number | null;
  problem: string | null;
}

export interface Policy {
  policy: string;
  source: string;
  loaded_at: string | null;
  refused: { problems: string[]; at: string } | null;
  text: string | null;
  tools: PolicyTool[];
}

export interface PolicyTool {
  name: string;
  effect: string;
  approvers: string[];
  rules: { rule_id: string; when: string; then: "never" | "asker" | "other" | "runs_or_asks" | "runs" }[];
}

export interface Story {
  verdict: Record<string, unknown>;
  lines: string[];
}
