// The gateway's record of every call, newest first, filtered, and its check.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
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
      <div class="row">
        <h1>Audit</h1>
        <Verify />
      </div>
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
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const verify = async (): Promise<void> => {
    setBusy(true);
    try {
      setFound(await ask<Verification>("POST", "/audit/verify"));
      setRefusal(null);
    } catch (error) {
      setRefusal(asRefusal(error));
    }
    setBusy(false);
  };
  return (
    <section aria-label="Verify">
      <button type="button" disabled={busy} onClick={() => void verify()}>
        {busy ? "Verifying..." : "Verify the journal"}
      </button>
      <RefusalNotice refusal={refusal} />
      <p role="status">{found === null ? "" : verdict(found)}</p>
    </section>
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
    <section aria-label="Journal">
      <form class="journal-filters" onSubmit={submit}>
        {Object.entries(FILTERS).map(([name, label]) => (
          <label key={name}>
            {label}
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
    </section>
  );
}

/** The records that `filter` lets through, from the newest on. */
function Records({ filter }: { filter: Filter }): JSX.Element {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [names, setNames] = useState<Names>({});
  const [before, setBefore] = useState<number | null>(0);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const load = async (from: number, shown: AuditEntry[]): Promise<void> => {
    setBusy(true);
    try {
      const query = new URLSearchParams({ ...filter, before: String(from), limit: String(PAGE) });
      const page = await ask<Page>("GET", `/audit?${query}`);
      setEntries([...shown, ...page.records]);
      setNames((known) => ({ ...known, ...page.names }));
      setBefore(page.next_before);
      setRefusal(null);
    } catch (error) {
      setRefusal(asRefusal(error));
    }
    setBusy(false);
  };
  useEffect(() => void load(0, []), []);
  const end = before === null ? "This is the beginning of the journal." : `Looked back to record ${before}.`;
  return (
    <>
      <RefusalNotice refusal={refusal} />
      <p class="row">
        <span>
          {entries.length} records, the newest first{Object.keys(filter).length === 0 ? "" : ", of those asked for"}
        </span>
        <button type="button" disabled={busy} onClick={() => void load(0, [])}>
          Look for newer records
        </button>
      </p>
      <ol class="journal">
        {entries.map((entry) => (
          <li key={entry.hash} value={entry.record.seq}>
            <Entry entry={entry} names={names} />
          </li>
        ))}
      </ol>
      <p class="row">
        <span class="quiet">{before === 0 ? "" : end}</span>
        {before === null || before === 0 ? null : (
          <button type="button" disabled={busy} onClick={() => void load(before, entries)}>
            Show older records
          </button>
        )}
      </p>
    </>
  );
}

function OneCall({ id }: { id: string }): JSX.Element {
  const [found, setFound] = useState<Pick<Page, "records" | "names"> | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    ask<Page>("GET", `/audit/${encodeURIComponent(id)}`).then(setFound, (error) => setRefusal(asRefusal(error)));
  }, [id]);
  return (
    <section aria-label="One call">
      <a href="#/audit">The whole journal</a>
      <RefusalNotice refusal={refusal} />
      {found === null && refusal === null ? <p class="quiet">Reading...</p> : null}
      {found?.records.map((entry) => (
        <Entry key={entry.hash} entry={entry} names={found.names} open />
      ))}
    </section>
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

function Entry(props: { entry: AuditEntry; names: Names; open?: boolean }): JSX.Element {
  const { entry, names, open } = props;
  const { seq, kind, ...rest } = entry.record;
  const text = (name: string): string => (typeof rest[name] === "string" ? String(rest[name]) : "");
  const args = (rest.arguments ?? {}) as Record<string, unknown>;
  const incident = typeof args.incident === "string" ? `incident ${args.incident}` : "";
  const told = [
    ...[text("tool"), incident, text("store"), text("state"), text("change"), text("name"), text("decision")],
    ...[text("status"), entry.outcome],
  ];
  const by = text("by") || names[text("key_id")] || text("key_id");
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
        <span class="quiet">{text("at") === "" ? "" : moment(text("at"), "")}</span> <strong>{visible(by)}</strong>{" "}
        <span title={visible(kind)}>{KINDS[kind] ?? visible(kind.replaceAll("_", " "))}</span>{" "}
        {visible(told.filter((part) => part).join(", "))}
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
