// What the knowledge base holds: playbooks and past incidents, found by words and meaning, and read as they stand.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type Seen, useLook } from "../look.ts";
import { unmarked } from "../marks.ts";
import { Icon } from "../parts/icon.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { HowFound, Reading } from "../parts/reading.tsx";
import { Choice, Severity, Time } from "../parts/signs.tsx";
import type { Hit, Knowledge } from "../tool_rows.ts";
import { visible } from "../visible.ts";

const MOST = 10;
const WHOLE = 20;
const COLLECTIONS: [string, string][] = [
  ["", "playbooks and past incidents"],
  ["playbooks", "playbooks"],
  ["sentinel_incidents", "past incidents"],
];
const EXAMPLES = ["isolate a host", "revoke sessions", "ransomware", "phishing link clicked"];

/** `id` is a document to be read whole. */
export function KnowledgeView({ id }: { id: string | null }): JSX.Element {
  const [wanted, setWanted] = useState("");
  const [collection, setCollection] = useState("");
  const search = useLook<Knowledge>(
    "search_knowledge_base",
    id !== null || wanted === "" ? null : { query: wanted, collection, limit: MOST },
  );
  const document = useLook<Knowledge>("search_knowledge_base", id === null ? null : { document: id, limit: WHOLE });
  if (id !== null) {
    return (
      <div class="stack">
        <h1>{visible(id)}</h1>
        <Reading title={visible(document.found?.result.hits[0]?.title ?? "Document")} look={document}>
          {(found) => <Whole found={found} />}
        </Reading>
      </div>
    );
  }
  return (
    <div class="stack">
      <h1>Knowledge</h1>
      <form
        class="askbox"
        onSubmit={(event) => {
          event.preventDefault();
          setWanted(String(new FormData(event.currentTarget).get("wanted") ?? "").trim());
        }}
      >
        <Icon name="search" />
        <label>
          <span class="unseen">Search playbooks and past incidents</span>
          <input name="wanted" type="search" maxLength={1_000} placeholder="Search playbooks and past incidents" />
        </label>
        <button type="submit" class="main">
          Search
        </button>
      </form>
      <div class="row">
        <Choice label="Within" value={collection} options={COLLECTIONS} onChange={setCollection} />
      </div>
      {wanted === "" ? (
        <>
          <p class="quiet">For example:</p>
          <ul class="suggested">
            {EXAMPLES.map((each) => (
              <li key={each}>
                <button type="button" onClick={() => setWanted(each)}>
                  {each}
                </button>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <Reading title={`“${visible(wanted)}”`} look={search}>
          {(found) => <Hits found={found} />}
        </Reading>
      )}
    </div>
  );
}

function Hits({ found }: { found: Seen<Knowledge> }): JSX.Element {
  const { hits, total, remarks, freshness } = found.result;
  return (
    <>
      {hits.length === 0 ? <p>Nothing in it is about that.</p> : null}
      <ul class="hits">
        {hits.map((hit) => (
          <li key={hit.citation}>
            <HitHead hit={hit} />
            <Markdown marked={unmarked(hit.text)} />
          </li>
        ))}
      </ul>
      <footer>
        {hits.length} of {total}; {freshness.playbooks} playbooks and {freshness.incidents} past incidents were
        searched, incidents as of <Time at={freshness.incidents_as_of} none="never" />.
        <HowFound of={found} remarks={remarks} />
      </footer>
    </>
  );
}

function HitHead({ hit }: { hit: Hit }): JSX.Element {
  const number = /^incident-(\d+)$/.exec(hit.document_id)?.[1];
  return (
    <div class="row">
      {number === undefined ? (
        <a class="strong" href={`#/knowledge/${encodeURIComponent(hit.document_id)}`}>
          {visible(hit.citation)}
        </a>
      ) : (
        <>
          <a class="strong" href={`#/incidents/${number}`}>
            {number} {visible(hit.title)}
          </a>
          <Severity of={hit.severity || null} />
          <span class="quiet">
            {visible(hit.status)} {visible(hit.classification)}
          </span>
        </>
      )}
    </div>
  );
}

function Whole({ found }: { found: Seen<Knowledge> }): JSX.Element {
  const { hits } = found.result;
  return (
    <>
      {hits.length === 0 ? <p>There is no such document.</p> : null}
      <ul class="hits">
        {hits.map((hit) => (
          <li key={hit.citation}>
            <h3>{visible(hit.section || hit.citation)}</h3>
            <Markdown marked={unmarked(hit.text)} />
          </li>
        ))}
      </ul>
      <footer>
        <HowFound of={found} />
      </footer>
    </>
  );
}
