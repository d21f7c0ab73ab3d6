// One run: its record, why it waits, its timeline, its transcript and its newest events. The transcript is read in pages from the place
// where the last one ended: an event only says that it is time to read on.
import { batch, signal } from "@preact/signals";
import { get, why } from "./http.ts";
import { cleanText } from "./format.ts";
import { onRecovery } from "./live.ts";
import { follow } from "./stream.ts";
import type { Event, Limit, Loaded, Receipt, Run, RunSummary, Runs, Timeline, Transcript, TranscriptItem, Why } from "./types.ts";
import { isEnded, kLoading } from "./types.ts";

const kEventPage = 200;
const kTextKept = 400_000; // characters in the page; older ones leave it
const kItemsKept = 1500;
const kTailEvents = 400; // a longer history is shown from here on
const kTailBytes = 128 << 10;
const kReadMs = 1000;
const kGapMs = 250; // between two reads that events ask for

export interface Said {
  items: (TranscriptItem & { key: number })[];
  from: number; // first byte of output that is shown
  seq: number; // events up to here were skipped or have left the page
  bytes: number;
  total: number; // items so far: how many are new for a reader who scrolled up
}

export class RunModel {
  readonly run = signal<Loaded<Run>>(kLoading);
  readonly why = signal<Loaded<Why>>(kLoading);
  readonly timeline = signal<Loaded<Timeline>>(kLoading);
  readonly said = signal<Loaded<Said>>(kLoading);
  readonly events = signal<Loaded<Event[]>>(kLoading);
  readonly held = signal<Loaded<Limit[]>>(kLoading);
  readonly children = signal<Loaded<RunSummary[]>>(kLoading);
  readonly receipt = signal<Receipt | null>(null); // of a cancel from this page
  private place = ""; // in the transcript; empty: not chosen yet
  private seq = 0;
  private stop: (() => void) | null = null;
  private timer = 0;
  private closed = false;
  private reading: Promise<void> | null = null;
  private again = false;
  private readonly stopRecovery = onRecovery(() => void this.refresh());

  constructor(private readonly id: string) {
    void this.refresh();
  }
  close(): void {
    this.closed = true;
    this.stopRecovery();
    this.stop?.();
    clearTimeout(this.timer);
  }
  /** Reads everything that may have changed; joins a read that is under way, and then reads once more. */
  refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.reading) {
      this.again = true;
      return this.reading;
    }
    this.reading = this.read().finally(() => {
      this.reading = null;
      this.begin();
      const run = this.run.value;
      const live = run.kind !== "ok" || !isEnded(run.value.state);
      if (this.again || live) this.soon(this.again ? kGapMs : kReadMs);
      this.again = false;
    });
    return this.reading;
  }
  /** Shows the transcript from its beginning. */
  fromTheBeginning(): void {
    this.place = "0.0";
    this.said.value = kLoading;
    void this.readOn();
  }
  /** Adds a page of older events. */
  async olderEvents(): Promise<void> {
    const known = this.events.value;
    if (known.kind !== "ok" || !known.value[0] || known.value[0].seq <= 1) return;
    const first = known.value[0].seq;
    const count = Math.min(kEventPage, first - 1);
    const page = await get<{ events: Event[] }>(this.path(`/events?limit=${count}&after=${first - 1 - count}`));
    this.events.value = { kind: "ok", value: [...page.events, ...known.value] };
  }

  private path(rest: string): string {
    return `/v1/runs/${this.id}${rest}`;
  }
  private soon(ms: number): void {
    if (!this.closed && this.timer === 0) this.timer = window.setTimeout(() => void this.refresh(), ms);
  }
  private async read(): Promise<void> {
    try {
      const [run, reasons] = await Promise.all([get<Run>(this.path("")), get<Why>(this.path("/why"))]);
      batch(() => {
        this.run.value = { kind: "ok", value: run };
        this.why.value = { kind: "ok", value: reasons };
      });
      await Promise.all([this.readTimeline(), this.readOn(), this.readEvents(), this.readHeld(run), this.readChildren()]);
    } catch (error) {
      if (this.run.value.kind !== "ok") this.run.value = { kind: "failed", why: why(error) };
    }
  }
  private async readTimeline(): Promise<void> {
    try {
      this.timeline.value = { kind: "ok", value: await get<Timeline>(this.path("/timeline")) };
    } catch (error) {
      if (this.timeline.value.kind !== "ok") this.timeline.value = { kind: "failed", why: why(error) };
    }
  }
  /** Permits that it holds now, from the limits' own lists. */
  private async readHeld(run: Run): Promise<void> {
    try {
      const all = run.state === "running" ? (await get<{ limits: Limit[] }>("/v1/limits")).limits : [];
      this.held.value = { kind: "ok", value: all.filter((limit) => limit.holders.some((holder) => holder.run === this.id)) };
    } catch (error) {
      this.held.value = { kind: "failed", why: why(error) };
    }
  }
  private async readChildren(): Promise<void> {
    try {
      this.children.value = { kind: "ok", value: (await get<Runs>(`/v1/runs?parent=${this.id}&limit=50`)).runs };
    } catch (error) {
      if (this.children.value.kind !== "ok") this.children.value = { kind: "failed", why: why(error) };
    }
  }
  private begin(): void {
    const run = this.run.value;
    if (this.closed || this.stop || run.kind !== "ok" || isEnded(run.value.state)) return;
    this.stop = follow(
      () => this.path(`/events?after=${this.seq}`),
      (frame) => {
        this.seq = Math.max(this.seq, (JSON.parse(frame.data) as Event).seq);
        this.again = true;
        if (!this.reading) this.soon(0);
      },
    );
  }
  private async readEvents(): Promise<void> {
    const run = this.run.value;
    if (run.kind !== "ok") return;
    const known = this.events.value.kind === "ok" ? this.events.value.value : [];
    const after = known.at(-1)?.seq ?? Math.max(0, run.value.seq - kEventPage);
    if (this.events.value.kind === "ok" && after >= run.value.seq) return;
    try {
      const page = await get<{ events: Event[] }>(this.path(`/events?limit=1000&after=${after}`));
      this.seq = Math.max(this.seq, page.events.at(-1)?.seq ?? after);
      this.events.value = { kind: "ok", value: [...known, ...page.events].slice(-10 * kEventPage) };
    } catch (error) {
      if (this.events.value.kind !== "ok") this.events.value = { kind: "failed", why: why(error) };
    }
  }
  /** The place from which a long transcript is shown at first: near its end. */
  private async chooseBegin(): Promise<void> {
    const run = this.run.value;
    if (run.kind !== "ok") throw new Error("the run was not read");
    const seq = Math.max(0, run.value.seq - kTailEvents);
    const end = await get<Transcript>(this.path(`/transcript?from=${run.value.seq}.999999999999999`));
    const byte = Math.max(0, end.bytes - kTailBytes);
    this.place = end.bytes > 2 * kTailBytes || seq > 0 ? `${seq}.${byte}` : "0.0";
  }
  private async readOn(): Promise<void> {
    try {
      if (this.place === "") await this.chooseBegin();
      for (let more = true; more && !this.closed; ) {
        const place = this.place;
        const page = await get<Transcript>(this.path(`/transcript?from=${place}`));
        if (place !== this.place) continue; // another read went on, or the transcript is shown from its beginning now
        this.add(page);
        more = page.more && page.next !== place;
        this.place = page.next;
      }
    } catch (error) {
      if (this.said.value.kind !== "ok") this.said.value = { kind: "failed", why: why(error) };
    }
  }
  private add(page: Transcript): void {
    const [seq, byte] = this.place.split(".").map(Number);
    const known: Said = this.said.value.kind === "ok" ? this.said.value.value : { items: [], from: byte ?? 0, seq: seq ?? 0, bytes: 0, total: 0 };
    if (page.items.length === 0 && this.said.value.kind === "ok" && known.bytes === page.bytes) return;
    const fresh = page.items.map((item, at) => ({ ...item, key: known.total + at, ...(item.text === undefined ? {} : { text: cleanText(item.text) }) }));
    const all = [...known.items, ...fresh];
    let keep = all.length;
    let chars = 0;
    while (keep > 0 && all.length - keep < kItemsKept && chars < kTextKept) chars += all[--keep]?.text?.length ?? 0;
    const items = all.slice(keep);
    const gone = all.slice(0, keep);
    const goneSeq = gone.reduce((most, item) => Math.max(most, item.seq ?? 0), known.seq);
    const from = keep > 0 ? (items[0]?.byte ?? known.from) : known.from;
    this.said.value = { kind: "ok", value: { items, from, seq: goneSeq, bytes: page.bytes, total: known.total + fresh.length } };
  }
}
