// The gateway's record of every call, newest first, filtered, and its check.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useAnswer, useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { State } from "../parts/reading.tsx";
import { moment } from "../parts/tool_status.tsx";
import { shown, visible } from "../visible.ts";
import type { AuditEntry, Verification } from "../wire.ts";

const PAGE = 50;

type Names = Record<string, string>;

interface Page {
  records: AuditEntry[];
  /** Of keys, by their ids. */
  names: Names;
  /** Null: the first record was reached. */
  next_before: number | null;
}

const FILTERS = {
  person: "Person or key",
  incident: "Incident",
  tool: "Tool",
  kind: "Kind",
  session: "Session",
};
type Filter = Partial<Record<keyof typeof FILTERS, string>>;

/** `id` is an audit id, or `?` with filters as an address has them. */
export function AuditView({ id, go }: { id: string | null; go: (id: string | null) => void }): JSX.Element {
  const filters = id === null || id.startsWith("?");
  return (
    <div class="stack">
      <Verify />
      {filters ? <Journal key={id} filter={filterOf(id ?? "")} go={go} /> : <OneCall key={id} id={id} />}
    </div>
  );
}

function filterOf(id: string): Filter {
  const given = new URLSearchParams(id.slice(1));
  const pairs = Object.keys(FILTERS).map((name) => [name, given.get(name) ?? ""]);
  return Object.fromEntries(pairs.filter(([, text]) => text !== ""));
}

function addressOf(filter: Filter): string | null {
  const text = new URLSearchParams(filter).toString();
  return text === "" ? null : `?${text}`;
}

function Verify(): JSX.Element {
  const [found, setFound] = useState<Verification | null>(null);
  const [run, busy, refusal] = useWork();
  const verify = async (): Promise<void> => setFound(await ask<Verification>("POST", "/audit/verify"));
  return (
    <>
      <div class="row">
        <h1>Audit</h1>
        <button type="button" class="push" disabled={busy} onClick={() => run(verify)}>
          {busy ? "Verifying..." : "Verify the journal"}
        </button>
      </div>
      <RefusalNotice refusal={refusal} />
      <p role="status" class={found === null ? "" : found.intact ? "notice plain" : "notice refusal"}>
        {found === null ? "" : verdict(found)}
      </p>
    </>
  );
}

function verdict(found: Verification): string {
  if (!found.intact) {
    const where = found.broken_at === null ? "" : ` at record ${found.broken_at}`;
    return (
      `✗ NOT INTACT${where}: ${visible(found.problem ?? "")} Records from there on prove nothing: they may have been ` +
      "changed, removed or added. Keep a copy of the folder, and tell whoever runs this machine: sentinel audit verify."
    );
  }
  const anchored = found.anchored
    ? "The newest signature is the one that was kept elsewhere."
    : "No signature kept elsewhere was compared, so whoever owns this machine could have written it all anew.";
  const rest = found.unsealed === 0 ? "" : ` The ${found.unsealed} newest are not signed yet.`;
  return (
    `✓ Intact: ${found.records} records, ${found.sealed} of them signed; none was changed, removed or put in between.` +
    `${rest} ${anchored}`
  );
}

function Journal({ filter, go }: { filter: Filter; go: (id: string | null) => void }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget as HTMLFormElement)].map(([name, text]) => [
      name,
      `${text}`.trim(),
    ]);
    go(addressOf(Object.fromEntries(given.filter(([, text]) => text !== ""))));
  };
  return (
    <>
      <form class="filters" onSubmit={submit}>
        {Object.entries(FILTERS).map(([name, label]) => (
          <label key={name} class="choice">
            <span class="label">{label}</span>
            <input name={name} maxLength={64} defaultValue={filter[name as keyof Filter] ?? ""} />
          </label>
        ))}
        <button type="submit" class="main">
          Find
        </button>
        <button type="button" onClick={() => go(null)}>
          All
        </button>
      </form>
      <Records filter={filter} />
    </>
  );
}

/** The records that `filter` lets through, from the newest on. */
function Records({ filter }: { filter: Filter }): JSX.Element {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [names, setNames] = useState<Names>({});
  const [before, setBefore] = useState<number | null>(0);
  const [run, busy, refusal] = useWork();
  const load = (from: number, shown: AuditEntry[]): void =>
    run(async () => {
      const query = new URLSearchParams({ ...filter, before: String(from), limit: String(PAGE) });
      const page = await ask<Page>("GET", `/audit?${query}`);
      setEntries([...shown, ...page.records]);
      setNames((known) => ({ ...known, ...page.names }));
      setBefore(page.next_before);
    });
  useEffect(() => load(0, []), []);
  const end = before === null ? "This is the beginning of the journal." : `Looked back to record ${before}.`;
  return (
    <Card
      title="Journal"
      busy={busy}
      note={`${entries.length} records, the newest first${Object.keys(filter).length === 0 ? "" : ", of those asked for"}`}
      side={
        <button type="button" class="small" disabled={busy} onClick={() => load(0, [])}>
          Look for newer records
        </button>
      }
    >
      <RefusalNotice refusal={refusal} />
      <ol class="journal">
        {entries.map((entry) => (
          <li key={entry.hash} value={entry.record.seq}>
            <Entry entry={entry} names={names} call={callOf(entry, entries)} />
          </li>
        ))}
      </ol>
      <footer class="row">
        {before === 0 ? "" : end}
        {before === null || before === 0 ? null : (
          <button type="button" class="small" disabled={busy} onClick={() => load(before, entries)}>
            Show older records
          </button>
        )}
      </footer>
    </Card>
  );
}

/** The call that an outcome is of, where its record is here too. */
function callOf({ record }: AuditEntry, entries: AuditEntry[]): AuditEntry | undefined {
  return record.kind === "outcome"
    ? entries.find((each) => each.record.kind === "intent" && each.record.audit_id === record.audit_id)
    : undefined;
}

function OneCall({ id }: { id: string }): JSX.Element {
  const call = useAnswer<Page>(`/audit/${encodeURIComponent(id)}`);
  return (
    <Card title="One call" side={<a href="#/audit">The whole journal</a>}>
      <State of={call} />
      <div class="journal">
        {call.found?.records.map((entry) => (
          <Entry key={entry.hash} entry={entry} names={call.found?.names ?? {}} open />
        ))}
      </div>
    </Card>
  );
}

/** The kinds of records in the words of people; another kind stands as it is. */
const KINDS: Record<string, string> = {
  intent: "called",
  outcome: "ended",
  refusal: "was refused",
  approval_asked: "asked a person for",
  approval_decided: "decided about",
  session: "session",
  key: "key",
  store_changed: "store",
};

const WELL = new Set(["success", "allow", "approve_once", "open"]);

function Entry(props: { entry: AuditEntry; names: Names; call?: AuditEntry | undefined; open?: boolean }): JSX.Element {
  const { entry, names, open } = props;
  const { seq, kind, ...rest } = entry.record;
  const text = (name: string, of: Record<string, unknown> = rest): string =>
    typeof of[name] === "string" ? String(of[name]) : "";
  const of = props.call?.record ?? rest;
  const args = (of.arguments ?? {}) as Record<string, unknown>;
  const incident = typeof args.incident === "string" ? `incident ${args.incident}` : "";
  const told = [text("tool", of), incident, text("store"), text("change"), text("name")].filter((part) => part);
  // What waits for a person is the usual way of a change, and no offence.
  const held = kind === "refusal" && text("approval_id") !== "";
  const came = held ? "waits for a yes" : (entry.outcome ?? (text("status") || text("decision") || text("state")));
  const tone = WELL.has(came) ? "ok" : held ? "warn" : kind === "refusal" ? "bad" : "";
  const by = text("by") || names[text("key_id", of)] || text("key_id", of);
  const facts = Object.entries(rest).map(([name, value]): [string, string] => [name, shown(value)]);
  const request = text("approval_id") || (kind.startsWith("approval_") ? text("audit_id") : "");
  const leads: [string, string | null][] = [
    ["Only this session", addressOf(text("session_id") === "" ? {} : { session: text("session_id") })],
    ["Only this incident", addressOf(incident === "" ? {} : { incident: String(args.incident) })],
    ["The request, and who decided it", request || null],
  ];
  return (
    <details open={open ?? false}>
      <summary>
        <span class="label">{text("at") === "" ? "" : moment(text("at"), "").replace(" UTC", "")}</span>
        <strong class="person">{visible(by)}</strong>
        <span title={visible(kind)}>{held ? "asked to run" : (KINDS[kind] ?? visible(kind.replaceAll("_", " ")))}</span>
        <span>{visible(told.join(", "))}</span>
        {came === "" ? null : <span class={`chip ${tone}`}>{visible(came.replaceAll("_", " "))}</span>}
      </summary>
      <Facts facts={[["seq", String(seq)], ["kind", kind], ...facts, ["hash", visible(entry.hash)]]} />
      <p class="row">
        {leads.map(([words, to]) =>
          to === null ? null : (
            <a key={words} href={`#/audit/${encodeURIComponent(to)}`}>
              {words}
            </a>
          ),
        )}
      </p>
    </details>
  );
}
