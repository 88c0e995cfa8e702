// What scrolls by itself where the window is narrow or short: named, and reached by the keyboard.
import type { ComponentChildren, JSX } from "preact";

export function Scroll(props: {
  label: string;
  tall?: boolean;
  place?: (element: HTMLElement | null) => void;
  children: ComponentChildren;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what can be filled in
    <div
      ref={props.place ?? null}
      class={props.tall ? "scroll tall" : "scroll"}
      role="group"
      aria-label={props.label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
      tabIndex={0}
    >
      {props.children}
    </div>
  );
}
