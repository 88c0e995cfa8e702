// A dialog over the page: the browser keeps the focus inside, and Escape closes it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

export function Dialog(props: {
  title: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // Closed by the browser it gives the focus back; taken out of the page it does not.
      queueMicrotask(() => {
        if (before instanceof HTMLElement && document.activeElement === document.body) {
          before.focus();
        }
      });
    };
  }, []);
  return (
    <dialog ref={dialog} class={props.class} aria-labelledby={title} onClose={props.onClose}>
      <header class="row">
        <h2 id={title}>{props.title}</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
