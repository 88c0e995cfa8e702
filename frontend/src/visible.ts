// The render edge: whatever field a text came from, nothing in it hides or changes the order in which it is read.
// Texts reach the document as text nodes, so HTML in them is text already; this shows what would be invisible, by the
// same rules as the terminal's and the reports' (surfaces/rendering/visible.py), which a test compares.

/** Combining marks on one character; written languages need no more, and a flood covers the lines above and below. */
const MOST_MARKS = 4;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;
const INVISIBLE = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f" + // C0 but tab and new line, DEL, C1
    "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" + // soft hyphen, joiners and fillers without a shape
    "\\u2028\\u2029" + // separators that some readers take for new lines
    "\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff" + // zero width and bidirectional controls
    "\\u2800\\u3164\\uffa0" + // letters and patterns that look like a space
    "\\ufe00-\\ufe0d\\ufff0-\\uffff" + // variation selectors that no emoji uses, annotation marks
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
    "\\u{e0000}-\\u{e0fff}" + // tags and further variation selectors: whole messages fit into them
    "\\p{Cs}]",
  "u",
);
const JOINERS = "\u200c\u200d";
const EMOJI_SELECTORS = "\ufe0e\ufe0f";
const MARK = /[\p{Mn}\p{Me}]/u;
const FORMAT = /\p{Cf}/u;
const JOINED_BEFORE = /[\p{Lo}\p{Mn}\p{Mc}\p{So}\p{Sk}]/u;
const JOINED_AFTER = /[\p{Lo}\p{So}]/u;
const HOST = /(?<=:\/\/)[^\s/?#\\]+/gu;

/** `text` with every unsafe character as an escape that can be read, and hosts of addresses as DNS is asked for them. */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is no plain text
  if (!/[^\u0009\u000a\u0020-\u007e]/.test(text)) {
    return text;
  }
  const written = shownCharacters([...text]).join("");
  return written.includes("://") ? written.replace(HOST, authority) : written;
}

/** The same, and where each character (code point) of `text` begins in it, the end included; within a host, where the
 * host does. */
export function visibleWithPlaces(text: string): { text: string; places: number[] } {
  const characters = [...text];
  const shown = shownCharacters(characters);
  const places = [0];
  for (const character of shown) {
    places.push((places.at(-1) ?? 0) + character.length);
  }
  const written = shown.join("");
  let shift = 0;
  let number = 0;
  for (const found of written.matchAll(HOST)) {
    const put = authority(found[0]);
    if (put === found[0]) {
      continue;
    }
    for (; (places[number] ?? Number.POSITIVE_INFINITY) <= found.index; number += 1) {
      places[number] = (places[number] ?? 0) + shift;
    }
    for (; (places[number] ?? Number.POSITIVE_INFINITY) < found.index + found[0].length; number += 1) {
      places[number] = found.index + shift;
    }
    shift += put.length - found[0].length;
  }
  return {
    text: written.replace(HOST, authority),
    places: places.map((place, at) => (at < number ? place : place + shift)),
  };
}

/** A value of JSON as a person reads it: texts as they are, everything else as JSON. */
export function shown(value: unknown): string {
  return visible(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

/** The host as a browser asks DNS for it; what no browser asks for is written as escapes. */
export function hostInAscii(host: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what is ASCII
  if (/^[\u0000-\u007f]*$/.test(host)) {
    return host;
  }
  try {
    return new URL(`http://${host}/`).hostname;
  } catch {
    return host.replace(/[^ -~]/gu, asEscape);
  }
}

/** What is written for each character. */
function shownCharacters(characters: string[]): string[] {
  let before = ""; // the last character if it was kept
  let marks = 0; // how many marks it carries
  return characters.map((character, place) => {
    const isMark = MARK.test(character);
    const keep = kept(character, before, characters[place + 1] ?? "", isMark ? marks + 1 : marks);
    if (isMark) {
      marks += 1;
    } else if (keep) {
      marks = 0;
    }
    if (keep) {
      before = character;
    } else if (!isMark) {
      before = "";
    }
    return keep ? character : asEscape(character);
  });
}

function kept(character: string, before: string, after: string, marks: number): boolean {
  if (character < "\u007f") {
    return !CONTROL.test(character);
  }
  if (INVISIBLE.test(character)) {
    return false;
  }
  if (JOINERS.includes(character)) {
    return joins(before, after);
  }
  if (EMOJI_SELECTORS.includes(character)) {
    return before !== "" && before.trim() !== "" && !(EMOJI_SELECTORS + JOINERS).includes(before);
  }
  if (MARK.test(character)) {
    return marks <= MOST_MARKS;
  }
  return !FORMAT.test(character) || (character >= "\u0600" && character <= "\u08e2"); // signs that one can see
}

/** Whether a joiner stands where scripts and emoji use it, so that it changes a shape and hides nothing. */
function joins(before: string, after: string): boolean {
  if (before === "" || after === "" || INVISIBLE.test(after)) {
    return false;
  }
  return (JOINED_BEFORE.test(before) || EMOJI_SELECTORS.includes(before)) && JOINED_AFTER.test(after);
}

function authority(found: string): string {
  const at = found.lastIndexOf("@") + 1;
  const [host, port] = split(found.slice(at));
  return found.slice(0, at) + hostInAscii(host) + port;
}

function split(place: string): [string, string] {
  const colon = place.indexOf(":");
  return colon < 0 ? [place, ""] : [place.slice(0, colon), place.slice(colon)];
}

function asEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${hex(code, 2)}` : code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}
