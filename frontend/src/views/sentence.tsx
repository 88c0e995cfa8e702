// What stands behind a sentence of an answer: a chip in the text, and the drawer that it opens.
import type { JSX } from "preact";
import { callFacts } from "../evidence.ts";
import { fieldOf, type Note, placeWords, reasonOf, SIGNS, type Source, same, sourcesOf } from "../marks.ts";
import { Facts } from "../parts/data_table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import type { TurnView } from "../turn_view.ts";
import { shown, visible } from "../visible.ts";
import type { Mark, Sentence, SentenceState } from "../wire.ts";

const MOST_NUMBERS = 3;
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
export function Chip(props: { note: Note; onOpen: () => void }): JSX.Element {
  const { sources, sentence } = props.note;
  const sign = SIGNS[sentence.state];
  const numbers = sources.slice(0, MOST_NUMBERS).join(", ") + (sources.length > MOST_NUMBERS ? ", …" : "");
  const named = sources.length === 0 ? "" : `${sources.length === 1 ? "source" : "sources"} ${sources.join(", ")}`;
  const state = sentence.state.replace("_", " ");
  const label = sign === undefined ? named : [`${state}: ${reasonOf(sentence)}`, named].filter(Boolean).join("; ");
  return (
    <button type="button" class={`chip ${sentence.state}`} aria-label={label} title={label} onClick={props.onOpen}>
      {sign === undefined ? numbers : `${sign} ${state}`}
    </button>
  );
}

/** The sentence with what was compared: the rows that it cites, its cells lit, and the calls that they come from. */
export function SentenceDrawer(props: { turn: TurnView; sentence: Sentence; onClose: () => void }): JSX.Element {
  const { turn, sentence } = props;
  const sources = sourcesOf(turn.sentences, turn.evidence);
  const cited = sources.filter((source) => sentence.citations.some((each) => same(each, source.citation)));
  const calls = turn.tools.filter((tool) => sentence.citations.some((citation) => citation.call_id === tool.call_id));
  const missing = sentence.marks.filter((mark) => !mark.found && mark.pointer === "");
  const characters = [...sentence.text];
  const literal = (mark: Mark): string =>
    characters.slice(mark.start - sentence.start, mark.end - sentence.start).join("");
  return (
    <Dialog title="Behind this sentence" class="drawer" onClose={props.onClose}>
      <blockquote>{visible(sentence.text)}</blockquote>
      <p class={sentence.state in SIGNS ? "refusal" : ""}>
        {sentence.state in SIGNS
          ? `${SIGNS[sentence.state]} ${SAID[sentence.state]}: ${reasonOf(sentence)}`
          : SAID[sentence.state]}
      </p>
      {missing.length === 0 ? null : <p>Found nowhere: {missing.map((mark) => visible(literal(mark))).join(", ")}</p>}
      <p class="quiet">{CITED_BY[sentence.cited_by]}</p>
      {cited.map((source) => (
        <CitedRow
          key={source.citation.pointer}
          source={source}
          sentence={sentence}
          number={sources.indexOf(source) + 1}
        />
      ))}
      {calls.map((call) => (
        <section key={call.call_id}>
          <h3>The call it came from</h3>
          <Facts facts={[["Tool", visible(call.name)], ...callFacts(call)]} />
        </section>
      ))}
    </Dialog>
  );
}

function CitedRow(props: { source: Source; sentence: Sentence; number: number }): JSX.Element {
  const { citation, cells } = props.source;
  const compared = new Map(
    props.sentence.marks
      .filter((mark) => mark.call_id === citation.call_id && `${mark.pointer}/`.startsWith(`${citation.pointer}/`))
      .map((mark) => [fieldOf(mark.pointer, citation.pointer), mark.found]),
  );
  return (
    <section>
      <h3>
        Source {props.number}: {placeWords(citation)}
      </h3>
      {cells.size === 0 ? <p class="quiet">No cell of it was compared.</p> : null}
      <dl>
        {[...cells].map(([name, value]) => {
          const found = compared.get(name);
          return (
            <div key={name} class={found === undefined ? "" : found ? "lit found" : "lit other"}>
              <dt>
                {visible(name)}
                {found === undefined ? null : <strong> {found ? "✓ found" : "✗ differs"}</strong>}
              </dt>
              <dd>{shown(value)}</dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}
