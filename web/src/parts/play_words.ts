// What happened in a sandbox, in words; and which colour a task has everywhere on the page.
import { some } from "../format.ts";
import type { Sandbox, SandboxEvent, SandboxKind } from "../types.ts";

const kColours = 8;

/** A class that sets the colour of a task. */
export function colourOf(sandbox: Sandbox, task: string): string {
  const at = sandbox.tasks.findIndex((each) => each.name === task);
  return `t${Math.max(0, at) % kColours}`;
}

/** A time of the sandbox's own clock. */
export function momentText(ms: number): string {
  return `${(ms / 1000).toFixed(ms % 100 === 0 ? 1 : 2)} s`;
}

const kindOf = (sandbox: Sandbox, name: string | undefined): SandboxKind | undefined => sandbox.resources.find((each) => each.name === name)?.kind;

function verbs(kind: SandboxKind | undefined): [string, string] {
  if (kind === "mutex") return ["locks", "unlocks"];
  if (kind === "pool") return ["borrows a connection of", "gives one back to"];
  return ["enters", "leaves"];
}

export function eventText(sandbox: Sandbox, event: SandboxEvent): string {
  const { task = "", resource = "", units = 1 } = event;
  const [enters, leaves] = verbs(kindOf(sandbox, resource));
  const several = units > 1 ? ` with ${units} units` : "";
  switch (event.kind) {
    case "waits": return `${task} waits in line for ${resource}${units > 1 ? ` and needs ${units} units` : ""}`;
    case "granted": return `${task} ${enters} ${resource}${several}`;
    case "released": return `${task} ${leaves} ${resource}${several}`;
    case "left": return `${task} gives up and leaves the line for ${resource}`;
    case "refused": return `${task} is refused: ${event.detail ?? ""}`;
    case "resized": return `${resource} has ${some(units, "unit")} from now on`;
    case "closed": return `${resource} is closed`;
    case "made": return `${resource} makes a connection`;
    case "reused": return `${resource} lends a connection again`;
    case "discarded": return `a connection of ${resource} is thrown away`;
    case "token": return event.detail === "leaked" ? "the model makes a token that nothing reads: it leaks" : "the model makes a token, and it is read";
  }
}

/** The events of the last step that had any. */
export function newest(sandbox: Sandbox): SandboxEvent[] {
  const last = sandbox.events.at(-1);
  return last ? sandbox.events.filter((event) => event.step === last.step) : [];
}
