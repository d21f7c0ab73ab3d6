// The filter of the Runs page. It lives in the address, under the names of the API's parameters.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { fleet } from "../live.ts";
import { replaceQuery, route } from "../route.ts";
import type { RunFilter } from "../types.ts";
import { kHolds, kStates } from "../types.ts";
import { Unknown, stateWords } from "./states.tsx";

const kNames = ["state", "hold", "agent", "session", "parent", "q", "since", "until"] as const;
const kTypingMs = 250; // a search begins when the typing pauses

/** What the address asks for, without what the API does not know. */
export function readFilter(query: URLSearchParams): URLSearchParams {
  const known = new URLSearchParams();
  for (const name of kNames) for (const value of query.getAll(name)) if (value) known.append(name, value);
  return known;
}

/** The same, as a batch wants it. */
export function filterOf(query: URLSearchParams): RunFilter {
  const filter: Record<string, string | string[]> = {};
  for (const name of kNames) {
    const values = readFilter(query).getAll(name);
    if (values.length > 0) filter[name] = name === "state" || name === "hold" ? values : (values[0] ?? "");
  }
  return filter as RunFilter;
}

function set(change: (query: URLSearchParams) => void): void {
  const next = new URLSearchParams(route.value.query);
  change(next);
  replaceQuery(next);
}

function setOne(name: string, value: string): void {
  set((next) => {
    if (value.trim()) next.set(name, value.trim());
    else next.delete(name);
  });
}

/** Local time in the form of its field, without a zone. */
function localText(iso: string | null): string {
  const at = Date.parse(iso ?? "");
  return Number.isNaN(at) ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function SearchBox({ value }: { value: string }): JSX.Element {
  const timer = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // The address may change under the field (Clear, a link); what is being typed stays.
    if (field.current && field.current !== document.activeElement) field.current.value = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const soon = (event: Event): void => {
    const text = (event.target as HTMLInputElement).value;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setOne("q", text), kTypingMs);
  };
  return (
    <label class="search">Search <input ref={field} data-search type="search" name="q" maxLength={200} defaultValue={value} onInput={soon} placeholder="id, agent, title, arguments, prompt, error" /></label>
  );
}

export function RunFilterForm(): JSX.Element {
  const { query } = route.value;
  const chosen = query.getAll("state");
  const holds = query.getAll("hold");
  const seen = fleet.value;
  const toggle = (state: string): void =>
    set((next) => {
      next.delete("state");
      for (const each of kStates) if (chosen.includes(each) !== (each === state)) next.append("state", each);
    });
  const text = (name: string) => (event: Event) => setOne(name, (event.target as HTMLInputElement).value);
  const moment = (name: string) => (event: Event) => {
    const value = (event.target as HTMLInputElement).value;
    setOne(name, value ? new Date(value).toISOString() : "");
  };
  return (
    <form class="filter" role="search" aria-label="Filter runs" onSubmit={(event) => event.preventDefault()}>
      <SearchBox value={query.get("q") ?? ""} />
      <div class="chips" role="group" aria-label="States">
        {kStates.map((state) => (
          <button type="button" key={state} class={`chip ${state}`} aria-pressed={chosen.includes(state)} onClick={() => toggle(state)}>
            {stateWords(state)} <span class="num">{seen.kind === "ok" ? (seen.value.runs[state] ?? "–") : <Unknown why="not read yet" />}</span>
          </button>
        ))}
      </div>
      <label>Agent <input name="agent" value={query.get("agent") ?? ""} onChange={text("agent")} placeholder="any" /></label>
      <label>Session <input name="session" value={query.get("session") ?? ""} onChange={text("session")} placeholder="any" /></label>
      <label>Held by <select name="hold" value={holds[0] ?? ""} onChange={text("hold")}>
        <option value="">anything</option>
        {kHolds.map((hold) => <option key={hold} value={hold}>{hold === "none" ? "nothing" : hold}</option>)}
      </select></label>
      <label>From <input type="datetime-local" name="since" value={localText(query.get("since"))} onChange={moment("since")} /></label>
      <label>To <input type="datetime-local" name="until" value={localText(query.get("until"))} onChange={moment("until")} /></label>
      {query.get("parent") && <span>children of <code>{query.get("parent")}</code></span>}
      {readFilter(query).size > 0 && <button type="button" class="quiet" onClick={() => replaceQuery(new URLSearchParams())}>Clear</button>}
    </form>
  );
}
