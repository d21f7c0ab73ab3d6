// The sandbox of the playground page. It lives in the server, which replays it for every request; the address says how to make it again:
// lesson, seed, order, position, prediction, and what was done by hand. So a reload, a shared link and a restarted daemon show the same.
import { batch, computed, signal } from "@preact/signals";
import { Failure, change, get, why } from "./http.ts";
import { replaceQuery, route } from "./route.ts";
import type { Loaded, Preset, Presets, Sandbox, SandboxAction, SandboxKind } from "./types.ts";
import { kLoading } from "./types.ts";

export interface ResourceSetup {
  name: string;
  kind: SandboxKind;
  capacity?: number;
  bypass_max?: number;
}

/** What the address says. */
export interface Place {
  name: string; // of a preset, or kOwn
  seed: number | null; // null: tasks that are ready at the same moment run in order of arrival
  step: number;
  guess: number | null; // index of a choice; kSkipped; null: not asked yet
  resources: ResourceSetup[]; // of an own sandbox
  byHand: { at: number; action: SandboxAction }[]; // `at`: its index in the list of actions
}

export const kOwn = "own";
export const kFirstLesson = "three-at-two";
export const kSkipped = -1;
export const kSpeeds = [0.5, 1, 2, 4, 8];
const kEventMs = 900; // between two events at speed 1
const kDoneKey = "stint.lessons";
const kFirst: ResourceSetup[] = [{ name: "garage", kind: "semaphore", capacity: 2 }];

export const lessons = signal<Loaded<Presets>>(kLoading);
export const sandbox = signal<Loaded<Sandbox>>(kLoading);
export const place = signal<Place | null>(null);
/** The server's text about the last request that failed; empty: it succeeded. */
export const trouble = signal("");
/** Says that the sandbox was made again after the daemon had lost it. */
export const remade = signal(false);
export const playing = signal(false);
export const speed = signal(1);
export const busy = signal(false);
/** Lessons that were played to their end in this browser. */
export const finished = signal<string[]>((localStorage.getItem(kDoneKey) ?? "").split(" ").filter(Boolean));
export const preset = computed<Preset | null>(() => (lessons.value.kind === "ok" ? (lessons.value.value.presets.find((each) => each.name === place.value?.name) ?? null) : null));
/** A lesson begins with a prediction. */
export const asks = computed(() => preset.value !== null && place.value?.guess === null && place.value.step === 0);

// A letter for each member of an action; names have no dot and no tilde.
const kLetters: [string, keyof SandboxAction][] = [
  ["t", "task"], ["r", "resource"], ["f", "of"], ["w", "weight"], ["p", "priority"], ["o", "timeout_ms"], ["u", "units"], ["m", "ms"], ["x", "owned"],
  ["c", "capacity"], ["b", "bypass_max"], ["s", "at_step"],
];
const kTexts = ["task", "resource", "of"];

function writeAction(at: number, action: SandboxAction): string {
  const given = kLetters.flatMap(([letter, name]) => (action[name] === undefined ? [] : [`${letter}${action[name]}`]));
  return [`${at}`, action.do, ...given].join(".");
}

function readAction(text: string): { at: number; action: SandboxAction } {
  const [at = "", verb = "", ...given] = text.split(".");
  const members = given.map((each) => {
    const name = kLetters.find(([letter]) => letter === each[0])?.[1] ?? each;
    const value = each.slice(1);
    return [name, name === "owned" ? value === "true" : kTexts.includes(name) ? value : Number(value)];
  });
  return { at: Number(at), action: { do: verb, ...Object.fromEntries(members) } as SandboxAction };
}

const parts = (text: string | null): string[] => (text ? text.split("~") : []);

export function readPlace(name: string, query: URLSearchParams): Place {
  const number = (key: string): number | null => (query.has(key) ? Math.max(0, Math.floor(Number(query.get(key)) || 0)) : null);
  const resources = parts(query.get("resources")).map((text): ResourceSetup => {
    const [name = "", kind = "", capacity, bypass] = text.split(".");
    return { name, kind: kind as SandboxKind, ...(capacity ? { capacity: Number(capacity) } : {}), ...(bypass ? { bypass_max: Number(bypass) } : {}) };
  });
  return {
    name: name || kFirstLesson,
    seed: number("seed"),
    step: number("step") ?? 0,
    guess: query.get("guess") === "skipped" ? kSkipped : number("guess"),
    resources: name !== kOwn ? [] : resources.length > 0 ? resources : kFirst,
    byHand: parts(query.get("hand")).map(readAction),
  };
}

export function queryOf(at: Place): URLSearchParams {
  const query = new URLSearchParams();
  if (at.seed !== null) query.set("seed", String(at.seed));
  if (at.step > 0) query.set("step", String(at.step));
  if (at.guess !== null) query.set("guess", at.guess === kSkipped ? "skipped" : String(at.guess));
  if (at.resources.length > 0) query.set("resources", at.resources.map((each) => [each.name, each.kind, each.capacity ?? "", each.bypass_max ?? ""].join(".").replace(/\.+$/, "")).join("~"));
  if (at.byHand.length > 0) query.set("hand", at.byHand.map((each) => writeAction(each.at, each.action)).join("~"));
  return query;
}

const withoutGuess = (at: Place): string => `${at.name}?${queryOf({ ...at, guess: null })}`;

async function make(at: Place): Promise<Sandbox> {
  const base = { ...(at.name === kOwn ? { resources: at.resources } : { preset: at.name }), ...(at.seed === null ? {} : { order: "seeded", seed: at.seed }) };
  if (at.name === kOwn) return change<Sandbox>("POST", "/v1/playground", { ...base, actions: at.byHand.map((each) => each.action), step: at.step });
  if (at.byHand.length === 0) return change<Sandbox>("POST", "/v1/playground", { ...base, step: at.step });
  const { actions } = await change<Sandbox>("POST", "/v1/playground", base); // the lesson's own
  for (const each of at.byHand) actions.splice(each.at, 0, each.action);
  return change<Sandbox>("POST", "/v1/playground", { ...base, actions, step: at.step });
}

/** An action by hand is one with a step of its own. */
const byHandOf = (seen: Sandbox): Place["byHand"] => seen.actions.flatMap((action, at) => (action.at_step === undefined ? [] : [{ at, action }]));

/** Unless another page or lesson was opened meanwhile. */
function keepAddress(at: Place): void {
  const { page, name } = route.value;
  if (page === "playground" && (name || kFirstLesson) === at.name) replaceQuery(queryOf(at));
}

function show(seen: Sandbox, at: Place): void {
  if (place.value?.name !== at.name) return; // another lesson was opened meanwhile
  batch(() => {
    sandbox.value = { kind: "ok", value: seen };
    place.value = { ...at, step: seen.step, byHand: byHandOf(seen) };
    trouble.value = "";
    if (seen.done && seen.preset && seen.step > 0 && !finished.value.includes(seen.preset)) {
      finished.value = [...finished.value, seen.preset];
      localStorage.setItem(kDoneKey, finished.value.join(" "));
    }
  });
  keepAddress({ ...at, step: seen.step, byHand: byHandOf(seen) });
}

let current: Promise<void> = Promise.resolve();

async function attempt(work: () => Promise<void>): Promise<void> {
  busy.value = true;
  try {
    await work();
  } catch (error) {
    playing.value = false;
    trouble.value = why(error);
    if (sandbox.value.kind !== "ok") sandbox.value = { kind: "failed", why: why(error) };
  } finally {
    busy.value = false;
  }
}

/** One request at a time: of two changes at once the server refuses the second. */
function queue(work: () => Promise<void>): Promise<void> {
  current = current.then(() => attempt(work));
  return current;
}

export async function readLessons(): Promise<void> {
  try {
    lessons.value = { kind: "ok", value: await get<Presets>("/v1/playground") };
  } catch (error) {
    lessons.value = { kind: "failed", why: why(error) };
  }
}

/** Opens what the address says, unless it is what the page shows. */
export function visit(at: Place): void {
  const shown = place.value;
  if (shown && withoutGuess(shown) === withoutGuess(at) && sandbox.value.kind === "ok") {
    if (shown.guess !== at.guess) place.value = at;
    return;
  }
  playing.value = false;
  batch(() => {
    if (shown?.name !== at.name) sandbox.value = kLoading;
    place.value = at;
    remade.value = false;
  });
  void queue(async () => show(await make(at), at));
}

/** Tries again after the sandbox could not be opened. */
export function retry(): void {
  const at = place.value;
  if (!at || busy.value) return;
  void queue(async () => show(await make(at), at));
}

/** Changes the sandbox; makes it again first if the server no longer has it. */
function request(path: string, body?: unknown): Promise<void> {
  if (busy.value) return current; // a second click while the first is under way
  return queue(async () => {
    const at = place.value;
    const shown = sandbox.value;
    if (!at || shown.kind !== "ok") return;
    remade.value = false;
    try {
      return show(await change<Sandbox>("POST", `/v1/playground/${shown.value.id}/${path}`, body), at);
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 404) throw error;
    }
    const anew = await make(at);
    show(await change<Sandbox>("POST", `/v1/playground/${anew.id}/${path}`, body), at);
    remade.value = true;
  });
}

export const forward = (): Promise<void> => request("step", { by: "event" });
export const back = (): Promise<void> => request("back", { by: "event" });
export const toStart = (): Promise<void> => request("back", { steps: 20_000 });
export const toEnd = (): Promise<void> => request("play");
export const perform = (action: SandboxAction): Promise<void> => request("act", action);

/** Opens the sandbox again with another beginning: seed, resources, prediction. */
export function begin(changes: Partial<Place>): void {
  const at = place.value;
  if (!at) return;
  const next = { ...at, ...changes };
  if (withoutGuess(next) !== withoutGuess(at)) return visit(next);
  place.value = next;
  keepAddress(next);
}

const isDone = (): boolean => sandbox.value.kind === "ok" && sandbox.value.value.done;

/** Plays event by event until the end, a failure, or `pause`. */
export async function play(): Promise<void> {
  if (playing.value || asks.value) return;
  playing.value = true;
  if (isDone()) await toStart();
  while (playing.value && !isDone()) {
    await forward();
    if (playing.value && !isDone()) await new Promise((resolve) => setTimeout(resolve, kEventMs / speed.value));
  }
  playing.value = false;
}

export function pause(): void {
  playing.value = false;
}
