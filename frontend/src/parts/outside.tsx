// Text from outside, shown as what it is: in a hue of its own, named by where it stands, and never live.
import type { JSX } from "preact";
import { visible } from "../visible.ts";

export function Outside(props: { place: string; text: string; why: string[]; short?: boolean }): JSX.Element {
  return (
    <figure class="outside">
      <figcaption>
        {visible(props.place)}: {props.why.join(", ")}
      </figcaption>
      <blockquote class={props.short ? "clip" : ""}>{visible(props.text)}</blockquote>
    </figure>
  );
}
