// What the daemon says now: the one place that reads the fleet and its feed. Every number of a page is a field of an answer kept here,
// never a sum of events: an event only says that it is time to read again.
//
// Numbers are read together once a second, and at once after an event or an own action. A read that fails or takes 1.8 s makes the page
// say "disconnected" with the time of the data, so within 3 s; what was read last stays visible. A hidden tab reads nothing.
import { batch, signal } from "@preact/signals";
import { Failure, get, serverDate, why } from "./http.ts";
import { follow } from "./stream.ts";
import type { Event, Limit, Loaded, Pool, RunSummary, Runs, Shortage, State, Status } from "./types.ts";
import { kLoading } from "./types.ts";

/** One look at the fleet. */
export interface FleetNow {
  version: string;
  store: string;
  phase: Status["phase"];
  counts: Partial<Record<State, number>>; // absent: unknown
  ready: number;
  nodes: number;
  pool: Pool | null;
  limits: Limit[];
  spend: { cost_micros: number; tokens: number; cap_micros: number | null };
  shortage: Shortage | null;
  needs: RunSummary[]; // in doubt, or parked until a person answers
  working: RunSummary[];
  failures: RunSummary[];
}

export type Connection =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; detail: string }
  | { kind: "failing"; since: number; detail: string } // the daemon answers, its store does not
  | { kind: "locked"; detail: string }; // the token is missing or wrong

export const connection = signal<Connection>({ kind: "connecting" });
export const fleet = signal<Loaded<FleetNow>>(kLoading);
/** When `fleet` was read, by this machine's clock; 0: never. */
export const readAt = signal(0);
/** This machine's clock, once a second: ages are drawn from it. */
export const now = signal(Date.now());
/** Server time minus ours. */
export const clockOffset = signal(0);

const kReadEveryMs = 1000;
const kReadMsMax = 1800; // the daemon's silence must be reported within 3 s
const kClockErrorMs = 3000; // smaller differences are delays, or the whole seconds of the header
const kReadGapMs = 300; // between two reads that events ask for

type Listener = (event: Event) => void;
const listeners = new Set<Listener>();
let reading: Promise<void> | null = null;
let timer = 0;
let stopStream: (() => void) | null = null;

/** Calls `listener` for every event of the fleet until the returned function is called. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The server's time now, in milliseconds. */
export function serverNow(): number {
  return now.value + clockOffset.value;
}

async function readFleet(): Promise<FleetNow> {
  const [status, limits, needs, working, failures] = await Promise.all([
    get<Status>("/v1/status", kReadMsMax),
    get<{ limits: Limit[] }>("/v1/limits", kReadMsMax),
    get<Runs>("/v1/runs?state=in_doubt&state=parked&limit=50", kReadMsMax),
    get<Runs>("/v1/runs?state=running&limit=200", kReadMsMax),
    get<Runs>("/v1/runs?state=failed&state=expired&limit=8", kReadMsMax),
  ]);
  return {
    version: status.version,
    store: status.store,
    phase: status.phase,
    counts: status.runs as Partial<Record<State, number>>,
    ready: status.ready,
    nodes: status.nodes,
    pool: status.pool,
    limits: limits.limits,
    spend: { cost_micros: status.cost_micros_today, tokens: status.tokens_today, cap_micros: status.cost_micros_per_day ?? null },
    shortage: status.shortage ?? null,
    needs: needs.runs.filter((run) => run.state === "in_doubt" || run.hold === "person"),
    working: working.runs,
    failures: failures.runs,
  };
}

function lose(error: unknown): void {
  const detail = why(error);
  const status = error instanceof Failure ? error.status : 0;
  const known = connection.value;
  const since = known.kind === "lost" || known.kind === "failing" ? known.since : Date.now();
  batch(() => {
    if (status === 401 || status === 403) {
      connection.value = { kind: "locked", detail };
    } else {
      connection.value = { kind: status >= 500 ? "failing" : "lost", since, detail };
    }
    if (fleet.value.kind !== "ok") fleet.value = { kind: "failed", why: detail };
  });
}

async function readOnce(): Promise<void> {
  try {
    const value = await readFleet();
    batch(() => {
      fleet.value = { kind: "ok", value };
      readAt.value = now.value = Date.now();
      const offset = serverDate - readAt.value;
      clockOffset.value = Math.abs(offset) > kClockErrorMs ? offset : 0;
      connection.value = { kind: "live" };
    });
  } catch (error) {
    lose(error);
  }
}

/** Reads the fleet now; joins a read that is under way. */
export function refresh(): Promise<void> {
  reading ??= readOnce().finally(() => {
    reading = null;
  });
  return reading;
}

function soon(): void {
  if (timer) return;
  timer = window.setTimeout(() => {
    timer = 0;
    void refresh();
  }, kReadGapMs);
}

function openFeed(): void {
  stopStream = follow(
    () => "/v1/events",
    (frame) => {
      const event = JSON.parse(frame.data) as Event;
      for (const listener of [...listeners]) listener(event);
      soon();
    },
    soon,
  );
}

/** Starts reading. Called once, and again after a new token was given. */
export function start(): void {
  stopStream?.();
  stopStream = null;
  void refresh().then(() => {
    if (connection.value.kind !== "locked") openFeed();
  });
}

window.setInterval(() => {
  now.value = Date.now();
  if (!document.hidden && connection.value.kind !== "locked") void refresh();
}, kReadEveryMs);

document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
  if (!document.hidden && connection.value.kind !== "locked") void refresh();
});
