// One run: its record, why it waits, its events and its output. Events arrive once each, in order: (run, seq) decides.
import { batch, signal } from "@preact/signals";
import { get, why } from "./http.ts";
import { cleanText } from "./format.ts";
import { follow } from "./stream.ts";
import type { Event, Loaded, OutputSlice, Run, Why } from "./types.ts";
import { isEnded, kLoading } from "./types.ts";

const kEventPage = 500;
const kEventsMax = 20_000;
const kOutputCharsMax = 400_000; // kept in the page; older output leaves it
const kWhyMs = 1000;

export interface Output {
  pieces: { offset: number; text: string }[];
  from: number; // offset of the first byte that is shown
  bytes: number;
}

export class RunModel {
  readonly run = signal<Loaded<Run>>(kLoading);
  readonly why = signal<Loaded<Why>>(kLoading);
  readonly events = signal<Event[]>([]);
  readonly output = signal<Output>({ pieces: [], from: 0, bytes: 0 });
  private seq = 0;
  private next = 0; // output byte
  private stop: (() => void) | null = null;
  private timer = 0;
  private closed = false;

  constructor(private readonly id: string) {
    void this.begin();
  }
  close(): void {
    this.closed = true;
    this.stop?.();
    clearTimeout(this.timer);
  }
  /** Reads the record and the reasons again. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    try {
      const [run, reasons] = await Promise.all([get<Run>(`/v1/runs/${this.id}`), get<Why>(`/v1/runs/${this.id}/why`)]);
      batch(() => {
        this.run.value = { kind: "ok", value: run };
        this.why.value = { kind: "ok", value: reasons };
      });
      if (!isEnded(run.state)) this.soon(kWhyMs);
    } catch (error) {
      if (this.run.value.kind !== "ok") this.run.value = { kind: "failed", why: why(error) };
      this.soon(2 * kWhyMs);
    }
  }

  private soon(ms: number): void {
    if (!this.closed && this.timer === 0) this.timer = window.setTimeout(() => void this.refresh(), ms);
  }
  private async begin(): Promise<void> {
    await this.refresh();
    const run = this.run.value;
    if (this.closed || run.kind !== "ok") return;
    await this.readEvents().catch(() => {});
    if (isEnded(run.value.state)) {
      await this.readOutput().catch(() => {});
      return;
    }
    this.stop = follow(
      () => `/v1/runs/${this.id}/events?after=${this.seq}&output=1&output_from=${this.next}`,
      (frame) => {
        if (frame.name === "output") this.addOutput(JSON.parse(frame.data) as OutputSlice);
        else this.addEvent(JSON.parse(frame.data) as Event);
      },
    );
  }
  private async readEvents(): Promise<void> {
    while (this.events.value.length < kEventsMax) {
      const page = await get<{ events: Event[] }>(`/v1/runs/${this.id}/events?limit=${kEventPage}&after=${this.seq}`);
      if (page.events.length === 0) return;
      this.seq = page.events.at(-1)?.seq ?? this.seq;
      this.events.value = [...this.events.value, ...page.events];
    }
  }
  private async readOutput(): Promise<void> {
    for (let slice = await this.readSlice(); slice.text !== ""; slice = await this.readSlice()) this.addOutput(slice);
  }
  private readSlice(): Promise<OutputSlice> {
    return get<OutputSlice>(`/v1/runs/${this.id}/output?from=${this.next}`);
  }
  private addEvent(event: Event): void {
    if (event.seq <= this.seq) return;
    if (event.seq > this.seq + 1) {
      void this.readEvents(); // a gap: read what lies between
      return;
    }
    this.seq = event.seq;
    this.events.value = [...this.events.value, event];
    if (event.state) void this.refresh();
  }
  private addOutput(slice: OutputSlice): void {
    if (slice.next <= this.next) return;
    this.next = slice.next;
    const pieces = [...this.output.value.pieces, { offset: slice.offset, text: cleanText(slice.text) }];
    let chars = 0;
    let keep = pieces.length;
    while (keep > 0 && chars < kOutputCharsMax) chars += pieces[--keep]?.text.length ?? 0;
    const kept = pieces.slice(keep);
    this.output.value = { pieces: kept, from: kept[0]?.offset ?? 0, bytes: slice.bytes };
  }
}
