// What the daemon says now: the one place that reads the fleet and its feed. Every number of a page is a field of one snapshot,
// /v1/fleet, never a sum of events: an event only says that it is time to read again.
//
// The feed begins at the cursor of the first snapshot and resumes after the last event, so that none is missed and none comes twice. It
// beats once a second: silence for kSilenceMs makes the page say "disconnected" with the time of the data, so within 3 s; what was
// read last stays visible. A hidden tab reads nothing.
import { batch, signal } from "@preact/signals";
import { Failure, get, serverDate, why } from "./http.ts";
import { followFeed } from "./stream.ts";
import type { Feed } from "./stream.ts";
import type { Beat, Event, Fleet, Loaded } from "./types.ts";
import { kLoading } from "./types.ts";

export type Connection =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; detail: string }
  | { kind: "failing"; since: number; detail: string } // the daemon answers, its store does not
  | { kind: "locked"; detail: string }; // the token is missing or wrong

export const connection = signal<Connection>({ kind: "connecting" });
/** The last snapshot. */
export const fleet = signal<Loaded<Fleet>>(kLoading);
/** The moment of `fleet`, by this machine's clock; 0: never read. */
export const readAt = signal(0);
/** This machine's clock, once a second: ages are drawn from it. */
export const now = signal(Date.now());
/** Server time minus ours. */
export const clockOffset = signal(0);

const kReadIdleMs = 2000; // without events: what changes by time alone
const kReadGapMs = 1000; // between two reads that events ask for; the first comes at once
const kReadMsMax = 1800;
const kSilenceMs = 2300; // the daemon's silence must be reported within 3 s
const kLookMs = 250;
const kClockErrorMs = 3000; // smaller differences are delays, or the whole seconds of a header

type Listener = (event: Event) => void;
const listeners = new Set<Listener>();
const recoveries = new Set<() => void>();
let reading: Promise<void> | null = null;
let next: Promise<void> | null = null; // the read after `reading`
let timer = 0;
let begunAt = 0; // the last read
let heardAt = 0; // anything from the daemon: bytes of the feed, or an answer
let feeding = false; // the feed is open
let feed: Feed | null = null;

/** Calls `listener` for every event of the feed until the returned function is called. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls `listener` whenever the daemon and its store answer again, until the returned function is called. */
export function onRecovery(listener: () => void): () => void {
  recoveries.add(listener);
  return () => recoveries.delete(listener);
}

/** The server's time now, in milliseconds. */
export function serverNow(): number {
  return now.value + clockOffset.value;
}

function setClock(server: number): void {
  const offset = server - Date.now();
  clockOffset.value = Math.abs(offset) > kClockErrorMs ? offset : 0;
}

function lose(error: unknown): void {
  const detail = why(error);
  const status = error instanceof Failure ? error.status : 0;
  const known = connection.value;
  const since = known.kind === "lost" || known.kind === "failing" ? known.since : Date.now();
  batch(() => {
    now.value = Date.now();
    if (status === 401 || status === 403) {
      connection.value = { kind: "locked", detail };
    } else {
      connection.value = { kind: status >= 500 ? "failing" : "lost", since, detail };
    }
    if (fleet.value.kind !== "ok") fleet.value = { kind: "failed", why: detail };
  });
}

async function readOnce(): Promise<void> {
  begunAt = Date.now();
  try {
    const value = await get<Fleet>("/v1/fleet", kReadMsMax);
    heardAt = Date.now();
    const { kind: before } = connection.value;
    batch(() => {
      if (serverDate) setClock(serverDate);
      fleet.value = { kind: "ok", value };
      now.value = Date.now();
      readAt.value = Math.min(now.value, Math.max(begunAt - kSilenceMs, value.as_of - clockOffset.value));
      connection.value = { kind: "live" };
    });
    if (before === "lost" || before === "failing") for (const listener of [...recoveries]) listener();
  } catch (error) {
    lose(error);
  }
}

function begin(): Promise<void> {
  reading = readOnce().finally(() => {
    reading = null;
  });
  return reading;
}

/** Reads the fleet now. A read that is under way may be older than what was just done: another one follows it. */
export function refresh(): Promise<void> {
  if (!reading) return begin();
  next ??= reading.then(() => {
    next = null;
    return begin();
  });
  return next;
}

function soon(): void {
  if (timer) return;
  const pause = Math.max(0, begunAt + kReadGapMs - Date.now());
  timer = window.setTimeout(() => {
    timer = 0;
    void refresh();
  }, pause);
}

function cursor(): string {
  return fleet.value.kind === "ok" ? fleet.value.value.cursor : "now";
}

function openFeed(): void {
  feed = followFeed(() => `/v1/events?after=${encodeURIComponent(cursor())}`, {
    onFrame: (frame) => {
      if (frame.name === "beat") {
        setClock((JSON.parse(frame.data) as Beat).now);
        return;
      }
      const event = JSON.parse(frame.data) as Event;
      for (const listener of [...listeners]) listener(event);
      soon();
    },
    onBytes: () => {
      heardAt = Date.now();
      feeding = true;
    },
    onOpen: soon,
    onEnd: () => {
      feeding = false;
      if (!document.hidden) void refresh(); // says at once whether the daemon is gone
    },
    onGone: refresh, // events after the cursor were deleted: the next snapshot has another one
  });
}

/** Starts reading. Called once, and again after a new token was given. */
export function start(): void {
  feed?.stop();
  feed = null;
  void refresh().then(() => {
    if (connection.value.kind !== "locked" && !feed) openFeed();
  });
}

window.setInterval(() => {
  const at = Date.now();
  if (Math.floor(at / 1000) !== Math.floor(now.value / 1000)) now.value = at;
  if (document.hidden || connection.value.kind === "locked") return;
  if (connection.value.kind === "live" && at - heardAt > kSilenceMs) {
    lose(new Failure(0, "the daemon gives no sign of life"));
    feed?.reconnect();
  }
  // Without the feed only answers show that the daemon is there.
  if (!reading && at - begunAt > (feeding ? kReadIdleMs : kReadGapMs)) void refresh();
}, kLookMs);

document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
  heardAt = Date.now(); // a hidden tab hears nothing
  if (!document.hidden && connection.value.kind !== "locked") void refresh();
});
