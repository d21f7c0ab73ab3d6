// One run: a sentence first, then what a person must decide, then how it went.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { answerRun, cancelRun, resolutions, resolveRun, retryRun } from "../actions.tsx";
import { costText, countText, exactCost, lengthText, momentText, some } from "../format.ts";
import { bindKeys } from "../keys.ts";
import { serverNow } from "../live.ts";
import { OutputView } from "../parts/output.tsx";
import { Bar, Commands, RunLink, Sentence, Since } from "../parts/pieces.tsx";
import { Show, StateBadge } from "../parts/states.tsx";
import { EventList, Timeline } from "../parts/timeline.tsx";
import { whyLines } from "../reason.ts";
import { agentAddress } from "../route.ts";
import { RunModel } from "../run_model.ts";
import type { Event, Run } from "../types.ts";
import { isEnded } from "../types.ts";

/** When the run entered its state. */
function sinceOf(run: Run, events: Event[]): number {
  let since = run.created_at;
  let state = "queued";
  for (const event of events) {
    if (event.state && event.state !== state) [state, since] = [event.state, event.at];
  }
  return state === run.state ? since : (run.started_at ?? run.created_at);
}

function Headline({ run, model }: { run: Run; model: RunModel }): JSX.Element {
  const reasons = model.why.value;
  const lines = reasons.kind === "ok" ? whyLines(reasons.value, serverNow()) : [];
  const ended = isEnded(run.state);
  return (
    <div class="headline">
      <p class="big"><StateBadge state={run.state} stop={run.stop} /> {ended && run.finished_at !== null ? <>after <b>{lengthText(run.finished_at - (run.started_at ?? run.created_at))}</b>{run.error && <span class="error">: {run.error}</span>}</> : <>for <Since at={sinceOf(run, model.events.value)} /></>}</p>
      {!ended && <ul class={`why ${run.state}`} aria-label="Why it waits">{lines.map((line, at) => <li key={at} data-why><Sentence pieces={line} /></li>)}</ul>}
    </div>
  );
}

function Decision({ run, done }: { run: Run; done: () => void }): JSX.Element | null {
  if (run.state === "in_doubt") {
    return (
      <section class="card decision">
        <h2>Decide: was the work done?</h2>
        <p>The attempt ended in a way that leaves its effects unknown. Check them, then choose.</p>
        <ul class="choices">{resolutions.map(([as, what]) => <li key={as}><button type="button" onClick={() => resolveRun(run, as, done)}>{as}</button> {what}</li>)}</ul>
      </section>
    );
  }
  if (run.state !== "parked") return null;
  return (
    <section class="card decision">
      <h2>{run.hold === "person" ? "It waits for you" : "Parked"}</h2>
      <p>{run.error}</p>
      {run.denials?.map((denial, at) => <p key={at}>It was refused <code>{denial.tool} {denial.call}</code>. To allow it: <code>{denial.allow}</code></p>)}
      <p class="buttons">
        <button type="button" class="primary" onClick={() => answerRun(run, done)}>Let it go on</button>
        <span class="muted">and every run that is parked for the same reason</span>
      </p>
    </section>
  );
}

function Burn({ name, used, of, label }: { name: string; used: number; of: number; label: string }): JSX.Element {
  return <li><span>{name}</span><Bar part={used} whole={of} label={`${name}: ${label}`} kind={used >= of ? "full" : ""} /><span class="num">{label}</span></li>;
}

function Budget({ run }: { run: Run }): JSX.Element {
  const { budget, usage } = run;
  const time = run.started_at === null ? 0 : (run.finished_at ?? serverNow()) - run.started_at;
  return (
    <>
      {usage.tokens === 0 && usage.cost_micros === 0 ? <p>No tokens were reported.</p> : <p>{countText(usage.tokens)} tokens ({countText(usage.fresh_in)} in, {countText(usage.cache_read)} from cache, {countText(usage.out)} out), {costText(usage.cost_micros, usage.estimated)}{usage.estimated && " (estimated)"}</p>}
      {budget ? (
        <ul class="meters">
          {budget.time_ms !== undefined && <Burn name="time" used={time} of={budget.time_ms} label={`${lengthText(time)} of ${lengthText(budget.time_ms)}`} />}
          {budget.attempts !== undefined && <Burn name="attempts" used={run.attempt} of={budget.attempts} label={`${run.attempt} of ${budget.attempts}`} />}
          {budget.tokens !== undefined && <Burn name="tokens" used={usage.tokens} of={budget.tokens} label={`${countText(usage.tokens)} of ${countText(budget.tokens)}`} />}
          {budget.cost_micros !== undefined && <Burn name="cost" used={usage.cost_micros} of={budget.cost_micros} label={`$${exactCost(usage.cost_micros)} of $${exactCost(budget.cost_micros)}`} />}
        </ul>
      ) : <p class="muted">It has no budget of its own.</p>}
    </>
  );
}

function Facts({ run }: { run: Run }): JSX.Element {
  const facts: [string, JSX.Element | string | undefined][] = [
    ["agent", <a href={agentAddress(run.agent)}>{run.agent}</a>],
    ["driver", run.driver], ["model", run.model], ["session", run.session && <a href={`#/runs?session=${encodeURIComponent(run.session)}`}>{run.session}</a>],
    ["parent", run.parent && <RunLink id={run.parent} />], ["retry of", run.retry_of && <RunLink id={run.retry_of} />],
    ["created", momentText(run.created_at)], ["started", run.started_at === null ? undefined : momentText(run.started_at)],
    ["finished", run.finished_at === null ? undefined : momentText(run.finished_at)], ["deadline", run.deadline_at === undefined ? undefined : momentText(run.deadline_at)],
    ["attempts", run.attempt > 0 || run.lost ? `${run.attempt}${run.lost ? `, ${run.lost} lost (process died)` : ""}` : undefined],
    ["worker", run.worker], ["outcome", run.outcome], ["on crash", run.on_crash], ["key", run.key], ["trace", run.trace && <span class="id">{run.trace}</span>],
    ["receipt", run.processes_ended ? `${some(run.processes_ended, "process", "processes")} ended in ${lengthText(run.ending_ms ?? 0)}${run.streams_closed ? `, ${some(run.streams_closed, "stream")} closed` : ""}` : undefined],
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

const textOf = (model: RunModel): string => model.output.value.pieces.map((piece) => piece.text).join("");

function commands(run: Run): [string, string][] {
  const lines: [string, string][] = [[`stint show ${run.id}`, "this page"], [`stint logs ${run.id}${isEnded(run.state) ? "" : " -f"}`, "the output"], [`stint why ${run.id}`, "why it waits"]];
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
      if (now.kind === "ok" && !isEnded(now.value.state) && now.value.state !== "in_doubt") cancelRun(now.value, again);
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
            <p class="buttons">{run.state === "in_doubt" ? null : isEnded(run.state) ? <button type="button" onClick={() => retryRun(run)}>Retry as a new run</button> : <button type="button" class="danger" onClick={() => cancelRun(run, again)}>Cancel…</button>}</p>
            <Decision run={run} done={again} />
            <div class="cards">
              <section class="card wide"><h2>Timeline</h2><Timeline events={model.events.value} run={run} now={serverNow()} /></section>
              <section class="card wide"><h2>Output</h2><OutputView output={model.output.value} live={!isEnded(run.state)} /></section>
              {run.result && run.result.trim() !== textOf(model).trim() && <section class="card wide"><h2>Result</h2><pre class="text" tabIndex={0}>{run.result}</pre></section>}
              <section class="card"><h2>Budget</h2><Budget run={run} /></section>
              <section class="card"><h2>Request</h2><Request run={run} /></section>
              <section class="card"><h2>Facts</h2><Facts run={run} /></section>
              <section class="card"><h2>As commands</h2><Commands lines={commands(run)} /></section>
              <section class="card wide"><h2>Events</h2><EventList events={model.events.value} begin={run.created_at} /></section>
            </div>
          </>
        )}
      </Show>
    </>
  );
}
