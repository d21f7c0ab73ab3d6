// What waits and why: runs that could start, runs that are held, and parked runs. Every number is a field of the snapshot.
import type { JSX } from "preact";
import { clockText, lengthText, momentText } from "../format.ts";
import { agentAddress, limitAddress } from "../route.ts";
import type { Fleet, WaitGroup } from "../types.ts";
import { Since } from "./pieces.tsx";
import { Empty } from "./states.tsx";

export const kHeldWords: Record<WaitGroup["reason"], string> = {
  session: "behind another run of their session", delay: "not due yet", backoff: "between two attempts", quota: "until a quota resets", person: "for an answer",
  paused: "paused", probe: "admits few runs after a pause", limit: "full", turn: "a larger request goes first", shortage: "until the host has what they need",
};

function Group({ group, parked = false }: { group: WaitGroup; parked?: boolean }): JSX.Element {
  const { limit, reason, runs, until_at, oldest_at } = group;
  const name = limit ? `${reason} ${limit}` : reason;
  return (
    <li {...(parked ? { "data-parked": name } : { "data-held": name })}>
      <span class="num">{runs}</span>
      <span>
        {limit && <><a href={limitAddress(limit)}>{limit}</a>: </>}{kHeldWords[reason]}
        {until_at !== undefined && <span class="muted">, <time dateTime={new Date(until_at).toISOString()} title={momentText(until_at)}>{parked ? `until ${clockText(until_at)}` : `the first at ${clockText(until_at)}`}</time></span>}
      </span>
      <span class="muted">{oldest_at === null ? "" : <Since at={oldest_at} />}</span>
    </li>
  );
}

function drainText(of: Fleet): string {
  const { drain_ms } = of.queue;
  if (isDraining(of)) return "None begins: this daemon drains.";
  return drain_ms === null ? "Time to drain: unknown, too few runs ended lately." : `Drains in about ${lengthText(drain_ms)} at the present rate.`;
}

export const isDraining = (of: Fleet): boolean => of.pool?.draining === true || of.phase === "finishing" || of.phase === "handing_back" || of.phase === "stopped";

function startableText(of: Fleet): string {
  if (isDraining(of)) return "could start, but none begins: this daemon drains";
  if (of.queue.startable > 0 && of.pool && of.pool.busy >= of.pool.pool_size) return "could start now, all workers are busy";
  return "could start now";
}

export function Queue({ of }: { of: Fleet }): JSX.Element {
  const { runs, startable, startable_oldest_at, oldest_at, held } = of.queue;
  const full = of.pool?.queues.filter((queue) => queue.size >= queue.capacity) ?? [];
  return (
    <>
      {runs === 0 ? <Empty title="The queue is empty."><a href="#/agents">Submit a run</a></Empty> : (
        <>
          <p class="big"><b data-field="queued">{runs}</b> queued{oldest_at !== null && <>, the oldest for <Since at={oldest_at} /></>}</p>
          <ul class="split">
            <li data-held="startable"><span class="num">{startable}</span><span>{startableText(of)}</span><span class="muted">{startable_oldest_at !== null && <Since at={startable_oldest_at} />}</span></li>
            {held.map((group) => <Group key={`${group.reason} ${group.limit ?? ""}`} group={group} />)}
          </ul>
          <p class="muted" data-field="drain">{drainText(of)}</p>
        </>
      )}
      {full.map((queue) => <p key={queue.agent} class="bad">The queue of <a href={agentAddress(queue.agent)}>{queue.agent}</a> is full: {queue.size} of {queue.capacity}. Further runs are refused.</p>)}
      {of.parked.length > 0 && (
        <>
          <h3>Parked</h3>
          <ul class="split">{of.parked.map((group) => <Group key={`${group.reason} ${group.limit ?? ""}`} group={group} parked />)}</ul>
        </>
      )}
    </>
  );
}
