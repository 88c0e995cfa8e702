// A question that another view puts into the chat. It stands in the box and is not sent: what a person's words name,
// the agent may act on, so they are the person's to send.

let waiting = "";

/** Put `question` into the box of a new conversation, and go there. */
export function suggest(question: string): void {
  waiting = question;
  location.hash = "/chat";
}

/** The question that waits, once. */
export function taken(): string {
  const question = waiting;
  waiting = "";
  return question;
}
