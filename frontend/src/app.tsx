// The application: who is signed in, which view the address names, and the frame around it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, asRefusal, onSignedOut, type Refusal, useCsrf } from "./api.ts";
import { forget } from "./draft.ts";
import { RefusalNotice } from "./parts/notices.tsx";
import { AccountView } from "./views/account.tsx";
import { ApprovalsView } from "./views/approvals.tsx";
import { AuditView } from "./views/audit.tsx";
import { ChatView } from "./views/chat.tsx";
import { IncidentsView } from "./views/incidents.tsx";
import { PolicyView } from "./views/policy.tsx";
import { SignInView } from "./views/sign_in.tsx";
import { TrendsView } from "./views/trends.tsx";
import { visible } from "./visible.ts";
import { watchApprovals } from "./waiting_approvals.ts";
import type { Approval, Session } from "./wire.ts";

interface Place {
  name: string;
  title: string;
  role: string;
  /** A second role that opens it too. */
  or?: string;
  view: (id: string | null, go: (id: string | null) => void, frame: Around) => JSX.Element;
}

/** What views take from the frame around them; `entered` and `left` tell it that the sign-in is another or over. */
interface Around {
  session: Session;
  waiting: Approval[];
  entered: (session: Session) => void;
  left: () => void;
}

const PLACES: Place[] = [
  {
    name: "chat",
    title: "Ask",
    role: "analyst",
    view: (id, go, { session }) => <ChatView id={id} go={go} session={session} />,
  },
  {
    name: "incidents",
    title: "Incidents",
    role: "analyst",
    view: (id, go, { session }) => <IncidentsView id={id} go={go} session={session} />,
  },
  { name: "trends", title: "Trends", role: "analyst", view: (_, __, { session }) => <TrendsView session={session} /> },
  {
    name: "approvals",
    title: "Approvals",
    role: "approver",
    or: "analyst",
    view: (id, go, { waiting }) => <ApprovalsView id={id} go={go} waiting={waiting} />,
  },
  { name: "audit", title: "Audit", role: "auditor", view: (id, go) => <AuditView id={id} go={go} /> },
  { name: "policy", title: "Policy", role: "admin", view: () => <PolicyView /> },
];

const ACCOUNT: Place = {
  name: "account",
  title: "Account",
  role: "",
  view: (_, __, { session, entered, left }) => <AccountView session={session} entered={entered} left={left} />,
};

/** `oidc` says whether people may sign in at an identity provider. */
export function App({ oidc }: { oidc: boolean }): JSX.Element | null {
  const [session, setSession] = useState<Session | null | undefined>(undefined);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [ended, setEnded] = useState(false);
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

  if (refusal !== null) {
    return (
      <main>
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

  const waiting = useWaiting(session);
  const mine = waiting.filter((each) => each.may_decide);
  useEffect(() => {
    const count = mine.length === 0 ? "" : `(${mine.length}) `;
    document.title = at === undefined ? "Sentinel RAG" : `${count}${at.title} - Sentinel RAG`;
  }, [at, mine.length]);

  const leave = (): void => {
    ask("DELETE", "/session").then(left, (error) => setRefusal(asRefusal(error)));
  };
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <header class="bar">
        <nav aria-label="Views">
          {offered.map((place) => (
            <a key={place.name} href={`#/${place.name}`} aria-current={place === at ? "page" : undefined}>
              {place.title}
              {place.name === "approvals" && mine.length > 0 ? <Count count={mine.length} /> : null}
            </a>
          ))}
        </nav>
        <a class="who" href="#/account" aria-current={here === ACCOUNT ? "page" : undefined}>
          <span class="unseen">Account of </span>
          {visible(session.name)}
        </a>
        <button type="button" onClick={leave}>
          Sign out
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <RefusalNotice refusal={refusal} />
        {here?.name === "approvals" ? null : <Waits approvals={mine} />}
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
          here.view(
            id,
            (to) => {
              location.hash = to === null ? `/${here.name}` : `/${here.name}/${encodeURIComponent(to)}`;
            },
            { session, waiting, entered, left },
          )
        )}
      </main>
    </>
  );
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

/** Told wherever the person is, and by a screen reader as soon as it is so. */
function Waits({ approvals }: { approvals: Approval[] }): JSX.Element {
  return (
    <div aria-live="polite" class={approvals.length === 0 ? "" : "notice waits"}>
      {approvals.length === 0 ? null : (
        <>
          {approvals.length === 1 ? "A call waits" : `${approvals.length} calls wait`} for your decision:{" "}
          {byTool(approvals).map(([tool, calls], place) => (
            <span key={tool}>
              {place === 0 ? "" : ", "}
              <a href={calls.length === 1 ? `#/approvals/${encodeURIComponent(calls[0] ?? "")}` : "#/approvals"}>
                {visible(tool)}
                {calls.length === 1 ? "" : ` (${calls.length})`}
              </a>
            </span>
          ))}
        </>
      )}
    </div>
  );
}

/** The ids of the calls of each tool. */
function byTool(approvals: Approval[]): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const { tool, approval_id } of approvals) {
    found.set(tool, [...(found.get(tool) ?? []), approval_id]);
  }
  return [...found];
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
