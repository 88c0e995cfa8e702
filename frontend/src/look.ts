// Reading with a tool and without the agent: the answer, or why there is none, and the same again when it is asked for.
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "./api.ts";
import type { Coverage } from "./wire.ts";

/** What a tool that queries answers; `S` is its summary. */
export interface Rows<R, S> {
  rows: R[];
  summary: S;
  notes: string[];
  coverage: Coverage;
}

export interface Looked<T> {
  tool: string;
  audit_id: string;
  result: T;
}

/** An answer with what was asked and when. */
export interface Seen<T> extends Looked<T> {
  arguments: Arguments;
  at: number;
}

export type Arguments = Record<string, string | number | boolean | undefined>;

/** What is read for a view: `found` is the newest answer, null before the first one and after a refusal, so that nothing
 * old is shown as current. */
export interface Read<T> {
  found: T | null;
  refusal: Refusal | null;
  busy: boolean;
  again: () => void;
}

export type Look<T> = Read<Seen<T>>;

/** What the tool answers. Throws Refusal. */
export async function look<T>(tool: string, given: Arguments, signal?: AbortSignal): Promise<Seen<T>> {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== ""));
  const looked = await ask<Looked<T>>("POST", `/tools/${tool}`, { arguments: set }, signal);
  return { ...looked, arguments: set as Arguments, at: Date.now() };
}

const AFTER_LOSS_MS = 5_000;

/** The same as the state of a component, asked anew when `given` changes, and not at all while it is null. */
export function useLook<T>(tool: string, given: Arguments | null): Look<T> {
  const asked = given === null ? null : JSON.stringify(given);
  return useRead(asked === null ? null : `${tool} ${asked}`, (signal) => look<T>(tool, given ?? {}, signal));
}

/** What the server answers at `path`, as the state of a component; nothing is asked while it is null, and anew when `by`
 * is another. */
export function useAnswer<T>(path: string | null, by?: unknown): Read<T> {
  return useRead(path, (signal) => ask<T>("GET", path ?? "", undefined, signal), by);
}

/** Reads when `key` changes, and tries again by itself behind a lost connection. */
function useRead<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>, by?: unknown): Read<T> {
  const [state, setState] = useState<Omit<Read<T>, "again">>({ found: null, refusal: null, busy: key !== null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === null) {
      return undefined;
    }
    const ended = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    read(ended.signal).then(
      (found) => setState({ found, refusal: null, busy: false }),
      (error) => {
        if (!ended.signal.aborted) {
          setState({ found: null, refusal: asRefusal(error), busy: false });
        }
      },
    );
    return () => ended.abort();
  }, [key, turn, by]);
  const lost = state.refusal?.reason === "connection";
  useEffect(() => {
    if (!lost) {
      return undefined;
    }
    const retry = (): void => setTurn((count) => count + 1);
    const timer = setInterval(retry, AFTER_LOSS_MS);
    window.addEventListener("online", retry);
    return () => {
      clearInterval(timer);
      window.removeEventListener("online", retry);
    };
  }, [lost]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

/** One thing done at a time: how to, whether it is under way, and why the last one was refused. */
export function useWork(): [(work: () => Promise<unknown>) => void, boolean, Refusal | null] {
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const run = (work: () => Promise<unknown>): void => {
    setBusy(true);
    setRefusal(null);
    work()
      .catch((error) => setRefusal(asRefusal(error)))
      .then(() => setBusy(false));
  };
  return [run, busy, refusal];
}
