// The Interceptor's record of every call, oldest first, and its check.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { moment } from "../parts/tool_status.tsx";
import { shown, visible } from "../visible.ts";
import type { AuditEntry, Verification } from "../wire.ts";

const PAGE = 50;

interface Page {
  records: AuditEntry[];
  next_after: number;
}

export function AuditView({ id, go }: { id: string | null; go: (id: string | null) => void }): JSX.Element {
  return (
    <>
      <h1>Audit</h1>
      <Verify />
      {id === null ? <Journal /> : <OneCall key={id} id={id} back={() => go(null)} />}
    </>
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
    return `✗ NOT INTACT at record ${found.broken_at ?? "?"}: ${visible(found.problem ?? "")}`;
  }
  const anchored = found.anchored ? "" : " No anchor outside of this machine was compared.";
  return `✓ Intact: ${found.records} records, ${found.sealed} of them signed.${anchored}`;
}

function Journal(): JSX.Element {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [after, setAfter] = useState(0);
  const [more, setMore] = useState(true);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const load = async (): Promise<void> => {
    try {
      const page = await ask<Page>("GET", `/audit?after=${after}&limit=${PAGE}`);
      setEntries([...entries, ...page.records]);
      setAfter(page.next_after);
      setMore(page.records.length === PAGE);
      setRefusal(null);
    } catch (error) {
      setRefusal(asRefusal(error));
    }
  };
  useEffect(() => void load(), []);
  return (
    <section aria-label="Journal">
      <RefusalNotice refusal={refusal} />
      <ol class="journal">
        {entries.map((entry) => (
          <li key={entry.hash} value={entry.record.seq}>
            <Entry entry={entry} />
          </li>
        ))}
      </ol>
      <button type="button" onClick={() => void load()}>
        {more ? "Show more" : "Look for newer records"}
      </button>
    </section>
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

function Entry({ entry, open }: { entry: AuditEntry; open?: boolean }): JSX.Element {
  const { seq, kind, ...rest } = entry.record;
  const when = typeof rest.at === "string" ? moment(rest.at, "") : "";
  const about = [rest.tool, rest.decision, entry.outcome].filter((part) => typeof part === "string").join(", ");
  const facts = Object.entries(rest).map(([name, value]): [string, string] => [name, shown(value)]);
  return (
    <details open={open ?? false}>
      <summary>
        <strong>{visible(kind)}</strong> {visible(about)} <span class="quiet">{when}</span>
      </summary>
      <Facts facts={[["seq", String(seq)], ...facts, ["hash", visible(entry.hash)]]} />
    </details>
  );
}
