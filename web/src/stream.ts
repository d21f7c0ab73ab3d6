// Follows a stream of events: reconnects with back-off and resumes after the last id, until it is stopped. A hidden tab holds no
// connection: a browser has about six per server for all tabs together.
import { createParser } from "eventsource-parser";
import { Failure, openStream } from "./http.ts";

export interface Frame {
  name: string;
  data: string;
}

const kBackoffMs = [500, 1000, 2000, 4000];

function untilVisible(): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resume) => {
    const look = (): void => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resume();
    };
    document.addEventListener("visibilitychange", look);
  });
}

export interface Handlers {
  onFrame: (frame: Frame) => void;
  onOpen?: () => void;
  onBytes?: () => void; // anything came, also a heartbeat
  onEnd?: () => void; // the connection has ended, whatever the reason
  onGone?: () => Promise<void>; // the server does not have what follows the last id; called before the next connection
}

export interface Feed {
  stop: () => void;
  reconnect: () => void; // gives up a connection that says nothing
}

/** `path` is called for each connection, since what to ask for changes. Returns how to stop. */
export function follow(path: () => string, onFrame: (frame: Frame) => void, onOpen: () => void = () => {}): () => void {
  return followFeed(path, { onFrame, onOpen }).stop;
}

export function followFeed(path: () => string, handlers: Handlers): Feed {
  const stop = new AbortController();
  let connected = new AbortController();
  let lastId = "";
  let tries = 0;
  const parser = createParser({
    onEvent: (event) => {
      if (event.id) lastId = event.id;
      handlers.onFrame({ name: event.event ?? "message", data: event.data });
    },
  });

  async function once(): Promise<boolean> {
    connected = new AbortController();
    const body = await openStream(path(), lastId, connected.signal);
    if (!body) return false;
    tries = 0;
    handlers.onBytes?.();
    handlers.onOpen?.();
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      handlers.onBytes?.();
      parser.feed(piece.value);
    }
    return true;
  }

  async function keep(): Promise<void> {
    while (!stop.signal.aborted) {
      await untilVisible();
      if (stop.signal.aborted) return;
      try {
        if (!(await once())) return;
      } catch (error) {
        const status = error instanceof Failure ? error.status : 0;
        if (status === 401 || status === 404) return;
        if (status === 410 || status === 422) {
          lastId = ""; // the cursor is too old: begin again
          await handlers.onGone?.();
        }
      }
      parser.reset();
      if (stop.signal.aborted) return;
      handlers.onEnd?.();
      const pause = kBackoffMs[Math.min(tries++, kBackoffMs.length - 1)] ?? 0;
      await new Promise((resume) => setTimeout(resume, pause * (0.75 + Math.random() / 2)));
    }
  }
  const leave = (): void => {
    if (document.hidden) connected.abort();
  };
  document.addEventListener("visibilitychange", leave);
  stop.signal.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", leave);
    connected.abort();
  });
  void keep();
  return { stop: () => stop.abort(), reconnect: () => connected.abort() };
}
