// Requests to this page's own server: one place that adds the token of changes and turns every refusal into a value.

/** A refusal in the server's words, or a lost connection (`status` 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    readonly detail: string,
    readonly nextStep: string,
  ) {
    super(detail);
  }
}

let csrf = "";
let signedOut = (): void => {};

/** Use `token` for changes from now on. */
export function useCsrf(token: string): void {
  csrf = token;
}

/** Call `listener` whenever a request finds that nobody is signed in any more. */
export function onSignedOut(listener: () => void): void {
  signedOut = listener;
}

/** The JSON that the server answers; a file is sent as it stands. Throws Refusal. */
export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await open(method, path, body, signal);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}

/** The response itself, once it is a good one. Throws Refusal. */
export async function open(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  const sent: Record<string, string> = { Accept: "application/json", ...headers };
  if (method !== "GET") {
    sent["X-CSRF-Token"] = csrf;
  }
  const request: RequestInit = { method, headers: sent, credentials: "same-origin", redirect: "error" };
  if (body instanceof Blob) {
    sent["Content-Type"] = "application/octet-stream";
    request.body = body;
  } else if (body !== undefined) {
    sent["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  if (signal !== undefined) {
    request.signal = signal;
  }
  let response: Response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (signal?.aborted) {
      throw error;
    }
    throw lost();
  }
  if (response.ok) {
    return response;
  }
  const refusal = await refusalOf(response);
  if (refusal.status === 401 && refusal.reason === "unauthenticated") {
    signedOut();
  }
  throw refusal;
}

export function lost(): Refusal {
  return new Refusal(0, "connection", "The connection to Sentinel RAG is lost.", "It is tried again by itself.");
}

/** Whatever was thrown, as a refusal to show. */
export function asRefusal(error: unknown): Refusal {
  return error instanceof Refusal
    ? error
    : new Refusal(0, "page", "This page could not do that.", "Load it again; nothing is lost.");
}

async function refusalOf(response: Response): Promise<Refusal> {
  try {
    const told = (await response.json()) as { reason?: string; detail?: string; next_step?: string };
    return new Refusal(response.status, told.reason ?? "", told.detail ?? "It was refused.", told.next_step ?? "");
  } catch {
    return new Refusal(response.status, "unavailable", `The server answered ${response.status}.`, "Try again soon.");
  }
}
