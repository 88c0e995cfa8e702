// The application: who is signed in, which view the address names, and the frame around it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, onSignedOut, type Refusal, useCsrf } from "./api.ts";
import { RefusalNotice } from "./parts/notices.tsx";
import { ApprovalsView } from "./views/approvals.tsx";
import { AuditView } from "./views/audit.tsx";
import { ChatView } from "./views/chat.tsx";
import { IncidentsView } from "./views/incidents.tsx";
import { PolicyView } from "./views/policy.tsx";
import { SignInView } from "./views/sign_in.tsx";
import { TrendsView } from "./views/trends.tsx";
import { visible } from "./visible.ts";
import type { Session } from "./wire.ts";

interface Place {
  name: string;
  title: string;
  role: string;
  view: (id: string | null, go: (id: string | null) => void) => JSX.Element;
}

const PLACES: Place[] = [
  { name: "chat", title: "Ask", role: "analyst", view: (id, go) => <ChatView id={id} go={go} /> },
  { name: "incidents", title: "Incidents", role: "analyst", view: (id, go) => <IncidentsView id={id} go={go} /> },
  { name: "trends", title: "Trends", role: "analyst", view: () => <TrendsView /> },
  { name: "approvals", title: "Approvals", role: "approver", view: (id, go) => <ApprovalsView id={id} go={go} /> },
  { name: "audit", title: "Audit", role: "auditor", view: (id, go) => <AuditView id={id} go={go} /> },
  { name: "policy", title: "Policy", role: "admin", view: () => <PolicyView /> },
];

/** `oidc` says whether people may sign in at an identity provider. */
export function App({ oidc }: { oidc: boolean }): JSX.Element | null {
  const [session, setSession] = useState<Session | null | undefined>(undefined);
  const [refusal, setRefusal] = useState<Refusal | null>(null);

  const enter = (found: Session): void => {
    useCsrf(found.csrf_token);
    setSession(found);
    setRefusal(null);
  };
  useEffect(() => {
    onSignedOut(() => setSession(null));
    ask<Session>("GET", "/session").then(enter, (error) => {
      const found = asRefusal(error);
      if (found.status !== 401) {
        setRefusal(found);
      }
    });
  }, []);

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
    <SignInView oidc={oidc} onSignedIn={enter} />
  ) : (
    <Frame session={session} left={() => setSession(null)} />
  );
}

function Frame({ session, left }: { session: Session; left: () => void }): JSX.Element {
  const offered = PLACES.filter((place) => session.roles.includes(place.role));
  const [name, id] = useAddress(offered[0]?.name ?? "");
  const here = offered.find((place) => place.name === name) ?? offered[0];
  const [refusal, setRefusal] = useState<Refusal | null>(null);

  useEffect(() => {
    document.title = here === undefined ? "Sentinel RAG" : `${here.title} - Sentinel RAG`;
  }, [here]);

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
            <a key={place.name} href={`#/${place.name}`} aria-current={place === here ? "page" : undefined}>
              {place.title}
            </a>
          ))}
        </nav>
        <span class="who">{visible(session.name)}</span>
        <button type="button" onClick={leave}>
          Sign out
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <RefusalNotice refusal={refusal} />
        {here === undefined ? (
          <p>This account has no role here. Whoever looks after accounts can give one: sentinel users change</p>
        ) : (
          here.view(id, (to) => {
            location.hash = to === null ? `/${here.name}` : `/${here.name}/${encodeURIComponent(to)}`;
          })
        )}
      </main>
    </>
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
