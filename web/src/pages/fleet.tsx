// The first screen: what needs a person, what works, what waits, what is full, what was spent, what failed.
import type { JSX } from "preact";
import { change } from "../http.ts";
import { costText, countText, lengthText } from "../format.ts";
import { fleet, refresh } from "../live.ts";
import type { FleetNow } from "../live.ts";
import { shortageText } from "../reason.ts";
import { agentAddress, limitAddress } from "../route.ts";
import type { Limit, Pool, RunSummary, State, Worker } from "../types.ts";
import { act, confirm } from "../parts/confirm.tsx";
import { Ago, Bar, RunLink, Since } from "../parts/pieces.tsx";
import { Empty, Show, StateBadge, Unknown, stateWords } from "../parts/states.tsx";

const kLanesShown = 60;

function Count({ of, state }: { of: FleetNow; state: State }): JSX.Element {
  const count = of.counts[state];
  return (
    <a class={`count ${state}`} href={`#/runs?state=${state}`}>
      <span class="number" data-count={state}>{count === undefined ? <Unknown why="the server did not say" /> : count}</span>
      <span class="word">{stateWords(state)}</span>
    </a>
  );
}

function Needs({ of }: { of: FleetNow }): JSX.Element {
  if (of.needs.length === 0 && !of.shortage) return <Empty title="Nothing needs you.">Runs in doubt, and runs that wait for an answer, appear here.</Empty>;
  return (
    <ul class="rows">
      {of.shortage && <li class="row warn"><strong>No run can start.</strong> {shortageText(of.shortage)}</li>}
      {of.needs.map((run) => (
        <li key={run.id} class="row">
          <StateBadge state={run.state} /> <RunLink id={run.id} /> <span class="title">{run.title || run.agent}</span>
          <span class="muted">{run.state === "in_doubt" ? "its effects are unknown: check them and decide" : run.error || "waits for an answer"}</span>
          <a class="button" href={`#/run/${run.id}`}>Decide</a>
        </li>
      ))}
    </ul>
  );
}

function scalePool(pool: Pool): void {
  confirm({
    title: "Scale the pool",
    body: <p>Workers that are too many end after the run that they carry. Autoscaling stops.</p>,
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

const resumeAll = (): void =>
  void act("Resume", async () => {
    await change("POST", "/v1/resume");
    return "Resumed.";
  });

function Workers({ of }: { of: FleetNow }): JSX.Element {
  const pool = of.pool;
  if (!pool) return <Empty title="No daemon runs here.">Runs stay queued until <code>stint serve</code> takes them.</Empty>;
  const percent = Math.round(pool.utilization * 100);
  return (
    <>
      <p class="big"><b data-field="pool_size">{pool.pool_size}</b> workers{pool.target_size !== pool.pool_size && <> → <b>{pool.target_size}</b></>}, {percent}% busy</p>
      <Bar part={pool.utilization} whole={1} label={`${percent}% of the workers are busy`} kind="busy" />
      <p class="facts">
        {pool.min !== undefined && pool.max !== undefined && <span>autoscales {pool.min} to {pool.max}</span>}
        {pool.stale_workers > 0 && <span class="bad">{pool.stale_workers} without heartbeat</span>}
        {pool.draining && <span class="bad">draining</span>}
        <span>{of.nodes} {of.nodes === 1 ? "node" : "nodes"}</span>
      </p>
      <p class="buttons">
        <button type="button" onClick={() => scalePool(pool)}>Scale…</button>
        <button type="button" onClick={pauseAll}>Pause…</button>
        <button type="button" onClick={resumeAll}>Resume</button>
        <button type="button" class="danger" onClick={drainPool} disabled={pool.draining}>Drain…</button>
      </p>
    </>
  );
}

function Queue({ of }: { of: FleetNow }): JSX.Element {
  const queued = of.counts.queued;
  const queues = of.pool?.queues.filter((queue) => queue.size > 0) ?? [];
  return (
    <>
      <p class="big"><b>{queued ?? <Unknown why="the server did not say" />}</b> queued, <b>{of.ready}</b> <abbr title="not held back by a session, a delay or a back-off; a limit or the workers may still be full">ready</abbr></p>
      {queued === 0 && <p class="muted">The queue is empty. <a href="#/agents">Submit a run</a>.</p>}
      <ul class="meters">
        {queues.map((queue) => (
          <li key={queue.agent}>
            <a href={`#/runs?agent=${encodeURIComponent(queue.agent)}&state=queued`}>{queue.agent}</a>
            <Bar part={queue.size} whole={queue.capacity} label={`${queue.size} of ${queue.capacity} places in the queue`} />
            <span class="num">{queue.size} of {queue.capacity}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const isFull = (limit: Limit): boolean => limit.paused || limit.waiting > 0 || (limit.capacity !== null && limit.held >= limit.capacity);

function FullLimits({ of }: { of: FleetNow }): JSX.Element {
  const full = of.limits.filter(isFull);
  if (full.length === 0) return <p class="muted">Every limit has room. <a href="#/limits">All limits</a></p>;
  return (
    <ul class="meters">
      {full.map((limit) => (
        <li key={limit.name}>
          <a href={limitAddress(limit.name)}>{limit.name}</a>
          <Bar part={limit.held} whole={limit.capacity ?? 0} label={`${limit.held} of ${limit.capacity ?? "any number of"} units held`} kind={limit.paused ? "paused" : "full"} />
          <span class="num">{limit.held} of {limit.capacity ?? "∞"}{limit.waiting > 0 && `, ${limit.waiting} waiting`}{limit.paused && ", paused"}</span>
        </li>
      ))}
    </ul>
  );
}

function Spend({ of }: { of: FleetNow }): JSX.Element {
  const { cost_micros, tokens, cap_micros } = of.spend;
  return (
    <>
      <p class="big"><b>{cost_micros === 0 ? "$0.00" : costText(cost_micros)}</b>{cap_micros !== null && <> of {costText(cap_micros)}</>} today</p>
      {cap_micros !== null && <Bar part={cost_micros} whole={cap_micros} label="share of the day's budget" kind={cost_micros >= cap_micros ? "full" : ""} />}
      <p class="muted">{countText(tokens)} tokens{cap_micros === null && "; no cap is set (budget.cost_per_day)"}</p>
    </>
  );
}

function Lane({ worker, run }: { worker: Worker; run: RunSummary | undefined }): JSX.Element {
  return (
    <li class={`lane ${worker.state}${worker.stale ? " stale" : ""}`}>
      <span class="name">{worker.id}</span>
      {worker.current_run ? (
        <span class="load">
          <RunLink id={worker.current_run} /> <span class="title">{run?.title || run?.agent}</span>
          {run?.stop && <span class="bad">ending</span>}
        </span>
      ) : <span class="load muted">{worker.state}</span>}
      <span class="num">{worker.running_for !== undefined ? lengthText(worker.running_for * 1000) : ""}</span>
      {worker.stale && <span class="bad">no heartbeat for {lengthText(worker.last_heartbeat_ago * 1000)}</span>}
    </li>
  );
}

function Lanes({ of }: { of: FleetNow }): JSX.Element {
  const runs = new Map(of.working.map((run) => [run.id, run]));
  const workers = of.pool?.workers ?? [];
  if (workers.length === 0) return <Empty title="No workers.">The pool has size 0, or this page speaks to a store without a daemon.</Empty>;
  return (
    <>
      <ul class="lanes">{workers.slice(0, kLanesShown).map((worker) => <Lane key={worker.id} worker={worker} run={runs.get(worker.current_run ?? "")} />)}</ul>
      {workers.length > kLanesShown && <p class="muted">The first {kLanesShown} workers are drawn.</p>}
    </>
  );
}

function Failures({ of }: { of: FleetNow }): JSX.Element {
  if (of.failures.length === 0) return <Empty title="No run has failed." />;
  return (
    <ul class="rows">
      {of.failures.map((run) => (
        <li key={run.id} class="row">
          <StateBadge state={run.state} /> <RunLink id={run.id} /> <a href={agentAddress(run.agent)}>{run.agent}</a>
          <span class="error">{run.error ?? ""}</span>
          {run.finished_at !== null ? <Ago at={run.finished_at} /> : <Since at={run.created_at} />}
        </li>
      ))}
    </ul>
  );
}

export function FleetPage(): JSX.Element {
  return (
    <>
      <h1>Fleet</h1>
      <Show of={fleet.value} what="the fleet" retry={() => void refresh()}>
        {(of) => (
          <div class="cards">
            <section class="card wide"><h2>Runs</h2><div class="counts">{(["queued", "running", "parked", "in_doubt", "succeeded", "failed", "cancelled", "expired"] as State[]).map((state) => <Count key={state} of={of} state={state} />)}</div></section>
            <section class="card wide"><h2>Needs you</h2><Needs of={of} /></section>
            <section class="card"><h2>Workers</h2><Workers of={of} /></section>
            <section class="card"><h2>Queue</h2><Queue of={of} /></section>
            <section class="card"><h2>Full limits</h2><FullLimits of={of} /></section>
            <section class="card"><h2>Spend</h2><Spend of={of} /></section>
            <section class="card wide"><h2>What each worker carries</h2><Lanes of={of} /></section>
            <section class="card wide"><h2>Last failures</h2><Failures of={of} /></section>
          </div>
        )}
      </Show>
    </>
  );
}
