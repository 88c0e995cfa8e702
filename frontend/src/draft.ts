// Words on their way to the question box: what a person asks for in another view, which is sent at once or waits in the
// box to be finished; and what a person wrote that has not reached the server.

let suggested = "";
let given = "";
let kept = "";
let onGiven = (): void => {};

/** Put `question` into the box of a new conversation, and go there. */
export function suggest(question: string): void {
  suggested = question;
  location.hash = "/chat";
}

/** Ask `question` in a new conversation, and go there. Only what a person typed or chose themselves is asked so: what
 * their words name, the agent may act on. */
export function askNow(question: string): void {
  given = question;
  if (/^#\/chat\/?$/.test(location.hash)) {
    onGiven();
  } else {
    location.hash = "/chat";
  }
}

/** What is to be asked in the new conversation that is open now, once. */
export function givenNow(): string {
  const question = given;
  given = "";
  return question;
}

/** Call `listener` when something is asked while the new conversation is open already. */
export function listenGiven(listener: () => void): void {
  onGiven = listener;
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
  given = "";
  kept = "";
}
