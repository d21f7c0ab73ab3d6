// Each attempt's end beside the retry rule's verdict, which the server recorded.
import type { JSX } from "preact";
import { lengthText, momentText } from "../format.ts";
import { limitAddress } from "../route.ts";
import type { Attempt, Timeline, Verdict } from "../types.ts";
import { Clock } from "./pieces.tsx";

const kShown = 50;
/** Ends after which the next attempt has the same number. */
const kUncounted: Partial<Record<NonNullable<Attempt["cause"]>, string>> = { lost: "lost", park: "parked", hand_back: "handed back" };

/** Its number, and whether it counts: `1`, `1 (lost)`. */
export function attemptName(attempt: Attempt): string {
  const uncounted = attempt.cause === undefined ? undefined : kUncounted[attempt.cause];
  return uncounted === undefined ? String(attempt.attempt) : `${attempt.attempt} (${uncounted})`;
}

export const isCounted = (attempt: Attempt): boolean => attempt.cause === undefined || kUncounted[attempt.cause] === undefined;

/** What the rule decided, in the words of `stint show` (src/cli/reason_text.cpp). */
function ruleText(attempt: Attempt, { rule, attempt: number, attempts_max, until_at }: Verdict): string {
  const after = lengthText((until_at ?? 0) - (attempt.ended_at ?? 0));
  const length = until_at === undefined ? "" : ` for ${after}`;
  const goesOn = attempt.state === "queued" || attempt.state === "parked";
  switch (rule) {
    case "permanent": return "not repeated: the same would happen again";
    case "attempts": return `not repeated: that was attempt ${number} of ${attempts_max}`;
    case "effects": return "in doubt: it may have had effects, which must not be repeated";
    case "open_call": return "in doubt: it ended within a call that must not be repeated";
    case "cancelled": return "ended because it was cancelled";
    case "budget": return "ended because its budget is used up";
    case "handed_back": return goesOn ? "handed back, because its node drains: it uses up no attempt" : "not continued after its node drained";
    case "transient": return goesOn ? `attempt ${number} of ${attempts_max}: repeated after ${after}` : "not repeated: it ended before the next attempt could begin";
    case "quota": return `a rate limit: parked${length}`;
    case "unreachable": return `the provider can't be reached: parked${length}`;
    case "login": return "not logged in: parked until a person has logged in";
    case "retries": return `the retries of its account are used up: parked${length}`;
    case "starved": return `its host lacks something: parked${length}`;
  }
}

/** What the store itself did, without the rule. */
function endText(attempt: Attempt): string {
  if (attempt.cause === "lost") return `its process died${attempt.state === "queued" ? "; back to the queue" : ""}`;
  return (attempt.state ?? attempt.cause ?? "ended").replace("_", " ");
}

function VerdictText({ attempt }: { attempt: Attempt }): JSX.Element {
  const { verdict } = attempt;
  if (attempt.ended_at === null) return <>it runs</>;
  if (!verdict) return <>{endText(attempt)}</>;
  return (
    <span title={verdict.until_at === undefined ? "" : `until ${momentText(verdict.until_at)}`}>
      {ruleText(attempt, verdict)}
      {verdict.limit && <>, and <a href={limitAddress(verdict.limit)}>{verdict.limit}</a> is paused</>}
      {verdict.resumes && "; the next attempt continues the conversation"}
    </span>
  );
}

export function Attempts({ timeline }: { timeline: Timeline }): JSX.Element {
  if (timeline.attempts.length === 0) return <p class="muted">None has begun.</p>;
  return (
    <ol class="attempts" aria-label="Attempts">
      {timeline.attempts.slice(-kShown).map((attempt) => (
        <li key={attempt.fence}>
          <b>{attemptName(attempt)}</b> <Clock at={attempt.begun_at} />, {lengthText((attempt.ended_at ?? timeline.until_at) - attempt.begun_at)}: <span class="verdict-of" data-verdict={attempt.verdict?.rule ?? ""}><VerdictText attempt={attempt} /></span>
          {attempt.error && attempt.error !== attempt.state && <p class="error">{attempt.error}</p>}
        </li>
      ))}
    </ol>
  );
}
