// A limit as a garage: its spaces, what stands in each since when, and the line outside. Drawn as lists, so that it can be read aloud.
import type { JSX } from "preact";
import { ageText } from "../format.ts";
import { serverNow } from "../live.ts";
import { holderText } from "../reason.ts";
import type { Limit, LimitEntry } from "../types.ts";
import { Sentence } from "./pieces.tsx";

const kSpacesDrawn = 48;
const kLineDrawn = 20;

function label(entry: LimitEntry): string {
  return entry.title ?? entry.agent ?? entry.label ?? (entry.pid !== undefined ? `pid ${entry.pid}` : "another tool");
}

/** `above`: the space is beyond the capacity, which was lowered while it was held. */
function Space({ holder, above }: { holder: LimitEntry | null; above: boolean }): JSX.Element {
  if (!holder) return <li class="space free"><span class="muted">free</span></li>;
  const place = holder.run ? <a class="id" href={`#/run/${holder.run}`}>{holder.run}</a> : <span class="id" title={label(holder)}>{label(holder)}</span>;
  return (
    <li class={`space taken${holder.swept || holder.unjudged ? " leftover" : ""}${above ? " above" : ""}`}>
      {place}
      {holder.run && <span class="muted" title={holder.title ?? holder.agent}>{holder.title ?? holder.agent}</span>}
      <span class="muted">{holder.since_at !== undefined && `for ${ageText(serverNow() - holder.since_at)}`}{holder.weight > 1 && `, ${holder.weight} spaces`}</span>
      {above && <span class="bad">above the capacity</span>}
    </li>
  );
}

/** One entry per unit: a holder of several units stands in several spaces. */
function spacesOf(limit: Limit): (LimitEntry | null)[] {
  const spaces: (LimitEntry | null)[] = [];
  for (const holder of limit.holders) for (let unit = 0; unit < holder.weight && spaces.length < kSpacesDrawn; ++unit) spaces.push(holder);
  while (spaces.length < Math.min(limit.capacity ?? 0, kSpacesDrawn)) spaces.push(null);
  return spaces;
}

export function Garage({ limit }: { limit: Limit }): JSX.Element {
  const now = serverNow();
  const spaces = spacesOf(limit);
  const isShort = limit.capacity !== null && limit.capacity > kSpacesDrawn;
  return (
    <div class="garage">
      <ul class="spaces" aria-label={`Spaces of ${limit.name}`}>{spaces.map((holder, at) => <Space key={at} holder={holder} above={limit.capacity !== null && at >= limit.capacity} />)}</ul>
      {isShort && <p class="muted">The first {kSpacesDrawn} spaces are drawn.</p>}
      {limit.capacity === null && <p class="muted">{limit.paused ? "It has no bound, but is paused: no request gets its permit." : "No bound: every request gets its permit."}</p>}
      {limit.line.length > 0 && (
        <>
          <h3>Line</h3>
          <ol class="line" aria-label={`Line for ${limit.name}`}>
            {limit.line.slice(0, kLineDrawn).map((entry, at) => (
              <li key={at}><Sentence pieces={holderText(entry, now)} />{entry.weight > 1 && <span class="muted"> needs {entry.weight}</span>}</li>
            ))}
          </ol>
          {limit.line.length > kLineDrawn && <p class="muted">The first {kLineDrawn} are listed.</p>}
        </>
      )}
    </div>
  );
}
