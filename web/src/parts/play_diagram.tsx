// What happened as a diagram: a lane per task, virtual time from left to right. A dashed line waits, a bar holds, an arrow hands over.
import type { JSX } from "preact";
import type { Sandbox } from "../types.ts";
import { colourOf, momentText } from "./play_words.ts";

const kRow = 20; // a resource in a lane
const kPad = 5; // above and below the rows of a lane
const kTicks = 5;

interface Span {
  resource: string;
  kind: "wait" | "hold";
  from: number;
  to: number | null; // null: until now
  units: number;
  gaveUp: boolean;
}

interface Lane {
  task: string;
  resources: string[];
  spans: Span[];
  refusals: number[];
  top: number;
}

interface Handover {
  at: number;
  from: string;
  to: string;
  resource: string;
}

interface Drawing {
  lanes: Lane[];
  handovers: Handover[];
  marks: { at: number; text: string }[];
  tokens: { at: number; leaked: boolean }[];
  end: number;
  height: number;
}

/** The end of the axis: room after now, in steps that let the drawing stand still for a while. */
function axisEnd(now: number): number {
  for (let unit = 1000; ; unit *= 10) {
    for (const times of [1, 2, 3, 5]) if (now * 1.05 <= unit * times) return unit * times;
  }
}

export function draw(sandbox: Sandbox): Drawing {
  const lanes = new Map<string, Lane>(sandbox.tasks.map(({ name }) => [name, { task: name, resources: [], spans: [], refusals: [], top: 0 }]));
  const drawing: Drawing = { lanes: [...lanes.values()], handovers: [], marks: [], tokens: [], end: axisEnd(sandbox.now_ms), height: 0 };
  let gave: { at: number; resource: string; task: string } | null = null; // who made room last
  for (const { kind, at_ms: at, task = "", resource = "", units = 1, detail } of sandbox.events) {
    const lane = lanes.get(task);
    const open = lane?.spans.findLast((span) => span.resource === resource && span.to === null);
    if (lane && resource && !lane.resources.includes(resource)) lane.resources.push(resource);
    if (kind === "waits") lane?.spans.push({ resource, kind: "wait", from: at, to: null, units, gaveUp: false });
    if (kind === "granted") {
      if (open?.kind === "wait") {
        open.to = at;
        if (gave && gave.at === at && gave.resource === resource && gave.task !== task) drawing.handovers.push({ at, from: gave.task, to: task, resource });
      }
      lane?.spans.push({ resource, kind: "hold", from: at, to: null, units, gaveUp: false });
    }
    if (kind === "released" && open && (open.units -= units) <= 0) open.to = at;
    if (kind === "left" && open) [open.to, open.gaveUp] = [at, true];
    if (kind === "released" || kind === "left") gave = { at, resource, task };
    if (kind === "refused") lane?.refusals.push(at);
    if (kind === "resized") drawing.marks.push({ at, text: `${resource}: ${units}` });
    if (kind === "closed") drawing.marks.push({ at, text: `${resource} closed` });
    if (kind === "token") drawing.tokens.push({ at, leaked: detail === "leaked" });
  }
  for (const lane of drawing.lanes) {
    lane.resources.sort((one, other) => sandbox.resources.findIndex((each) => each.name === one) - sandbox.resources.findIndex((each) => each.name === other));
    lane.top = drawing.height;
    drawing.height += Math.max(1, lane.resources.length) * kRow + 2 * kPad;
  }
  return drawing;
}

const rowOf = (lane: Lane, resource: string): number => lane.top + kPad + Math.max(0, lane.resources.indexOf(resource)) * kRow;
const middleOf = (lane: Lane, resource: string): number => rowOf(lane, resource) + kRow / 2;

function Spans({ sandbox, lane, x }: { sandbox: Sandbox; lane: Lane; x: (ms: number) => string }): JSX.Element {
  return (
    <g class={colourOf(sandbox, lane.task)}>
      {lane.spans.map((span, at) => {
        const y = rowOf(lane, span.resource);
        const end = span.to ?? sandbox.now_ms;
        if (span.kind === "hold") return <rect key={at} class="hold" x={x(span.from)} y={y + 2} height={kRow - 4} rx={3} style={{ width: `max(3px, ${x(end - span.from)})` }} />;
        return (
          <g key={at}>
            <line class="wait" x1={x(span.from)} x2={x(end)} y1={y + kRow / 2} y2={y + kRow / 2} />
            <circle class="dot" cx={x(span.from)} cy={y + kRow / 2} r={3.5} />
            {span.gaveUp && <svg x={x(end)} y={y + kRow / 2} class="loose"><path class="cross" d="M-5 -5 L5 5 M-5 5 L5 -5" /></svg>}
          </g>
        );
      })}
      {lane.refusals.map((at, index) => <svg key={`r${index}`} x={x(at)} y={rowOf(lane, lane.resources.at(-1) ?? "") + kRow / 2} class="loose"><path class="cross" d="M-5 -5 L5 5 M-5 5 L5 -5" /></svg>)}
    </g>
  );
}

function Arrow({ lanes, handover, x }: { lanes: Lane[]; handover: Handover; x: (ms: number) => string }): JSX.Element | null {
  const from = lanes.find((lane) => lane.task === handover.from);
  const to = lanes.find((lane) => lane.task === handover.to);
  if (!from || !to) return null;
  const [start, end] = [middleOf(from, handover.resource), middleOf(to, handover.resource)];
  const down = end > start ? 1 : -1;
  return (
    <svg x={x(handover.at)} class="loose">
      <path class="arrow" d={`M0 ${start} V${end - down * 11}`} />
      <path class="head" d={`M-4 ${end - down * 14} h8 L0 ${end - down * 7} z`} />
    </svg>
  );
}

/** Where the axis has a number. */
function ticksOf(end: number): number[] {
  const step = [1, 2, 5, 10].map((times) => (times * 10 ** Math.floor(Math.log10(end))) / 10).find((each) => end / each <= kTicks) ?? end;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, at) => at * step);
}

function TokenLane({ drawing, top, x }: { drawing: Drawing; top: number; x: (ms: number) => string }): JSX.Element {
  return <g>{drawing.tokens.map((token, at) => <circle key={at} class={token.leaked ? "leaked" : "read"} cx={x(token.at)} cy={top + kRow / 2 + kPad} r={token.leaked ? 4 : 3.5} />)}</g>;
}

export function PlayDiagram({ sandbox }: { sandbox: Sandbox }): JSX.Element {
  const drawing = draw(sandbox);
  const x = (ms: number): string => `${((100 * ms) / drawing.end).toFixed(3)}%`;
  const hasTokens = drawing.tokens.length > 0;
  const height = drawing.height + (hasTokens ? kRow + 2 * kPad : 0);
  return (
    <div class="diagram">
      <ul class="names" aria-hidden="true">
        {drawing.lanes.map((lane) => (
          <li key={lane.task} class={colourOf(sandbox, lane.task)} style={{ height: `${Math.max(1, lane.resources.length) * kRow + 2 * kPad}px` }}>
            <b>{lane.task}</b>
            {lane.resources.length > 1 && <span class="muted">{lane.resources.map((each) => <span key={each}>{each}</span>)}</span>}
          </li>
        ))}
        {hasTokens && <li style={{ height: `${kRow + 2 * kPad}px` }}><b>tokens</b></li>}
      </ul>
      <div class="lanes-plot">
        <svg width="100%" height={height} role="img" aria-label={`Diagram of ${drawing.lanes.length} tasks until ${momentText(sandbox.now_ms)}. The table of events says the same in words.`}>
          {drawing.lanes.map((lane, at) => at % 2 === 0 && <rect key={lane.task} class="band" x="0" y={lane.top} width="100%" height={Math.max(1, lane.resources.length) * kRow + 2 * kPad} />)}
          {ticksOf(drawing.end).map((tick) => <line key={tick} class="tick" x1={x(tick)} x2={x(tick)} y1={0} y2={height} />)}
          {drawing.marks.map((mark, at) => <g key={at}><line class="mark" x1={x(mark.at)} x2={x(mark.at)} y1={0} y2={height} /><text class="mark-text" x={x(mark.at)} dx={4} y={11}>{mark.text}</text></g>)}
          {drawing.lanes.map((lane) => <Spans key={lane.task} sandbox={sandbox} lane={lane} x={x} />)}
          {drawing.handovers.map((handover, at) => <Arrow key={at} lanes={drawing.lanes} handover={handover} x={x} />)}
          {hasTokens && <TokenLane drawing={drawing} top={drawing.height} x={x} />}
          <line class="now" x1={x(sandbox.now_ms)} x2={x(sandbox.now_ms)} y1={0} y2={height} />
        </svg>
        <div class="axis" aria-hidden="true">{ticksOf(drawing.end).map((tick) => <span key={tick} style={{ left: x(tick) }}>{tick / 1000}</span>)}</div>
      </div>
    </div>
  );
}
