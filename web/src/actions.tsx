// What a person can do with a run, with the same words on every page.
import { change } from "./http.ts";
import { lengthText, some } from "./format.ts";
import { act, confirm } from "./parts/confirm.tsx";
import { go, runAddress } from "./route.ts";
import type { Receipt, RunSummary, State, Submitted } from "./types.ts";

export function receiptText(receipt: Receipt): string {
  let text = `${receipt.id}: ${receipt.state === "cancelled" ? "cancelled" : `has ended, ${receipt.state}`}`;
  if (receipt.processes_ended > 0) text += `; ${some(receipt.processes_ended, "process", "processes")} ended in ${lengthText(receipt.ending_ms)}`;
  if (receipt.streams_closed > 0) text += `; ${some(receipt.streams_closed, "stream")} closed`;
  for (const each of receipt.permits_returned) text += `; permit of ${each} returned`;
  for (const each of receipt.permits_held) text += `; still holds ${each}`;
  if (receipt.reached.length > 0) text += `; and ${some(receipt.reached.length, "child run")} with it`;
  return `${text} (${lengthText(receipt.took_ms)})`;
}

/** `keep`: where the receipt stays when the dialog is closed. */
export function cancelRun(run: RunSummary, done: () => void = () => {}, keep?: { value: Receipt | null }): void {
  confirm({
    title: "Cancel this run?",
    body: <p><code>{run.id}</code> {run.title || run.agent}. Its processes are ended, and so are its child runs. You get a receipt when all of them are gone.</p>,
    action: "Cancel the run",
    danger: true,
    run: async () => {
      const receipt = await change<Receipt>("POST", `/v1/runs/${run.id}/cancel`);
      if (keep) keep.value = receipt;
      done();
      return receiptText(receipt);
    },
  });
}

export function retryRun(run: RunSummary): void {
  void act("Retry", async () => {
    const made = await change<Submitted>("POST", `/v1/runs/${run.id}/retry`);
    go(runAddress(made.id));
    return `Submitted again as ${made.id}.`;
  });
}

export async function answerRun(run: RunSummary, done: () => void): Promise<string> {
  const after = await change<{ state: State }>("POST", `/v1/runs/${run.id}/answer`);
  done();
  return `${run.id} goes on: ${after.state}.`;
}

const kResolutions = { done: "the work was done: count the run as succeeded", rerun: "the work was not done: run it again", discard: "either way: count the run as cancelled" };
export type Resolution = keyof typeof kResolutions;
export const resolutions = Object.entries(kResolutions) as [Resolution, string][];

export function resolveRun(run: RunSummary, as: Resolution, done: () => void): void {
  confirm({
    title: `Resolve as ${as}?`,
    body: <p><code>{run.id}</code>: {kResolutions[as]}.</p>,
    action: `Resolve: ${as}`,
    run: async () => {
      const after = await change<{ state: State }>("POST", `/v1/runs/${run.id}/resolve`, { as });
      done();
      return `${run.id}: ${after.state}.`;
    },
  });
}
