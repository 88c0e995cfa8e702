// What runs behind this page and whether it answers, which model does, how old the data is, and what the commands of the
// machine do besides. What does not work is said first, with who can mend it.
import type { JSX } from "preact";
import { type Rows, useAnswer, useLook } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { Facts } from "../parts/data_table.tsx";
import { Icon } from "../parts/icon.tsx";
import { HowFound, Reading, State } from "../parts/reading.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { Time, ZoneLine } from "../parts/signs.tsx";
import { Table } from "../parts/table.tsx";
import { age, OLD_S } from "../times.ts";
import type { Knowledge } from "../tool_rows.ts";
import { visible } from "../visible.ts";
import type { Session, SystemState } from "../wire.ts";

/** The name of a part for people, and what it means that it works. */
const PARTS: Record<string, [string, string]> = {
  gateway: ["Gateway", "decides and records each call"],
  agent: ["Agent", "answers questions"],
  policy: ["Policy", "the rules in force are those of the file"],
  journal: ["Audit journal", "can be written"],
  upstreams: ["Tool servers", "answer"],
  tools: ["Tools", "are those that were checked"],
};
const COMMANDS: [string, string][] = [
  ["sentinel doctor", "checks every part, with what mends it"],
  ["sentinel doctor --model", "asks the model a question"],
  ["sentinel status", "addresses, processes, logs"],
  ["sentinel backup FOLDER", "copies what this product keeps"],
];

interface HeldTable {
  table: string;
  rows: number;
  oldest: string | null;
  newest: string | null;
}

export function SystemView({ session }: { session: Session }): JSX.Element {
  const state = useAnswer<SystemState>("/state");
  const { found } = state;
  const wrong = Object.values(found?.parts ?? {}).filter((told) => told !== "ok").length;
  return (
    <div class="stack">
      <div class="row">
        <h1>{found === null ? "System" : wrong === 0 ? "Everything answers" : `${wrong} of the parts do not work`}</h1>
        <button type="button" class="push" onClick={state.again}>
          Read again
        </button>
      </div>
      <State of={state} shown={found !== null} />
      {found === null ? null : (
        <div class="halves">
          <Parts parts={found.parts} />
          <Card title="What it is">
            <div class="in">
              <Facts facts={factsOf(found)} />
            </div>
          </Card>
        </div>
      )}
      {session.roles.includes("analyst") ? (
        session.workspaces.map((name, place) => (
          <Held key={name} name={name} workspace={place === 0 ? undefined : name} />
        ))
      ) : (
        <p class="card empty">What data there is, people with the role analyst read.</p>
      )}
      {session.roles.includes("analyst") ? <Known /> : null}
      <Card title="On the machine" note="whoever owns it types these">
        <div class="in">
          <Facts facts={COMMANDS} />
        </div>
      </Card>
    </div>
  );
}

function Parts({ parts }: { parts: SystemState["parts"] }): JSX.Element {
  const rows = Object.entries(parts).sort(([, one], [, other]) => Number(one === "ok") - Number(other === "ok"));
  return (
    <Card title="Parts">
      <Table
        rows={rows}
        keyOf={([name]) => name}
        columns={[
          { title: "Part", names: true, cell: ([name]) => PARTS[name]?.[0] ?? visible(name) },
          {
            title: "State",
            cell: ([, told]) => (
              <span class={`chip ${told === "ok" ? "ok" : "bad"}`}>
                <Icon name={told === "ok" ? "check" : "cross"} />
                {told === "ok" ? "works" : "does not work"}
              </span>
            ),
          },
          {
            title: "What it says",
            class: "long",
            cell: ([name, told]) =>
              told === "ok" ? (
                <span class="quiet">{PARTS[name]?.[1] ?? ""}</span>
              ) : (
                `${visible(told)} Run sentinel doctor.`
              ),
          },
        ]}
      />
    </Card>
  );
}

function factsOf({ versions, model, keep_days, workspaces }: SystemState): [string, string][] {
  const { page, agent } = versions;
  const both = agent === null || agent === page ? page : `${page} of the page, ${agent} of the agent`;
  return [
    ["Version", visible(both)],
    [
      "Answers come from",
      model === null ? "not known" : model === "" ? "the planner on this machine, without a model" : visible(model),
    ],
    ["Workspaces", workspaces.map(visible).join(", ")],
    ["Conversations are kept", `${keep_days} days after they were last used`],
  ];
}

/** The tables of a workspace, what is oldest first: a source that went silent stands on top. */
function Held({ name, workspace }: { name: string; workspace: string | undefined }): JSX.Element {
  const tables = useLook<Rows<HeldTable, unknown>>("list_tables", { workspace });
  return (
    <Reading title={`Data of ${visible(name)}`} look={tables} note={<ZoneLine />}>
      {(found) => {
        const since = (row: HeldTable): number => (found.at - Date.parse(row.newest ?? "")) / 1_000;
        const rows = [...found.result.rows].sort((one, other) => since(other) - since(one));
        return rows.length === 0 ? (
          <p class="in">It holds no rows yet.</p>
        ) : (
          <>
            <Scroll label={`Tables of ${visible(name)}`}>
              <Table
                rows={rows}
                class="fold"
                keyOf={(row) => row.table}
                columns={[
                  { title: "Table, the longest silent first", names: true, cell: (row) => visible(row.table) },
                  { title: "Rows", class: "num", cell: (row) => row.rows.toLocaleString("en") },
                  { title: "Oldest", class: "spare", cell: (row) => <Time at={row.oldest} /> },
                  { title: "Newest", class: "spare", cell: (row) => <Time at={row.newest} /> },
                  {
                    title: "Silent for",
                    class: "num",
                    cell: (row) =>
                      Number.isNaN(since(row)) ? (
                        <span class="quiet">not known</span>
                      ) : since(row) > OLD_S ? (
                        <span class="chip warn">{age(since(row))}</span>
                      ) : (
                        age(since(row))
                      ),
                  },
                ]}
              />
            </Scroll>
            <footer>
              <HowFound of={found} />
            </footer>
          </>
        );
      }}
    </Reading>
  );
}

function Known(): JSX.Element {
  const known = useLook<Knowledge>("search_knowledge_base", { query: "incident", limit: 1 });
  return (
    <Reading title="Knowledge" look={known}>
      {({ result: { freshness } }) => (
        <p class="in">
          {freshness.playbooks} playbooks and {freshness.incidents} past incidents
          {freshness.incidents_as_of === null ? null : (
            <>
              , these as of <Time at={freshness.incidents_as_of} />
            </>
          )}
          . <a href="#/knowledge">Knowledge</a>
        </p>
      )}
    </Reading>
  );
}
