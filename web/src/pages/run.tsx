// One run, by importance: a sentence, what a person must decide, where its time went, what was said, what it used, how it ended.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { cancelRun, retryRun } from "../actions.tsx";
import { cleanText, costText, countText, exactCost, lengthText, momentText, some } from "../format.ts";
import { bindKeys } from "../keys.ts";
import { Attempts, isCounted } from "../parts/attempts.tsx";
import { Decision, Headline } from "../parts/decision.tsx";
import { EventList } from "../parts/event_list.tsx";
import { Bar, Commands, RunLink, Since } from "../parts/pieces.tsx";
import { Show, StateBadge } from "../parts/states.tsx";
import { TimelineView } from "../parts/timeline.tsx";
import { TranscriptView } from "../parts/transcript.tsx";
import { agentAddress, limitAddress } from "../route.ts";
import { RunModel } from "../run_model.ts";
import type { Limit, Receipt, Run, RunSummary, Timeline } from "../types.ts";
import { isEnded } from "../types.ts";

function Burn({ name, used, of, label }: { name: string; used: number; of: number; label: string }): JSX.Element {
  return <li><span>{name}</span><Bar part={used} whole={of} label={`${name}: ${label}`} kind={used >= of ? "full" : ""} /><span class="num">{label}</span></li>;
}

function Budget({ run, timeline }: { run: Run; timeline: Timeline | null }): JSX.Element {
  const { usage } = run;
  const budget = timeline?.budget ?? run.budget;
  const tokens = timeline?.tokens ?? usage.tokens; // with the runs below it
  const micros = timeline?.cost_micros ?? usage.cost_micros;
  const time = timeline?.charged_ms ?? 0;
  const uncounted = timeline?.attempts.some((attempt) => !isCounted(attempt)) ?? false;
  return (
    <>
      {usage.tokens === 0 && usage.cost_micros === 0 ? <p>No tokens were reported.</p> : <p>{countText(usage.tokens)} tokens ({countText(usage.fresh_in)} in, {countText(usage.cache_read)} from cache, {countText(usage.out)} out), {costText(usage.cost_micros, usage.estimated)}{usage.estimated && " (estimated)"}</p>}
      {budget ? (
        <ul class="meters">
          {budget.time_ms !== undefined && <Burn name="time" used={time} of={budget.time_ms} label={`${lengthText(time)} of ${lengthText(budget.time_ms)}`} />}
          {budget.attempts !== undefined && <Burn name="attempts" used={run.attempt} of={budget.attempts} label={`${run.attempt} of ${budget.attempts}`} />}
          {budget.attempts !== undefined && uncounted && <li class="muted">Attempts that were lost, parked or handed back do not count.</li>}
          {budget.tokens !== undefined && <Burn name="tokens" used={tokens} of={budget.tokens} label={`${countText(tokens)} of ${countText(budget.tokens)}`} />}
          {budget.cost_micros !== undefined && <Burn name="cost" used={micros} of={budget.cost_micros} label={`${usage.estimated ? "~" : ""}$${exactCost(micros)} of $${exactCost(budget.cost_micros)}`} />}
        </ul>
      ) : <p class="muted">It has no budget.</p>}
      {(tokens > usage.tokens || micros > usage.cost_micros) && <p>With its child runs: {countText(tokens)} tokens, {costText(micros, usage.estimated)}</p>}
    </>
  );
}

function Facts({ run }: { run: Run }): JSX.Element {
  const facts: [string, JSX.Element | string | undefined][] = [
    ["agent", <a href={agentAddress(run.agent)}>{run.agent}</a>],
    ["driver", run.driver], ["model", run.model],
    ["created", momentText(run.created_at)], ["started", run.started_at === null ? undefined : momentText(run.started_at)],
    ["finished", run.finished_at === null ? undefined : momentText(run.finished_at)], ["deadline", run.deadline_at === undefined ? undefined : momentText(run.deadline_at)],
    ["attempts", run.attempt > 0 || run.lost ? `${run.attempt}${run.lost ? `, ${run.lost} lost (process died)` : ""}` : undefined],
    ["worker", run.worker], ["outcome", run.outcome], ["on crash", run.on_crash], ["key", run.key], ["trace", run.trace && <span class="id">{run.trace}</span>],
  ];
  return <dl class="facts-list">{facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function Request({ run }: { run: Run }): JSX.Element {
  return (
    <>
      {run.prompt && <pre class="text">{run.prompt}</pre>}
      <dl class="facts-list">{Object.entries(run.args).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{Array.isArray(value) ? value.join(", ") : value}</dd></div>)}</dl>
      {Object.keys(run.args).length === 0 && !run.prompt && <p class="muted">No arguments.</p>}
    </>
  );
}

function permitsText(held: string[], returned: string[]): string {
  if (held.length > 0) return `still held: ${held.join(", ")}`;
  return returned.length > 0 ? `returned: ${returned.join(", ")}` : "it held none";
}

/** What ending the run took, as the server recorded it; `receipt`: of a cancel from this page, which also says how long that took. */
function ReceiptView({ run, receipt }: { run: Run; receipt: Receipt | null }): JSX.Element | null {
  const ended = receipt?.processes_ended ?? run.processes_ended ?? 0;
  const streams = receipt?.streams_closed ?? run.streams_closed ?? 0;
  const returned = receipt?.permits_returned ?? run.permits_returned;
  const held = receipt?.permits_held ?? run.permits_held ?? [];
  if (!receipt && ended === 0 && streams === 0 && !returned?.length && held.length === 0) return null;
  return (
    <section class="card" data-receipt>
      <h2>Receipt</h2>
      <dl class="facts-list">
        {(ended > 0 || receipt) && <div><dt>processes</dt><dd>{some(ended, "process", "processes")} ended in {lengthText(receipt?.ending_ms ?? run.ending_ms ?? 0)}{held.length === 0 && "; none is left"}</dd></div>}
        {(streams > 0 || receipt) && <div><dt>streams</dt><dd>{some(streams, "stream")} closed</dd></div>}
        {returned && <div><dt>permits</dt><dd>{permitsText(held, returned)}</dd></div>}
        {receipt && <div><dt>took</dt><dd>{lengthText(receipt.took_ms)} from the request{receipt.reached.length > 0 && `, with ${some(receipt.reached.length, "child run")}`}</dd></div>}
      </dl>
    </section>
  );
}

function Held({ limits, run }: { limits: Limit[]; run: Run }): JSX.Element {
  if (limits.length === 0) return <p class="muted">{run.state === "running" ? "It needs none." : "None: it does not run."}</p>;
  return (
    <ul>
      {limits.map((limit) => {
        const mine = limit.holders.filter((holder) => holder.run === run.id);
        const units = mine.reduce((sum, holder) => sum + (holder.weight ?? 1), 0);
        return <li key={limit.name}><a href={limitAddress(limit.name)}>{limit.name}</a>: {units}{limit.capacity !== null && ` of ${limit.capacity}`}{mine[0]?.since_at !== undefined && <> for <Since at={mine[0].since_at} /></>}{limit.waiting > 0 && <span class="muted">, {some(limit.waiting, "waiter")} in line</span>}</li>;
      })}
    </ul>
  );
}

function Relatives({ run, below }: { run: Run; below: RunSummary[] }): JSX.Element {
  const none = !run.parent && !run.retry_of && !run.session && below.length === 0;
  if (none) return <p class="muted">No parent, no child runs, no session.</p>;
  return (
    <dl class="facts-list">
      {run.parent && <div><dt>parent</dt><dd><RunLink id={run.parent} /></dd></div>}
      {run.retry_of && <div><dt>retry of</dt><dd><RunLink id={run.retry_of} /></dd></div>}
      {run.session && <div><dt>session</dt><dd><a href={`#/runs?session=${encodeURIComponent(run.session)}`}>{run.session}</a></dd></div>}
      {below.length > 0 && <div><dt>children</dt><dd><ul class="plain">{below.map((child) => <li key={child.id}><RunLink id={child.id} /> {child.title || child.agent} <StateBadge state={child.state} stop={child.stop} /></li>)}</ul></dd></div>}
    </dl>
  );
}

/** What the run said in one go needs no second card with the same text. A long result was shortened, which "…" shows. */
function isSaid(run: Run, model: RunModel): boolean {
  const said = model.said.value;
  if (said.kind !== "ok") return false;
  const text = said.value.items.filter((item) => item.kind === "text").map((item) => item.text).join("");
  const result = cleanText(run.result ?? "").trim();
  if (result.startsWith("…")) return text.trim().endsWith(result.slice(1));
  return result.endsWith("…") ? text.includes(result.slice(0, -1)) : text.trim().endsWith(result);
}

function commands(run: Run): [string, string][] {
  const lines: [string, string][] = [[`stint show ${run.id}`, "this page, with its timeline"], [`stint logs ${run.id}${isEnded(run.state) ? "" : " -f"}`, "the output"], [`stint why ${run.id}`, "why it waits"]];
  if (run.state === "in_doubt") lines.push([`stint resolve ${run.id} --done`, "or --rerun, --discard"]);
  if (run.state === "parked") lines.push([`stint answer ${run.id}`, "let it go on"]);
  if (run.state !== "in_doubt") lines.push(isEnded(run.state) ? [`stint retry ${run.id}`, "submit it again as a new run"] : [`stint cancel ${run.id}`, "end it"]);
  return lines;
}

export function RunPage({ id }: { id: string }): JSX.Element {
  const model = useMemo(() => new RunModel(id), [id]);
  useEffect(() => () => model.close(), [model]);
  const again = (): void => void model.refresh();
  const known = model.run.value;
  useLayoutEffect(() => bindKeys({
    c: () => {
      const now = model.run.peek();
      if (now.kind === "ok" && !isEnded(now.value.state) && now.value.state !== "in_doubt") cancelRun(now.value, again, model.receipt);
    },
  }), [model]);
  return (
    <>
      <p class="crumb"><a href="#/runs">Runs</a> / <span class="id">{id}</span></p>
      {known.kind !== "ok" && <h1>Run {id}</h1>}
      <Show of={known} what={`the run ${id}`} retry={again}>
        {(run) => (
          <>
            <h1>{run.title || run.agent}</h1>
            <Headline run={run} model={model} />
            <p class="buttons">{run.state === "in_doubt" ? null : isEnded(run.state) ? <button type="button" onClick={() => retryRun(run)}>Retry as a new run</button> : <button type="button" class="danger" onClick={() => cancelRun(run, again, model.receipt)}>Cancel…</button>}</p>
            <Decision run={run} why={model.why.value.kind === "ok" ? model.why.value.value : null} done={again} />
            <div class="cards">
              <section class="card wide"><h2>Timeline</h2><Show of={model.timeline.value} what="the timeline" retry={again}>{(timeline) => <TimelineView timeline={timeline} />}</Show></section>
              <section class="card wide"><h2>Transcript</h2><Show of={model.said.value} what="the transcript" retry={again}>{(said) => <TranscriptView said={said} live={!isEnded(run.state)} begin={() => model.fromTheBeginning()} />}</Show></section>
              {run.result && !isSaid(run, model) && <section class="card wide"><h2>Result</h2><pre class="text" tabIndex={0}>{run.result}</pre></section>}
              <div class="masonry">
                <section class="card"><h2>Budget</h2><Budget run={run} timeline={model.timeline.value.kind === "ok" ? model.timeline.value.value : null} /></section>
                <ReceiptView run={run} receipt={model.receipt.value} />
                <section class="card"><h2>Attempts</h2><Show of={model.timeline.value} what="the attempts">{(timeline) => <Attempts timeline={timeline} />}</Show></section>
                <section class="card"><h2>Permits held now</h2><Show of={model.held.value} what="the permits" retry={again}>{(limits) => <Held limits={limits} run={run} />}</Show></section>
                <section class="card"><h2>Relatives</h2><Show of={model.children.value} what="the child runs" retry={again}>{(children) => <Relatives run={run} below={children} />}</Show></section>
                <section class="card"><h2>Request</h2><Request run={run} /></section>
                <section class="card"><h2>Facts</h2><Facts run={run} /></section>
                <section class="card"><h2>As commands</h2><Commands lines={commands(run)} /></section>
              </div>
              <section class="card wide"><h2>Events</h2><Show of={model.events.value} what="the events" retry={again}>{(events) => <EventList events={events} begin={run.created_at} older={() => void model.olderEvents()} />}</Show></section>
            </div>
          </>
        )}
      </Show>
    </>
  );
}
