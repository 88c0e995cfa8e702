// A part of a view: its name, what is told beside it, and what can be chosen of it.
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

export function Card(props: {
  title: ComponentChildren;
  /** By which a list of parts leads here. */
  id?: string | undefined;
  /** Its name for a screen reader, where that is not the title. */
  label?: string;
  class?: string;
  note?: ComponentChildren;
  side?: ComponentChildren;
  busy?: boolean;
  children: ComponentChildren;
}): JSX.Element {
  const { note = "", side = null } = props;
  const made = useId();
  const id = props.id ?? made;
  const named = props.label === undefined ? { "aria-labelledby": id } : { "aria-label": props.label };
  return (
    <section class={`card ${props.class ?? ""}`} aria-busy={props.busy} {...named}>
      <header>
        <h2 id={id}>{props.title}</h2>
        {note === "" ? null : <span class="quiet">{note}</span>}
        {side === null ? null : <div class="push">{side}</div>}
      </header>
      {props.children}
    </section>
  );
}
