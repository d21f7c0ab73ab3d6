// Each attempt's end beside what followed from it, and the run's newest events.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ageText, lengthText, momentText } from "../format.ts";
import type { Attempt, Event, Timeline } from "../types.ts";
import { Clock } from "./pieces.tsx";
import { Empty } from "./states.tsx";

const kWords: Record<string, string> = {
  enqueued: "submitted", promoted: "now first in its session", woken: "wait over", answered: "answered by a person", limit_resumed: "limit resumed",
  loaded: "imported from another store", unsafe: "starts work that must not be repeated", safe: "that work is done", cancel_asked: "cancel requested",
  hand_back: "handed back to the queue", lost: "its process died", retry: "attempt failed", park: "parked", claimed: "attempt begins",
  resolved_done: "resolved by a person: done", resolved_rerun: "resolved by a person: run again", resolved_discard: "resolved by a person: discarded",
};

/** What followed from the end of an attempt. */
function verdictText(attempt: Attempt, timeline: Timeline): string {
  if (attempt.ended_at === null) return "it runs";
  if (attempt.hold === "backoff") {
    const pause = timeline.segments.find((segment) => segment.kind === "backoff" && segment.at >= (attempt.ended_at ?? 0));
    return `retried after a back-off${pause ? ` of ${lengthText(pause.ms)}` : ""}`;
  }
  if (attempt.hold === "quota") return "parked until its account may be used; the attempt does not count";
  if (attempt.hold === "person") return "parked until a person answers; the attempt does not count";
  if (attempt.state === "in_doubt") return "in doubt: its effects are unknown, so it is not repeated";
  if (attempt.state === "queued") return attempt.cause === "lost" ? "its process died; back to the queue" : "handed back to the queue; the attempt does not count";
  return attempt.cause === "failed" ? "not retried: the run has failed" : (attempt.state ?? attempt.cause ?? "ended").replace("_", " ");
}

export function Attempts({ timeline }: { timeline: Timeline }): JSX.Element {
  if (timeline.attempts.length === 0) return <p class="muted">None has begun.</p>;
  return (
    <ol class="attempts" aria-label="Attempts">
      {timeline.attempts.slice(-50).map((attempt) => (
        <li key={attempt.fence}>
          <b>{attempt.attempt}</b> <Clock at={attempt.begun_at} />, {lengthText((attempt.ended_at ?? timeline.until_at) - attempt.begun_at)}: {verdictText(attempt, timeline)}
          {attempt.error && <p class="error">{attempt.error}</p>}
        </li>
      ))}
    </ol>
  );
}

function dataText(data: unknown): string {
  if (data === undefined || data === null) return "";
  if (typeof data === "object" && "text" in data && typeof data.text === "string") return data.text;
  if (typeof data === "object" && "kind" in data && "name" in data) {
    const span = data as { kind: string; name: string; ms?: number };
    return `${span.kind} ${span.name}${span.ms === undefined ? "" : `, ${lengthText(span.ms)}`}`;
  }
  if (typeof data === "object" && "waits" in data) {
    const waits = data.waits as { limit: string; ms: number }[];
    return `after waiting for ${waits.map((wait) => `${wait.limit} (${lengthText(wait.ms)})`).join(", ")}`;
  }
  return typeof data === "string" ? data : JSON.stringify(data);
}

export function EventList({ events, begin, older }: { events: Event[]; begin: number; older: () => void }): JSX.Element {
  const [raw, setRaw] = useState(false);
  const first = events[0];
  if (!first) return <Empty title="No events were read." />;
  return (
    <>
      <p class="buttons">
        {first.seq > 1 && <button type="button" class="quiet" onClick={older}>Show older events ({first.seq - 1} before these)</button>}
        <button type="button" class="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>Raw</button>
      </p>
      {raw ? <pre class="raw" tabIndex={0}>{events.map((event) => JSON.stringify(event)).join("\n")}</pre> : (
        <ol class="events" aria-label="Events">
          {events.map((event) => (
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
