// The batches that are under way, with their progress, and the questions before one begins.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { batches, beginBatch, countMatching, dismiss, followBatches, isOpen, readBatches, stopBatch } from "../batches_model.ts";
import type { Action } from "../batches_model.ts";
import { some } from "../format.ts";
import type { Batch, RunFilter } from "../types.ts";
import { act, confirm } from "./confirm.tsx";
import { Ago, Bar, RunLink } from "./pieces.tsx";
import { Failed } from "./states.tsx";

const kWords: Record<Action, { verb: string; did: string; note: string }> = {
  cancel: { verb: "Cancel", did: "cancelled", note: "Their processes are ended, and so are their child runs." },
  retry: { verb: "Retry", did: "submitted again", note: "Each is submitted again as a new run, with the same arguments." },
};

/** Counts the runs that match, asks, and begins the batch. */
export function askForBatch(action: Action, filter: RunFilter): void {
  const words = kWords[action];
  void act(`Counting the runs to ${action}`, async () => {
    const matched = await countMatching(action, filter);
    if (matched === 0) return `There is no run to ${action} among those that match.`;
    confirm({
      title: `${words.verb} ${some(matched, "run")}?`,
      body: (
        <>
          <p><strong>{some(matched, "run")}</strong> match now. {words.note} Runs that are submitted later are not included.</p>
          <p>The daemon goes on when this page is closed. If another number of runs matches when you confirm, nothing happens.</p>
        </>
      ),
      action: `${words.verb} ${some(matched, "run")}`,
      danger: action === "cancel",
      run: async () => {
        const batch = await beginBatch(action, filter, matched);
        return `Batch ${batch.id} has begun.`;
      },
    });
    return `${some(matched, "run")} can be ${words.did}.`;
  });
}

function stop(batch: Batch): void {
  void act("Stop", async () => {
    await stopBatch(batch.id);
    await readBatches();
    return `Batch ${batch.id} stops; what was done stays.`;
  });
}

function stateText(batch: Batch): string {
  if (batch.state === "running") return batch.node === null ? "waits for a daemon" : "under way";
  return batch.state;
}

function OneBatch({ batch }: { batch: Batch }): JSX.Element {
  const words = kWords[batch.action];
  const acted = batch.matched - batch.left;
  return (
    <li class="batch">
      <div class="batch-head">
        <strong>{words.verb} {some(batch.matched, "run")}</strong>
        <span class={`batch-state ${batch.state}`}>{stateText(batch)}</span>
        <span class="muted">begun <Ago at={batch.created_at} /></span>
        <span class="batch-act">
          {isOpen(batch) ? <button type="button" class="quiet" disabled={batch.state === "stopping"} onClick={() => stop(batch)} aria-label={`Stop batch ${batch.id}`}>Stop</button>
            : <button type="button" class="quiet" onClick={() => dismiss(batch.id)} aria-label={`Dismiss batch ${batch.id}`}>Dismiss</button>}
        </span>
      </div>
      <Bar part={acted} whole={batch.matched} label={`${acted} of ${batch.matched}`} kind={batch.failed > 0 ? "full" : "busy"} />
      <p class="batch-counts num">
        {batch.done} {words.did}{batch.skipped > 0 && <> · {batch.skipped} had ended before</>}{batch.failed > 0 && <> · <span class="error">{batch.failed} failed</span></>}{batch.left > 0 && <> · {batch.left} left</>}
      </p>
      {batch.failures && batch.failures.length > 0 && (
        <details>
          <summary>{batch.failures.length < batch.failed ? `The first ${batch.failures.length} of ${batch.failed} failures` : some(batch.failed, "failure")}</summary>
          <ul class="rows">{batch.failures.map((each) => <li key={each.run} class="row"><RunLink id={each.run} /><span class="error">{each.error}</span></li>)}</ul>
        </details>
      )}
    </li>
  );
}

export function BatchList(): JSX.Element | null {
  useEffect(() => followBatches(), []);
  const seen = batches.value;
  if (seen.kind === "failed") return <Failed what="the batches" why={seen.why} retry={() => void readBatches()} />;
  if (seen.kind !== "ok" || seen.value.length === 0) return null;
  const open = seen.value.filter(isOpen);
  return (
    <section class="card batches" aria-label="Batches">
      <p class="visually-hidden" role="status">{open.length > 0 ? `${some(open.length, "batch", "batches")} under way` : "No batch is under way"}</p>
      <ul>{seen.value.map((batch) => <OneBatch key={batch.id} batch={batch} />)}</ul>
    </section>
  );
}
