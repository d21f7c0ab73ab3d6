// What was said and which tools were called. Follows new items only while the reader is at the bottom.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { countText, lengthText, momentText } from "../format.ts";
import type { Said } from "../run_model.ts";
import { Empty } from "./states.tsx";

const kNear = 24; // pixels that count as "at the bottom"
type Item = Said["items"][number];

/** The text with every place where it contains `query` marked. */
function Marked({ text, query }: { text: string; query: string }): JSX.Element {
  if (!query) return <>{text}</>;
  const parts: JSX.Element[] = [];
  const lower = text.toLowerCase();
  const wanted = query.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(<span key={from}>{text.slice(from, at)}</span>, <mark key={`m${at}`}>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return <>{parts}{text.slice(from)}</>;
}

function Line({ item, query }: { item: Item; query: string }): JSX.Element {
  const text = <Marked text={item.text ?? ""} query={query} />;
  const when = item.at === undefined ? {} : { title: momentText(item.at) };
  switch (item.kind) {
    case "text": return <span class="said" data-byte={item.byte}>{text}</span>;
    case "left_out": return <p class="left-out" data-from={item.byte} data-left-out={item.bytes}>{item.bytes} bytes left out: the store keeps the beginning and the end of a long output</p>;
    case "attempt": return <p class="step" {...when}>attempt begins</p>;
    case "ended": return <p class="step" {...when}>attempt ended: {text}{item.error && <span class="error"> {item.error}</span>}</p>;
    case "tool": return <p class="call" {...when}><span aria-hidden="true">▸ </span><span class="visually-hidden">tool call: </span><code>{text}</code></p>;
    case "tool_end": return <p class="call result" {...when}><span aria-hidden="true">◂ </span><span class="visually-hidden">result of </span>{item.name} <span class="muted">{lengthText(item.ms ?? 0)}</span>{item.text && <code>{text}</code>}</p>;
    case "model_call": return <p class="call model" {...when}>{item.name || "model call"} <span class="muted">{lengthText(item.ms ?? 0)}{item.usage && `, ${countText(item.usage.tokens)} tokens`}</span></p>;
    case "note": return <p class="note" {...when}>{text}</p>;
  }
}

export function TranscriptView({ said, live, begin }: { said: Said; live: boolean; begin: () => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const atBottom = useRef(true);
  const seen = useRef(0);
  const [unseen, setUnseen] = useState(0);
  const [query, setQuery] = useState("");
  const found = useRef(-1);
  const placed = useRef(0); // scrollTop after it was last moved to the bottom
  const shown = box.current;
  const above = shown ? shown.scrollHeight - shown.scrollTop - shown.clientHeight : 0;
  // A reader has just scrolled up: the browser reports that with the next frame, after the new text.
  if (shown && above >= kNear && shown.scrollTop < placed.current) atBottom.current = false;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (atBottom.current) {
      element.scrollTop = element.scrollHeight;
      placed.current = element.scrollTop;
      seen.current = said.total;
    } else {
      setUnseen(said.total - seen.current);
    }
  }, [said]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => {
      atBottom.current = element.scrollHeight - element.scrollTop - element.clientHeight < kNear;
      if (!atBottom.current) return;
      setUnseen(0);
      seen.current = Number.MAX_SAFE_INTEGER;
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [said.items.length > 0]);
  if (seen.current > said.total) seen.current = said.total;
  if (said.items.length === 0) return <Empty title={live ? "Nothing was said yet." : "It printed nothing."} />;
  const jump = (): void => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  const next = (event: Event): void => {
    event.preventDefault();
    const marks = box.current?.querySelectorAll("mark") ?? [];
    if (marks.length === 0) return;
    found.current = (found.current + 1) % marks.length;
    marks[found.current]?.scrollIntoView({ block: "center" });
  };
  const matches = query ? said.items.filter((item) => item.text?.toLowerCase().includes(query.toLowerCase())).length : 0;
  const skipped = said.from > 0 || said.seq > 0;
  return (
    <div class="output-place">
      <form class="find" role="search" onSubmit={next}>
        <label>Find <input type="search" value={query} onInput={(event) => { found.current = -1; setQuery(event.currentTarget.value); }} /></label>
        {query && <><span role="status">{matches === 0 ? "not found" : `in ${matches} of ${said.items.length}`}</span><button type="submit" class="quiet" disabled={matches === 0}>Next</button></>}
      </form>
      <div ref={box} class="output transcript" tabIndex={0} role="log" aria-label="Transcript of the run" aria-live="off">
        {skipped && <p class="left-out">{said.from > 0 && `${said.from} bytes of output before this are not shown. `}<button type="button" class="quiet" onClick={begin}>Show from the beginning</button></p>}
        {said.items.map((item) => <Line key={item.key} item={item} query={query} />)}
      </div>
      {unseen > 0 && <button type="button" class="pill" onClick={jump}>{unseen} new ↓</button>}
      <p class="muted"><span data-bytes={said.bytes}>{said.bytes} bytes of output</span>{live && (unseen > 0 ? ", more below" : ", follows while you are at the bottom")}</p>
    </div>
  );
}
