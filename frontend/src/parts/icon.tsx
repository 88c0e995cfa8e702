// The page's icons: lines on a grid of 16, drawn in the colour of the text beside them.
import type { JSX } from "preact";

const PATHS = {
  mark: "M8 1.8 13.6 4v4.2c0 3-2.3 5.2-5.6 6.2-3.3-1-5.6-3.2-5.6-6.2V4zM5 6.2h6M5 8.6h3.5",
  home: "M2.5 7.5 8 2.8l5.5 4.7M4 6.5V13h8V6.5",
  ask: "M2.5 3.5h11v7.5H7l-3 2.5V11H2.5z",
  incident: "M8 2.2 13 4v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4zM8 5.8v2.7M8 10.6v.1",
  approval: "M2.3 8a5.7 5.7 0 1 0 11.4 0 5.7 5.7 0 1 0-11.4 0M5.5 8.2l1.8 1.8 3.3-3.7",
  dashboard: "M3 13V8.5M6.4 13V3M9.7 13V6.5M13 13V10",
  hunt: "M2.5 4.5 6 8l-3.5 3.5M8 12h5.5",
  book: "M3 3h4c.6 0 1 .4 1 1v9c0-.6-.4-1-1-1H3zM13 3H9c-.6 0-1 .4-1 1v9c0-.6.4-1 1-1h4z",
  audit: "M5.5 4h8M5.5 8h8M5.5 12h8M2.6 4h.1M2.6 8h.1M2.6 12h.1",
  policy:
    "M2.5 5h6M12 5h1.5M2.5 11H4M7.5 11h6M8.5 5a1.7 1.7 0 1 0 3.4 0 1.7 1.7 0 1 0-3.4 0M4.1 11a1.7 1.7 0 1 0 3.4 0 1.7 1.7 0 1 0-3.4 0",
  search: "M2.8 7a4.2 4.2 0 1 0 8.4 0 4.2 4.2 0 1 0-8.4 0M10.2 10.2l3.3 3.3",
  theme: "M12.8 9.7A5.3 5.3 0 0 1 6.3 3.2a5.3 5.3 0 1 0 6.5 6.5z",
  leave: "M6.5 3H3v10h3.5M7 8h6.5M11 5.5 13.5 8 11 10.5",
  send: "M3 8h9M8.5 4.2 12.3 8l-3.8 3.8",
  check: "m3.5 8.5 3 3 6-6.5",
  cross: "m4 4 8 8M12 4l-8 8",
  copy: "M5.5 5.5h7.5v7.5H5.5zM3 10.5V3h7.5",
  edit: "M3 13l.6-2.8L11 2.8l2.2 2.2-7.4 7.4z",
  again: "M12.8 6A5.2 5.2 0 1 0 13 9.5M13 2.5V6H9.5",
  up: "M5 7.5v6H2.5v-6zM5 8l2.5-5.5c1 0 1.7.8 1.7 1.8L8.8 6.5h3.7c.7 0 1.2.7 1 1.4l-1.3 4.7c-.1.5-.6.9-1.1.9H5",
  down: "M11 8.5v-6h2.5v6zM11 8l-2.5 5.5c-1 0-1.7-.8-1.7-1.8l.4-2.2H3.5c-.7 0-1.2-.7-1-1.4l1.3-4.7c.1-.5.6-.9 1.1-.9H11",
  more: "m4.5 6.5 3.5 3.5 3.5-3.5",
  star: "M8 2.3l1.8 3.6 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4L2.2 6.5l4-.6z",
  warn: "M8 2.8 14 13H2zM8 6.5v3M8 11.3v.1",
  clock: "M2.3 8a5.7 5.7 0 1 0 11.4 0 5.7 5.7 0 1 0-11.4 0M8 5v3.2l2 1.3",
  user: "M5.5 5.5a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M3.2 13.2c.6-2.5 2.5-3.7 4.8-3.7s4.2 1.2 4.8 3.7",
  note: "M3 3h10v7l-3 3H3zM10 13v-3h3",
  system: "M2 8.5h3l1.8-5 2.6 9 1.8-4H14",
  upload: "M8 10.5V3M5 5.8 8 2.8l3 3M3 10.5V13h10v-2.5",
  data: "M3 4c0-1 2.2-1.7 5-1.7S13 3 13 4s-2.2 1.7-5 1.7S3 5 3 4zM3 4v8c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4M3 8c0 1 2.2 1.7 5 1.7S13 9 13 8",
  people:
    "M3.7 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0M2 12.8c.4-2.3 1.9-3.3 3.7-3.3s3.3 1 3.7 3.3M9.7 4.2a2 2 0 1 1 .6 3.8M11 9.7c1.6.1 2.7 1.1 3 3.1",
} satisfies Record<string, string>;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="i" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
