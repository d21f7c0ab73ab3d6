// The first screen, by importance: what needs a person, what works, what waits and why, what is full, what was spent, what failed. All of
// it is one snapshot; the line at the top says of when.
import type { JSX } from "preact";
import { change } from "../http.ts";
import { clockText, costText, countText, errorOf, lengthText, some } from "../format.ts";
import { clockOffset, fleet, readAt, refresh, serverNow } from "../live.ts";
import { shortageText } from "../reason.ts";
import { agentAddress, limitAddress } from "../route.ts";
import type { Fleet, Limit, Node, Pool, RunSummary, State, Worker } from "../types.ts";
import { kStates } from "../types.ts";
import { confirm } from "../parts/confirm.tsx";
import { Ago, Bar, RunLink, Since } from "../parts/pieces.tsx";
import { Queue, isDraining } from "../parts/queue.tsx";
import { FleetCharts } from "../parts/series.tsx";
import { Empty, Show, StateBadge, Unknown, stateWords } from "../parts/states.tsx";
import { Steady } from "../parts/steady.tsx";

const kLanesShown = 60;

function Count({ of, state }: { of: Fleet; state: State }): JSX.Element {
  const count = of.runs[state];
  return (
    <a class={`count ${state}`} href={`#/runs?state=${state}`}>
      <span class="number" data-count={state}>{count === undefined ? <Unknown why="the server did not say" /> : count}</span>
      <span class="word">{stateWords(state)}</span>
    </a>
  );
}

function NeedRow({ run, gone }: { run: RunSummary; gone: boolean }): JSX.Element {
  return (
    <li key={run.id} class={gone ? "row gone" : "row"}>
      <StateBadge state={run.state} /> <RunLink id={run.id} /> <span class="title">{run.title || run.agent}</span>
      <span class="muted">{gone ? "settled meanwhile" : run.state === "in_doubt" ? "its effects are unknown: check them and decide" : errorOf(run) || "waits for an answer"}</span>
      <a class="button" href={`#/run/${run.id}`}>Decide</a>
    </li>
  );
}

function Needs({ of }: { of: Fleet }): JSX.Element {
  const stale = of.pool?.workers.filter((worker) => worker.stale) ?? [];
  const more = of.needs.total - of.needs.runs.length;
  const refused = of.refused_agents;
  const quiet = !of.shortage && stale.length === 0 && refused.length === 0;
  return (
    <>
      {of.shortage && <p class="row warn"><strong>No run can start.</strong> {shortageText(of.shortage)}</p>}
      {refused.map((agent) => <p key={agent.name} class="row warn" data-refused={agent.name}><span>The agent <a href={agentAddress(agent.name)}>{agent.name}</a> can't run: {agent.why}</span></p>)}
      {of.refused_agents_total > refused.length && <p class="muted"><a href="#/agents">{of.refused_agents_total} agents can't run</a></p>}
      {stale.map((worker) => (
        <p key={worker.id} class="row warn">
          <strong>{worker.id}</strong> carries {worker.current_run && <RunLink id={worker.current_run} />}, which gave no sign of life for {lengthText(worker.last_heartbeat_ago * 1000)}.
        </p>
      ))}
      <Steady
        items={of.needs.runs} keyOf={(run) => run.id} kind="rows" row={(run, gone) => <NeedRow key={run.id} run={run} gone={gone} />}
        empty={quiet ? <Empty title="Nothing needs you.">Runs in doubt, runs that wait for an answer, agents that can't run, and stale workers appear here.</Empty> : <></>}
      />
      {more > 0 && <p class="muted"><a href="#/runs?state=in_doubt&state=parked">{some(more, "more run")}</a></p>}
    </>
  );
}

function scalePool(pool: Pool): void {
  confirm({
    title: "Scale the pool",
    body: <p>Workers that are too many end after the run that they carry. Autoscaling goes on from there.</p>,
    action: "Scale",
    number: { label: "Workers", value: pool.target_size, least: 0 },
    run: async (workers) => `Target: ${(await change<Pool>("PUT", "/v1/pool", { workers })).target_size} workers.`,
  });
}

function drainPool(): void {
  confirm({
    title: "Drain this daemon?",
    body: <p>No new run begins. Runs under way may finish; what does not finish in time is handed back to the queue. Then the daemon exits.</p>,
    action: "Drain",
    danger: true,
    run: async () => {
      await change<Pool>("POST", "/v1/pool/drain", {});
      return "The daemon drains.";
    },
  });
}

function pauseAll(): void {
  confirm({
    title: "Pause every agent?",
    body: <p>Running runs continue; no other begins until you resume.</p>,
    action: "Pause",
    run: async () => {
      await change("POST", "/v1/pause", {});
      return "Paused: no run begins.";
    },
  });
}

function resumeAll(paused: Limit[]): void {
  confirm({
    title: "Resume every limit?",
    body: <p>{paused.length === 0 ? "No limit is paused." : `Paused now: ${paused.map((limit) => limit.name).join(", ")}.`} Runs that are parked on a limit go on.</p>,
    action: "Resume",
    run: async () => {
      const { woken } = await change<{ woken: number }>("POST", "/v1/resume");
      return `Resumed; ${some(woken, "parked run")} woken.`;
    },
  });
}

const kPhases: Record<Fleet["phase"], string> = {
  starting: "starting", serving: "", finishing: "draining: runs under way may finish", handing_back: "draining: hands its runs back to the queue", stopped: "stopped",
};

function Nodes({ nodes }: { nodes: Node[] }): JSX.Element {
  return (
    <ul class="facts">
      {nodes.map((node) => (
        <li key={node.number}>
          {node.label}: {some(node.runs, "run")}{node.state === "draining" && <span class="bad"> draining</span>}
          {node.last_beat_ms > 5000 && <span class="bad"> no heartbeat for {lengthText(node.last_beat_ms)}</span>}
        </li>
      ))}
    </ul>
  );
}

function Workers({ of }: { of: Fleet }): JSX.Element {
  const pool = of.pool;
  if (!pool) return <Empty title="No daemon runs here.">Runs stay queued until <code>stint serve</code> takes them.</Empty>;
  const phase = kPhases[of.phase];
  return (
    <>
      <p class="big">
        <b data-field="busy">{pool.busy}</b> busy of <b data-field="pool_size">{pool.pool_size}</b>
        {pool.target_size !== pool.pool_size && <> → <b data-field="target_size">{pool.target_size}</b></>}
      </p>
      <Bar part={pool.busy} whole={pool.pool_size} label={`${pool.busy} of ${pool.pool_size} workers carry a run`} kind="busy" />
      <p class="facts">
        {phase && <span class="bad" data-field="phase">{phase}</span>}
        {pool.stale_workers > 0 && <span class="bad">{pool.stale_workers} stale</span>}
        {pool.min !== undefined && pool.max !== undefined && <span>autoscales {pool.min} to {pool.max}</span>}
      </p>
      {of.nodes.length > 1 && <Nodes nodes={of.nodes} />}
      <p class="buttons">
        <button type="button" onClick={() => scalePool(pool)} disabled={pool.draining}>Scale…</button>
        <button type="button" onClick={pauseAll}>Pause…</button>
        <button type="button" onClick={() => resumeAll(of.limits.filter((limit) => limit.paused))}>Resume…</button>
        <button type="button" class="danger" onClick={drainPool} disabled={pool.draining}>Drain…</button>
      </p>
    </>
  );
}

const isFull = (limit: Limit): boolean => limit.paused || (limit.capacity !== null && limit.held >= limit.capacity);

function FullLimits({ of }: { of: Fleet }): JSX.Element {
  return (
    <Steady
      items={of.limits.filter(isFull)} keyOf={(limit) => limit.name} kind="meters"
      row={(limit, gone) => (
        <li key={limit.name} class={gone ? "gone" : ""}>
          <a href={limitAddress(limit.name)}>{limit.name}</a>
          <Bar part={limit.held} whole={limit.capacity ?? 0} label={`${limit.held} of ${limit.capacity ?? "any number of"} units held`} kind={limit.paused ? "paused" : "full"} />
          <span class="num">{gone ? "has room" : <>{limit.held} of {limit.capacity ?? "∞"}{limit.paused && ", paused"}</>}</span>
        </li>
      )}
      empty={<p class="muted">Every limit has room. <a href="#/limits">All limits</a></p>}
    />
  );
}

function Spend({ of }: { of: Fleet }): JSX.Element {
  const { cost_micros, tokens, cost_micros_per_day: cap } = of.spend;
  return (
    <>
      <p class="big"><b data-field="cost">{cost_micros === 0 ? "$0.00" : costText(cost_micros)}</b>{cap !== null && <> of {costText(cap)}</>} today</p>
      {cap !== null && <Bar part={cost_micros} whole={cap} label="share of the day's budget" kind={cost_micros >= cap ? "full" : ""} />}
      <p class="muted">{countText(tokens)} tokens{cap === null && "; no cap is set (budget.cost_per_day)"}</p>
    </>
  );
}

/** `drains`: the whole pool does, whatever the worker says. */
function Lane({ worker, run, drains }: { worker: Worker; run: RunSummary | undefined; drains: boolean }): JSX.Element {
  const draining = drains || worker.state === "draining";
  return (
    <li class={`lane ${worker.state}${draining ? " draining" : ""}${worker.stale ? " stale" : ""}`}>
      <span class="name">{worker.id}</span>
      {worker.current_run ? (
        <span class="load">
          <RunLink id={worker.current_run} /> <span class="title">{run?.title || run?.agent}</span>
        </span>
      ) : <span class="load muted">{worker.state}</span>}
      {run?.stop && <span class="bad">ending</span>}
      {draining && (worker.current_run || worker.state !== "draining") && <span class="draining-word">draining</span>}
      {worker.stale && <span class="bad">stale, {lengthText(worker.last_heartbeat_ago * 1000)}</span>}
      <span class="num">{!worker.current_run ? "" : run?.started_at ? <Since at={run.started_at} /> : lengthText((worker.running_for ?? 0) * 1000)}</span>
    </li>
  );
}

function Lanes({ of }: { of: Fleet }): JSX.Element {
  const runs = new Map(of.running.runs.map((run) => [run.id, run]));
  const workers = of.pool?.workers ?? [];
  const elsewhere = of.running.total - workers.filter((worker) => worker.current_run).length;
  if (workers.length === 0) return <Empty title="No workers.">The pool has size 0, or this page speaks to a store without a daemon.</Empty>;
  return (
    <>
      <ul class="lanes">{workers.slice(0, kLanesShown).map((worker) => <Lane key={worker.id} worker={worker} run={runs.get(worker.current_run ?? "")} drains={isDraining(of)} />)}</ul>
      {workers.length > kLanesShown && <p class="muted">The first {kLanesShown} of {workers.length} workers are drawn.</p>}
      {elsewhere > 0 && <p class="muted"><a href="#/runs?state=running">{some(elsewhere, "run")}</a> on other nodes.</p>}
    </>
  );
}

function Failures({ of }: { of: Fleet }): JSX.Element {
  return (
    <Steady
      items={of.failures} keyOf={(run) => run.id} kind="rows"
      row={(run) => (
        <li key={run.id} class="row">
          <StateBadge state={run.state} /> <RunLink id={run.id} /> <a href={agentAddress(run.agent)}>{run.agent}</a>
          <span class="error">{errorOf(run)}</span>
          {run.finished_at !== null ? <Ago at={run.finished_at} /> : <Since at={run.created_at} />}
        </li>
      )}
      empty={<Empty title="No run has failed." />}
    />
  );
}

/** When the numbers below were true, by the server's clock and as an age. */
function AsOf({ of }: { of: Fleet }): JSX.Element {
  const age = Math.max(0, serverNow() - clockOffset.value - readAt.value);
  return <p class="as-of muted" data-as-of={of.as_of} data-cursor={of.cursor}>as of {clockText(of.as_of)}{age > 3000 && <b class="bad"> · {lengthText(age)} ago</b>}</p>;
}

export function FleetPage(): JSX.Element {
  return (
    <>
      <h1>Fleet</h1>
      <Show of={fleet.value} what="the fleet" retry={() => void refresh()}>
        {(of) => (
          <>
            <AsOf of={of} />
            <div class="counts strip" aria-label="Runs by state">{kStates.map((state) => <Count key={state} of={of} state={state} />)}</div>
            <div class="cards">
              <section class="card wide"><h2>Needs you{of.needs.total > 0 && <> <span class="total" data-count="needs">{of.needs.total}</span></>}</h2><Needs of={of} /></section>
              <section class="card"><h2>Workers</h2><Workers of={of} /></section>
              <section class="card"><h2>Queue</h2><Queue of={of} /></section>
              <section class="card"><h2>Full limits</h2><FullLimits of={of} /></section>
              <section class="card"><h2>Spend</h2><Spend of={of} /></section>
              <FleetCharts />
              <section class="card wide"><h2>What each worker carries</h2><Lanes of={of} /></section>
              <section class="card wide"><h2>Last failures</h2><Failures of={of} /></section>
            </div>
          </>
        )}
      </Show>
    </>
  );
}
