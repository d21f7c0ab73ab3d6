// The parts of the playground that are read: what just happened, the table of events, the meter of tokens, and the C++ with its line at work.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { playing } from "../playground_model.ts";
import type { Sandbox } from "../types.ts";
import { Bar } from "./pieces.tsx";
import { colourOf, eventText, momentText, newest } from "./play_words.ts";

/** The newest events in words. Read aloud after a step by hand and at the end, not while it plays. */
export function JustNow({ sandbox }: { sandbox: Sandbox }): JSX.Element {
  const events = newest(sandbox);
  return (
    <p class="just-now" aria-live={playing.value ? "off" : "polite"}>
      {events.length === 0 ? <span class="muted">Nothing has happened yet.</span> : (
        <>
          <span class="num muted">{momentText(events[0]?.at_ms ?? 0)}</span> {events.map((event) => eventText(sandbox, event)).join("; ")}.
          {sandbox.done && <span class="muted"> Nothing is left to do.</span>}
        </>
      )}
    </p>
  );
}

export function EventTable({ sandbox }: { sandbox: Sandbox }): JSX.Element {
  return (
    <>
      {sandbox.events_left_out > 0 && <p class="muted">The first {sandbox.events_left_out} events are left out.</p>}
      <table class="events-table">
        <thead><tr><th scope="col">Time</th><th scope="col">What happened</th><th scope="col">Task</th><th scope="col">Resource</th><th scope="col">Units</th></tr></thead>
        <tbody>
          {sandbox.events.map((event) => (
            <tr key={event.n} data-event={[event.n, event.step, event.at_ms, event.kind, event.task ?? "", event.resource ?? "", event.units ?? "", event.detail ?? ""].join("|")}>
              <td class="num">{momentText(event.at_ms)}</td>
              <td>{eventText(sandbox, event)}</td>
              <td>{event.task && <span class={`play-swatch ${colourOf(sandbox, event.task)}`}>{event.task}</span>}</td>
              <td>{event.resource}</td>
              <td class="num">{event.units}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function TokenMeter({ sandbox }: { sandbox: Sandbox }): JSX.Element | null {
  const value = (name: string): number => sandbox.meters.find((each) => each.name === name)?.value ?? 0;
  const [tokens, leaked] = [value("tokens"), value("tokens_leaked")];
  if (sandbox.resources.length > 0 && tokens === 0) return null;
  return (
    <section class="lot meter" aria-label="Tokens">
      <h3>Tokens <span class="muted">each is paid for</span></h3>
      <dl class="counters">
        <div><dt>made by the model</dt><dd class="num">{tokens}</dd></div>
        <div class={leaked > 0 ? "bad" : ""}><dt>leaked: nothing reads them</dt><dd class="num">{leaked}</dd></div>
      </dl>
      <Bar part={leaked} whole={tokens} kind="full" label={`${leaked} of ${tokens} tokens leaked`} />
    </section>
  );
}

const kTokens = /(\/\/.*$)|("(?:[^"\\]|\\.)*")|\b(?:co_await|co_return|const|static|void|for|return|template|class|struct|auto|using|namespace|if)\b|\b\d\w*/g;

function coloured(line: string): (string | JSX.Element)[] {
  const out: (string | JSX.Element)[] = [];
  let end = 0;
  for (const found of line.matchAll(kTokens)) {
    if (found.index > end) out.push(line.slice(end, found.index));
    const kind = found[1] ? "comment" : found[2] ? "string" : /^\d/.test(found[0]) ? "number" : "keyword";
    out.push(<span class={`cpp-${kind}`}>{found[0]}</span>);
    end = found.index + found[0].length;
  }
  out.push(line.slice(end));
  return out;
}

export function Code({ text, sandbox }: { text: string; sandbox: Sandbox }): JSX.Element {
  const lines = text.replace(/\n$/, "").split("\n");
  const at = newest(sandbox).flatMap((event) => (event.line === undefined ? [] : [event.line]));
  const box = useRef<HTMLPreElement>(null);
  const first = at[0] ?? 0;
  useEffect(() => {
    const line = box.current?.querySelector<HTMLElement>(".at");
    if (line && box.current) box.current.scrollTop = Math.max(0, line.offsetTop - box.current.clientHeight / 2);
  }, [first]);
  return (
    <pre class="cpp" ref={box} tabIndex={0} role="region" aria-label="The C++ of this lesson">
      {lines.map((line, index) => {
        const isAt = at.includes(index + 1);
        return <code key={index} class={isAt ? "at" : ""} aria-current={isAt ? "step" : undefined} data-line={index + 1}>{coloured(line)}{"\n"}</code>;
      })}
    </pre>
  );
}
