// Words for the question box that are not sent: what another view suggests, since what a person's words name the agent
// may act on, so that they are the person's to send; and what a person wrote that has not reached the server.

let suggested = "";
let kept = "";

/** Put `question` into the box of a new conversation, and go there. */
export function suggest(question: string): void {
  suggested = question;
  location.hash = "/chat";
}

/** Keep what a person wrote until there is a box again; several under each other. */
export function keep(question: string): void {
  kept = [kept, question].filter((each) => each.trim() !== "").join("\n");
}

/** Whether something that a person wrote waits to be sent. */
export function waits(): boolean {
  return kept !== "";
}

/** What the box begins with, once; what was kept stays for the next one after a suggestion. */
export function taken(): string {
  const question = suggested || kept;
  if (suggested === "") {
    kept = "";
  }
  suggested = "";
  return question;
}

/** Forget it all, because another person is here. */
export function forget(): void {
  suggested = "";
  kept = "";
}
