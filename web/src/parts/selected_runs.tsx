// Actions on the runs that are selected in the list: one request each, a few at once, and each failure is reported.
import { change, why } from "../http.ts";
import { some } from "../format.ts";
import type { RunsModel } from "../runs_model.ts";
import type { RunSummary } from "../types.ts";
import { isEnded } from "../types.ts";
import { confirm } from "./confirm.tsx";

const kAtOnce = 4; // a browser has about six connections to the daemon
const kFailuresShown = 5;

type Action = "cancel" | "retry";

const applies = (action: Action, run: RunSummary): boolean => (action === "retry" ? isEnded(run.state) : !isEnded(run.state) && run.state !== "in_doubt");

export function actOnSelected(action: Action, selected: RunSummary[], model: RunsModel): void {
  const runs = selected.filter((run) => applies(action, run));
  const left = selected.length - runs.length;
  const verb = action === "cancel" ? "Cancel" : "Retry";
  confirm({
    title: `${verb} ${some(runs.length, "selected run")}?`,
    body: <p>{action === "cancel" ? "Their processes are ended, and so are their child runs." : "Each is submitted again as a new run."}{left > 0 && ` ${some(left, "other selected run")} can't: ${action === "cancel" ? "ended, or in doubt" : "not ended"}.`}</p>,
    action: `${verb} ${some(runs.length, "run")}`,
    danger: action === "cancel",
    run: async () => {
      const failures: string[] = [];
      const waiting = [...runs];
      const work = async (): Promise<void> => {
        for (let run = waiting.shift(); run; run = waiting.shift()) {
          try {
            await change("POST", `/v1/runs/${run.id}/${action}`);
          } catch (error) {
            failures.push(`${run.id}: ${why(error)}`);
          }
        }
      };
      await Promise.all(Array.from({ length: kAtOnce }, work));
      model.clearSelection();
      const done = `${some(runs.length - failures.length, "run")} ${action === "cancel" ? "cancelled" : "submitted again"}.`;
      if (failures.length === 0) return done;
      throw new Error(`${done} ${failures.length} failed: ${failures.slice(0, kFailuresShown).join("; ")}${failures.length > kFailuresShown ? " …" : ""}`);
    },
  });
}
