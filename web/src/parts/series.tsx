// The time series of the fleet as charts, with the marks of its events.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { clockText, countText, costText, momentText } from "../format.ts";
import { get, why } from "../http.ts";
import { onRecovery } from "../live.ts";
import type { Loaded, Mark, Series } from "../types.ts";
import { kLoading } from "../types.ts";
import type { ChartData, Line } from "./charts.tsx";
import { Chart } from "./charts.tsx";
import { Empty, Show } from "./states.tsx";

const kSpans: [string, number][] = [["1 hour", 3600], ["6 hours", 6 * 3600], ["3 days", 72 * 3600], ["5 weeks", 35 * 86_400]];
const kMarksShown = 12;
const kAxisMsMin = 600_000; // a shorter history than the span is drawn from its first sample, but not on an axis shorter than this
const kStepsMin = 10;
export const kTopOfNoCost = 20_000; // millionths: the axis has numbers of two digits

const span = signal(3600);
const series = signal<Loaded<Series>>(kLoading);
const stale = signal(""); // why the series on the page is not the newest

let asked = 0;

async function load(): Promise<void> {
  const mine = ++asked;
  const wanted = span.value;
  try {
    const value = await get<Series>(`/v1/series?span_s=${wanted}`);
    if (mine !== asked) return; // another span was chosen meanwhile
    series.value = { kind: "ok", value };
    stale.value = "";
  } catch (error) {
    if (mine !== asked) return;
    if (series.value.kind === "ok") stale.value = why(error);
    else series.value = { kind: "failed", why: why(error) };
  }
}

/** What a mark says, from the fields of its event. */
export function markText(mark: Mark): string {
  const data = (mark.data ?? {}) as Record<string, unknown>;
  const text = (name: string): string => String(data[name] ?? "");
  switch (mark.cause) {
    case "resized": return `limit ${text("limit")}: capacity ${data.capacity === null ? "none" : text("capacity")}`;
    case "paused": return text("limit") ? `limit ${text("limit")} paused` : "paused";
    case "resumed": return text("limit") ? `limit ${text("limit")} resumed` : "resumed";
    case "scaled": return `pool scaled to ${text("workers")}`;
    case "draining": return `drain: ${text("phase") || "begun"}`;
    case "node_joined": return `node ${text("label")} started`;
    case "node_left": return `node ${text("label")} stopped`;
    case "node_dead": return `node ${text("label")} died`;
    case "reloaded": return `project reloaded`;
    default: return mark.cause.replaceAll("_", " ");
  }
}

/** The first step that is drawn: what lies before the first sample says nothing. */
function firstDrawn(of: Series): number {
  const first = of.samples.findIndex((count) => count !== null);
  const least = Math.max(kStepsMin, Math.ceil(kAxisMsMin / (of.step_s * 1000)));
  return Math.max(0, Math.min(first - 1, of.count - least));
}

function chartsOf(of: Series): ChartData[] {
  const from = firstDrawn(of);
  const times = Array.from({ length: of.count - from }, (_, at) => of.first_at + (from + at) * of.step_s * 1000);
  const marks = of.marks.map((mark) => ({ at: mark.at, text: markText(mark) }));
  const line = (name: keyof Series["series"], label: string, colour: string, more: Partial<Line> = {}): Line => ({ label, colour, values: of.series[name].slice(from), ...more });
  const per = of.step_s === 10 ? "10 s" : of.step_s === 60 ? "minute" : "hour";
  const chart = (title: string, lines: Line[], more: Partial<ChartData> = {}): ChartData => ({ title, times, lines, marks, show: countText, ...more });
  return [
    chart("Queue", [line("startable", "startable", "--running", { fill: true }), line("held", "held", "--parked", { dash: "6 3" })]),
    chart("Workers", [line("busy", "busy", "--running", { fill: true }), line("workers", "workers", "--muted", { dash: "2 3" })]),
    chart(`Runs that ended, per ${per}`, [line("succeeded", "succeeded", "--ok", { fill: true }), line("failed", "failed", "--fail"), line("cancelled", "cancelled", "--muted", { dash: "2 3" })]),
    chart(`Cost, per ${per}`, [line("cost_micros", "cost", "--doubt", { fill: true })], { show: (value) => (value === 0 ? "0" : costText(value)), topOfZero: kTopOfNoCost }),
  ];
}

function Marks({ marks }: { marks: Mark[] }): JSX.Element | null {
  if (marks.length === 0) return null;
  const first = Math.max(0, marks.length - kMarksShown);
  return (
    <details class="marks" open={marks.length <= 4}>
      <summary>Marks: {marks.length}</summary>
      <ol start={first + 1}>{marks.slice(first).map((mark, at) => <li key={at}><time dateTime={new Date(mark.at).toISOString()} title={momentText(mark.at)}>{clockText(mark.at)}</time> {markText(mark)}</li>)}</ol>
    </details>
  );
}

/** The charts of the fleet. Reads them again with every step, while the page is visible. */
export function FleetCharts(): JSX.Element {
  useEffect(() => {
    void load();
    const timer = setInterval(() => document.visibilityState === "visible" && void load(), 10_000);
    const stop = onRecovery(() => void load());
    return () => {
      clearInterval(timer);
      stop();
    };
  }, []);
  const choose = (wanted: number): void => {
    span.value = wanted;
    void load();
  };
  return (
    <section class="card wide" aria-label="Charts">
      <div class="chart-head">
        <h2>Over time</h2>
        <div class="chips" role="group" aria-label="Span of the charts">{kSpans.map(([name, length]) => <button key={name} type="button" class="chip" aria-pressed={span.value === length} onClick={() => choose(length)}>{name}</button>)}</div>
      </div>
      <Show of={series.value} what="the charts" retry={() => void load()}>
        {(of) => of.samples.every((count) => count === null) ? (
          <Empty title="No sample was taken in this time.">A daemon takes one every 10 seconds: the first appears shortly.</Empty>
        ) : (
          <>
            {stale.value && <p class="bad" role="status">Not read again since {clockText(of.as_of)}: {stale.value}</p>}
            {firstDrawn(of) > 0 && <p class="muted" data-field="first-sample">The first sample of this span is of {momentText(of.first_at + of.samples.findIndex((count) => count !== null) * of.step_s * 1000)}.</p>}
            <div class="charts">{chartsOf(of).map((data) => <Chart key={data.title.split(",")[0]} data={data} />)}</div>
            <Marks marks={of.marks} />
          </>
        )}
      </Show>
    </section>
  );
}
