// Questions that a person keeps to ask again: kept by this browser, for each name that signs in.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { keepQuestions, keptQuestions } from "../preferences.ts";
import { visible } from "../visible.ts";
import { Icon } from "./icon.tsx";

const CHANGED = "sentinel-questions";

/** The kept questions of `name`, the newest first, and how to keep one or let it go. */
function useKept(name: string): [string[], (question: string, kept: boolean) => void] {
  const [questions, setQuestions] = useState(() => keptQuestions(name));
  useEffect(() => {
    const read = (): void => setQuestions(keptQuestions(name));
    read();
    addEventListener(CHANGED, read);
    return () => removeEventListener(CHANGED, read);
  }, [name]);
  const change = (question: string, kept: boolean): void => {
    const others = keptQuestions(name).filter((each) => each !== question);
    keepQuestions(name, kept ? [question, ...others] : others);
    dispatchEvent(new Event(CHANGED));
  };
  return [questions, change];
}

export function KeepButton({ name, question }: { name: string; question: string }): JSX.Element {
  const [questions, change] = useKept(name);
  const kept = questions.includes(question);
  return (
    <button
      type="button"
      class="bare small"
      aria-label="Keep the question"
      title={kept ? "Kept: it stands on the first screen" : "Keep it, to ask it again"}
      aria-pressed={kept}
      onClick={() => change(question, !kept)}
    >
      <Icon name="star" />
      {kept ? "Kept" : "Keep"}
    </button>
  );
}

/** Each asks again, and the cross beside it lets it go. */
export function KeptQuestions(props: { name: string; onAsk: (question: string) => void }): JSX.Element | null {
  const [questions, change] = useKept(props.name);
  return questions.length === 0 ? null : (
    <ul class="suggested kept" aria-label="Questions that you keep">
      {questions.map((question) => (
        <li key={question}>
          <button type="button" title={visible(question)} onClick={() => props.onAsk(question)}>
            <Icon name="star" />
            <span>{visible(question)}</span>
          </button>
          <button
            type="button"
            class="icon"
            aria-label={`Keep no more: ${visible(question)}`}
            title="Keep it no more"
            onClick={() => change(question, false)}
          >
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
}
