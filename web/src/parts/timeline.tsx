// Events of a run as a list, and its attempts as lanes. Times are the store's own; nothing is estimated.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ageText, lengthText, momentText } from "../format.ts";
import type { Event, Run } from "../types.ts";
import { isEnded } from "../types.ts";
import { Empty } from "./states.tsx";

const kWords: Record<string, string> = {
  enqueued: "submitted", promoted: "now first in its session", woken: "wait over", answered: "answered by a person", limit_resumed: "limit resumed",
  loaded: "imported from another store", unsafe: "starts work that must not be repeated", safe: "that work is done", cancel_asked: "cancel requested",
  hand_back: "handed back to the queue", lost: "its process died", retry: "attempt failed", park: "parked", claimed: "attempt begins",
  resolved_done: "resolved by a person: done", resolved_rerun: "resolved by a person: run again", resolved_discard: "resolved by a person: discarded",
};
const kShown = 200;

function dataText(data: unknown): string {
  if (data === undefined || data === null) return "";
  if (typeof data === "object" && "text" in data && typeof data.text === "string") return data.text;
  if (typeof data === "object" && "kind" in data && "name" in data) {
    const span = data as { kind: string; name: string; ms?: number };
    return `${span.kind} ${span.name}${span.ms === undefined ? "" : `, ${lengthText(span.ms)}`}`;
  }
  return typeof data === "string" ? data : JSON.stringify(data);
}

export function EventList({ events, begin }: { events: Event[]; begin: number }): JSX.Element {
  const [all, setAll] = useState(false);
  const [raw, setRaw] = useState(false);
  if (events.length === 0) return <Empty title="No events were read." />;
  const shown = all ? events : events.slice(-kShown);
  return (
    <>
      <p class="buttons">
        {shown.length < events.length && <button type="button" class="quiet" onClick={() => setAll(true)}>Show all {events.length} events</button>}
        <button type="button" class="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>Raw</button>
      </p>
      {raw ? <pre class="raw" tabIndex={0}>{shown.map((event) => JSON.stringify(event)).join("\n")}</pre> : (
        <ol class="events" aria-label="Events">
          {shown.map((event) => (
            <li key={event.seq} data-seq={event.seq}>
              <time class="num" dateTime={new Date(event.at).toISOString()} title={momentText(event.at)}>+{ageText(event.at - begin)}</time>
              <span><b>{kWords[event.cause] ?? event.cause}</b>{event.hold && <span class="muted"> ({event.hold})</span>}{event.data !== undefined && ` ${dataText(event.data)}`}{event.error && <span class="error">: {event.error}</span>}</span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

interface Part {
  kind: "wait" | "work" | "park" | "doubt";
  what: string;
  at: number;
  end: number;
}

/** Cuts the life of a run where its state or its hold changed. */
export function partsOf(events: Event[], run: Run, now: number): Part[] {
  const parts: Part[] = [];
  const kinds = { running: "work", parked: "park", in_doubt: "doubt" } as const;
  for (const event of events) {
    if (!event.state) continue;
    const last = parts.at(-1);
    if (last) last.end = event.at;
    if (isEnded(event.state)) return parts;
    const kind = kinds[event.state as keyof typeof kinds] ?? "wait";
    const what = event.state === "running" ? "attempt" : (event.hold ?? (event.state === "queued" ? "queue" : event.state.replace("_", " ")));
    if (last && last.kind === kind && last.what === what) continue;
    parts.push({ kind, what, at: event.at, end: run.finished_at ?? now });
  }
  return parts;
}

export function Timeline({ events, run, now }: { events: Event[]; run: Run; now: number }): JSX.Element {
  const parts = partsOf(events, run, now);
  const begin = parts[0]?.at ?? run.created_at;
  const whole = Math.max(1, (run.finished_at ?? now) - begin);
  if (parts.length === 0) return <Empty title="The events of this run are not here." />;
  return (
    <ol class="timeline" aria-label="Waits and attempts, in order">
      {parts.map((part, at) => (
        <li key={at} class={part.kind}>
          <span class="name">{part.what}</span>
          <span class="track" aria-hidden="true"><span style={{ left: `${(100 * (part.at - begin)) / whole}%`, width: `${Math.max(0.4, (100 * (part.end - part.at)) / whole)}%` }} /></span>
          <span class="num">{lengthText(part.end - part.at)}</span>
        </li>
      ))}
    </ol>
  );
}
