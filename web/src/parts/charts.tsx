// Charts over time, as SVG: colours are those of the page, and tests can read what is drawn. A value that is not known is a gap, never a
// line. Marks are lines with the numbers of a list. The arrow keys move the cursor; a table has the same values.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { momentText } from "../format.ts";

export interface Line {
  label: string;
  colour: string; // the name of a CSS variable
  values: (number | null)[];
  fill?: boolean;
  dash?: string;
}
export interface ChartMark {
  at: number;
  text: string;
}
export interface ChartData {
  title: string;
  times: number[]; // milliseconds, at equal distances
  lines: Line[];
  marks: ChartMark[];
  show: (value: number) => string;
  topOfZero?: number; // the top of the axis while no value is above 0
}

const kHeight = 150, kRight = 8, kTop = 14, kBottom = 18; // in CSS pixels
const kTickWidth = 70; // of a time below the plot
const kLetterWidth = 7, kLeftMin = 30; // of the numbers beside the plot
const kMarkReach = 8; // a mark as near to the cursor as this is named in the legend

/** Numbers that are easy to read: at most four of them, from 0 to `most` or above. */
export function ticksOf(most: number): number[] {
  const rough = Math.max(1, most) / 3;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * unit).find((each) => each >= rough) ?? rough);
  return Array.from({ length: Math.ceil(Math.max(1, most) / step) + 1 }, (_, at) => at * step);
}

/** Stretches of known values, as indexes: `[[from, to], …]`. Between them are gaps. */
export function stretchesOf(values: (number | null)[]): [number, number][] {
  const found: [number, number][] = [];
  values.forEach((value, at) => {
    const last = found.at(-1);
    if (value === null) return;
    if (last && last[1] === at - 1) last[1] = at;
    else found.push([at, at]);
  });
  return found;
}

interface Scale {
  x: (time: number) => number;
  y: (value: number) => number;
  left: number;
  width: number;
  ticks: number[];
}

function scaleOf(data: ChartData, width: number): Scale {
  const known = data.lines.flatMap((line) => line.values.filter((value) => value !== null));
  const ticks = ticksOf(known.reduce((most, value) => Math.max(most, value), 0) || (data.topOfZero ?? 0));
  const left = Math.max(kLeftMin, ...ticks.map((tick) => 8 + kLetterWidth * data.show(tick).length));
  const least = known.reduce((low, value) => Math.min(low, value), 0); // a correction of use may be negative
  const top = ticks.at(-1) ?? 1;
  const first = data.times[0] ?? 0, last = data.times.at(-1) ?? 1;
  const inner = Math.max(1, width - left - kRight), high = kHeight - kTop - kBottom;
  return {
    x: (time) => left + (inner * (time - first)) / Math.max(1, last - first),
    y: (value) => kTop + high * (1 - (value - least) / (top - least)),
    left,
    width,
    ticks,
  };
}

function Curve({ line, data, scale }: { line: Line; data: ChartData; scale: Scale }): JSX.Element {
  const place = (at: number): string => `${scale.x(data.times[at] ?? 0).toFixed(1)},${scale.y(line.values[at] ?? 0).toFixed(1)}`;
  const base = scale.y(0).toFixed(1);
  return (
    <g class={`curve s${line.colour}`} data-line={line.label}>
      {stretchesOf(line.values).map(([from, to]) => {
        if (from === to) return <circle key={from} cx={scale.x(data.times[from] ?? 0)} cy={scale.y(line.values[from] ?? 0)} r={2} />;
        const path = Array.from({ length: to - from + 1 }, (_, at) => place(from + at)).join(" ");
        const [begin, end] = [scale.x(data.times[from] ?? 0), scale.x(data.times[to] ?? 0)].map((x) => x.toFixed(1));
        return (
          <g key={from}>
            {line.fill && <polygon points={`${begin},${base} ${path} ${end},${base}`} />}
            <polyline points={path} {...(line.dash ? { "stroke-dasharray": line.dash } : {})} />
          </g>
        );
      })}
    </g>
  );
}

function Axes({ data, scale }: { data: ChartData; scale: Scale }): JSX.Element {
  const first = data.times[0] ?? 0, last = data.times.at(-1) ?? 0;
  const count = Math.max(1, Math.floor((scale.width - scale.left - kRight) / kTickWidth));
  const days = last - first > 36 * 3600_000;
  return (
    <g class="axes">
      {scale.ticks.map((tick) => <g key={tick}><line x1={scale.left} x2={scale.width - kRight} y1={scale.y(tick)} y2={scale.y(tick)} /><text x={scale.left - 6} y={scale.y(tick) + 4} text-anchor="end">{data.show(tick)}</text></g>)}
      {Array.from({ length: count }, (_, at) => first + ((last - first) * (at + 0.5)) / count).map((time) => <text key={time} x={scale.x(time)} y={kHeight - 4} text-anchor="middle">{days ? momentText(time).slice(5, 10) : momentText(time).slice(11, 16)}</text>)}
    </g>
  );
}

/** Lines with the numbers under which the marks are listed; a number that would cover the one before it is left out. */
function MarkLines({ marks, data, scale }: { marks: ChartMark[]; data: ChartData; scale: Scale }): JSX.Element {
  const first = data.times[0] ?? 0, last = data.times.at(-1) ?? 0;
  let free = -Infinity;
  return (
    <g class="mark-lines">
      {marks.map((mark, at) => {
        if (mark.at < first || mark.at > last) return null;
        const x = scale.x(mark.at);
        const fits = x - 7 > free;
        if (fits) free = x + 7;
        return <g key={at}><line x1={x} x2={x} y1={kTop} y2={kHeight - kBottom}><title>{mark.text}</title></line>{fits && <text x={x} y={kTop - 3} text-anchor="middle">{at + 1}</text>}</g>;
      })}
    </g>
  );
}

function Table({ data }: { data: ChartData }): JSX.Element {
  const [open, setOpen] = useState(false);
  const known = data.times.map((_, at) => at).filter((at) => data.lines.some((line) => line.values[at] !== null));
  return (
    <details class="chart-table" onToggle={(event) => setOpen((event.target as HTMLDetailsElement).open)}>
      <summary>As a table</summary>
      {open && (
        <div class="table-place" tabIndex={0} role="region" aria-label={`${data.title}, as a table`}>
          <table>
            <thead><tr><th scope="col">Time</th>{data.lines.map((line) => <th key={line.label} scope="col">{line.label}</th>)}</tr></thead>
            <tbody>
              {known.reverse().map((at) => (
                <tr key={at}>
                  <th scope="row">{momentText(data.times[at] ?? 0)}</th>
                  {data.lines.map((line) => <td key={line.label}>{line.values[at] == null ? "not known" : data.show(line.values[at] ?? 0)}</td>)}
                </tr>
              ))}
            </tbody>
          </table>
          <p class="muted">{data.times.length - known.length} of {data.times.length} steps have no sample.</p>
        </div>
      )}
    </details>
  );
}

/** The values at the cursor and the marks beside it, else the last known values. */
function Legend({ data, at, scale }: { data: ChartData; at: number | null; scale: Scale }): JSX.Element {
  const last = data.times.findLastIndex((_, place) => data.lines.some((line) => line.values[place] !== null));
  const place = at ?? last;
  const text = (line: Line): string => {
    const value = line.values[place];
    return value == null ? "–" : data.show(value);
  };
  const isNear = (mark: ChartMark): boolean => at !== null && Math.abs(scale.x(mark.at) - scale.x(data.times[at] ?? 0)) <= kMarkReach;
  const near = data.marks.flatMap((mark, number) => (isNear(mark) ? [`${number + 1}. ${mark.text}`] : []));
  return (
    <p class="chart-legend" aria-live="polite">
      {data.lines.map((line) => <span key={line.label}><span class={`chart-swatch c${line.colour}`} aria-hidden="true" />{line.label} <strong>{text(line)}</strong></span>)}
      <span class="muted">{place < 0 ? "" : momentText(data.times[place] ?? 0)}</span>
      {near.length > 0 && <span class="at-cursor">{near.join("; ")}</span>}
    </p>
  );
}

export function Chart({ data }: { data: ChartData }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(320);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const scale = scaleOf(data, width);
  const last = data.times.length - 1;
  const choose = (index: number): void => setAt(Math.min(last, Math.max(0, index)));
  const press = (event: KeyboardEvent): void => {
    const next = { ArrowLeft: (at ?? last + 1) - 1, ArrowRight: (at ?? last) + 1, Home: 0, End: last }[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    choose(next);
  };
  const point = (event: PointerEvent): void => {
    const box = place.current?.getBoundingClientRect();
    if (box && last >= 0) choose(Math.round((last * (event.clientX - box.left - scale.left)) / Math.max(1, width - scale.left - kRight)));
  };
  return (
    <figure class="chart">
      <figcaption>{data.title}</figcaption>
      <div ref={place} class="plot" tabIndex={0} role="group" aria-label={`${data.title}: left and right arrow keys show the values of each step`} onKeyDown={press} onBlur={() => setAt(null)} onPointerMove={point} onPointerLeave={() => setAt(null)}>
        <svg width={width} height={kHeight} aria-hidden="true">
          <Axes data={data} scale={scale} />
          {data.lines.map((line) => <Curve key={line.label} line={line} data={data} scale={scale} />)}
          <MarkLines marks={data.marks} data={data} scale={scale} />
          {at !== null && <line class="cursor" x1={scale.x(data.times[at] ?? 0)} x2={scale.x(data.times[at] ?? 0)} y1={kTop} y2={kHeight - kBottom} />}
        </svg>
      </div>
      <Legend data={data} at={at} scale={scale} />
      <Table data={data} />
    </figure>
  );
}
