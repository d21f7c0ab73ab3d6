// The list of runs of one filter. Its order is fixed: rows are updated where they are, and newer runs wait behind "N new" until asked for.
// While rows are selected, no row comes or goes.
import { batch, signal } from "@preact/signals";
import { get, why } from "./http.ts";
import { onEvent, onRecovery } from "./live.ts";
import type { Loaded, Run, RunSummary, Runs, Total } from "./types.ts";
import { kLoading } from "./types.ts";

const kPage = 200;
const kUpdateMs = 500; // between two reads that events ask for
const kRestFactor = 10; // a search that takes long rests so many times as long: it costs the daemon at most a tenth of a thread
const kRestMsMax = 10_000;
const kTotalMs = 5000; // between two counts of the matches
const kSingleMax = 20; // rows read one by one per update
const kRowsMax = 20_000;

export class RunsModel {
  readonly rows = signal<Loaded<RunSummary[]>>(kLoading);
  /** Runs that match and are newer than the first row. */
  readonly fresh = signal<RunSummary[]>([]);
  readonly more = signal(false);
  /** How many runs match; null: not counted yet. */
  readonly total = signal<Total | null>(null);
  readonly selected = signal<ReadonlySet<string>>(new Set());
  private countedAt = 0;
  private restMs = 0;
  private next: string | null = null;
  private loading = false;
  private readonly changed = new Set<string>();
  private timer = 0;
  private readonly stopEvents: () => void;
  private readonly stopRecovery = onRecovery(() => (this.rows.peek().kind === "ok" ? this.later(0) : void this.reload()));

  constructor(private readonly filter: string) {
    this.stopEvents = onEvent((event) => {
      if (event.run) this.changed.add(event.run);
      this.later(kUpdateMs);
    });
    void this.reload();
  }
  close(): void {
    this.stopEvents();
    this.stopRecovery();
    clearTimeout(this.timer);
  }
  toggle(id: string): void {
    const next = new Set(this.selected.value);
    if (!next.delete(id)) next.add(id);
    this.selected.value = next;
  }
  clearSelection(): void {
    this.selected.value = new Set();
  }
  selectedRuns(): RunSummary[] {
    const rows = this.rows.value;
    const { selected } = this;
    return rows.kind === "ok" && selected.value.size > 0 ? rows.value.filter((run) => selected.value.has(run.id)) : [];
  }
  async reload(): Promise<void> {
    try {
      const page = await this.readHead();
      batch(() => {
        this.rows.value = { kind: "ok", value: page.runs };
        this.fresh.value = [];
        this.setNext(page.next);
      });
    } catch (error) {
      if (this.rows.value.kind !== "ok") this.rows.value = { kind: "failed", why: why(error) };
    }
  }
  async loadMore(): Promise<void> {
    const rows = this.rows.value;
    if (this.loading || this.next === null || rows.kind !== "ok" || rows.value.length >= kRowsMax) return;
    this.loading = true;
    try {
      const page = await this.read(`&before=${this.next}`);
      batch(() => {
        const now = this.rows.value.kind === "ok" ? this.rows.value.value : rows.value; // rows may have changed meanwhile
        this.rows.value = { kind: "ok", value: [...now, ...page.runs] };
        this.setNext(page.next);
      });
      if (page.runs.length === 0 && page.next !== null) window.setTimeout(() => void this.loadMore(), 0); // no match among those that were examined
    } catch {
      // The banner says that the daemon is gone; the next scroll tries again.
    } finally {
      this.loading = false;
    }
  }
  /** Puts the new runs above the others. */
  showFresh(): void {
    const rows = this.rows.value;
    if (rows.kind !== "ok" || this.selected.value.size > 0) return;
    batch(() => {
      this.rows.value = { kind: "ok", value: [...this.fresh.value, ...rows.value] };
      this.fresh.value = [];
    });
  }

  private setNext(next: string | null): void {
    this.next = next;
    this.more.value = next !== null;
  }
  private read(more: string): Promise<Runs> {
    return get<Runs>(`/v1/runs?limit=${kPage}${this.filter ? `&${this.filter}` : ""}${more}`);
  }
  /** The first page; now and then also with the number of matches. */
  private async readHead(): Promise<Runs> {
    const began = performance.now();
    const counts = began - this.countedAt > kTotalMs || this.countedAt === 0;
    const page = await this.read(counts ? "&total=true" : "");
    this.restMs = kRestFactor * (performance.now() - began);
    if (page.total) {
      this.countedAt = performance.now();
      this.total.value = page.total;
    }
    return page;
  }
  private later(ms: number): void {
    this.timer ||= window.setTimeout(() => void this.update(), Math.max(ms, Math.min(this.restMs, kRestMsMax)));
  }
  private async update(): Promise<void> {
    this.timer = 0;
    if (this.rows.value.kind !== "ok") return;
    const changed = [...this.changed];
    this.changed.clear();
    try {
      const head = await this.readHead();
      const rows = this.rows.value; // as they are now: a page may have been added meanwhile
      if (rows.kind !== "ok") return;
      const known = new Map(rows.value.map((run) => [run.id, run]));
      const newer = new Map(head.runs.map((run) => [run.id, run]));
      const firstKnown = head.runs.findIndex((run) => known.has(run.id));
      const fresh = firstKnown < 0 && rows.value.length > 0 ? head.runs : head.runs.slice(0, Math.max(firstKnown, rows.value.length === 0 ? head.runs.length : 0));
      // A row that left the filter, or is further down, is read alone: it keeps its place and shows its true state.
      const single = changed.filter((id) => known.has(id) && !newer.has(id)).slice(0, kSingleMax);
      for (const run of await Promise.all(single.map((id) => get<Run>(`/v1/runs/${id}`)))) newer.set(run.id, run);
      const now = this.rows.value;
      if (now.kind !== "ok") return;
      batch(() => {
        this.rows.value = { kind: "ok", value: now.value.map((run) => newer.get(run.id) ?? run) };
        this.fresh.value = fresh.filter((run) => !known.has(run.id));
      });
    } catch {
      for (const id of changed) this.changed.add(id);
      this.later(4 * kUpdateMs);
    }
  }
}
