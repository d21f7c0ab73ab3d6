// Controls of the playground: back, step, play, speed and seed; and everything that can be done to a sandbox by hand.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { asks, back, begin, busy, forward, kOwn, kSpeeds, pause, perform, place, play, playing, speed, toEnd, toStart } from "../playground_model.ts";
import type { Sandbox } from "../types.ts";
import { momentText } from "./play_words.ts";

const kPriorities = [3, 2, 1, 0, -1, -2, -3, -4];
const kAdvances: [string, number][] = [["+ 0.1 s", 100], ["+ 1 s", 1000], ["+ 10 s", 10_000]];

const kIcons = { start: "M2 2h2v10H2z M13 2v10L5 7z", back: "M11 2v10L3 7z", play: "M3 1.5v11L12 7z", pause: "M3 2h3v10H3z M8 2h3v10H8z", step: "M3 2v10l8-5z", end: "M1 2v10l8-5z M10 2h2v10h-2z" };

function Icon({ name }: { name: keyof typeof kIcons }): JSX.Element {
  return <svg class="icon" width="14" height="14" viewBox="0 0 14 14" aria-hidden="true"><path d={kIcons[name]} /></svg>;
}

/** Keeps the focus when it is off: a disabled button would swallow the keys of the page. */
function Move({ off, go, label, children }: { off: boolean; go: () => Promise<void>; label?: string; children: ComponentChildren }): JSX.Element {
  return <button type="button" aria-disabled={off} aria-label={label} onClick={() => void (off || go())}>{children}</button>;
}

export function Transport({ sandbox }: { sandbox: Sandbox }): JSX.Element {
  const isLocked = asks.value;
  const isOwn = place.value?.name === kOwn; // nothing is left to play after an action by hand
  const isOver = sandbox.done && sandbox.step > 0;
  return (
    <div class="transport" role="group" aria-label="Play">
      <Move off={sandbox.step === 0} go={toStart} label="Back to the start"><Icon name="start" /></Move>
      <Move off={sandbox.step === 0} go={back}><Icon name="back" />Back</Move>
      {!isOwn && <>{playing.value ? <button type="button" class="primary play" onClick={pause}><Icon name="pause" />Pause</button>
        : <button type="button" class="primary play" onClick={() => void play()} disabled={isLocked}><Icon name="play" />{isOver ? "Play again" : "Play"}</button>}
      <Move off={isLocked || sandbox.done} go={forward}>Step<Icon name="step" /></Move>
      <Move off={isLocked || sandbox.done} go={toEnd} label="To the end"><Icon name="end" /></Move>
      <label>Speed <select value={String(speed.value)} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>{kSpeeds.map((each) => <option key={each} value={String(each)}>{each === 0.5 ? "½" : each}×</option>)}</select></label></>}
      <span class="clock num" aria-label={`Clock: ${momentText(sandbox.now_ms)}`}>{momentText(sandbox.now_ms)}</span>
    </div>
  );
}

export function Seed(): JSX.Element {
  const seed = place.value?.seed ?? null;
  const change = (next: number | null): void => begin({ seed: next, step: 0, byHand: [] });
  return (
    <div class="seed">
      <label><input type="checkbox" checked={seed !== null} onChange={(event) => change(event.currentTarget.checked ? 1 : null)} /> Shuffle what is ready at the same moment</label>
      {seed !== null && (
        <>
          <label>Seed <input type="number" min={0} max={9007199254740991} value={seed} onChange={(event) => change(Math.max(0, Math.floor(Number(event.currentTarget.value) || 0)))} /></label>
          <button type="button" onClick={() => change(Math.floor(Math.random() * 1000))}>Another</button>
        </>
      )}
    </div>
  );
}

/** The next letter that no task has. */
function nextName(sandbox: Sandbox): string {
  const taken = sandbox.tasks.map((each) => each.name);
  for (let number = 0; ; ++number) {
    const name = String.fromCharCode(97 + (number % 26)) + (number >= 26 ? String(Math.floor(number / 26)) : "");
    if (!taken.includes(name)) return name;
  }
}

function Choose({ label, value, among, onChange }: { label: string; value: string; among: string[]; onChange: (value: string) => void }): JSX.Element {
  return <label>{label} <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>{among.map((each) => <option key={each}>{each}</option>)}</select></label>;
}

function Count({ label, value, least, onChange }: { label: string; value: number; least: number; onChange: (value: number) => void }): JSX.Element {
  return <label>{label} <input type="number" min={least} max={100} value={value} onInput={(event) => onChange(Number(event.currentTarget.value))} /></label>;
}

function AcquireForm({ sandbox, resource }: { sandbox: Sandbox; resource: string }): JSX.Element {
  const next = nextName(sandbox);
  const [given, setGiven] = useState("");
  const [weight, setWeight] = useState(1);
  const [priority, setPriority] = useState("0");
  const acquire = (event: Event): void => {
    event.preventDefault();
    void perform({ do: "acquire", task: given || next, resource, weight, priority: Number(priority) }).then(() => setGiven(""));
  };
  const kind = sandbox.resources.find((each) => each.name === resource)?.kind;
  return (
    <form class="hand" onSubmit={acquire}>
      <h3>A task arrives</h3>
      <label>Name <input value={given} placeholder={next} maxLength={32} pattern="[A-Za-z0-9_\-]+" size={8} onInput={(event) => setGiven(event.currentTarget.value)} /></label>
      {kind === "semaphore" && <Count label="Weight" value={weight} least={1} onChange={setWeight} />}
      {(kind === "semaphore" || kind === "mutex") && <Choose label="Priority" value={priority} among={kPriorities.map(String)} onChange={setPriority} />}
      <button type="submit" class="primary" disabled={busy.value}>Acquire</button>
    </form>
  );
}

function TaskForm({ sandbox, resource }: { sandbox: Sandbox; resource: string }): JSX.Element | null {
  const names = sandbox.tasks.filter((each) => each.state !== "cancelled").map((each) => each.name);
  const holder = sandbox.resources.find((each) => each.name === resource)?.holders[0]?.task;
  const [chosen, setChosen] = useState("");
  const task = names.includes(chosen) ? chosen : (holder ?? names[0] ?? "");
  if (names.length === 0) return null;
  return (
    <div class="hand" role="group" aria-label="A task">
      <h3>A task</h3>
      <Choose label="Task" value={task} among={names} onChange={setChosen} />
      <button type="button" onClick={() => void perform({ do: "release", task, resource })}>Release</button>
      <button type="button" class="danger" onClick={() => void perform({ do: "cancel", task })}>Cancel</button>
    </div>
  );
}

function ResourceForm({ sandbox, resource }: { sandbox: Sandbox; resource: string }): JSX.Element {
  const shown = sandbox.resources.find((each) => each.name === resource);
  const [capacity, setCapacity] = useState<number | null>(null);
  const [bypass, setBypass] = useState<number | null>(null);
  return (
    <div class="hand" role="group" aria-label={`Change ${resource}`}>
      <h3>{resource}</h3>
      {shown?.kind === "semaphore" && (
        <>
          <Count label="Capacity" value={capacity ?? shown.capacity ?? 0} least={0} onChange={setCapacity} />
          <button type="button" onClick={() => void perform({ do: "resize", resource, capacity: capacity ?? shown.capacity ?? 0 })}>Resize</button>
          <Count label="May overtake" value={bypass ?? shown.bypass_max ?? 0} least={0} onChange={setBypass} />
          <button type="button" onClick={() => void perform({ do: "bypass", resource, bypass_max: bypass ?? shown.bypass_max ?? 0 })}>Set bypass</button>
        </>
      )}
      <button type="button" class="danger" onClick={() => void perform({ do: "close", resource })}>Close</button>
    </div>
  );
}

/** Another resource for an own sandbox; what was done so far is done again. */
function addResource(sandbox: Sandbox, kind: "semaphore" | "mutex" | "pool"): void {
  const at = place.value;
  if (!at) return;
  const same = sandbox.resources.filter((each) => each.kind === kind).length;
  const name = { semaphore: "garage", mutex: "lock", pool: "pool" }[kind] + (same > 0 ? `-${same + 1}` : "");
  begin({ resources: [...at.resources, { name, kind, ...(kind === "mutex" ? {} : { capacity: 2 }) }] });
}

export function ByHand({ sandbox }: { sandbox: Sandbox }): JSX.Element {
  const names = sandbox.resources.filter((each) => each.kind !== "server").map((each) => each.name);
  const [chosen, setChosen] = useState("");
  const resource = names.includes(chosen) ? chosen : (names[0] ?? "");
  const isOwn = place.value?.name === kOwn;
  return (
    <div class="by-hand">
      {names.length > 1 && <p class="hand"><Choose label="Where" value={resource} among={names} onChange={setChosen} /></p>}
      {resource && <AcquireForm key={`a ${resource}`} sandbox={sandbox} resource={resource} />}
      {resource && <TaskForm sandbox={sandbox} resource={resource} />}
      <div class="hand" role="group" aria-label="The clock">
        <h3>The clock</h3>
        {kAdvances.map(([text, ms]) => <button key={ms} type="button" onClick={() => void perform({ do: "advance", ms })}>{text}</button>)}
      </div>
      {resource && <ResourceForm key={`r ${resource}`} sandbox={sandbox} resource={resource} />}
      {isOwn && (
        <div class="hand" role="group" aria-label="Add">
          <h3>Add</h3>
          {(["semaphore", "mutex", "pool"] as const).map((kind) => <button key={kind} type="button" onClick={() => addResource(sandbox, kind)}>a {kind}</button>)}
        </div>
      )}
    </div>
  );
}
