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

/** `found` is the newest answer, null before the first one and after a refusal: nothing old is shown as current. */
export interface Look<T> {
  found: Seen<T> | null;
  refusal: Refusal | null;
  busy: boolean;
  again: () => void;
}

/** What the tool answers. Throws Refusal. */
export async function look<T>(tool: string, given: Arguments, signal?: AbortSignal): Promise<Seen<T>> {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== ""));
  const looked = await ask<Looked<T>>("POST", `/tools/${tool}`, { arguments: set }, signal);
  return { ...looked, arguments: set as Arguments, at: Date.now() };
}

const AFTER_LOSS_MS = 5_000;

/** The same as the state of a component, tried again by itself behind a lost connection; asked anew when `given` changes, and not at all while it is null. */
export function useLook<T>(tool: string, given: Arguments | null): Look<T> {
  const [state, setState] = useState<Omit<Look<T>, "again">>({ found: null, refusal: null, busy: given !== null });
  const [turn, setTurn] = useState(0);
  const asked = given === null ? "" : JSON.stringify(given);
  useEffect(() => {
    if (asked === "") {
      return undefined;
    }
    const ended = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    look<T>(tool, JSON.parse(asked) as Arguments, ended.signal).then(
      (found) => setState({ found, refusal: null, busy: false }),
      (error) => {
        if (!ended.signal.aborted) {
          setState({ found: null, refusal: asRefusal(error), busy: false });
        }
      },
    );
    return () => ended.abort();
  }, [tool, asked, turn]);
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
