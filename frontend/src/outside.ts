// Text that somebody outside may have written to be obeyed: found by its signs, so that a person sees it. Pure.
//
// It is a look-out and no guard: an order without these signs is an order too. What it can do is bounded by the labels
// of the gateway, whatever is found here.
import words from "../../src/sentinel_rag/surfaces/outside_words.json";
import type { Alert } from "./tool_rows.ts";
import { visible } from "./visible.ts";

export interface OutsideText {
  /** Where it stands, such as `alert description`. */
  place: string;
  text: string;
  why: string[];
  /** The incident of its alert, where there is one. */
  incident: number | null;
  alert: string;
}

const MARKUP = /<\s*[a-z][^<>]*\son[a-z]+\s*=|<\s*(?:script|iframe|img|svg|object)\b|!\[[^\]\n]*\]\([^)\n]*\)/i;
const LETTER = /[\p{L}\p{N}]/u;

/** What speaks for it that a text was written for a reader that obeys or draws it; empty for an ordinary text. */
export function signsOf(text: string): string[] {
  const low = text.toLowerCase();
  return [
    ...(holdsOne(low, words.addressed) && holdsOne(low, words.ordered) ? ["it gives orders to an assistant"] : []),
    ...(MARKUP.test(text) ? ["it holds markup"] : []),
    ...(visible(text) === text ? [] : ["it holds hidden characters"]),
  ];
}

/** The texts of alerts that carry such signs, each once. */
export function outsideTexts(alerts: Alert[]): OutsideText[] {
  const found = new Map<string, OutsideText>();
  for (const alert of alerts) {
    const texts: [string, string | null][] = [
      ["alert name", alert.name],
      ["alert description", alert.description],
      ...alert.entities.map(({ kind, name }): [string, string] => [`${kind} of an alert`, name]),
    ];
    for (const [place, text] of texts) {
      const why = signsOf(text ?? "");
      if (text !== null && why.length > 0 && !found.has(text)) {
        found.set(text, { place, text, why, incident: alert.incident_number ?? null, alert: alert.name ?? "" });
      }
    }
  }
  return [...found.values()].sort((one, other) => other.why.length - one.why.length);
}

/** Whether one of the words stands in `text` by itself, with no letter beside it. */
function holdsOne(text: string, wanted: string[]): boolean {
  return wanted.some((word) => {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const beside = [text.charAt(at - 1), text.charAt(at + word.length)];
      if (!beside.some((each) => LETTER.test(each))) {
        return true;
      }
    }
    return false;
  });
}
