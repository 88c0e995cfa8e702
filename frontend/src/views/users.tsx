// The people who may sign in: who they are and what they may do, and for one of them its roles, its password, its tokens
// and its end. The server and the gateway decide what may be given; what the reader lacks is not offered here either.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useAnswer, useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { State } from "../parts/reading.tsx";
import { Time } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { visible } from "../visible.ts";
import type { Changed, Person, Session, Token } from "../wire.ts";
import { TokenList } from "./tokens.tsx";

const ROLES: [string, string][] = [
  ["analyst", "asks, and keeps conversations"],
  ["approver", "decides what others ask for"],
  ["auditor", "reads the record and verifies it"],
  ["admin", "reads the policy, looks after accounts"],
];
const LEVELS = ["LOW", "MEDIUM", "HIGH"];

export function UsersView(props: {
  id: string | null;
  go: (id: string | null) => void;
  session: Session;
}): JSX.Element {
  const { id, go, session } = props;
  const users = useAnswer<{ users: Person[] }>("/users");
  const found = users.found?.users ?? null;
  const [adding, setAdding] = useState(false);
  const [given, setGiven] = useState<Changed | null>(null);
  const changed = (what: Changed): void => {
    setGiven(what);
    setAdding(false);
    users.again();
    go(what.user.name);
  };
  const person = found?.find((each) => each.name === id);
  return (
    <div class="stack">
      {id === null ? (
        <div class="row">
          <h1>Users</h1>
          <button type="button" class="main push" onClick={() => setAdding(true)}>
            Add a person…
          </button>
        </div>
      ) : (
        <h1>{visible(id)}</h1>
      )}
      <State of={users} shown={found !== null} />
      {given?.user.name === id ? <Invitation given={given} onDone={() => setGiven(null)} /> : null}
      {found === null ? null : id === null ? <Accounts found={found} session={session} /> : null}
      {found === null || id === null ? null : person === undefined ? (
        <p>There is no account of this name.</p>
      ) : (
        <One key={JSON.stringify(person)} person={person} session={session} onChanged={changed} />
      )}
      {adding ? <Add session={session} onClose={() => setAdding(false)} onDone={changed} /> : null}
    </div>
  );
}

function Accounts({ found, session }: { found: Person[]; session: Session }): JSX.Element {
  return (
    <Card title="Accounts" note={found.length}>
      {found.length === 0 ? <p class="quiet">There is none yet but the owner’s.</p> : null}
      {found.length === 0 ? null : (
        <Table
          class="fold"
          rows={found}
          keyOf={(each) => each.name}
          columns={[
            {
              title: "Name",
              names: true,
              class: "wide",
              cell: (each) => (
                <>
                  <a class="title" href={`#/users/${encodeURIComponent(each.name)}`}>
                    {visible(each.name)}
                  </a>
                  {each.name === session.name ? <span class="quiet"> (you)</span> : null}
                </>
              ),
            },
            { title: "Roles", cell: (each) => each.roles.map(visible).join(", ") },
            { title: "Clearance", class: "spare", cell: (each) => visible(each.clearance) },
            {
              title: "Groups",
              class: "spare",
              cell: (each) => each.groups.map(visible).join(", ") || <span class="quiet">none</span>,
            },
            {
              title: "Signs in with",
              class: "spare long",
              cell: (each) => each.signs_in_with.map(visible).join(", ") || <span class="quiet">invited</span>,
            },
            {
              title: "State",
              cell: (each) => <span class={each.state === "live" ? "chip ok" : "chip"}>{visible(each.state)}</span>,
            },
            { title: "Made", class: "end", cell: (each) => <Time at={each.created_at} /> },
          ]}
        />
      )}
      <footer class="inline">
        The owner, who runs this machine, has every role and no account. Each change is on record with who made it:{" "}
        <a href={`#/audit/${encodeURIComponent("?kind=key")}`}>changes of keys</a>.
      </footer>
    </Card>
  );
}

interface Terms {
  roles: string[];
  clearance: string;
  groups: string[];
}

function termsOf(form: FormData): Terms {
  return {
    roles: form.getAll("roles").map(String),
    clearance: String(form.get("clearance")),
    groups: String(form.get("groups") ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== ""),
  };
}

/** Roles, clearance and groups; what the reader does not have cannot be ticked. */
function TermFields({ terms, session }: { terms: Terms; session: Session }): JSX.Element {
  const highest = LEVELS.indexOf(session.clearance);
  return (
    <>
      <fieldset>
        <legend>Roles</legend>
        {ROLES.map(([role, words]) => {
          const mine = session.roles.includes(role);
          const has = terms.roles.includes(role);
          return (
            <label key={role} class="tick">
              <input type="checkbox" name="roles" value={role} defaultChecked={has} disabled={!mine && !has} />
              <span>
                {role}{" "}
                <span class="quiet">
                  {words}
                  {mine ? "" : has ? "; not yours to give again" : "; not yours to give"}
                </span>
              </span>
            </label>
          );
        })}
      </fieldset>
      <label>
        Clearance <span class="quiet">(the most secret of the hidden values that are shown)</span>
        <select name="clearance">
          {LEVELS.filter((level, at) => at <= highest || level === terms.clearance).map((level) => (
            <option key={level} selected={level === terms.clearance}>
              {level}
            </option>
          ))}
        </select>
      </label>
      <label>
        Groups <span class="quiet">(with commas; they read the knowledge that is for these)</span>
        <input name="groups" maxLength={400} defaultValue={terms.groups.join(", ")} />
      </label>
    </>
  );
}

const NEW: Terms = { roles: ["analyst"], clearance: "MEDIUM", groups: [] };

function Add(props: { session: Session; onClose: () => void; onDone: (made: Changed) => void }): JSX.Element {
  const [run, busy, refusal] = useWork();
  return (
    <Dialog title="Add a person" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const oidc = String(form.get("oidc") ?? "").trim();
          const given = { name: form.get("name"), ...termsOf(form), oidc: oidc === "" ? null : oidc };
          run(() => ask<Changed>("POST", "/users", given).then(props.onDone));
        }}
      >
        <label>
          Name
          <input name="name" required maxLength={64} autocomplete="off" />
        </label>
        <TermFields terms={NEW} session={props.session} />
        <label>
          Name at the identity provider <span class="quiet">(empty: signs in with a password)</span>
          <input name="oidc" maxLength={256} autocomplete="off" />
        </label>
        <RefusalNotice refusal={refusal} />
        <button type="submit" class="main" disabled={busy}>
          Add
        </button>
      </form>
    </Dialog>
  );
}

type Asked = "reset" | "disable" | Terms | null;

function One(props: { person: Person; session: Session; onChanged: (what: Changed) => void }): JSX.Element {
  const { person, session } = props;
  const [asked, setAsked] = useState<Asked>(null);
  const own = person.name === session.name;
  const live = person.state === "live";
  const done = (what: Changed): void => {
    setAsked(null);
    props.onChanged(what);
  };
  const dialog = { person, onClose: () => setAsked(null), onDone: done };
  return (
    <>
      <p class="row">
        <span class={live ? "chip ok" : "chip"}>{visible(person.state)}</span>
        <span>
          {person.signs_in_with.length === 0
            ? "Has no password yet: it is chosen by the link of an invitation."
            : `Signs in with ${person.signs_in_with.map(visible).join(", ")}.`}{" "}
          Made <Time at={person.created_at} />.
        </span>
        <a href={`#/audit/${encodeURIComponent(`?person=${person.name}`)}`}>What is on record</a>
      </p>
      {own ? <p>This is your own account: another admin changes it, or whoever runs this machine.</p> : null}
      <Card label="Rights" title="What this account may do">
        <form
          class="in"
          onSubmit={(event) => {
            event.preventDefault();
            setAsked(termsOf(new FormData(event.currentTarget)));
          }}
        >
          <fieldset disabled={own}>
            <legend class="unseen">Rights of {visible(person.name)}</legend>
            <TermFields terms={person} session={session} />
          </fieldset>
          {own ? null : (
            <button type="submit" class="main">
              {live ? "Change…" : "Change, and make it live…"}
            </button>
          )}
        </form>
      </Card>
      {own || !live ? null : (
        <Card title="Sign-in">
          <div class="in">
            <div class="row buttons">
              <button type="button" onClick={() => setAsked("reset")}>
                Reset the password…
              </button>
              <button type="button" onClick={() => setAsked("disable")}>
                Disable…
              </button>
            </div>
          </div>
        </Card>
      )}
      <Tokens person={person} />
      {asked === "reset" ? (
        <Confirm {...dialog} title={`Reset the password of ${visible(person.name)}?`} method="POST" path="/reset">
          <p>The password and every sign-in and token end now. You get a link by which a new one is chosen.</p>
        </Confirm>
      ) : null}
      {asked === "disable" ? (
        <Confirm {...dialog} title={`Disable ${visible(person.name)}?`} method="DELETE" path="">
          <p>Sign-ins, tokens and the key at the gateway end now. The account can be made live again.</p>
        </Confirm>
      ) : null}
      {asked !== null && typeof asked === "object" ? (
        <Confirm {...dialog} title={`Change ${visible(person.name)}?`} method="PUT" path="" body={asked}>
          <Before before={person} after={asked} />
          <p class="label">
            It holds at the next request. What the gateway remembers of open conversations begins anew.
          </p>
        </Confirm>
      ) : null}
    </>
  );
}

function Before({ before, after }: { before: Terms; after: Terms }): JSX.Element {
  const told = (terms: Terms): string[] => [
    [...terms.roles].sort().join(", "),
    terms.clearance,
    terms.groups.join(", ") || "none",
  ];
  const [now, then] = [told(before), told(after)];
  const rows = ["Roles", "Clearance", "Groups"].map((name, at) => ({ name, from: now[at] ?? "", to: then[at] ?? "" }));
  return (
    <Table
      rows={rows}
      keyOf={(row) => row.name}
      columns={[
        { title: "Field", names: true, cell: (row) => row.name },
        { title: "Now", class: "long", cell: (row) => visible(row.from) },
        {
          title: "Then",
          class: "long",
          cell: (row) =>
            row.from === row.to ? <span class="quiet">as it is</span> : <strong>{visible(row.to)}</strong>,
        },
      ]}
    />
  );
}

/** What will be done, and the button that does it. */
function Confirm(props: {
  person: Person;
  title: string;
  method: string;
  path: string;
  body?: unknown;
  children: ComponentChildren;
  onClose: () => void;
  onDone: (what: Changed) => void;
}): JSX.Element {
  const [run, busy, refusal] = useWork();
  const path = `/users/${encodeURIComponent(props.person.name)}${props.path}`;
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      {props.children}
      <RefusalNotice refusal={refusal} />
      <button
        type="button"
        class="main"
        disabled={busy}
        onClick={() => run(() => ask<Changed>(props.method, path, props.body).then(props.onDone))}
      >
        Do it
      </button>
    </Dialog>
  );
}

/** The link by which the person chooses a password; it cannot be shown again. */
function Invitation({ given, onDone }: { given: Changed; onDone: () => void }): JSX.Element {
  const name = visible(given.user.name);
  if (!given.invitation) {
    return (
      <p class="notice plain" role="status">
        {given.user.state === "live"
          ? `Done: ${name} is ${given.user.roles.join(", ")}.`
          : `Done: ${name} is disabled.`}
      </p>
    );
  }
  const link = `${location.origin}/#/join/${given.invitation.token}`;
  return (
    <div class="notice plain">
      <p role="status">
        Give this link to {name} alone. It is shown this once, works once, and ends{" "}
        <Time at={given.invitation.ends_at} />:
      </p>
      <p>
        <code class="token">{link}</code>
      </p>
      <p class="row">
        <CopyButton text={link} what="the link" />
        <button type="button" onClick={onDone}>
          I have given it
        </button>
      </p>
    </div>
  );
}

function Tokens({ person }: { person: Person }): JSX.Element {
  const path = `/users/${encodeURIComponent(person.name)}/tokens`;
  const tokens = useAnswer<{ tokens: Token[] }>(path);
  const [run, , refusal] = useWork();
  return (
    <Card label="Tokens" title="Tokens for programs">
      <State of={tokens} shown={tokens.found !== null} />
      <RefusalNotice refusal={refusal} />
      {tokens.found?.tokens.length === 0 ? <p class="quiet">There is none.</p> : null}
      <TokenList
        tokens={tokens.found?.tokens ?? []}
        onRevoke={(token) => run(() => ask("DELETE", `${path}/${token.token_id}`).then(tokens.again))}
      />
    </Card>
  );
}
