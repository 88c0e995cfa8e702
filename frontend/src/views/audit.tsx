// The gateway's record of every call, newest first, filtered, and its check.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { moment } from "../parts/tool_status.tsx";
import { shown, visible } from "../visible.ts";
import type { AuditEntry, Verification } from "../wire.ts";

const PAGE = 50;

interface Page {
  records: AuditEntry[];
  /** Null: the first record was reached. */
  next_before: number | null;
}

const FILTERS = { kind: "Kind", tool: "Tool", session: "Session", person: "Person or key" };
type Filter = Partial<Record<keyof typeof FILTERS, string>>;

export function AuditView({ id, go }: { id: string | null; go: (id: string | null) => void }): JSX.Element {
  return (
    <div class="stack">
      <h1>Audit</h1>
      <Verify />
      {id === null ? <Journal /> : <OneCall key={id} id={id} back={() => go(null)} />}
    </div>
  );
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

function Journal(): JSX.Element {
  const [filter, setFilter] = useState<Filter>({});
  const form = useRef<HTMLFormElement>(null);
  const only = (wanted: Filter): void => {
    for (const name of Object.keys(FILTERS)) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement) {
        field.value = wanted[name as keyof Filter] ?? "";
      }
    }
    setFilter(wanted);
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget as HTMLFormElement)].map(([name, text]) => [
      name,
      `${text}`.trim(),
    ]);
    setFilter(Object.fromEntries(given.filter(([, text]) => text !== "")));
  };
  return (
    <section aria-label="Journal">
      <form ref={form} class="journal-filters" onSubmit={submit}>
        {Object.entries(FILTERS).map(([name, label]) => (
          <label key={name}>
            {label}
            <input name={name} maxLength={64} />
          </label>
        ))}
        <button type="submit" class="main">
          Find
        </button>
        <button type="button" onClick={() => only({})}>
          All
        </button>
      </form>
      <Records key={JSON.stringify(filter)} filter={filter} only={only} />
    </section>
  );
}

/** The records that `filter` lets through, from the newest on. */
function Records({ filter, only }: { filter: Filter; only: (wanted: Filter) => void }): JSX.Element {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [before, setBefore] = useState<number | null>(0);
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const load = async (from: number, shown: AuditEntry[]): Promise<void> => {
    setBusy(true);
    try {
      const query = new URLSearchParams({ ...filter, before: String(from), limit: String(PAGE) });
      const page = await ask<Page>("GET", `/audit?${query}`);
      setEntries([...shown, ...page.records]);
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
            <Entry entry={entry} only={only} />
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

function OneCall({ id, back }: { id: string; back: () => void }): JSX.Element {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    ask<{ records: AuditEntry[] }>("GET", `/audit/${encodeURIComponent(id)}`).then(
      (found) => setEntries(found.records),
      (error) => setRefusal(asRefusal(error)),
    );
  }, [id]);
  return (
    <section aria-label="One call">
      <button type="button" onClick={back}>
        The whole journal
      </button>
      <RefusalNotice refusal={refusal} />
      {entries.map((entry) => (
        <Entry key={entry.hash} entry={entry} open />
      ))}
    </section>
  );
}

function Entry(props: { entry: AuditEntry; open?: boolean; only?: (wanted: Filter) => void }): JSX.Element {
  const { entry, open, only } = props;
  const { seq, kind, ...rest } = entry.record;
  const when = typeof rest.at === "string" ? moment(rest.at, "") : "";
  const about = [rest.tool, rest.decision, entry.outcome].filter((part) => typeof part === "string").join(", ");
  const facts = Object.entries(rest).map(([name, value]): [string, string] => [name, shown(value)]);
  const session = typeof rest.session_id === "string" ? rest.session_id : "";
  return (
    <details open={open ?? false}>
      <summary>
        <strong>{visible(kind)}</strong> {visible(about)} <span class="quiet">{when}</span>
      </summary>
      <Facts facts={[["seq", String(seq)], ...facts, ["hash", visible(entry.hash)]]} />
      {only === undefined || session === "" ? null : (
        <button type="button" onClick={() => only({ session })}>
          Only this session
        </button>
      )}
    </details>
  );
}
