// Signing in with a name and a password, or at the identity provider.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api.ts";
import { waits } from "../draft.ts";
import { useWork } from "../look.ts";
import { Icon } from "../parts/icon.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { NewPassword, newPassword, PasswordField } from "../parts/password.tsx";
import type { Session } from "../wire.ts";

export function SignInView(props: {
  oidc: boolean;
  ended: boolean;
  onSignedIn: (session: Session) => void;
}): JSX.Element {
  const [holds, setHolds] = useState(false);
  // What stood in the box is kept when the view around it goes, which is after this one was drawn first.
  useEffect(() => setHolds(waits()), []);
  const send = (given: FormData): Promise<Session> =>
    ask<Session>("POST", "/sign-in", { name: given.get("name"), password: given.get("password") });
  return (
    <Entrance
      above={
        props.ended ? (
          <p role="status" class="notice">
            Your sign-in ended. {holds ? "Sign in to send your question; it is kept." : "Sign in to go on."}
          </p>
        ) : null
      }
      button="Sign in"
      send={send}
      onSignedIn={props.onSignedIn}
      below={
        <>
          {props.oidc ? (
            <p>
              <a href="/sign-in/oidc">Sign in with your identity provider</a>
            </p>
          ) : null}
          <p class="label">
            Whoever runs this machine signs in by the link that <code>sentinel up --web</code> prints.
          </p>
        </>
      }
    >
      <label>
        Name
        <input name="name" autocomplete="username" required maxLength={64} />
      </label>
      <PasswordField label="Password" name="password" current />
    </Entrance>
  );
}

/** Whoever was invited chooses a password, and is signed in with it. */
export function JoinView(props: { token: string; onSignedIn: (session: Session) => void }): JSX.Element {
  const send = async (given: FormData): Promise<Session> =>
    ask<Session>("POST", "/sign-in/invitation", { token: props.token, password: newPassword(given) });
  return (
    <Entrance
      above={<p>You were invited. Choose a password that nobody else knows; this link then works no more.</p>}
      button="Choose it, and sign in"
      send={send}
      onSignedIn={props.onSignedIn}
    >
      <NewPassword />
    </Entrance>
  );
}

/** The page of somebody who is not signed in: one form that ends in a sign-in or says why not. */
function Entrance(props: {
  above: ComponentChildren;
  button: string;
  send: (given: FormData) => Promise<Session>;
  onSignedIn: (session: Session) => void;
  children: ComponentChildren;
  below?: ComponentChildren;
}): JSX.Element {
  const [run, busy, refusal] = useWork();
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    run(async () => props.onSignedIn(await props.send(given)));
  };
  return (
    <main class="sign-in">
      <div class="card">
        <h1 class="brand">
          <Icon name="mark" />
          Sentinel RAG
        </h1>
        {props.above}
        <form onSubmit={send}>
          {props.children}
          <RefusalNotice refusal={refusal} />
          <button type="submit" class="main" disabled={busy}>
            {props.button}
          </button>
        </form>
        {props.below}
      </div>
    </main>
  );
}
