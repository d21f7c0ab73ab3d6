// The list of runs of one filter. Its order is fixed: rows are updated where they are, and newer runs wait behind "N new" until asked for.
import { batch, signal } from "@preact/signals";
import { get, why } from "./http.ts";
import { onEvent } from "./live.ts";
import type { Loaded, Run, RunSummary, Runs } from "./types.ts";
import { kLoading } from "./types.ts";

const kPage = 200;
const kUpdateMs = 500; // between two reads that events ask for
const kSingleMax = 20; // rows read one by one per update
const kRowsMax = 20_000;

export class RunsModel {
  readonly rows = signal<Loaded<RunSummary[]>>(kLoading);
  /** Runs that match and are newer than the first row. */
  readonly fresh = signal<RunSummary[]>([]);
  readonly more = signal(false);
  private next: string | null = null;
  private loading = false;
  private readonly changed = new Set<string>();
  private timer = 0;
  private readonly stopEvents: () => void;

  constructor(private readonly filter: string) {
    this.stopEvents = onEvent((event) => {
      if (event.run) this.changed.add(event.run);
      this.timer ||= window.setTimeout(() => void this.update(), kUpdateMs);
    });
    void this.reload();
  }
  close(): void {
    this.stopEvents();
    clearTimeout(this.timer);
  }
  async reload(): Promise<void> {
    try {
      const page = await this.read("");
      batch(() => {
        this.rows.value = { kind: "ok", value: page.runs };
        this.fresh.value = [];
        this.setNext(page.next);
      });
    } catch (error) {
      this.rows.value = { kind: "failed", why: why(error) };
    }
  }
  async loadMore(): Promise<void> {
    const rows = this.rows.value;
    if (this.loading || this.next === null || rows.kind !== "ok" || rows.value.length >= kRowsMax) return;
    this.loading = true;
    try {
      const page = await this.read(`&before=${this.next}`);
      batch(() => {
        this.rows.value = { kind: "ok", value: [...rows.value, ...page.runs] };
        this.setNext(page.next);
      });
    } catch {
      // The banner says that the daemon is gone; the next scroll tries again.
    } finally {
      this.loading = false;
    }
  }
  /** Puts the new runs above the others. */
  showFresh(): void {
    const rows = this.rows.value;
    if (rows.kind !== "ok") return;
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
  private async update(): Promise<void> {
    this.timer = 0;
    const rows = this.rows.value;
    if (rows.kind !== "ok") return;
    const changed = [...this.changed];
    this.changed.clear();
    try {
      const head = await this.read("");
      const known = new Map(rows.value.map((run) => [run.id, run]));
      const newer = new Map(head.runs.map((run) => [run.id, run]));
      const firstKnown = head.runs.findIndex((run) => known.has(run.id));
      const fresh = firstKnown < 0 && rows.value.length > 0 ? head.runs : head.runs.slice(0, Math.max(firstKnown, rows.value.length === 0 ? head.runs.length : 0));
      // A row that left the filter, or is further down, is read alone: it keeps its place and shows its true state.
      const single = changed.filter((id) => known.has(id) && !newer.has(id)).slice(0, kSingleMax);
      for (const run of await Promise.all(single.map((id) => get<Run>(`/v1/runs/${id}`)))) newer.set(run.id, run);
      batch(() => {
        this.rows.value = { kind: "ok", value: rows.value.map((run) => newer.get(run.id) ?? run) };
        this.fresh.value = fresh.filter((run) => !known.has(run.id));
      });
    } catch {
      for (const id of changed) this.changed.add(id);
      this.timer ||= window.setTimeout(() => void this.update(), 4 * kUpdateMs);
    }
  }
}
