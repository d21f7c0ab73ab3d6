// Batches: actions on all runs that match a filter. The daemon carries them; this page only reads how far they are.
import { signal } from "@preact/signals";
import { change, get, why } from "./http.ts";
import { onEvent } from "./live.ts";
import type { Batch, Batches, Loaded, RunFilter } from "./types.ts";
import { kLoading } from "./types.ts";

const kReadEveryMs = 1000; // while one is under way
const kShown = 20;
const kKept = "stint.batches"; // ids of those that this tab began

/** Newest first; of those that are shown, with their failures. */
export const batches = signal<Loaded<Batch[]>>(kLoading);

export const isOpen = (batch: Batch): boolean => batch.ended_at === null;

function kept(): string[] {
  return (sessionStorage.getItem(kKept) ?? "").split(" ").filter(Boolean);
}
function keep(ids: string[]): void {
  sessionStorage.setItem(kKept, ids.slice(-kShown).join(" "));
}

/** Hides a batch that has ended. */
export function dismiss(id: string): void {
  keep(kept().filter((each) => each !== id));
  void readBatches();
}

let timer = 0;
let reading = false;
let again = false;

/** Reads those that are under way, and those that this tab began. */
export async function readBatches(): Promise<void> {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  clearTimeout(timer);
  try {
    const page = await get<Batches>(`/v1/batches?limit=${kShown}`);
    const own = new Set(kept());
    const wanted = page.batches.filter((batch) => isOpen(batch) || own.has(batch.id));
    const shown = await Promise.all(wanted.map((batch) => (batch.failed > 0 ? get<Batch>(`/v1/batches/${batch.id}`) : batch)));
    batches.value = { kind: "ok", value: shown };
    if (shown.some(isOpen)) timer = window.setTimeout(() => void readBatches(), kReadEveryMs);
  } catch (error) {
    if (batches.value.kind !== "ok") batches.value = { kind: "failed", why: why(error) };
    timer = window.setTimeout(() => void readBatches(), 3 * kReadEveryMs);
  } finally {
    reading = false;
  }
  if (again) {
    again = false;
    void readBatches();
  }
}

/** Follows batches while a page shows them; returns how to stop. */
export function followBatches(): () => void {
  void readBatches();
  const stop = onEvent((event) => {
    if (event.cause === "batch_began" || event.cause === "batch_ended") void readBatches();
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}

export type Action = Batch["action"];

export async function countMatching(action: Action, filter: RunFilter): Promise<number> {
  return (await change<{ matched: number }>("POST", "/v1/batches", { action, filter, dry_run: true })).matched;
}

export async function beginBatch(action: Action, filter: RunFilter, expect: number): Promise<Batch> {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");
  const batch = await change<Batch>("POST", "/v1/batches", { action, filter, expect }, key);
  keep([...kept(), batch.id]);
  await readBatches();
  return batch;
}

export const stopBatch = (id: string): Promise<Batch> => change<Batch>("POST", `/v1/batches/${id}/cancel`);
