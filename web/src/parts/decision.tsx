// The first sentence about a run, and the decision that it asks for.
import type { JSX } from "preact";
import { answerRun, resolutions, resolveRun } from "../actions.tsx";
import { errorOf, lengthText, some } from "../format.ts";
import { fleet, serverNow } from "../live.ts";
import { whyLines } from "../reason.ts";
import { limitAddress } from "../route.ts";
import type { RunModel } from "../run_model.ts";
import type { Fleet, Run, Timeline, Why } from "../types.ts";
import { isEnded } from "../types.ts";
import { act, confirm } from "./confirm.tsx";
import { Sentence, Since } from "./pieces.tsx";
import { kHeldWords } from "./queue.tsx";
import { StateBadge } from "./states.tsx";

/** When the run entered its state: the server's timeline knows. */
function sinceOf(run: Run, timeline: Timeline | null): number {
  const last = timeline?.attempts.at(-1);
  if (run.state === "running") return last?.begun_at ?? run.started_at ?? run.created_at;
  const segment = timeline?.segments.findLast((each) => each.attempt !== undefined);
  return segment ? segment.at + segment.ms : run.created_at;
}

/** How long an ended run took in all: from its submission, attempts and waits included. */
function Took({ run, timeline }: { run: Run; timeline: Timeline | null }): JSX.Element {
  const error = errorOf(run);
  const waited = timeline && timeline.waiting_ms > 0 ? ` (${lengthText(timeline.working_ms)} working)` : "";
  return <>after <b>{lengthText((run.finished_at ?? run.created_at) - run.created_at)}</b>{waited}{error && <span class="error">: {error}</span>}</>;
}

export function Headline({ run, model }: { run: Run; model: RunModel }): JSX.Element {
  const reasons = model.why.value;
  const lines = reasons.kind === "ok" ? whyLines(reasons.value, serverNow()) : [];
  const ended = isEnded(run.state);
  const timeline = model.timeline.value.kind === "ok" ? model.timeline.value.value : null;
  return (
    <div class="headline">
      <p class="big"><StateBadge state={run.state} stop={run.stop} /> {ended && run.finished_at !== null ? <Took run={run} timeline={timeline} /> : <>for <Since at={sinceOf(run, timeline)} /></>}</p>
      {!ended && lines.length > 0 && <ul class={`why ${run.state}`} aria-label="Why it waits">{lines.map((line, at) => <li key={at} data-why><Sentence pieces={line} /></li>)}</ul>}
    </div>
  );
}

/** The groups of parked runs that an answer wakes: those of the limit on which this one is parked. */
function groupsOf(of: Fleet | null, limit: string): Fleet["parked"] {
  return of?.parked.filter((group) => group.limit === limit) ?? [];
}

/** An answer to a run that is parked on a limit ends the pause of the limit, and wakes every run that is parked on it. */
function letGoOn(run: Run, limit: string, done: () => void): void {
  const of = fleet.peek();
  const groups = groupsOf(of.kind === "ok" ? of.value : null, limit);
  const what = groups.map((group) => `${some(group.runs, "run")} ${kHeldWords[group.reason]}`).join(", ");
  const { runs } = groups[0] ?? { runs: 0 };
  confirm({
    title: groups.length === 1 ? `Let ${some(runs, "run")} go on?` : "Let parked runs go on?",
    body: <p><code>{run.id}</code> is parked on <a href={limitAddress(limit)}>{limit}</a>. Its pause ends for every run that is parked on it: {what || "how many, is not known now"}. One goes first; the others follow in order.</p>,
    action: groups.length === 1 ? `Let ${some(runs, "run")} go on` : "Let them go on",
    run: () => answerRun(run, done),
  });
}

export function Decision({ run, why, done }: { run: Run; why: Why | null; done: () => void }): JSX.Element | null {
  if (run.state === "in_doubt") {
    return (
      <section class="card decision" aria-label="Decision">
        <h2>Decide: was the work done?</h2>
        <p>The attempt ended in a way that leaves its effects unknown. Check them, then choose. The transcript below shows what it did last.</p>
        {run.error && <p class="error">{run.error}</p>}
        <ul class="choices">{resolutions.map(([as, what]) => <li key={as}><button type="button" onClick={() => resolveRun(run, as, done)}>{as}</button> {what}</li>)}</ul>
      </section>
    );
  }
  if (run.state !== "parked") return null;
  const limit = why?.reasons.find((reason) => (reason.reason === "quota" || reason.reason === "person") && reason.limit)?.limit;
  const answer = (): void => (limit ? letGoOn(run, limit, done) : void act("Answer", () => answerRun(run, done)));
  return (
    <section class="card decision" aria-label="Decision">
      <h2>{run.hold === "person" ? "It waits for you" : "Parked"}</h2>
      <p>{run.error}</p>
      {run.denials?.map((denial, at) => <p key={at}>It was refused <code>{denial.tool} {denial.call}</code>. To allow it: <code>{denial.allow}</code></p>)}
      <p class="buttons">
        <button type="button" class="primary" disabled={why === null} onClick={answer}>{limit ? "Let it go on…" : "Let it go on"}</button>
        {limit && <span class="muted">and every run that is parked on <a href={limitAddress(limit)}>{limit}</a></span>}
      </p>
    </section>
  );
}
