// Signing in with a name and a password, or at the identity provider.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { waits } from "../draft.ts";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import type { Session } from "../wire.ts";

export function SignInView(props: {
  oidc: boolean;
  ended: boolean;
  onSignedIn: (session: Session) => void;
}): JSX.Element {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [busy, setBusy] = useState(false);
  const [holds, setHolds] = useState(false);
  // What stood in the box is kept when the view around it goes, which is after this one was drawn first.
  useEffect(() => setHolds(waits()), []);

  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      props.onSignedIn(
        await ask<Session>("POST", "/sign-in", { name: given.get("name"), password: given.get("password") }),
      );
    } catch (error) {
      setRefusal(asRefusal(error));
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <div class="card">
        <h1 class="brand">
          <Icon name="mark" />
          Sentinel RAG
        </h1>
        {props.ended ? (
          <p role="status" class="notice">
            Your sign-in ended. {holds ? "Sign in to send your question; it is kept." : "Sign in to go on."}
          </p>
        ) : null}
        <form onSubmit={send}>
          <label>
            Name
            <input name="name" autocomplete="username" required maxLength={64} />
          </label>
          <label>
            Password
            <input name="password" type="password" autocomplete="current-password" required maxLength={256} />
          </label>
          <RefusalNotice refusal={refusal} />
          <button type="submit" class="main" disabled={busy}>
            Sign in
          </button>
        </form>
        {props.oidc ? (
          <p>
            <a href="/sign-in/oidc">Sign in with your identity provider</a>
          </p>
        ) : null}
        <p class="label">
          Whoever runs this machine signs in by the link that <code>sentinel up --web</code> prints.
        </p>
      </div>
    </main>
  );
}
