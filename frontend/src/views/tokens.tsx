// A person's tokens for programs: made here, shown once, revoked here.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api.ts";
import { useAnswer, useWork } from "../look.ts";
import { Card } from "../parts/card.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { RefusalNotice } from "../parts/notices.tsx";
import { State } from "../parts/reading.tsx";
import { moment } from "../parts/tool_status.tsx";
import { visible } from "../visible.ts";
import type { NewToken, Token } from "../wire.ts";

export function Tokens(): JSX.Element {
  const tokens = useAnswer<{ tokens: Token[] }>("/tokens");
  const [made, setMade] = useState<NewToken | null>(null);
  const [run, , refusal] = useWork();
  const create = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const given = new FormData(form);
    run(async () => {
      setMade(await ask<NewToken>("POST", "/tokens", { name: given.get("name"), days: Number(given.get("days")) }));
      form.reset();
      tokens.again();
    });
  };
  const revoke = (token: Token): void =>
    run(async () => {
      await ask("DELETE", `/tokens/${encodeURIComponent(token.token_id)}`);
      setMade((shown) => (shown?.token_id === token.token_id ? null : shown));
      tokens.again();
    });
  return (
    <Card label="Tokens" title="Tokens for programs">
      <p class="quiet">A program that sends one asks with your roles, and makes no further tokens.</p>
      <State of={tokens} shown={tokens.found !== null} />
      <RefusalNotice refusal={refusal} />
      {made === null ? null : <Shown token={made} onDone={() => setMade(null)} />}
      {tokens.found?.tokens.length === 0 ? <p>There is none.</p> : null}
      <TokenList tokens={tokens.found?.tokens ?? []} onRevoke={revoke} />
      <form class="in" onSubmit={create}>
        <label>
          Name of the program
          <input name="name" required maxLength={64} pattern="[A-Za-z0-9][A-Za-z0-9 ._@\-]*" />
        </label>
        <label>
          Days until it ends
          <input name="days" type="number" min={1} max={365} defaultValue="30" required />
        </label>
        <button type="submit" class="main">
          Make a token
        </button>
      </form>
    </Card>
  );
}

/** Tokens, each with a button that ends it. */
export function TokenList(props: { tokens: Token[]; onRevoke: (token: Token) => void }): JSX.Element {
  return (
    <ul class="listed">
      {props.tokens.map((token) => (
        <li key={token.token_id}>
          <strong>{visible(token.name)}</strong>{" "}
          <span class="quiet">
            made {moment(token.created_at, "")}, {used(token)}, ends {moment(token.ends_at, "")}
          </span>{" "}
          <button type="button" onClick={() => props.onRevoke(token)} aria-label={`Revoke ${visible(token.name)}`}>
            Revoke
          </button>
        </li>
      ))}
    </ul>
  );
}

function used(token: Token): string {
  return token.used_at === token.created_at ? "not used since" : `used ${moment(token.used_at, "")}`;
}

function Shown({ token, onDone }: { token: NewToken; onDone: () => void }): JSX.Element {
  return (
    <div class="notice plain" role="status">
      <p>The token of {visible(token.name)}. It is shown this once:</p>
      <p>
        <code class="token">{token.token}</code>
      </p>
      <p class="row">
        <CopyButton text={token.token} what="the token" />
        <button type="button" onClick={onDone}>
          I have kept it
        </button>
      </p>
    </div>
  );
}
