// All runs of a filter that lives in the address, and actions on all that match or on those that are selected.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { cancelRun, retryRun } from "../actions.tsx";
import { costText, errorOf, lengthText } from "../format.ts";
import { bindKeys } from "../keys.ts";
import { serverNow } from "../live.ts";
import { BatchList, askForBatch } from "../parts/batches.tsx";
import { Ago } from "../parts/pieces.tsx";
import { RunFilterForm, filterOf, readFilter } from "../parts/run_filter.tsx";
import { actOnSelected } from "../parts/selected_runs.tsx";
import { Empty, Show, StateBadge } from "../parts/states.tsx";
import { VirtualList } from "../parts/virtual_list.tsx";
import { go, route, runAddress } from "../route.ts";
import { RunsModel } from "../runs_model.ts";
import type { RunSummary, Total } from "../types.ts";
import { isEnded } from "../types.ts";

const kRowHeight = 40;
const kCardHeight = 76; // narrow screens
const narrow = matchMedia("(max-width: 700px)");

function timeOf(run: RunSummary): JSX.Element {
  if (run.started_at === null) return <span class="muted">–</span>;
  return <>{lengthText((run.finished_at ?? serverNow()) - run.started_at)}</>;
}

function cells(run: RunSummary, model: RunsModel): JSX.Element[] {
  return [
    <span role="cell" key="select" class="c-select"><input type="checkbox" aria-label={`Select ${run.id}`} checked={model.selected.value.has(run.id)} onChange={() => model.toggle(run.id)} /></span>,
    <span role="cell" key="state" class="c-state"><StateBadge state={run.state} stop={run.stop} /></span>,
    <span role="cell" key="id" class="c-id"><a class="id" href={runAddress(run.id)}>{run.id}</a></span>,
    <span role="cell" key="agent" class="c-agent">{run.agent}</span>,
    <span role="cell" key="title" class="c-title" title={run.title}>{run.title}{errorOf(run) && !["succeeded", "running"].includes(run.state) && <span class="error"> {errorOf(run)}</span>}</span>,
    <span role="cell" key="created" class="c-created num"><Ago at={run.created_at} /></span>,
    <span role="cell" key="time" class="c-time num" title="Length of its last attempt">{timeOf(run)}</span>,
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
    x: () => {
      if (current) model.toggle(current);
    },
    c: () => {
      const run = runs.find((each) => each.id === current);
      if (run && !isEnded(run.state) && run.state !== "in_doubt") cancelRun(run);
    },
  }));
  const { length: fresh } = model.fresh.value;
  const { size: selected } = model.selected.value;
  return (
    <>
      {fresh > 0 && (
        <p class="pill-place">
          <button type="button" class="pill" disabled={selected > 0} title={selected > 0 ? "Shown when nothing is selected" : ""} onClick={() => { model.showFresh(); scrollTo({ top: 0 }); }}>{fresh} new</button>
        </p>
      )}
      <Show of={rows} what="the runs" retry={() => void model.reload()}>
        {(list) => list.length === 0 && !model.more.value ? <NoRuns filtered={filtered} /> : (
          <VirtualList items={list} rowHeight={height} label="Runs, newest first" columns={["Select", "State", "Run", "Agent", "Title", "Created", "Time", "Cost", "Action"]}
            keyOf={(run) => run.id} row={(run) => cells(run, model)} rowClass={(run) => (model.selected.value.has(run.id) ? `${run.state} selected` : run.state)} current={current} onNearEnd={() => void model.loadMore()} onOpen={(run) => go(runAddress(run.id))} />
        )}
      </Show>
      {rows.kind === "ok" && model.more.value && <p class="muted">Scroll for older runs.</p>}
    </>
  );
}

function totalText(total: Total): string {
  if (!total.exact) return `more than ${total.count.toLocaleString("en")} runs match`;
  return total.count === 1 ? "1 run matches" : `${total.count.toLocaleString("en")} runs match`;
}

/** What can be done with all that match, or with those that are selected. */
function Actions({ model, filtered }: { model: RunsModel; filtered: boolean }): JSX.Element {
  const total = model.total.value;
  const selected = model.selectedRuns();
  const begin = (action: "cancel" | "retry") => () => askForBatch(action, filterOf(route.value.query));
  const hint = filtered ? "" : "Filter first: an action on all runs needs a filter";
  return (
    <div class="run-actions" role="group" aria-label="Actions on runs">
      <span role="status" class="muted num">{total ? totalText(total) : ""}</span>
      {selected.length > 0 ? (
        <>
          <strong class="num">{selected.length} selected</strong>
          <button type="button" onClick={() => actOnSelected("cancel", selected, model)}>Cancel selected</button>
          <button type="button" onClick={() => actOnSelected("retry", selected, model)}>Retry selected</button>
          <button type="button" class="quiet" onClick={() => model.clearSelection()}>Clear selection</button>
        </>
      ) : (
        <>
          <button type="button" disabled={!filtered} title={hint} onClick={begin("cancel")}>Cancel all matching…</button>
          <button type="button" disabled={!filtered} title={hint} onClick={begin("retry")}>Retry all matching…</button>
        </>
      )}
    </div>
  );
}

export function RunsPage(): JSX.Element {
  const filter = readFilter(route.value.query).toString();
  const model = useMemo(() => new RunsModel(filter), [filter]);
  useEffect(() => () => model.close(), [model]);
  return (
    <>
      <h1>Runs</h1>
      <RunFilterForm />
      <BatchList />
      <Actions model={model} filtered={filter !== ""} />
      <List model={model} filtered={filter !== ""} />
    </>
  );
}
