// The render edge: whatever field a text came from, nothing in it hides or changes the order in which it is read.
// Texts reach the document as text nodes, so HTML in them is text already; this shows what would be invisible.

const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: they are listed, not joined
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb]|\u034f|[\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/** `text` with every control, bidirectional, zero-width and tag character written as an escape that can be read. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${hex(code, 2)}` : code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
  });
}

/** A value of JSON as a person reads it: texts as they are, everything else as JSON. */
export function shown(value: unknown): string {
  return visible(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}
