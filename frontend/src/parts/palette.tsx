// Find and go: views, conversations, incidents by number or words, any entity, or the words as a question.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { askNow } from "../draft.ts";
import { incidentLink } from "../incident_address.ts";
import { type Rows, useLook } from "../look.ts";
import { keptQuestions, preferredWorkspace } from "../preferences.ts";
import type { Alert, Incident } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Conversation, Session } from "../wire.ts";
import { Icon, type IconName } from "./icon.tsx";

interface Entry {
  key: string;
  icon: IconName;
  words: string;
  sort: string;
  go: () => void;
}

const MOST_OF_EACH = 6;
const NUMBER = /^#?(\d{1,9})$/;
/** What a name of a host, an account, an address or a hash looks like: one word with a mark in it. */
const NAME = /^[^\s]+[.@\\-][^\s]+$/;

export function Palette(props: {
  session: Session;
  views: { name: string; title: string; icon: IconName }[];
  conversations: Conversation[];
  onClose: () => void;
}): JSX.Element {
  const { session, onClose } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const reads = session.roles.includes("analyst");
  const workspace = preferredWorkspace(session);
  const incidents = useLook<Rows<Incident, unknown>>(
    "query_incidents",
    reads ? { limit: 100, order: "newest", workspace } : null,
  );
  useLayoutEffect(() => {
    // Before the next key: whoever knows the way types on.
    dialog.current?.showModal();
  }, []);
  const wanted = text.trim();
  const rows = incidents.found?.result.rows ?? [];
  const named = useNamed(wanted, rows, incidents.found !== null, reads, workspace);
  const talks = useTalks(wanted, props.conversations);
  const entries = useMemo(
    () =>
      entriesOf(wanted, props.views, talks, rows, named, reads ? keptQuestions(session.name) : [], reads, workspace),
    [wanted, rows, named.entities, talks],
  );
  const current = Math.min(at, Math.max(0, entries.length - 1));
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const [hurried, setHurried] = useState(false);
  useEffect(() => {
    // Who typed a name and Enter before what it names was read.
    if (hurried && !named.busy) {
      choose(entries[current]);
    }
  }, [hurried, named.busy]);
  const choose = (entry: Entry | undefined): void => {
    if (entry !== undefined) {
      dialog.current?.close();
      entry.go();
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      setAt((current + by + entries.length) % Math.max(1, entries.length));
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (named.busy && entries[current]?.key === "ask" && !wanted.includes(" ")) {
        setHurried(true);
      } else {
        choose(entries[current]);
      }
    }
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Find" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="Ask, or go to an incident, host, account"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length === 0 ? undefined : `palette-${current}`}
        placeholder="Ask, or go to an incident, host, account"
        autocomplete="off"
        maxLength={8_000}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={pressed}
      />
      <div ref={list} class="found-list" id="palette-list" role="listbox" aria-label="Found">
        {entries.map((entry, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the text field, as in every combobox
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text field, which names the active one
          <div
            key={entry.key}
            id={`palette-${place}`}
            role="option"
            aria-selected={place === current}
            onMouseMove={() => setAt(place)}
            onClick={() => choose(entry)}
          >
            <Icon name={entry.icon} />
            <span>{visible(entry.words)}</span> <span class="label">{entry.sort}</span>
          </div>
        ))}
      </div>
    </dialog>
  );
}

const LEAST = 3;
const AFTER_TYPING_MS = 250;

/** What alerts know of the words, where no title of an incident holds them: numbers of incidents with an alert of that
 * name, and entities, those of most alerts first. */
interface Named {
  incidents: Set<number | null | undefined>;
  entities: [string, string][];
  busy: boolean;
}

const KINDS: Record<string, string> = { account: "Account", host: "Host", ip: "Address", mailbox: "Mailbox" };

function useNamed(wanted: string, rows: Incident[], read: boolean, reads: boolean, workspace: string): Named {
  const low = wanted.toLowerCase();
  const likely = reads && wanted.length >= LEAST;
  const none = read && wanted.length >= LEAST && !rows.some((row) => (row.title ?? "").toLowerCase().includes(low));
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (none) {
      setAsked(true);
    }
  }, [none]);
  const alerts = useLook<Rows<Alert, unknown>>("query_alerts", asked ? { limit: 100, workspace } : null);
  const found = alerts.found?.result.rows ?? [];
  const known = useMemo(() => {
    const near = none ? found : [];
    const met = near.filter((alert) => (alert.name ?? "").toLowerCase().includes(low));
    const counts = new Map<string, { kind: string; alerts: number }>();
    for (const { name, kind } of near.flatMap((alert) => alert.entities)) {
      if (name.toLowerCase().includes(low) && Object.hasOwn(KINDS, kind)) {
        counts.set(name, { kind: KINDS[kind] ?? kind, alerts: (counts.get(name)?.alerts ?? 0) + 1 });
      }
    }
    const sorted = [...counts].sort(([, one], [, other]) => other.alerts - one.alerts);
    return {
      incidents: new Set(met.map((alert) => alert.incident_number)),
      entities: sorted.slice(0, MOST_OF_EACH).map(([name, { kind }]): [string, string] => [name, kind]),
    };
  }, [found, low, none]);
  return { ...known, busy: likely && (!read || (none && alerts.found === null && alerts.refusal === null)) };
}

/** The conversations whose title or a question holds the words; the titles at once, the questions once they are asked. */
function useTalks(wanted: string, conversations: Conversation[]): Conversation[] {
  const [found, setFound] = useState<Conversation[]>([]);
  const low = wanted.toLowerCase();
  useEffect(() => {
    setFound([]);
    if (wanted.length < LEAST) {
      return undefined;
    }
    const ended = new AbortController();
    const timer = setTimeout(() => {
      const query = new URLSearchParams({ words: wanted.slice(0, 200), limit: String(MOST_OF_EACH) });
      ask<{ conversations: Conversation[] }>("GET", `/conversations?${query}`, undefined, ended.signal).then(
        (answer) => setFound(answer.conversations),
        () => {}, // those with the words in their title are there
      );
    }, AFTER_TYPING_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [wanted]);
  return useMemo(() => {
    const titled = conversations.filter((each) => each.title.toLowerCase().includes(low));
    const known = new Set(titled.map((each) => each.session_id));
    return [...titled, ...found.filter((each) => !known.has(each.session_id))];
  }, [conversations, found, low]);
}

function entriesOf(
  wanted: string,
  views: { name: string; title: string; icon: IconName }[],
  conversations: Conversation[],
  rows: Incident[],
  named: Named,
  kept: string[],
  reads: boolean,
  workspace: string,
): Entry[] {
  const low = wanted.toLowerCase();
  const holds = (text: string): boolean => text.toLowerCase().includes(low);
  const to = (address: string) => (): void => {
    location.hash = address;
  };
  const number = NUMBER.exec(wanted)?.[1];
  const met = rows.filter((row) =>
    number === undefined ? holds(row.title ?? "") || named.incidents.has(row.number) : String(row.number) === number,
  );
  const incidents = met.slice(0, MOST_OF_EACH).map((row) => ({
    key: `incident ${row.number}`,
    icon: "incident" as const,
    words: `${row.number} ${row.title ?? ""}`,
    sort: [row.severity, row.status].filter(Boolean).join(", "),
    go: to(incidentLink(workspace === "" ? row : { workspace, ...row })),
  }));
  const unlisted = number !== undefined && incidents.length === 0;
  const question: Entry = {
    key: "ask",
    icon: "ask",
    words: wanted,
    sort: "Ask this",
    go: () => askNow(wanted),
  };
  const known = named.entities.some(([name]) => name.toLowerCase() === low);
  const whole: [string, string][] = NAME.test(wanted) && !known ? [[wanted, "Everything that names it"]] : [];
  const entities = [...named.entities, ...whole].map(([name, sort]): Entry => {
    return { key: `entity ${name}`, icon: "search", words: name, sort, go: to(`/entity/${encodeURIComponent(name)}`) };
  });
  return [
    ...(wanted === "" ? [] : incidents),
    ...(reads && unlisted
      ? [
          {
            key: "number",
            icon: "incident" as const,
            words: `Incident ${number}`,
            sort: "Open",
            go: to(`/incidents/${number}`),
          },
        ]
      : []),
    ...(reads ? entities : []),
    ...kept
      .filter(holds)
      .slice(0, MOST_OF_EACH)
      .map((each) => ({
        key: `kept ${each}`,
        icon: "star" as const,
        words: each,
        sort: "Ask again",
        go: () => askNow(each),
      })),
    ...views
      .filter((view) => holds(view.title))
      .map((view) => ({
        key: `view ${view.name}`,
        icon: view.icon,
        words: view.title,
        sort: "View",
        go: to(`/${view.name}`),
      })),
    ...conversations.slice(0, MOST_OF_EACH).map((each) => ({
      key: `conversation ${each.session_id}`,
      icon: "ask" as const,
      words: each.title,
      sort: "Conversation",
      go: to(`/chat/${encodeURIComponent(each.session_id)}`),
    })),
    ...(reads && wanted !== "" ? [question] : []),
    ...(wanted === "" ? incidents : []),
  ];
}
