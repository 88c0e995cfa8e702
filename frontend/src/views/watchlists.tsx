// The watchlists of an embedded workspace: lists from CSV files that queries compare rows with.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { CopyButton } from "../parts/copy.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Time } from "../parts/signs.tsx";
import { DropBox, Uploads, useUploads } from "../parts/upload.tsx";
import { counted } from "../times.ts";
import { visible } from "../visible.ts";

interface Rows {
  columns: string[];
  rows: Record<string, unknown>[];
  partial: boolean;
}

/** Lists to compare rows with: those that there are, the items of one, and what puts one in or takes it out. */
export function Watchlists({ workspace }: { workspace: string }): JSX.Element {
  const [found, setFound] = useState<Rows | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [turn, setTurn] = useState(0);
  const [alias, setAlias] = useState("");
  const [key, setKey] = useState("");
  const [leaving, setLeaving] = useState("");
  const of = (more: Record<string, string>): string =>
    `/data/watchlists?${new URLSearchParams({ workspace, ...more })}`;
  const again = (): void => setTurn((count) => count + 1);
  useEffect(() => {
    const ended = new AbortController();
    ask<Rows>("GET", of({}), undefined, ended.signal).then(
      (rows) => {
        setFound(rows);
        setRefusal(null);
      },
      (error) => ended.signal.aborted || setRefusal(asRefusal(error)),
    );
    return () => ended.abort();
  }, [workspace, turn]);
  const send = (file: File, replace: boolean): Promise<{ alias: string; items: number }> => {
    const named = alias === "" ? aliasOf(file.name) : alias;
    const more = { ...(key === "" ? {} : { key }), ...(replace ? { replace: "true" } : {}) };
    return ask("PUT", of({ alias: named, name: file.name, ...more }), file);
  };
  const [uploads, add] = useUploads((file) => send(file, false), again);
  const remove = (name: string): void => {
    setLeaving("");
    ask("DELETE", of({ alias: name })).then(again, (error) => setRefusal(asRefusal(error)));
  };
  return (
    <section class="card" aria-labelledby="watchlists" aria-busy={found === null && refusal === null}>
      <header>
        <h2 id="watchlists">Watchlists</h2>
        <span class="quiet">{found === null ? "" : `${found.rows.length} in ${visible(workspace)}`}</span>
      </header>
      <RefusalNotice refusal={refusal} />
      <div class="in">
        <div class="filters">
          <div class="choice">
            <label for="alias">Alias (optional)</label>
            <input
              id="alias"
              placeholder="the name of the file"
              value={alias}
              maxLength={64}
              pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
              onInput={(event) => setAlias(event.currentTarget.value.trim())}
            />
          </div>
          <div class="choice">
            <label for="search-key">Search key (optional)</label>
            <input
              id="search-key"
              placeholder="the first column"
              value={key}
              maxLength={200}
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </div>
        </div>
        <DropBox
          words="Drop a list here, or choose it: CSV, its first line names the columns"
          accept=".csv"
          onFiles={add}
        />
        <p class="label">
          <code>SearchKey</code> is the column that joins use. The KQL below a list gives its keys, for{" "}
          <code>where Account in ((...))</code>.
        </p>
      </div>
      <Uploads
        uploads={uploads}
        busy="Putting it in..."
        refused={({ file, refusal: why }) =>
          why?.reason === "exists" ? <Replacing send={() => send(file, true)} done={again} /> : null
        }
      >
        {(made) => (
          <p>
            <strong>{counted(made.items)}</strong> items in <strong>{visible(made.alias)}</strong>.
          </p>
        )}
      </Uploads>
      {found?.rows.length === 0 ? <p class="empty">There is no watchlist here yet.</p> : null}
      <ul class="listed" aria-label="Watchlists">
        {found?.rows.map((row) => {
          const name = String(row.Alias);
          return (
            <li key={name}>
              <div class="row between">
                <span class="long">
                  <strong>{visible(name)}</strong>{" "}
                  <span class="quiet">
                    {counted(Number(row.Items))} items of {visible(String(row.Source))},{" "}
                    <Time short at={String(row.Updated)} />
                  </span>
                </span>
                {leaving === name ? (
                  <span class="row">
                    <button type="button" onClick={() => remove(name)}>
                      Remove {visible(name)}
                    </button>
                    <button type="button" class="link" onClick={() => setLeaving("")}>
                      Keep it
                    </button>
                  </span>
                ) : (
                  <button type="button" class="link" onClick={() => setLeaving(name)}>
                    Remove
                  </button>
                )}
              </div>
              <p class="row">
                <code>{visible(keysOf(name))}</code>
                <CopyButton text={keysOf(name)} what={`the KQL of ${visible(name)}`} />
              </p>
              <Items path={of({ alias: name })} name={name} turn={turn} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Replacing(props: { send: () => Promise<unknown>; done: () => void }): JSX.Element {
  const [told, setTold] = useState("");
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const replace = (): void => {
    props.send().then(
      () => {
        setTold("It is replaced.");
        props.done();
      },
      (error) => setRefusal(asRefusal(error)),
    );
  };
  return told === "" ? (
    <>
      <RefusalNotice refusal={refusal} />
      <button type="button" onClick={replace}>
        Replace it
      </button>
    </>
  ) : (
    <p role="status">{told}</p>
  );
}

const OWN = new Set(["_DTItemId", "LastUpdatedTimeUTC"]);

/** The items of one list, read when they are opened. */
function Items(props: { path: string; name: string; turn: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<Rows | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    if (!open) {
      return undefined;
    }
    const ended = new AbortController();
    ask<Rows>("GET", props.path, undefined, ended.signal).then(setFound, (error) =>
      ended.signal.aborted ? undefined : setRefusal(asRefusal(error)),
    );
    return () => ended.abort();
  }, [open, props.path, props.turn]);
  const columns = (found?.columns ?? []).filter((name) => !OWN.has(name));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Items</summary>
      <RefusalNotice refusal={refusal} />
      {found === null ? null : (
        <>
          <Scroll label={`Items of ${visible(props.name)}`}>
            <table>
              <thead>
                <tr>
                  {columns.map((name) => (
                    <th key={name} scope="col">
                      {visible(name)}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {found.rows.map((row) => (
                  <tr key={String(row._DTItemId)}>
                    {columns.map((name) => (
                      <td key={name}>{visible(String(row[name] ?? ""))}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
          {found.partial ? <p class="label">The first {found.rows.length} items.</p> : null}
        </>
      )}
    </details>
  );
}

/** KQL of the keys of a list, in a form that the guard of queries knows. */
function keysOf(alias: string): string {
  return `Watchlist | where WatchlistAlias == '${alias}' | project SearchKey`;
}

/** The name of a file as an alias: what an alias cannot hold is left out. */
function aliasOf(file: string): string {
  return file
    .replace(/\.[^.]*$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^[-_]+/, "")
    .slice(0, 64);
}
