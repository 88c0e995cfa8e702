// Choosing a password: typed twice, compared here, judged by the server.
import type { ComponentChildren, JSX } from "preact";
import { Refusal } from "../api.ts";

const LONGEST = 256;

export function PasswordField(props: { label: ComponentChildren; name: string; current?: boolean }): JSX.Element {
  return (
    <label>
      {props.label}
      <input
        name={props.name}
        type="password"
        autocomplete={props.current ? "current-password" : "new-password"}
        required
        maxLength={LONGEST}
      />
    </label>
  );
}

/** The two fields of a new password. */
export function NewPassword(): JSX.Element {
  return (
    <>
      <PasswordField
        label={
          <>
            New password <span class="quiet">(12 characters or more)</span>
          </>
        }
        name="new"
      />
      <PasswordField label="New password, again" name="again" />
    </>
  );
}

/** The password that both fields hold. Throws Refusal where they differ. */
export function newPassword(form: FormData): string {
  const password = String(form.get("new"));
  if (password !== form.get("again")) {
    throw new Refusal(0, "differs", "The new password is not the same twice.", "Type it again.");
  }
  return password;
}
