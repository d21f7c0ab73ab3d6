// All runs of a filter that lives in the address.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { cancelRun, retryRun } from "../actions.tsx";
import { costText, lengthText } from "../format.ts";
import { bindKeys } from "../keys.ts";
import { fleet, serverNow } from "../live.ts";
import { Ago } from "../parts/pieces.tsx";
import { Empty, Show, StateBadge, Unknown, stateWords } from "../parts/states.tsx";
import { VirtualList } from "../parts/virtual_list.tsx";
import { go, replaceQuery, route, runAddress } from "../route.ts";
import { RunsModel } from "../runs_model.ts";
import type { RunSummary } from "../types.ts";
import { isEnded, kStates } from "../types.ts";

const kRowHeight = 40;
const kCardHeight = 76; // narrow screens
const narrow = matchMedia("(max-width: 700px)");

function Filter(): JSX.Element {
  const { query } = route.value;
  const chosen = query.getAll("state");
  const set = (change: (query: URLSearchParams) => void): void => {
    const next = new URLSearchParams(query);
    change(next);
    replaceQuery(next);
  };
  const toggle = (state: string): void =>
    set((next) => {
      next.delete("state");
      for (const each of kStates) if (chosen.includes(each) !== (each === state)) next.append("state", each);
    });
  const setText = (name: string) => (event: Event) =>
    set((next) => {
      const value = (event.target as HTMLInputElement).value.trim();
      if (value) next.set(name, value);
      else next.delete(name);
    });
  const seen = fleet.value;
  return (
    <form class="filter" role="search" aria-label="Filter runs" onSubmit={(event) => event.preventDefault()}>
      <div class="chips" role="group" aria-label="States">
        {kStates.map((state) => (
          <button type="button" key={state} class={`chip ${state}`} aria-pressed={chosen.includes(state)} onClick={() => toggle(state)}>
            {stateWords(state)} <span class="num">{seen.kind === "ok" ? (seen.value.runs[state] ?? "–") : <Unknown why="not read yet" />}</span>
          </button>
        ))}
      </div>
      <label>Agent <input data-search name="agent" value={query.get("agent") ?? ""} onChange={setText("agent")} placeholder="any" /></label>
      <label>Session <input name="session" value={query.get("session") ?? ""} onChange={setText("session")} placeholder="any" /></label>
      {query.size > 0 && <button type="button" class="quiet" onClick={() => replaceQuery(new URLSearchParams())}>Clear</button>}
    </form>
  );
}

function timeOf(run: RunSummary): JSX.Element {
  if (run.started_at === null) return <span class="muted">–</span>;
  return <>{lengthText((run.finished_at ?? serverNow()) - run.started_at)}</>;
}

function cells(run: RunSummary): JSX.Element[] {
  return [
    <span role="cell" key="state" class="c-state"><StateBadge state={run.state} stop={run.stop} /></span>,
    <span role="cell" key="id" class="c-id"><a class="id" href={runAddress(run.id)}>{run.id}</a></span>,
    <span role="cell" key="agent" class="c-agent">{run.agent}</span>,
    <span role="cell" key="title" class="c-title" title={run.title}>{run.title}{run.error && !["succeeded", "running"].includes(run.state) && <span class="error"> {run.error}</span>}</span>,
    <span role="cell" key="created" class="c-created num"><Ago at={run.created_at} /></span>,
    <span role="cell" key="time" class="c-time num">{timeOf(run)}</span>,
    <span role="cell" key="cost" class="c-cost num">{costText(run.usage.cost_micros, run.usage.estimated)}</span>,
    <span role="cell" key="act" class="c-act">
      {isEnded(run.state) ? <button type="button" class="quiet" onClick={() => retryRun(run)} aria-label={`Retry ${run.id}`}>Retry</button>
        : run.state === "in_doubt" ? <a class="decide" href={runAddress(run.id)} aria-label={`Decide ${run.id}`}>Decide</a>
        : <button type="button" class="quiet" onClick={() => cancelRun(run)} aria-label={`Cancel ${run.id}`}>Cancel</button>}
    </span>,
  ];
}

function NoRuns({ filtered }: { filtered: boolean }): JSX.Element {
  if (filtered) return <Empty title="No run matches this filter.">Remove a state or a name above to see more.</Empty>;
  return <Empty title="There is no run yet."><a href="#/agents">Submit one from an agent</a>, or with <code>stint submit AGENT …</code></Empty>;
}

function List({ model, filtered }: { model: RunsModel; filtered: boolean }): JSX.Element {
  const [current, setCurrent] = useState("");
  const [height, setHeight] = useState(narrow.matches ? kCardHeight : kRowHeight);
  const rows = model.rows.value;
  const runs = rows.kind === "ok" ? rows.value : [];
  useEffect(() => {
    const fit = (): void => setHeight(narrow.matches ? kCardHeight : kRowHeight);
    narrow.addEventListener("change", fit);
    return () => narrow.removeEventListener("change", fit);
  }, []);
  const move = (by: number): void => {
    const at = runs.findIndex((run) => run.id === current);
    const next = runs[Math.min(runs.length - 1, Math.max(0, at + by))];
    if (!next) return;
    setCurrent(next.id);
    requestAnimationFrame(() => {
      const link = document.querySelector<HTMLElement>(`[data-key="${next.id}"] a`);
      link?.focus();
      link?.scrollIntoView({ block: "nearest" });
    });
  };
  useLayoutEffect(() => bindKeys({
    j: () => move(1),
    k: () => move(-1),
    c: () => {
      const run = runs.find((each) => each.id === current);
      if (run && !isEnded(run.state) && run.state !== "in_doubt") cancelRun(run);
    },
  }));
  return (
    <>
      {model.fresh.value.length > 0 && <p class="pill-place"><button type="button" class="pill" onClick={() => { model.showFresh(); scrollTo({ top: 0 }); }}>{model.fresh.value.length} new</button></p>}
      <Show of={rows} what="the runs" retry={() => void model.reload()}>
        {(list) => list.length === 0 ? <NoRuns filtered={filtered} /> : (
          <VirtualList items={list} rowHeight={height} label="Runs, newest first" columns={["State", "Run", "Agent", "Title", "Created", "Time", "Cost", "Action"]}
            keyOf={(run) => run.id} row={cells} rowClass={(run) => run.state} current={current} onNearEnd={() => void model.loadMore()} onOpen={(run) => go(runAddress(run.id))} />
        )}
      </Show>
      {rows.kind === "ok" && model.more.value && <p class="muted">Scroll for older runs.</p>}
    </>
  );
}

export function RunsPage(): JSX.Element {
  const { query } = route.value;
  const known = new URLSearchParams();
  for (const name of ["state", "agent", "session"]) for (const value of query.getAll(name)) if (value) known.append(name, value);
  const filter = known.toString();
  const model = useMemo(() => new RunsModel(filter), [filter]);
  useEffect(() => () => model.close(), [model]);
  return (
    <>
      <h1>Runs</h1>
      <Filter />
      <List model={model} filtered={filter !== ""} />
    </>
  );
}
