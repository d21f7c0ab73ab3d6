// The run's newest events in words, or as the server sent them.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { countText, lengthText, momentText } from "../format.ts";
import type { Event, RunCause, SpanData } from "../types.ts";
import { Empty } from "./states.tsx";

const kWords: Record<RunCause, string> = {
  enqueued: "submitted", promoted: "now first in its session", woken: "wait over", claimed: "attempt begins", unsafe: "starts work that must not be repeated", safe: "that work is done",
  cancel_asked: "cancel requested", succeeded: "succeeded", failed: "failed", cancelled: "cancelled", expired: "expired", retry: "attempt failed", park: "parked",
  hand_back: "handed back to the queue", lost: "its process died", answered: "answered by a person", limit_resumed: "limit resumed",
  resolved_done: "resolved by a person: done", resolved_rerun: "resolved by a person: run again", resolved_discard: "resolved by a person: discarded",
  loaded: "imported from another store", conversation: "conversation", chosen_conversation: "conversation chosen", tool: "tool called:", note: "note:", span: "call ended:",
};
const kSpans: Partial<Record<SpanData["kind"], string>> = { tool: "tool ended:", model_call: "model call ended:", ending: "its processes have ended" };

function wordOf(event: Event): string {
  if (event.cause === "span" && event.data && "kind" in event.data) return kSpans[event.data.kind] ?? `${event.data.kind.replace("_", " ")} ended:`;
  return kWords[event.cause as RunCause] ?? event.cause.replaceAll("_", " ");
}

function dataText({ data, cause }: Event): string {
  if (!data || typeof data !== "object" || "verdict" in data) return ""; // the verdict is beside its attempt
  if (cause === "span" && "ms" in data) {
    const span = data as SpanData;
    const facts = [span.name, lengthText(span.ms), span.usage ? `${countText(span.usage.tokens)} tokens` : ""].filter(Boolean).join(", ");
    return span.text ? `${facts}: ${span.text}` : facts;
  }
  if ("text" in data) return data.text ?? "";
  if ("waits" in data) return data.waits.length === 0 ? "" : `after waiting for ${data.waits.map((wait) => `${wait.limit} (${lengthText(wait.ms)})`).join(", ")}`;
  return JSON.stringify(data);
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
              <time class="num" dateTime={new Date(event.at).toISOString()} title={momentText(event.at)}>+{lengthText(event.at - begin)}</time>
              <span><b>{wordOf(event)}</b>{event.hold && <span class="muted"> ({event.hold})</span>} {dataText(event)}{event.error && event.error !== event.state && <span class="error">: {event.error}</span>}</span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
