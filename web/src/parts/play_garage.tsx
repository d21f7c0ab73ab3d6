// A resource of a sandbox as a garage seen from above: its spaces, the cars in them, and the line outside. Lists, so that it can be read aloud.
import type { JSX, RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { some } from "../format.ts";
import type { Sandbox, SandboxPlace, SandboxResource } from "../types.ts";
import { colourOf, momentText } from "./play_words.ts";

const kSpacesDrawn = 24;
const kSpacePx = 118; // the width of a space where there is room
const kMoveMs = 420;

interface Stand {
  task: string | null; // null: free
  units: number;
  extra: boolean; // beyond the capacity: debt
}

/** Which task stands in which space. The first free one is taken, and a car keeps its space; null: the events do not tell. */
function spacesByEvents(sandbox: Sandbox, resource: SandboxResource): (string | null)[] | null {
  if (sandbox.events_left_out > 0) return null;
  const spaces: (string | null)[] = [];
  for (const { kind, resource: of, task = "", units = 0 } of sandbox.events) {
    if (of !== resource.name || (kind !== "granted" && kind !== "released")) continue;
    for (let unit = 0; unit < units; ++unit) {
      const at = spaces.indexOf(kind === "granted" ? null : task);
      if (kind === "granted") spaces[at < 0 ? spaces.length : at] = task;
      else if (at >= 0) spaces[at] = null;
    }
  }
  const held = (task: string): number => spaces.filter((each) => each === task).length;
  const isTrue = resource.holders.every((each) => held(each.task) === resource.holders.filter((other) => other.task === each.task).reduce((sum, other) => sum + other.units, 0));
  return isTrue && spaces.filter((each) => each !== null).length === resource.holders.reduce((sum, each) => sum + each.units, 0) ? spaces : null;
}

function standsOf(sandbox: Sandbox, resource: SandboxResource): Stand[] {
  const capacity = resource.capacity ?? 0;
  const spaces = spacesByEvents(sandbox, resource) ?? resource.holders.flatMap((each) => Array<string | null>(each.units).fill(each.task));
  while (spaces.length > capacity && spaces.at(-1) === null) spaces.pop();
  while (spaces.length < Math.min(capacity, kSpacesDrawn)) spaces.push(null);
  const stands: Stand[] = [];
  spaces.slice(0, kSpacesDrawn).forEach((task, at) => {
    const before = stands.at(-1);
    const extra = at >= capacity;
    if (task !== null && before?.task === task && before.extra === extra) ++before.units;
    else stands.push({ task, units: 1, extra });
  });
  return stands;
}

function Car({ sandbox, task, where, more = "" }: { sandbox: Sandbox; task: string; where: string; more?: string }): JSX.Element {
  return <span class={`car ${colourOf(sandbox, task)}`} data-car={`${task} ${where}`}><b>{task}</b>{more && <small>{more}</small>}</span>;
}

function placeText({ units, priority }: SandboxPlace): string {
  return [units > 1 ? `needs ${units}` : "", priority !== undefined && priority !== 0 ? `priority ${priority}` : ""].filter(Boolean).join(", ");
}

function summary(resource: SandboxResource): string {
  if (resource.closed) return "closed";
  if ((resource.debt ?? 0) > 0) return `${resource.debt} too many inside`;
  if (resource.kind === "mutex") return resource.holders.length > 0 ? "locked" : "unlocked";
  return resource.available === 0 ? "full" : `${resource.available} free`;
}

function Line({ sandbox, resource }: { sandbox: Sandbox; resource: SandboxResource }): JSX.Element {
  return (
    <div class="road">
      <span class={`gate ${resource.closed || resource.available === 0 ? "down" : "up"}`}><span class="arm" aria-hidden="true" />{summary(resource)}</span>
      <ol class="queue" aria-label={`Line for ${resource.name}`}>
        {resource.line.length === 0 && <li class="muted nobody">nobody waits</li>}
        {resource.line.map((each) => (
          <li key={`${each.task} ${each.place}`} title={each.since_ms === undefined ? "" : `waits since ${momentText(each.since_ms)}`}>
            <Car sandbox={sandbox} task={each.task} where="line" more={placeText(each)} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Counters({ resource }: { resource: SandboxResource }): JSX.Element | null {
  if (resource.made === undefined) return null;
  return (
    <dl class="counters">
      <div><dt>connections made</dt><dd class="num">{resource.made}</dd></div>
      {resource.kind === "pool" && <div><dt>lent again</dt><dd class="num">{resource.reused}</dd></div>}
      <div><dt>thrown away</dt><dd class="num">{resource.discarded}</dd></div>
    </dl>
  );
}

const kTitles = { semaphore: "semaphore", mutex: "mutex: knows its owner", pool: "pool: keeps its connections", server: "server: no limit of its own" };

function sizeText(resource: SandboxResource): string {
  if (resource.kind === "semaphore") return `semaphore of ${resource.capacity}${resource.bypass_max ? `, up to ${resource.bypass_max} may overtake` : ""}`;
  return kTitles[resource.kind];
}

export function PlayGarage({ sandbox, resource }: { sandbox: Sandbox; resource: SandboxResource }): JSX.Element {
  const drawn = resource.kind !== "server";
  const stands = standsOf(sandbox, resource);
  const width = stands.reduce((sum, stand) => sum + stand.units, 0) * kSpacePx;
  return (
    <section class={`lot ${resource.kind}`} aria-label={`${resource.name}, ${sizeText(resource)}`} data-resource={resource.name}>
      <h3>{resource.name} <span class="muted">{sizeText(resource)}</span></h3>
      {drawn && (
        <>
          <ul class="bays" style={{ maxWidth: `${width}px` }} aria-label={`Spaces of ${resource.name}`}>
            {stands.map((stand, at) => (
              <li key={at} class={`bay${stand.task === null ? " free" : ""}${stand.extra ? " extra" : ""}`} style={{ gridColumn: `span ${Math.min(stand.units, 4)}` }}>
                {stand.task === null ? <span class="p"><span aria-hidden="true">P</span><span class="hidden">free</span></span> : <Car sandbox={sandbox} task={stand.task} where="inside" more={stand.units > 1 ? some(stand.units, "space") : ""} />}
              </li>
            ))}
          </ul>
          {(resource.capacity ?? 0) > kSpacesDrawn && <p class="muted">The first {kSpacesDrawn} of {resource.capacity} spaces are drawn.</p>}
          <Line sandbox={sandbox} resource={resource} />
        </>
      )}
      <Counters resource={resource} />
    </section>
  );
}

const kCalm = window.matchMedia("(prefers-reduced-motion: reduce)");
const places = new Map<string, DOMRect>();

/** Lets each car drive from where it was to where it is, unless less motion is preferred. */
export function useDriving(ref: RefObject<HTMLElement>, step: number, speed: number): void {
  useLayoutEffect(() => {
    const before = new Map(places);
    places.clear();
    for (const car of ref.current?.querySelectorAll<HTMLElement>("[data-car]") ?? []) {
      const task = (car.dataset.car ?? "").split(" ")[0] ?? "";
      const at = car.getBoundingClientRect();
      const key = `${car.closest<HTMLElement>("[data-resource]")?.dataset.resource} ${task}`;
      const was = before.get(key);
      places.set(key, new DOMRect(at.x + window.scrollX, at.y + window.scrollY, at.width, at.height));
      if (kCalm.matches || step === 0) continue;
      const [x, y] = was ? [was.x - at.x - window.scrollX, was.y - at.y - window.scrollY] : [60, 0];
      if (was && Math.abs(x) + Math.abs(y) < 1) continue;
      car.animate([{ transform: `translate(${x}px, ${y}px)`, opacity: was ? 1 : 0 }, { transform: "none", opacity: 1 }], { duration: kMoveMs / Math.max(1, speed / 2), easing: "ease-in-out" });
    }
  }, [step]);
}
