// Addresses in texts of others: they are text with a button, which says where it leads before anything is opened.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";

const ADDRESS = /https?:\/\/[^\s<>"'`\\|]+/giu;
const AFTER_IT = /[.,;:!?)\]}*]+$/;

/** A piece of a text; one with a `host` is an address. */
interface Piece {
  text: string;
  host: string | null;
}

/** `text`, which is `visible` already, with each http or https address as a button. */
export function linked(text: string): ComponentChildren[] {
  return addressesIn(text).map((piece, place) =>
    piece.host === null ? piece.text : <Address key={place} address={piece.text} host={piece.host} />,
  );
}

const LONG_WORD = 12;

/** A name, which is `visible` already, that breaks where its parts meet, if it must break at all. */
export function breakable(text: string): ComponentChildren {
  return text.length <= LONG_WORD
    ? text
    : text
        .split(/(?<=[@/\\])|(?<=^[^@.]+\.)/u)
        .flatMap((part, place) => (place === 0 ? [part] : [<wbr key={place} />, part]));
}

/** The addresses in `text`, and the texts between them. */
export function addressesIn(text: string): Piece[] {
  const pieces: Piece[] = [];
  let place = 0;
  for (const found of text.matchAll(ADDRESS)) {
    const address = found[0].replace(AFTER_IT, "");
    const host = openedHost(address);
    if (host !== null) {
      pieces.push({ text: text.slice(place, found.index), host: null }, { text: address, host });
      place = found.index + address.length;
    }
  }
  pieces.push({ text: text.slice(place), host: null });
  return pieces.filter((piece) => piece.text !== "");
}

/** The host that opening the address would ask; null for what is no plain address, or carries a name before its host. */
function openedHost(address: string): string | null {
  try {
    const url = new URL(address);
    return url.username === "" && url.password === "" && url.hostname !== "" ? url.host : null;
  } catch {
    return null;
  }
}

export function Address({ address, host }: { address: string; host: string }): JSX.Element {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" class="address" onClick={() => setAsks(true)}>
        {address}
      </button>
      {asks ? (
        <Dialog title={`Open ${host}?`} onClose={() => setAsks(false)}>
          <p>
            This address stands in data, which an attacker may have written. Opening it tells that host that you did.
          </p>
          <dl class="facts">
            <div>
              <dt>Host</dt>
              <dd>{host}</dd>
            </div>
            <div>
              <dt>Address</dt>
              <dd>{address}</dd>
            </div>
          </dl>
          <p>
            <a href={address} target="_blank" rel="noopener noreferrer external" onClick={() => setAsks(false)}>
              Open it in a new tab
            </a>
          </p>
        </Dialog>
      ) : null}
    </>
  );
}
