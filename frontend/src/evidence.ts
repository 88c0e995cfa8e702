// What a piece of evidence says and of what, and which piece stands behind a line of a table. Pure.
import { linkOf } from "./links.ts";
import { seconds } from "./times.ts";
import { shown, visible } from "./visible.ts";
import type { Evidence, Table, ToolTrace } from "./wire.ts";

const LINE = /^\[\d{1,6}\]$/;
const ROW = /^(.*?\/rows\/\d+)(?:\/(.*))?$/;
const MARKED = /^(`+|\*\*|\*)([^\n]+)\1$/;

/** For each row that tables mark with `[2]`, the number of a piece of the row of a result that stands behind it; the
 * same ones that `/evidence [2]` of the terminal finds. */
export function behindLines(tables: Table[], pieces: Evidence[]): Map<string[], number> {
  const found = new Map<string[], number>();
  for (const cells of tables.flatMap((table) => table.rows)) {
    const number = LINE.test(cells[0]?.trim() ?? "") ? behindLine(pieces, cells) : null;
    if (number !== null) {
      found.set(cells, number);
    }
  }
  return found;
}

/** The row that has most of these cells: a cell does not say its place. */
function behindLine(pieces: Evidence[], cells: string[]): number | null {
  const told = new Set(cells.slice(1));
  const rows = new Map<string, { first: number; met: Set<string> }>();
  for (const piece of pieces) {
    const row = ROW.exec(piece.pointer)?.[1];
    if (row !== undefined && told.has(piece.text)) {
      const key = `${piece.call_id} ${row}`;
      const found = rows.get(key) ?? { first: piece.number, met: new Set() };
      found.met.add(piece.text);
      rows.set(key, found);
    }
  }
  let best: { first: number; met: Set<string> } | null = null;
  for (const row of rows.values()) {
    best = best !== null && best.met.size >= row.met.size ? best : row;
  }
  return best?.first ?? null;
}

/** What the value is, by its place in the result: `severity`, `by severity: Medium`, `alert entities 2: name`. */
export function nameOf(piece: Evidence): string {
  const inside = ROW.exec(piece.pointer)?.[2] ?? piece.pointer.replace(/^\/(summary\/)?/, "");
  const words: string[] = [];
  for (const part of inside.split("/").map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"))) {
    const before = words.at(-1);
    if (/^\d+$/.test(part) && before !== undefined) {
      words[words.length - 1] = `${before} ${Number(part) + 1}`;
    } else {
      words.push(part.replaceAll("_", " "));
    }
  }
  return words.filter((each) => each !== "").join(": ");
}

/** Its text without the marks that the answer set around it. */
export function plainText(piece: Evidence): string {
  return piece.text === piece.value ? piece.text : (MARKED.exec(piece.text)?.[2] ?? piece.text);
}

/** What a call was asked and what it took, to be shown; its query is shown by itself. */
export function callFacts(call: ToolTrace): [string, string][] {
  return [
    ["Arguments", shown(call.arguments)],
    ["Took", seconds(call.duration_ms)],
    ["Audit record", visible(call.audit_id) || "none"],
  ];
}

/** Where the texts of cells lead on this page, by the evidence of the answer that shows them. */
export function linksOf(pieces: Evidence[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const piece of pieces) {
    const href = linkOf(piece);
    if (href !== undefined) {
      found.set(plainText(piece), href);
    }
  }
  return found;
}
