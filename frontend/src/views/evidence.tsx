// What stands behind an answer: a chip in its text, and beside it the sentence's rows with their cells lit, or the row of
// one value, with the calls that they come from. A column of its own where there is room for one, else a sheet.
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { callFacts } from "../evidence.ts";
import { rerunLink } from "../links.ts";
import { useAnswer } from "../look.ts";
import { fieldOf, type Note, placeWords, reasonOf, SIGNS, type Source, same, sourcesOf } from "../marks.ts";
import { CopyButton } from "../parts/copy.tsx";
import { Facts } from "../parts/data_table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { State } from "../parts/reading.tsx";
import type { TurnView } from "../turn_view.ts";
import { shown, visible } from "../visible.ts";
import type { EvidenceRow, Mark, Sentence, SentenceState, ToolTrace } from "../wire.ts";

/** What is opened of which turn: a sentence by its place, or a piece of evidence by its number. */
export interface Opened {
  turn: string;
  sentence?: number;
  piece?: { number: number; title: string };
}

const MOST_NUMBERS = 3;
const MOST_CELLS = 12;
const SAID: Record<SentenceState, string> = {
  values_found: "Its values stand in what it cites. That proves the values, and not the words between them.",
  source_given: "It names a source, and holds nothing that could be compared with it.",
  not_found: "Not found in what it cites",
  contradicted: "What it cites says something else",
  own_words: "Own words: nothing was compared.",
};
const CITED_BY: Record<Sentence["cited_by"], string> = {
  writer: "The writer of the answer named the source.",
  block: "The source is that of the sentences around it.",
  check: "The check found the source; the writer named none.",
  nobody: "No source is named.",
};

/** The numbers of the sources, and the sign of a sentence that is wrong, as a button behind it. */
export function Chip(props: { note: Note; pressed: boolean; onOpen: () => void }): JSX.Element {
  const { sources, sentence, last } = props.note;
  const sign = last ? SIGNS[sentence.state] : undefined;
  const numbers = sources.slice(0, MOST_NUMBERS).join(", ") + (sources.length > MOST_NUMBERS ? ", …" : "");
  const named = sources.length === 0 ? "" : `${sources.length === 1 ? "source" : "sources"} ${sources.join(", ")}`;
  const state = sentence.state.replace("_", " ");
  const label = sign === undefined ? named : [`${state}: ${reasonOf(sentence)}`, named].filter(Boolean).join("; ");
  return (
    <button
      type="button"
      class={`source ${last ? sentence.state : ""}`}
      aria-label={label}
      aria-pressed={props.pressed}
      title={label}
      onClick={props.onOpen}
    >
      {sign === undefined ? numbers : `${sign} ${state}`}
    </button>
  );
}

/** Beside the conversation, whatever is opened; `turns` are those that it may be of. */
export function EvidencePanel(props: {
  turns: TurnView[];
  opened: Opened | null;
  /** Whether a person opened it. */
  chosen: boolean;
  wide: boolean;
  onClose: () => void;
}): JSX.Element | null {
  const { opened, wide, onClose } = props;
  const turn = props.turns.find((each) => each.key === opened?.turn);
  const body = turn === undefined || opened === null ? null : <Behind turn={turn} opened={opened} />;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (wide && event.key === "Escape" && document.querySelector("dialog[open]") === null) {
        onClose();
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [wide, onClose]);
  if (!wide) {
    return body === null ? null : (
      <Dialog title="Evidence" class="drawer" onClose={onClose}>
        {body}
      </Dialog>
    );
  }
  const answered = props.turns.findLast((each) => each.state === "answered");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="drawer beside" aria-label="Behind the answer" tabIndex={0}>
      <header>
        <h2>Evidence</h2>
        <span class="quiet">{answered === undefined ? "" : countsOf(answered)}</span>
        {!props.chosen ? null : (
          <button type="button" class="bare push" onClick={onClose}>
            Close
          </button>
        )}
      </header>
      <div aria-live="polite">
        {body ?? (
          <p class="in quiet">
            A number behind a sentence opens here the row that it rests on, with the cells that were compared, the call
            and its query. So does the number of a table's row.
          </p>
        )}
      </div>
    </section>
  );
}

function countsOf(turn: TurnView): string {
  const sources = sourcesOf(turn.sentences, []).length;
  const calls = turn.tools.length;
  return `${sources} ${sources === 1 ? "source" : "sources"}, ${calls} ${calls === 1 ? "call" : "calls"}`;
}

function Behind({ turn, opened }: { turn: TurnView; opened: Opened }): ComponentChildren {
  if (opened.piece !== undefined) {
    return <BehindPiece key={`${turn.key}${opened.piece.number}`} turn={turn} {...opened.piece} />;
  }
  const sentence = turn.sentences.find((each) => each.start === opened.sentence);
  return sentence === undefined ? null : <BehindSentence turn={turn} sentence={sentence} />;
}

/** The sentence with what was compared: the rows that it cites, its cells lit, and the calls that they come from. */
function BehindSentence({ turn, sentence }: { turn: TurnView; sentence: Sentence }): JSX.Element {
  const sources = sourcesOf(turn.sentences, turn.evidence);
  const cited = sources.filter((source) => sentence.citations.some((each) => same(each, source.citation)));
  const calls = turn.tools.filter((tool) => sentence.citations.some((citation) => citation.call_id === tool.call_id));
  const missing = sentence.marks.filter((mark) => !mark.found && mark.pointer === "");
  const characters = [...sentence.text];
  const literal = (mark: Mark): string =>
    characters.slice(mark.start - sentence.start, mark.end - sentence.start).join("");
  return (
    <>
      <section aria-label="Sentence">
        <blockquote>{visible(sentence.text)}</blockquote>
        <p class={sentence.state in SIGNS ? "refusal" : ""}>
          {sentence.state in SIGNS
            ? `${SIGNS[sentence.state]} ${SAID[sentence.state]}: ${reasonOf(sentence)}`
            : SAID[sentence.state]}
        </p>
        {missing.length === 0 ? null : <p>Found nowhere: {missing.map((mark) => visible(literal(mark))).join(", ")}</p>}
        <p class="label">{CITED_BY[sentence.cited_by]}</p>
      </section>
      {cited.map((source) => (
        <CitedRow
          key={`${source.citation.call_id}${source.citation.pointer}`}
          source={source}
          sentence={sentence}
          number={sources.indexOf(source) + 1}
        />
      ))}
      {calls.map((call) => (
        <Call key={call.call_id} call={call} />
      ))}
    </>
  );
}

function CitedRow(props: { source: Source; sentence: Sentence; number: number }): JSX.Element {
  const { citation, cells } = props.source;
  const compared = new Map(
    props.sentence.marks
      .filter((mark) => mark.call_id === citation.call_id && `${mark.pointer}/`.startsWith(`${citation.pointer}/`))
      .map((mark) => [fieldOf(mark.pointer, citation.pointer), mark.found]),
  );
  const lit = [...cells].filter(([name]) => compared.has(name));
  // Of a result as a whole the others are every cell of every row.
  const others = [...cells].filter(([name]) => !compared.has(name));
  const few = citation.pointer === "" ? [] : others.slice(0, MOST_CELLS);
  return (
    <section aria-label={`Source ${props.number}`}>
      <h3>
        Source {props.number}: {placeWords(citation)}
      </h3>
      {cells.size === 0 ? <p class="quiet">No cell of it was compared.</p> : null}
      <dl class="facts">
        {[...lit, ...few].map(([name, value]) => {
          const found = compared.get(name);
          return (
            <div key={name} class={found === undefined ? "" : found ? "lit found" : "lit other"}>
              <dt>
                {visible(name)}
                {found === undefined ? null : <strong> {found ? "✓ found" : "✗ differs"}</strong>}
              </dt>
              <dd>{told(value)}</dd>
            </div>
          );
        })}
      </dl>
      {few.length < others.length ? (
        <details>
          <summary>{others.length - few.length} more cells that the answer used</summary>
          <Facts facts={others.slice(few.length).map(([name, value]) => [name, shown(value)])} />
        </details>
      ) : null}
    </section>
  );
}

/** A value as JSON has it; of one with names each that holds something, on a line. */
function told(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return shown(value);
  }
  const parts = Object.entries(value).filter(([, each]) => !Array.isArray(each) || each.length > 0);
  return parts
    .map(([name, each]) => `${visible(name)}: ${Array.isArray(each) ? each.map(shown).join(", ") : shown(each)}`)
    .join("\n");
}

/** The row of one value, as the server keeps it. */
function BehindPiece(props: { turn: TurnView; number: number; title: string }): JSX.Element {
  const row = useAnswer<EvidenceRow>(`/turns/${encodeURIComponent(props.turn.turnId)}/evidence/${props.number}`);
  const { found } = row;
  return (
    <>
      <section aria-label="Value">
        <h3>{props.title}</h3>
        <State of={row} />
        {found === null ? null : <p>{visible(found.text)}</p>}
      </section>
      {found === null ? null : (
        <>
          <section aria-label="Row">
            <h3>The row, as far as the answer used it</h3>
            <Facts facts={Object.entries(found.row).map(([name, value]) => [name, shown(value)])} />
          </section>
          <section aria-label="Place">
            <h3>Its place</h3>
            <Facts
              facts={[
                ["Tool", visible(found.tool)],
                ["Place in its result", visible(found.pointer)],
              ]}
            />
          </section>
          {found.call === null ? null : <Call call={found.call} />}
        </>
      )}
    </>
  );
}

function Call({ call }: { call: ToolTrace }): JSX.Element {
  const query = call.coverage?.query ?? "";
  const rerun = rerunLink(call);
  return (
    <>
      <section aria-label="Call">
        <h3>The call it came from</h3>
        <Facts facts={[["Tool", visible(call.name)], ...callFacts(call)]} />
      </section>
      {query === "" ? null : (
        <section aria-label="Query">
          <div class="row between">
            <h3>The KQL that ran</h3>
            <CopyButton text={query} what="the query" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
          <pre tabIndex={0}>{visible(query)}</pre>
          {rerun === undefined ? null : (
            <p>
              <a href={rerun}>All columns, in KQL</a>
            </p>
          )}
        </section>
      )}
    </>
  );
}
