// Every limit as a garage, with resize, pause and resume.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { change } from "../http.ts";
import { fleet, refresh, serverNow } from "../live.ts";
import { lengthText, some } from "../format.ts";
import { confirm } from "../parts/confirm.tsx";
import { Garage } from "../parts/garage.tsx";
import { Commands } from "../parts/pieces.tsx";
import { kHeldWords } from "../parts/queue.tsx";
import { Empty, Show } from "../parts/states.tsx";
import { limitAddress } from "../route.ts";
import type { Limit, WaitGroup } from "../types.ts";

const pathOf = (limit: Limit): string => `/v1/limits/${encodeURIComponent(limit.name)}`;

function resize(limit: Limit): void {
  confirm({
    title: `Resize ${limit.name}`,
    body: <p>A smaller capacity takes nothing away: holders keep their permits, and nothing else starts until enough are returned.</p>,
    action: "Resize",
    number: { label: "Capacity", value: limit.capacity ?? 1, least: 1 },
    run: async (capacity) => {
      await change("PUT", pathOf(limit), { capacity });
      return `${limit.name} has the capacity ${capacity} now.`;
    },
  });
}

function pause(limit: Limit): void {
  confirm({
    title: `Pause ${limit.name}?`,
    body: <p>Holders keep their permits; no run that needs {limit.name} begins until you resume it.</p>,
    action: "Pause",
    run: async () => {
      await change("POST", `${pathOf(limit)}/pause`, {});
      return `${limit.name} is paused.`;
    },
  });
}

/** `parked`: the groups of runs that are parked on it, of the same snapshot. */
function resume(limit: Limit, parked: WaitGroup[]): void {
  const what = parked.map((group) => `${some(group.runs, "run")} ${kHeldWords[group.reason]}`).join(", ");
  confirm({
    title: `Resume ${limit.name}?`,
    body: <p>Runs that need {limit.name} begin again. {what ? `Parked on it: ${what}. They go on.` : "No run is parked on it."}</p>,
    action: "Resume",
    run: async () => {
      const { woken } = await change<{ woken: number }>("POST", `${pathOf(limit)}/resume`);
      return `${limit.name} admits runs again; ${some(woken, "parked run")} woken.`;
    },
  });
}

const kHomes: Record<Limit["home"], [string, string]> = {
  process: ["of this daemon", "other processes do not use it"], host: ["of this host", "other daemons and commands of this host use it, too"], cluster: ["of the store", "all daemons of the store share it"],
};

function LimitCard({ limit, chosen, parked }: { limit: Limit; chosen: boolean; parked: WaitGroup[] }): JSX.Element {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (chosen) card.current?.scrollIntoView({ block: "start" });
  }, [chosen]);
  const until = limit.paused_until_at;
  return (
    <section ref={card} class={`card limit${chosen ? " chosen" : ""}`} aria-label={`Limit ${limit.name}`}>
      <h2><a href={limitAddress(limit.name)}>{limit.name}</a> <span class="muted" title={kHomes[limit.home][1]}>{kHomes[limit.home][0]}</span></h2>
      <p>
        <b class="num">{limit.held} of {limit.capacity ?? "∞"}</b> held{limit.waiting > 0 && <>, <b class="num">{limit.waiting}</b> waiting</>}
        {limit.capacity !== null && limit.held > limit.capacity && <span class="bad"> {limit.held - limit.capacity} above the capacity: nothing more starts until they are returned</span>}
        {limit.paused && <span class="bad"> paused{until !== undefined && ` for ${lengthText(until - serverNow())} more`}</span>}
      </p>
      <Garage limit={limit} />
      <p class="buttons">
        <button type="button" onClick={() => resize(limit)}>Resize…</button>
        {limit.paused ? <button type="button" class="primary" onClick={() => resume(limit, parked)}>Resume…</button> : <button type="button" onClick={() => pause(limit)}>Pause…</button>}
      </p>
    </section>
  );
}

const isUsed = (limit: Limit): boolean => limit.capacity !== null || limit.held > 0 || limit.waiting > 0 || limit.paused;

/** Limits without a bound that nothing holds: their names are enough. */
function Idle({ limits }: { limits: Limit[] }): JSX.Element | null {
  if (limits.length === 0) return null;
  return (
    <section class="card unused">
      <h2>Without a bound, and not in use</h2>
      <p class="facts">{limits.map((limit) => <a key={limit.name} href={limitAddress(limit.name)}>{limit.name}</a>)}</p>
    </section>
  );
}

export function LimitsPage({ chosen }: { chosen: string }): JSX.Element {
  return (
    <>
      <h1>Limits</h1>
      <p class="muted">A limit is a garage: a run takes as many spaces as it needs and leaves them when it ends. The rest waits outside, in order.</p>
      <Show of={fleet.value} what="the limits" retry={() => void refresh()}>
        {({ limits, parked }) => limits.length === 0 ? (
          <Empty title="No limit is in use."><Commands lines={[["max_concurrency: 2", "in an agent's file: at most two runs of it at once"], ["[limits]", "in stint.toml: limits that agents share"]]} /></Empty>
        ) : (
          <>
            <div class="cards loose">{limits.filter((limit) => isUsed(limit) || limit.name === chosen).map((limit) => <LimitCard key={limit.name} limit={limit} chosen={limit.name === chosen} parked={parked.filter((group) => group.limit === limit.name)} />)}</div>
            <Idle limits={limits.filter((limit) => !isUsed(limit) && limit.name !== chosen)} />
          </>
        )}
      </Show>
    </>
  );
}
