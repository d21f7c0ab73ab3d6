// Where the time of a run went, as the server computed it: one lane for the run, one for each attempt, and the same as a table.
// A wait that is longer than all the work is drawn as long as the work, with a mark: work must stay visible.
import type { JSX } from "preact";
import { ageText, clockText, countText, lengthText, momentText } from "../format.ts";
import { limitAddress } from "../route.ts";
import type { Attempt, Segment, SpanKind, Timeline } from "../types.ts";
import { attemptName } from "./attempts.tsx";
import { Empty } from "./states.tsx";

const kKinds: Record<SpanKind, string> = {
  queue: "queue", limit: "limit", session: "session", delay: "delay", backoff: "back-off", quota: "quota", person: "person",
  model_call: "model call", tool: "tool", ending: "ending", working: "working",
};
const kWork: SpanKind[] = ["model_call", "tool", "ending", "working"];
const kTableMax = 300;

const isWork = (kind: SpanKind): boolean => kWork.includes(kind);
const nameOf = (part: { kind: SpanKind; name?: string }): string => `${kKinds[part.kind]}${part.name ? ` ${part.name}` : ""}`;

interface Scale {
  /** The place of a moment, in percent. */
  at: (moment: number) => number;
  folded: (segment: Segment) => boolean;
}

function scaleOf(timeline: Timeline): Scale {
  const most = timeline.working_ms > 0 ? Math.max(timeline.working_ms, 1) : Infinity;
  const shown = (segment: Segment): number => (isWork(segment.kind) ? segment.ms : Math.min(segment.ms, most));
  const whole = Math.max(1, timeline.segments.reduce((sum, segment) => sum + shown(segment), 0));
  return {
    at: (moment) => {
      let place = 0;
      for (const segment of timeline.segments) {
        if (moment <= segment.at) break;
        place += shown(segment) * Math.min(1, (moment - segment.at) / Math.max(1, segment.ms));
      }
      return (100 * place) / whole;
    },
    folded: (segment) => !isWork(segment.kind) && shown(segment) < segment.ms,
  };
}

const kLabelWidth = 12, kLengthWidth = 4; // percent of the track from which on a name, or only a length, can be read

function Piece({ part, begin, end, folded = false, bare = false }: { part: { kind: SpanKind; name?: string; ms: number }; begin: number; end: number; folded?: boolean; bare?: boolean }): JSX.Element {
  const label = `${nameOf(part)}, ${lengthText(part.ms)}${folded ? " (drawn shorter)" : ""}`;
  const width = end - begin;
  const length = folded && width > kLengthWidth ? `${lengthText(part.ms)} // ` : "";
  const text = `${length}${width > kLabelWidth && !bare ? nameOf(part) : ""}`;
  return (
    <span class={`piece ${part.kind}${folded ? " folded" : ""}`} title={label} data-ms={part.ms} style={{ left: `${begin}%`, width: `${Math.max(0.2, width)}%` }}>
      {text && <span class="label">{text}</span>}
    </span>
  );
}

/** Stretches of work, each with its calls drawn over it: between two waits nothing looks idle. */
function stretchesOf(segments: Segment[]): Segment[] {
  const found: Segment[] = [];
  let open = false;
  for (const { kind, at, ms } of segments) {
    const last = found.at(-1);
    if (isWork(kind) && open && last) last.ms += ms;
    else if (isWork(kind)) found.push({ kind: "working", at, ms });
    open = isWork(kind);
  }
  return found;
}

function RunLane({ timeline, scale }: { timeline: Timeline; scale: Scale }): JSX.Element {
  const { segments } = timeline;
  const draw = (part: Segment, at: number, bare = false): JSX.Element => <Piece key={`${part.kind} ${at}`} part={part} bare={bare} begin={scale.at(part.at)} end={scale.at(part.at + part.ms)} folded={scale.folded(part)} />;
  const calls = segments.filter((segment) => isWork(segment.kind) && segment.kind !== "working");
  return (
    <div class="lane-row">
      <span class="name">run</span>
      <span class="track">
        {segments.filter((segment) => !isWork(segment.kind)).map((wait, at) => draw(wait, at))}
        {stretchesOf(segments).map((stretch, at) => draw(stretch, at, calls.length > 0))}
        {calls.map((call, at) => draw(call, at))}
      </span>
      <span class="num">{lengthText(timeline.until_at - timeline.begun_at)}</span>
    </div>
  );
}

function Lane({ attempt, until, scale }: { attempt: Attempt; until: number; scale: Scale }): JSX.Element {
  const end = attempt.ended_at ?? until;
  const spans = attempt.spans.filter((span) => span.ms > 0);
  return (
    <div class="lane-row">
      <span class="name">attempt {attemptName(attempt)}</span>
      <span class="track">
        <Piece part={{ kind: "working", ms: end - attempt.begun_at }} begin={scale.at(attempt.begun_at)} end={scale.at(end)} bare={spans.length > 0} />
        {spans.map((span, at) => <Piece key={at} part={span} begin={scale.at(span.at)} end={scale.at(span.at + span.ms)} />)}
      </span>
      <span class="num">{lengthText(end - attempt.begun_at)}</span>
    </div>
  );
}

/** The server's sums by kind, and the limits that the run waited for. */
function Legend({ timeline }: { timeline: Timeline }): JSX.Element {
  const limits = [...new Set(timeline.segments.flatMap((segment) => (segment.kind === "limit" && segment.name ? [segment.name] : [])))];
  return (
    <ul class="legend" aria-label="Sums">
      {timeline.sums.map(({ kind, ms, spans }) => (
        <li key={kind} data-sum={kind} data-ms={ms}>
          <span class={`kind-swatch ${kind}`} aria-hidden="true" />{kind === "limit" && limits.length > 0 ? <>limit {limits.map((name, at) => <>{at > 0 && ", "}<a key={name} href={limitAddress(name)}>{name}</a></>)}</> : kKinds[kind]}
          {" "}<span class="num">{lengthText(ms)}</span>{spans > 1 && <span class="muted"> in {countText(spans)} calls</span>}
        </li>
      ))}
    </ul>
  );
}

function Table({ timeline }: { timeline: Timeline }): JSX.Element {
  const shown = timeline.segments.slice(-kTableMax);
  return (
    <details class="as-table">
      <summary>As a table</summary>
      {shown.length < timeline.segments.length && <p class="muted">The first {timeline.segments.length - shown.length} segments are left out; <code>stint show {timeline.id} --json</code> has all.</p>}
      <div class="scrolls" tabIndex={0} role="region" aria-label="Segments of the timeline">
        <table>
          <thead><tr><th scope="col">From</th><th scope="col">What</th><th scope="col">Attempt</th><th scope="col" class="num">Length</th></tr></thead>
          <tbody>
            {shown.map((segment, at) => (
              <tr key={at} data-ms={segment.ms} data-kind={segment.kind}>
                <td><time dateTime={new Date(segment.at).toISOString()} title={momentText(segment.at)}>{clockText(segment.at)}, +{ageText(segment.at - timeline.begun_at)}</time></td>
                <td>{isWork(segment.kind) ? "" : "waits: "}{nameOf(segment)}</td><td>{segment.attempt ?? "–"}</td><td class="num">{lengthText(segment.ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

export function TimelineView({ timeline }: { timeline: Timeline }): JSX.Element {
  if (timeline.segments.length === 0) return <Empty title="It has just begun: no time has passed." />;
  const scale = scaleOf(timeline);
  const whole = timeline.until_at - timeline.begun_at;
  const sum = `${lengthText(whole)}: ${lengthText(timeline.waiting_ms)} waiting, ${lengthText(timeline.working_ms)} working`;
  return (
    <>
      <p class="sum"><b>{lengthText(timeline.waiting_ms)}</b> waiting, <b>{lengthText(timeline.working_ms)}</b> working</p>
      <div class="run-lanes" role="img" aria-label={`Timeline of ${sum}. The table below has the segments.`}>
        <RunLane timeline={timeline} scale={scale} />
        {timeline.attempts.slice(-20).map((attempt) => <Lane key={attempt.fence} attempt={attempt} until={timeline.until_at} scale={scale} />)}
      </div>
      <Legend timeline={timeline} />
      {timeline.attempts.length > 20 && <p class="muted">Lanes of the last 20 of {timeline.attempts.length} attempts.</p>}
      {timeline.spans_left_out > 0 && <p class="muted">{countText(timeline.spans_left_out)} short calls have no piece of their own: they are drawn as "working", and counted in the sums.</p>}
      {timeline.events_left_out > 0 && <p class="left-out">{timeline.events_left_out} events were not read: that part is drawn as one piece.</p>}
      <Table timeline={timeline} />
    </>
  );
}
