// The policy in force, and why it would decide a call as it would; explaining makes no call.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, Refusal } from "../api.ts";
import { useAnswer, useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { Facts } from "../parts/data_table.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { State } from "../parts/reading.tsx";
import { Table } from "../parts/table.tsx";
import { moment } from "../parts/tool_status.tsx";
import { visible } from "../visible.ts";
import type { Policy, PolicyTool, Story } from "../wire.ts";

const LABELS = ["LOW", "MEDIUM", "HIGH"].flatMap((level) => [`${level}/TRUSTED`, `${level}/UNTRUSTED`]);

export function PolicyView(): JSX.Element {
  const policy = useAnswer<Policy>("/policy");
  const { found } = policy;
  return (
    <div class="stack">
      <h1>Policy</h1>
      <State of={policy} shown={found !== null} />
      {found === null ? null : (
        <>
          <Facts
            facts={[
              ["Version", visible(found.policy.slice(0, 12))],
              ["Source", visible(found.source)],
              ["Loaded", moment(found.loaded_at, "at the start")],
            ]}
          />
          {found.refused === null ? null : (
            <p class="refusal">
              A newer file was not taken at {moment(found.refused.at, "")}:{" "}
              {found.refused.problems.map(visible).join(" ")}
            </p>
          )}
          <Rules tools={found.tools} />
          <Explain />
          {found.text === null ? null : (
            <details>
              <summary>The text in force</summary>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
              <pre class="scroll" tabIndex={0}>
                {visible(found.text)}
              </pre>
            </details>
          )}
        </>
      )}
    </div>
  );
}

const THEN = {
  never: "never",
  asker: "runs once the person who asked has confirmed it",
  other: "runs once another person has approved it",
  runs_or_asks: "runs; a person is asked where it carries more than the tool accepts",
  runs: "runs without asking",
};
const EFFECTS: Record<string, string> = { read: "reads", write: "changes", external: "sends out" };

/** What an agent may do by itself, what needs a person, and what never happens; what no rule names is denied. */
function Rules({ tools }: { tools: PolicyTool[] }): JSX.Element | null {
  const weight = (tool: PolicyTool): number => (tool.effect === "read" ? 1 : 0);
  const sorted = [...tools].sort((one, other) => weight(one) - weight(other));
  return tools.length === 0 ? null : (
    <Card id="rules" title="What an agent may do" note={<>{tools.length} tools; the first rule that holds decides</>}>
      <Table
        class="fold"
        rows={sorted.flatMap((tool) => tool.rules.map((rule) => ({ tool, rule })))}
        keyOf={({ tool, rule }) => `${tool.name} ${rule.rule_id}`}
        columns={[
          { title: "Tool", names: true, cell: ({ tool }) => visible(tool.name) },
          {
            title: "It",
            cell: ({ tool }) => <span class="nowrap">{EFFECTS[tool.effect] ?? visible(tool.effect)}</span>,
          },
          {
            title: "When",
            class: "long",
            cell: ({ rule }) => (rule.when === "true" ? "always" : <code>{visible(rule.when)}</code>),
          },
          {
            title: "Then",
            class: "long",
            cell: ({ tool, rule }) => (
              <>
                <span class={rule.then === "never" ? "chip warn" : rule.then === "runs" ? "chip" : "chip ok"}>
                  {THEN[rule.then]}
                </span>
                {rule.then === "other" && tool.approvers.length > 0 ? (
                  <div class="label">decided by {tool.approvers.map(visible).join(", ")}</div>
                ) : null}
              </>
            ),
          },
        ]}
      />
      <footer>Whatever no rule names is denied.</footer>
    </Card>
  );
}

function Explain(): JSX.Element {
  const [story, setStory] = useState<Story | null>(null);
  const [run, , refusal] = useWork();
  const explain = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const [tool, context, words] = ["tool", "context", "words"].map((name) => String(given.get(name)));
    setStory(null);
    run(async () => {
      const args = parsed(String(given.get("arguments")));
      setStory(await ask<Story>("POST", "/policy/explain", { tool, arguments: args, context, words }));
    });
  };
  return (
    <Card label="Explain a call" title="Why would a call be decided as it would?">
      <form class="in" onSubmit={explain}>
        <label>
          Tool
          <input name="tool" required maxLength={64} />
        </label>
        <label>
          Arguments, as JSON
          <textarea name="arguments" rows={3} defaultValue="{}" />
        </label>
        <label>
          What the session has read
          <select name="context">
            {LABELS.map((label) => (
              <option key={label}>{label}</option>
            ))}
          </select>
        </label>
        <label>
          The person's words
          <input name="words" maxLength={8_000} />
        </label>
        <button type="submit" class="main">
          Explain
        </button>
      </form>
      <RefusalNotice refusal={refusal} />
      {story === null ? null : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        <pre class="scroll" role="status" tabIndex={0}>
          {story.lines.map(visible).join("\n")}
        </pre>
      )}
    </Card>
  );
}

function parsed(text: string): Record<string, unknown> {
  const wrong = new Refusal(0, "malformed", "The arguments are no JSON object.", 'Write them as {"name": "value"}.');
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw wrong;
    }
    return value as Record<string, unknown>;
  } catch {
    throw wrong;
  }
}
