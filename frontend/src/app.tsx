// The application: who is signed in, which view the address names, and the frame around it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, onSignedOut, type Refusal, useCsrf } from "./api.ts";
import { forget } from "./draft.ts";
import { Avatar, Recent, Waits } from "./parts/around.tsx";
import { Boundary } from "./parts/boundary.tsx";
import { Icon, type IconName } from "./parts/icon.tsx";
import { RefusalNotice } from "./parts/notices.tsx";
import { Palette } from "./parts/palette.tsx";
import { clock, darkNow, keepTheme } from "./preferences.ts";
import { titleOf } from "./requests.ts";
import { AccountView } from "./views/account.tsx";
import { ApprovalsView } from "./views/approvals.tsx";
import { AuditView } from "./views/audit.tsx";
import { ChatView } from "./views/chat.tsx";
import { DashboardView } from "./views/dashboard.tsx";
import { ImportView } from "./views/data.tsx";
import { EntityView } from "./views/entity.tsx";
import { HomeView } from "./views/home.tsx";
import { HuntView } from "./views/hunt.tsx";
import { IncidentsView } from "./views/incidents.tsx";
import { KnowledgeView } from "./views/knowledge.tsx";
import { PolicyView } from "./views/policy.tsx";
import { JoinView, SignInView } from "./views/sign_in.tsx";
import { SystemView } from "./views/system.tsx";
import { UsersView } from "./views/users.tsx";
import { visible } from "./visible.ts";
import { watchApprovals } from "./waiting_approvals.ts";
import type { Approval, Conversation, Session } from "./wire.ts";

interface Place {
  name: string;
  title: string;
  icon: IconName;
  role: string;
  /** A second role that opens it too. */
  or?: string;
  /** Whether a space stands before it in the navigation. */
  apart?: boolean;
  /** Reached by links alone. */
  unlisted?: boolean;
  view: (id: string | null, go: (id: string | null) => void, frame: Around) => JSX.Element;
}

/** What views take from the frame around them; `entered` and `left` tell it that the sign-in is another or over. */
interface Around {
  session: Session;
  waiting: Approval[];
  conversations: Conversation[];
  /** Read the conversations anew. */
  reload: () => void;
  entered: (session: Session) => void;
  left: () => void;
}

const PLACES: Place[] = [
  {
    name: "home",
    title: "Home",
    icon: "home",
    role: "analyst",
    view: (_, __, { session, waiting }) => <HomeView session={session} waiting={waiting} />,
  },
  {
    name: "chat",
    title: "Ask",
    icon: "ask",
    role: "analyst",
    view: (id, go, frame) => <ChatView id={id} go={go} {...frame} />,
  },
  {
    name: "incidents",
    title: "Incidents",
    icon: "incident",
    role: "analyst",
    view: (id, go, frame) => <IncidentsView id={id} go={go} {...frame} />,
  },
  {
    name: "approvals",
    title: "Approvals",
    icon: "approval",
    role: "approver",
    or: "analyst",
    view: (id, _, { session, waiting }) => <ApprovalsView id={id} session={session} waiting={waiting} />,
  },
  {
    name: "dashboard",
    title: "Dashboard",
    icon: "dashboard",
    role: "analyst",
    view: (_, __, { session, waiting }) => <DashboardView session={session} waiting={waiting} />,
  },
  {
    name: "hunt",
    title: "KQL",
    icon: "hunt",
    role: "analyst",
    apart: true,
    view: (id, go, { session }) => <HuntView id={id} go={go} session={session} />,
  },
  {
    name: "knowledge",
    title: "Knowledge",
    icon: "book",
    role: "analyst",
    view: (id, go, { session }) => <KnowledgeView id={id} go={go} session={session} />,
  },
  {
    name: "data",
    title: "Data",
    icon: "data",
    role: "admin",
    view: (_, __, { session }) => <ImportView session={session} />,
  },
  {
    name: "audit",
    title: "Audit",
    icon: "audit",
    role: "auditor",
    view: (id, go) => <AuditView id={id} go={go} />,
  },
  { name: "policy", title: "Policy", icon: "policy", role: "admin", view: () => <PolicyView /> },
  {
    name: "users",
    title: "Users",
    icon: "people",
    role: "admin",
    view: (id, go, { session }) => <UsersView id={id} go={go} session={session} />,
  },
  {
    name: "system",
    title: "System",
    icon: "system",
    role: "admin",
    or: "approver",
    view: (_, __, { session }) => <SystemView session={session} />,
  },
  {
    name: "entity",
    title: "Entity",
    icon: "search",
    role: "analyst",
    unlisted: true,
    view: (id, _, { session }) => <EntityView key={id} id={id ?? ""} session={session} />,
  },
];

const ACCOUNT: Place = {
  name: "account",
  title: "Account",
  icon: "user",
  role: "",
  view: (_, __, { session, entered, left }) => <AccountView session={session} entered={entered} left={left} />,
};

/** `oidc` says whether people may sign in at an identity provider. */
export function App({ oidc }: { oidc: boolean }): JSX.Element | null {
  const [session, setSession] = useState<Session | null | undefined>(undefined);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [ended, setEnded] = useState(false);
  const [invitation, setInvitation] = useState(invited());
  const last = useRef("");

  const enter = (found: Session): void => {
    if (found.name !== last.current) {
      forget();
      last.current = found.name;
    }
    setEnded(false);
    useCsrf(found.csrf_token);
    setSession(found);
    setRefusal(null);
  };
  useEffect(() => {
    onSignedOut(() => {
      setSession(null);
      setEnded(last.current !== "");
    });
    addEventListener("hashchange", () => setInvitation(invited()));
    ask<Session>("GET", "/session").then(enter, (error) => {
      const found = asRefusal(error);
      if (found.status !== 401) {
        setRefusal(found);
      }
    });
  }, []);

  const leave = (): void => {
    last.current = "";
    setSession(null);
  };
  if (invitation !== undefined) {
    return (
      <JoinView
        token={invitation}
        onSignedIn={(found) => {
          enter(found);
          location.replace("#/"); // what is spent stands in no address
        }}
      />
    );
  }

  if (refusal !== null) {
    return (
      <main class="sign-in">
        <h1>Sentinel RAG</h1>
        <RefusalNotice refusal={refusal} />
        <button type="button" onClick={() => location.reload()}>
          Try again
        </button>
      </main>
    );
  }
  if (session === undefined) {
    return null;
  }
  return session === null ? (
    <SignInView oidc={oidc} ended={ended} onSignedIn={enter} />
  ) : (
    <Frame session={session} entered={enter} left={leave} />
  );
}

/** The invitation that the address holds. */
function invited(): string | undefined {
  return /^#\/join\/([\w-]+)$/.exec(location.hash)?.[1];
}

function allows(session: Session, place: Place): boolean {
  return session.roles.includes(place.role) || (place.or !== undefined && session.roles.includes(place.or));
}

function Frame(props: { session: Session; entered: (session: Session) => void; left: () => void }): JSX.Element {
  const { session, entered, left } = props;
  const offered = PLACES.filter((place) => allows(session, place));
  const [name, id] = useAddress(offered[0]?.name ?? "");
  const lacking = PLACES.find((place) => place.name === name && !offered.includes(place));
  const here = name === ACCOUNT.name ? ACCOUNT : (offered.find((place) => place.name === name) ?? offered[0]);
  const at = lacking ?? here;
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  // The palette that is open, below 1 for none. A dialog tells late that it was closed: the next may be open by then.
  const [finding, setFinding] = useState(0);
  const find = (): void => {
    if (document.querySelector("dialog.palette[open]") === null) {
      setFinding((before) => Math.abs(before) + 1);
    }
  };

  const waiting = useWaiting(session);
  const [conversations, reload] = useConversations(session);
  const mine = waiting.filter((each) => each.may_decide);
  useKeys(find);
  useEffect(() => {
    const count = mine.length === 0 ? "" : `(${mine.length}) `;
    document.title = at === undefined ? "Sentinel RAG" : `${count}${at.title} - Sentinel RAG`;
  }, [at, mine.length]);

  const leave = (): void => {
    ask("DELETE", "/session").then(left, (error) => setRefusal(asRefusal(error)));
  };
  const around = { session, waiting, conversations, reload, entered, left };
  const chats = here?.name === "chat" && lacking === undefined;
  // The views of requests and the first screen show them anyway.
  const waits = here?.name === "approvals" || here?.name === "home" ? [] : mine;
  return (
    <div class="app">
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <aside class="side" aria-label="Navigation">
        <a class="brand" href="#/">
          <Icon name="mark" />
          <span class="text">Sentinel RAG</span>
        </a>
        <nav class="views" aria-label="Views">
          {offered
            .filter((place) => !place.unlisted)
            .map((place) => (
              <a
                key={place.name}
                href={`#/${place.name}`}
                aria-current={place === at ? "page" : undefined}
                class={place.apart ? "apart" : undefined}
              >
                <Icon name={place.icon} />
                <span class="text">{place.title}</span>
                {place.name === "approvals" && mine.length > 0 ? <Count count={mine.length} /> : null}
              </a>
            ))}
        </nav>
        {session.roles.includes("analyst") ? (
          <Recent list={conversations} id={chats ? id : null} class="recent" heading />
        ) : null}
        <div class="me">
          <a href="#/account" aria-current={here === ACCOUNT ? "page" : undefined}>
            <Avatar name={session.name} />
            <span class="text">
              <span class="unseen">Account of </span>
              {visible(session.name)}
            </span>
          </a>
          <button type="button" class="bare icon" aria-label="Sign out" title="Sign out" onClick={leave}>
            <Icon name="leave" />
          </button>
        </div>
      </aside>
      <div class={waits.length === 0 ? "body" : "body waiting"}>
        <div class="head">
          <header class="top">
            <div class="crumb">
              {id !== null && here !== undefined && !chats && !here.unlisted ? (
                <>
                  <a class="up" href={`#/${here.name}`}>
                    {here.title}
                  </a>
                  <span class="up">/</span>
                  <span class="here">{crumbOf(here, id, waiting)}</span>
                </>
              ) : (
                <span class="here">{(chats ? titleIn(conversations, id) : null) ?? at?.title ?? "Sentinel RAG"}</span>
              )}
            </div>
            <button type="button" class="jump" onClick={find} title="Ctrl K">
              <Icon name="search" />
              <span>Ask, or go to an incident, host, account</span>
              <kbd>Ctrl K</kbd>
            </button>
            <div class="right">
              <Where session={session} />
              <ThemeButton />
            </div>
          </header>
          <Waits approvals={waits} />
        </div>
        <main id="main" class={chats ? "" : "page"} tabIndex={-1}>
          <RefusalNotice refusal={refusal} />
          {lacking !== undefined && here !== undefined ? (
            <>
              <h1>{lacking.title}</h1>
              <p class="refusal">
                {lacking.title} is for people with the role {lacking.role}. Whoever looks after accounts can give it.
              </p>
            </>
          ) : here === undefined ? (
            <p>This account has no role here. Whoever looks after accounts can give one: sentinel users change</p>
          ) : (
            <Boundary key={here.name}>
              {here.view(
                id,
                (to) => {
                  location.hash = to === null ? `/${here.name}` : `/${here.name}/${encodeURIComponent(to)}`;
                },
                around,
              )}
            </Boundary>
          )}
        </main>
      </div>
      {finding > 0 ? (
        <Palette
          key={finding}
          session={session}
          views={[...offered.filter((place) => !place.unlisted), ACCOUNT]}
          conversations={conversations}
          onClose={() => setFinding((now) => (now === finding ? -now : now))}
        />
      ) : null}
    </div>
  );
}

function titleIn(conversations: Conversation[], id: string | null): string | null {
  const found = conversations.find((each) => each.session_id === id);
  return found === undefined ? null : visible(found.title);
}

function crumbOf(place: Place, id: string, waiting: Approval[]): string {
  const found = place.name === "approvals" ? waiting.find((each) => each.approval_id === id) : undefined;
  return found === undefined ? visible(id.split("?")[0] || "filtered") : visible(titleOf(found));
}

/** The conversations, the newest first; read anew by the second. */
function useConversations(session: Session): [Conversation[], () => void] {
  const [list, setList] = useState<Conversation[]>([]);
  const asks = session.roles.includes("analyst");
  const reload = (): void => {
    if (asks) {
      ask<{ conversations: Conversation[] }>("GET", "/conversations?limit=100").then(
        (found) => setList(found.conversations),
        () => {}, // the view that asks says what is wrong
      );
    }
  };
  useEffect(reload, [session.name, asks]);
  return [list, reload];
}

/** Where questions go, and what time it is there. */
function Where({ session }: { session: Session }): JSX.Element {
  const [now, setNow] = useState(clock());
  useEffect(() => {
    const timer = setInterval(() => setNow(clock()), 20_000);
    return () => clearInterval(timer);
  }, []);
  const first = session.workspaces[0];
  return (
    <span class="label">
      {first === undefined ? "" : `Workspace ${visible(first)} · `}
      {now}
    </span>
  );
}

function ThemeButton(): JSX.Element {
  const [dark, setDark] = useState(darkNow());
  return (
    <button
      type="button"
      class="bare icon"
      aria-label="Dark theme"
      aria-pressed={dark}
      title={dark ? "Light theme" : "Dark theme"}
      onClick={() => {
        keepTheme(!dark);
        setDark(!dark);
      }}
    >
      <Icon name="theme" />
    </button>
  );
}

/** Ctrl-K finds, from everywhere; `/` goes to the question, unless somebody writes. */
function useKeys(find: () => void): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      const writes = at.closest("input, textarea, select, [contenteditable]") !== null;
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
        event.preventDefault();
        find();
      } else if (event.key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        const box = document.querySelector<HTMLElement>("textarea.question-text");
        if (box === null) {
          location.hash = "/chat";
          dispatchEvent(new HashChangeEvent("hashchange")); // the next key is the question's first
        } else {
          box.focus();
        }
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

/** The calls that wait for a person, as they come and go; none for those who do not decide. */
function useWaiting(session: Session): Approval[] {
  const [waiting, setWaiting] = useState<Approval[]>([]);
  useEffect(() => {
    const ended = new AbortController();
    if (session.roles.includes("approver") || session.roles.includes("analyst")) {
      watchApprovals(setWaiting, ended.signal);
    }
    return () => ended.abort();
  }, [session.name, session.roles.join()]);
  return waiting;
}

function Count({ count }: { count: number }): JSX.Element {
  return (
    <span class="count">
      <span class="unseen">&#32;</span>
      {count}
      <span class="unseen"> waiting</span>
    </span>
  );
}

function skip(): void {
  document.getElementById("main")?.focus();
}

/** View and id of the address, `#/chat/0f7c1b2a`. */
function useAddress(first: string): [string, string | null] {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const moved = (): void => setHash(location.hash);
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  const [name, id] = hash.replace(/^#\//, "").split("/");
  return [name || first, id ? decoded(id) : null];
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
