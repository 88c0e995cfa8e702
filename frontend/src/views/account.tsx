// A person's own account: how to be answered, the password, tokens for programs, and signing out everywhere.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { NewPassword, newPassword, PasswordField } from "../parts/password.tsx";
import { keep, preferences, timezones, VERBOSITIES } from "../preferences.ts";
import { visible } from "../visible.ts";
import type { Session } from "../wire.ts";
import { Tokens } from "./tokens.tsx";

export function AccountView(props: {
  session: Session;
  entered: (session: Session) => void;
  left: () => void;
}): JSX.Element {
  const { session } = props;
  return (
    <div class="stack">
      <h1>Account</h1>
      <p class="quiet">
        You are {visible(session.name)}, with the roles {session.roles.map(visible).join(", ") || "none"} and the
        clearance {visible(session.clearance)}.
      </p>
      <div class="halves">
        <Answers workspaces={session.workspaces} />
        {session.has_password ? <Password entered={props.entered} /> : null}
        <Tokens />
        <Everywhere left={props.left} />
      </div>
    </div>
  );
}

function Answers({ workspaces }: { workspaces: string[] }): JSX.Element {
  const kept = preferences();
  const [said, setSaid] = useState("");
  const save = (event: Event): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const [workspace, zone, verbosity] = ["workspace", "timezone", "verbosity"].map((name) => String(given.get(name)));
    const done = keep({ workspace: workspace ?? "", timezone: zone ?? "", verbosity: verbosity ?? "" });
    setSaid(done ? "Kept by this browser, from the next question on." : "This browser keeps nothing for this page.");
  };
  return (
    <Card label="Answers" title="How to answer">
      <form class="in" onSubmit={save}>
        <label>
          Workspace
          <select name="workspace" defaultValue={kept.workspace}>
            <option value="">{`the first one${workspaces[0] === undefined ? "" : ` (${visible(workspaces[0])})`}`}</option>
            {workspaces.map((name) => (
              <option key={name} value={name} selected={name === kept.workspace}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Time zone
          <select name="timezone">
            <option value="">this browser's</option>
            {timezones().map((name) => (
              <option key={name} selected={name === kept.timezone}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Length
          <select name="verbosity">
            <option value="">as the server has it</option>
            {Object.entries(VERBOSITIES).map(([name, words]) => (
              <option key={name} value={name} selected={name === kept.verbosity}>
                {name}: {words}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="main">
          Keep
        </button>
        <p role="status">{said}</p>
      </form>
    </Card>
  );
}

function Password({ entered }: { entered: (session: Session) => void }): JSX.Element {
  const [run, , refusal] = useWork();
  const [said, setSaid] = useState("");
  const change = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    setSaid("");
    run(async () => {
      await ask("PUT", "/password", { password: given.get("password"), new_password: newPassword(given) });
      entered(await ask<Session>("GET", "/session"));
      form.reset();
      setSaid("Changed. Every other sign-in and every token of yours has ended.");
    });
  };
  return (
    <Card title="Password">
      <form class="in" onSubmit={change}>
        <PasswordField label="Password so far" name="password" current />
        <NewPassword />
        <RefusalNotice refusal={refusal} />
        <button type="submit" class="main">
          Change it
        </button>
        <p role="status">{said}</p>
      </form>
    </Card>
  );
}

function Everywhere({ left }: { left: () => void }): JSX.Element {
  const [run, , refusal] = useWork();
  return (
    <Card title="Sign-ins">
      <div class="in">
        {" "}
        <p>Ends every sign-in of yours at a browser, this one too. Tokens go on until you revoke them.</p>
        <RefusalNotice refusal={refusal} />
        <button type="button" onClick={() => run(() => ask("DELETE", "/sessions").then(left))}>
          Sign out everywhere
        </button>
      </div>{" "}
    </Card>
  );
}
