// The people who may sign in: who they are, what they may do, and how they sign in.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, asRefusal, type Refusal } from "../api.ts";
import { CopyButton } from "../parts/copy.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { Time } from "../parts/signs.tsx";
import { visible } from "../visible.ts";
import type { Person } from "../wire.ts";

const ADD = "sentinel users add NAME --role analyst";

export function UsersView(): JSX.Element {
  const [found, setFound] = useState<Person[] | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  useEffect(() => {
    ask<{ users: Person[] }>("GET", "/users").then(
      (answer) => setFound(answer.users),
      (error) => setRefusal(asRefusal(error)),
    );
  }, []);
  return (
    <div class="stack">
      <h1>Users</h1>
      <RefusalNotice refusal={refusal} />
      <section class="card" aria-label="Accounts">
        <header>
          <h2>Accounts</h2>
          <span class="quiet">{found === null ? "" : found.length}</span>
        </header>
        {found === null && refusal === null ? <p class="quiet">Reading...</p> : null}
        {found?.length === 0 ? <p class="quiet">There is none yet but the owner’s.</p> : null}
        {found === null || found.length === 0 ? null : (
          <table class="fold">
            <thead>
              <tr>
                {["Name", "Roles", "Clearance", "Groups", "Signs in with", "State", "Made"].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {found.map((each) => (
                <tr key={each.name}>
                  <th scope="row" class="wide">
                    <strong>{visible(each.name)}</strong>
                  </th>
                  <td>{each.roles.map(visible).join(", ")}</td>
                  <td class="spare">{visible(each.clearance)}</td>
                  <td class="spare">{each.groups.map(visible).join(", ") || <span class="quiet">none</span>}</td>
                  <td class="spare long">{each.signs_in_with.map(visible).join(", ")}</td>
                  <td>
                    <span class={each.state === "live" ? "chip ok" : "chip"}>{visible(each.state)}</span>
                  </td>
                  <td class="end">
                    <Time at={each.created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <footer class="row">
          Accounts are made, changed and ended where this runs, because each has a key of its own there:{" "}
          <code>{ADD}</code> <CopyButton text={ADD} what="the command" />
        </footer>
      </section>
    </div>
  );
}
