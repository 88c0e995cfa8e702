// What the check says of an answer's sentences, set into its text: which literals were found, which source stands behind
// a sentence, and what is wrong with one. Pure; the page's form of surfaces/rendering/marks.py, which a test compares.
//
// Places count characters (code points) of the text, come from elsewhere and are clipped: whatever they say, each
// character of the text is shown once.
import { linkOf } from "./links.ts";
import { visible, visibleWithPlaces } from "./visible.ts";
import type { Citation, Evidence, Mark, Sentence, SentenceState } from "./wire.ts";

export type Seen = "found" | "missing" | "other";

/** A literal, `Marked.text.slice(start, end)`. Spans do not overlap. */
export interface Span {
  start: number;
  end: number;
  seen: Seen;
  /** Where the value leads on this page, such as an incident. */
  href?: string;
}

/** What stands in a sentence or behind it, at place `at` of the text; `sources` are numbers of `sourcesOf`, from 1. */
export interface Note {
  at: number;
  sources: number[];
  sentence: Sentence;
  /** Behind the sentence, where what is wrong with it stands. */
  last: boolean;
}

/** `text` is `visible` already. */
export interface Marked {
  text: string;
  spans: Span[];
  notes: Note[];
}

export interface Source {
  citation: Citation;
  /** The cells that are known of it, by name. */
  cells: Map<string, unknown>;
}

/** The states that a reader must see, with their signs. */
export const SIGNS: Partial<Record<SentenceState, string>> = { not_found: "!", contradicted: "✗" };
/** In the order in which they are counted. */
export const STATE_WORDS: Record<SentenceState, string> = {
  values_found: "compared",
  source_given: "sourced",
  not_found: "not found",
  contradicted: "contradicted",
  own_words: "own words",
};
/** What begins a list, a table, a quotation or code. */
const MARKUP_BEGIN = /^\s*(?:[-*+>#|`]|\d{1,9}[.)]\s|\[\d)/;
const OF_WHOLE = /^\/(?:summary\/|coverage\/)?/;
const MARKUP_ALONE = /^(?:[-*+_~>#|`\s]|\d{1,9}[.)])*$/;

export function marked(text: string, sentences: Sentence[]): Marked {
  const shown = visibleWithPlaces(text);
  const last = shown.places.length - 1;
  const placed = (place: number): number => shown.places[Math.min(Math.max(place, 0), last)] ?? shown.text.length;
  const sources = sourcesOf(sentences, []);
  const spans: Span[] = [];
  const notes: Note[] = [];
  for (const sentence of sentences) {
    const start = placed(sentence.start);
    const at = start + shown.text.slice(start, placed(sentence.end)).trimEnd().length;
    const written = whereWritten(sentence, sources, (place) => Math.min(Math.max(placed(place), start), at));
    for (const [place, behind] of written) {
      if (place !== at) {
        notes.push({ at: place, sources: behind, sentence, last: false });
      }
    }
    const behind = written.get(at) ?? [];
    if (behind.length > 0 || sentence.state in SIGNS) {
      notes.push({ at, sources: behind, sentence, last: true });
    }
    if (sentence.state !== "own_words") {
      const wrong = sentence.state === "contradicted" ? "other" : "missing";
      for (const mark of sentence.marks) {
        const tool = sentence.citations.find((citation) => citation.call_id === mark.call_id)?.tool;
        const href = mark.found && tool !== undefined ? linkOf({ ...mark, tool }) : undefined;
        const seen = mark.found ? "found" : wrong;
        spans.push({ start: placed(mark.start), end: placed(mark.end), seen, ...(href === undefined ? {} : { href }) });
      }
    }
  }
  return { text: shown.text, spans: apart(spans), notes: notes.sort((one, other) => one.at - other.at) };
}

/** The numbers of the sources by the place where the writer put them; the others stand behind the sentence. */
function whereWritten(sentence: Sentence, sources: Source[], placed: (place: number) => number): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const citation of sentence.citations) {
    const number = sources.findIndex((source) => same(citation, source.citation)) + 1;
    const places = citation.at === undefined || citation.at.length === 0 ? [sentence.end] : citation.at;
    for (const place of places.map(placed)) {
      const there = found.get(place) ?? [];
      found.set(place, there.includes(number) ? there : [...there, number]);
    }
  }
  return found;
}

/** A text in two: its first `lines` lines, and the rest; null where it has no more than `most`. Never within a list, a
 * table or a quotation, so that both halves mean what the whole did. */
export function foldedAfter(whole: Marked, lines: number, most: number): [Marked, Marked, number] | null {
  const all = whole.text.split("\n");
  const end = all.slice(0, lines).join("\n").length;
  const plain = all.every((line) => line.trim() !== "" && !MARKUP_BEGIN.test(line));
  return all.length <= most || !plain
    ? null
    : [partOf(whole, 0, end), partOf(whole, end + 1, whole.text.length), all.length - lines];
}

function partOf(whole: Marked, from: number, to: number): Marked {
  const moved = <T extends { start: number; end: number }>(span: T): T => ({
    ...span,
    start: Math.max(from, span.start) - from,
    end: Math.min(to, span.end) - from,
  });
  return {
    text: whole.text.slice(from, to),
    spans: whole.spans.filter((span) => span.start < to && span.end > from).map(moved),
    notes: whole.notes
      .filter((note) => note.at > from && note.at <= to)
      .map((note) => ({ ...note, at: note.at - from })),
  };
}

/** A text of which nothing is said. */
export function unmarked(text: string): Marked {
  return { text: visible(text), spans: [], notes: [] };
}

/** What the sentences cite, each row and result once, in their order, with the cells that marks and evidence tell. */
export function sourcesOf(sentences: Sentence[], evidence: Evidence[]): Source[] {
  const found = new Map<string, Source>();
  for (const citation of sentences.flatMap((sentence) => sentence.citations)) {
    const key = `${citation.call_id} ${citation.pointer}`;
    found.set(key, found.get(key) ?? { citation, cells: new Map() });
  }
  const told: { call_id: string; pointer: string; value: unknown }[] = sentences.flatMap((sentence) => sentence.marks);
  for (const { call_id, pointer, value } of [...told, ...evidence]) {
    let row = pointer;
    while (row !== "" && !found.has(`${call_id} ${row}`)) {
      row = row.slice(0, row.lastIndexOf("/"));
    }
    const source = found.get(`${call_id} ${row}`);
    const name = fieldOf(pointer, row);
    if (source !== undefined && call_id !== "" && !source.cells.has(name)) {
      source.cells.set(name, value);
    }
  }
  return [...found.values()];
}

export function same(one: Citation, other: Citation): boolean {
  return one.call_id === other.call_id && one.pointer === other.pointer;
}

/** `12 compared, 2 sourced, 1 not found, 4 own words` */
export function counted(sentences: Sentence[]): string {
  const told = Object.entries(STATE_WORDS).map(([state, words]): [number, string] => [
    sentences.filter((sentence) => sentence.state === state).length,
    words,
  ]);
  return told
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`)
    .join(", ");
}

/** What is wrong with the sentence, for a person; empty if nothing is. */
export function reasonOf(sentence: Sentence): string {
  return sentence.state in SIGNS ? visible(sentence.reason) || STATE_WORDS[sentence.state] : "";
}

/** `c1 query_incidents, row 3` */
export function placeWords(citation: Citation): string {
  const [call, row] = citation.ref.split(".");
  return visible(`${call} ${citation.tool}, ${row === undefined ? "as a whole" : `row ${row}`}`);
}

/** The name of a cell, within its row; a result as a whole has its total alone. */
export function fieldOf(pointer: string, row: string): string {
  const inside = row === "" ? pointer.replace(OF_WHOLE, "") : pointer.slice(row.length);
  return (
    inside
      .replace(/^\/+|\/+$/g, "")
      .replaceAll("~1", "/")
      .replaceAll("~0", "~") || "total"
  );
}

/** The text without its sentences that were not found or are contradicted, and how many those are. */
export function foundAlone(
  text: string,
  sentences: Sentence[],
): { text: string; sentences: Sentence[]; hidden: number } {
  const characters = [...text];
  const hidden = sentences.filter((sentence) => sentence.state in SIGNS);
  const gone = apart(hidden.map((sentence) => withoutRest(characters, sentence)));
  const moved = (place: number): number =>
    place - gone.reduce((sum, part) => sum + Math.max(0, Math.min(place, part.end) - part.start), 0);
  let at = 0;
  let left = "";
  for (const part of [...gone, { start: characters.length, end: characters.length }]) {
    left += characters.slice(at, part.start).join("");
    at = part.end;
  }
  const move = <T extends { start: number; end: number }>(part: T): T => ({
    ...part,
    start: moved(part.start),
    end: moved(part.end),
  });
  const kept = sentences.filter((sentence) => !(sentence.state in SIGNS));
  return {
    text: left,
    sentences: kept.map((sentence) => ({
      ...move(sentence),
      marks: sentence.marks.map((mark: Mark) => move(mark)),
      citations: sentence.citations.map((each) => ({ ...each, at: (each.at ?? []).map(moved) })),
    })),
    hidden: hidden.length,
  };
}

/** The place of a sentence with what has no sense without it: spaces behind it, or the markup of its line. */
function withoutRest(characters: string[], sentence: Sentence): Span {
  const [start, end] = [sentence.start, sentence.end].map((place) =>
    Math.min(Math.max(place, 0), characters.length),
  ) as [number, number];
  const lineStart = start === 0 ? 0 : characters.lastIndexOf("\n", start - 1) + 1;
  const newline = characters.indexOf("\n", end);
  const lineEnd = newline < 0 ? characters.length : newline;
  const before = characters.slice(lineStart, start).join("");
  const behind = characters.slice(end, lineEnd).join("");
  if (MARKUP_ALONE.test(before) && MARKUP_ALONE.test(behind)) {
    return { start: lineStart, end: Math.min(lineEnd + 1, characters.length), seen: "missing" };
  }
  return { start, end: end + behind.length - behind.replace(/^ +/, "").length, seen: "missing" };
}

/** The spans in order, cut so that no two overlap; empty ones are left out. */
function apart(spans: Span[]): Span[] {
  const found: Span[] = [];
  for (const span of [...spans].sort((one, other) => one.start - other.start || one.end - other.end)) {
    const start = Math.max(span.start, found.at(-1)?.end ?? 0);
    if (start < span.end) {
      found.push({ ...span, start });
    }
  }
  return found;
}
