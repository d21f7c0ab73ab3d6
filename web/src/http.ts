// Requests to the daemon. Every one carries the token; a failure becomes an exception with the server's own text.
import { token } from "./session.ts";

export class Failure extends Error {
  constructor(
    readonly status: number, // 0: no answer
    message: string,
  ) {
    super(message);
  }
}

const kAnswerMsMax = 10_000;

/** Server time of the last answer, in whole seconds; 0: none yet. */
export let serverDate = 0;

function headers(more: Record<string, string> = {}): Record<string, string> {
  const bearer = token();
  return bearer ? { ...more, Authorization: `Bearer ${bearer}` } : more;
}

async function failure(answer: Response): Promise<Failure> {
  const text = await answer.text().catch(() => "");
  try {
    return new Failure(answer.status, (JSON.parse(text) as { detail: string }).detail);
  } catch {
    return new Failure(answer.status, text || `the server answered ${answer.status}`);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "TimeoutError") throw new Failure(0, "the daemon did not answer in time");
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure(0, "the daemon can't be reached");
  }
}

/** A read, given up after `msMax`. */
export async function get<T>(path: string, msMax = kAnswerMsMax): Promise<T> {
  const answer = await send(path, { headers: headers(), signal: AbortSignal.timeout(msMax) });
  if (!answer.ok) throw await failure(answer);
  serverDate = Date.parse(answer.headers.get("Date") ?? "") || serverDate;
  return (await answer.json()) as T;
}

/** A change. Waits for the answer as long as it takes: a cancel answers when the processes have ended. */
export async function change<T>(method: "POST" | "PUT", path: string, body?: unknown, key?: string): Promise<T> {
  const more: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  if (key) more["Idempotency-Key"] = key;
  const answer = await send(path, { method, headers: headers(more), ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  if (!answer.ok) throw await failure(answer);
  return (await answer.json()) as T;
}

/** A stream of server-sent events; null: the server says that nothing more will come (204). */
export async function openStream(path: string, lastId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array> | null> {
  const more: Record<string, string> = { Accept: "text/event-stream" };
  if (lastId) more["Last-Event-ID"] = lastId;
  const answer = await send(path, { headers: headers(more), signal });
  if (answer.status === 204) return null;
  if (!answer.ok || !answer.body) throw await failure(answer);
  return answer.body;
}

/** The text of a failure, for people. */
export function why(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
