// Why a run waits, in the words of `stint why` (src/cli/reason_text.cpp). tests/browser/reasons_test.py compares the two.
import { ageText, exactCost, lengthText } from "./format.ts";
import type { LimitEntry, Shortage, State, WaitReason, Why } from "./types.ts";

const kHoldersShown = 3;
const kPlaceMax = 1000;

/** A piece of a sentence; `run` or `limit` makes it a link. */
export interface Piece {
  text: string;
  run?: string;
  limit?: string;
  code?: boolean;
}

type Text = (string | Piece)[];

function untilText(until: number | undefined, now: number): string {
  if (until === undefined) return "";
  return until <= now ? ", due now" : `, for ${lengthText(until - now)} more`;
}

function remarksOn(holder: LimitEntry): string {
  let text = "";
  if (holder.user) text += ` of ${holder.user}`;
  if (holder.unjudged) text += ", which was killed; only that user or root can check for leftover processes and end them";
  if (holder.other_container) text += " in another container (if that container is gone for good, empty the slot's file)";
  if (holder.swept) text += ", which was killed; its leftover processes are being ended";
  if (holder.counts_to !== undefined) text += `, which uses the capacity ${holder.counts_to}`;
  return text;
}

export function holderText(holder: LimitEntry, now: number): Text {
  const facts = [holder.pid === undefined ? "" : `pid ${holder.pid}`, holder.since_at === undefined ? "" : ageText(now - holder.since_at)].filter(Boolean).join(", ");
  const about = `${facts && ` (${facts})`}${remarksOn(holder)}`;
  if (holder.run) {
    const title = holder.title || holder.label;
    const named = title && title !== holder.agent ? ` “${title}”` : "";
    return [{ text: holder.run, run: holder.run }, `${holder.agent ? ` of ${holder.agent}` : ""}${named}${about}`];
  }
  return [holder.pid === undefined ? "another tool, by flock" : `${holder.label || "-"}${about}`];
}

const plain = (text: Text): string => text.map((piece) => (typeof piece === "string" ? piece : piece.text)).join("");
const limitLink = (name: string | undefined): Piece => ({ text: name ?? "", limit: name ?? "" });

function limitText(reason: WaitReason, now: number): Text {
  const text: Text = [limitLink(reason.limit), ": "];
  const held = reason.held ?? 0;
  text.push(reason.capacity === undefined ? `${held} held` : `${held} of ${reason.capacity} held`);
  const holders: Text[] = [];
  for (const each of reason.holders ?? []) {
    const holder = holderText(each, now);
    if (!holders.some((known) => plain(known) === plain(holder))) holders.push(holder);
  }
  holders.slice(0, kHoldersShown).forEach((holder, at) => text.push(at === 0 ? " by " : ", ", ...holder));
  if (holders.length > kHoldersShown) text.push(` and ${holders.length - kHoldersShown} more`);
  if ((reason.weight ?? 1) > 1) text.push(`; it needs ${reason.weight}`);
  if (reason.ahead !== undefined) text.push(reason.ahead === 0 ? "; next in line" : `; ${reason.ahead} ahead in line`);
  return text;
}

export function shortageText(shortage: Shortage): string {
  const amount = shortage.amount ?? 0;
  const bound = shortage.bound ?? 0;
  const mebibytes = (bytes: number): number => Math.floor(bytes / 2 ** 20);
  switch (shortage.kind) {
    case "checkout": return `the checkout ${shortage.path ?? ""} no longer exists: it was deleted or moved`;
    case "memory": return `only ${mebibytes(amount)} MiB of memory are free; a run needs ${mebibytes(bound)} to begin`;
    case "descriptors": return `${amount} of ${bound} file descriptors are in use`;
    case "cost_per_day": return `the fleet has spent ${exactCost(amount)} of ${exactCost(bound)} today (budget.cost_per_day)`;
  }
}

function pausedText(reason: WaitReason, until: string): Text {
  const text: Text = [limitLink(reason.limit), ` is paused${until}; `, { text: `stint resume ${reason.limit ?? ""}`, code: true }, " ends that"];
  if (reason.behind) text.push(". It is paused since run ", { text: reason.behind, run: reason.behind }, ` was parked: ${reason.detail ?? ""}`);
  return text;
}

function endingText(reason: WaitReason): Text {
  const text = `its processes are being ended (${reason.detail ?? ""})`;
  if (!reason.beyond) return [text];
  return [`${text}; Stint may not signal ${reason.beyond}, which runs as another user: end it as that user, or as root`];
}

function directText(reason: WaitReason, now: number): Text {
  const until = untilText(reason.until_at, now);
  const detail = reason.detail ?? "";
  const limit = reason.limit ?? "";
  switch (reason.reason) {
    case "session": {
      const behind = { text: reason.behind ?? "", run: reason.behind ?? "" };
      return ["an earlier run of its session has not ended: ", behind, ` is ${reason.behind_state ?? "not ended"}`];
    }
    case "delay": return [`delayed start${until}`];
    case "backoff": return [`back-off after a failed attempt${until}`];
    case "quota": return ["parked: ", limit ? limitLink(limit) : "its account", ` is paused${until}`];
    case "person": return ["parked: it waits for a person", ...(limit ? [", on ", limitLink(limit)] : []), until];
    case "paused": return pausedText(reason, until);
    case "probe": return [limitLink(limit), ` was paused and now admits only ${reason.ramp ?? "few"} at once`];
    case "limit": return ["no free permit: ", ...limitText(reason, now)];
    case "turn": return [`a larger request of ${reason.turn_of ?? ""} is served first: `, ...limitText(reason, now), until];
    case "place": return [`number ${reason.place ?? 0}${(reason.place ?? 0) >= kPlaceMax ? " or later" : ""} in the queue of its agent`];
    case "workers": return [reason.capacity ? `all ${reason.capacity} workers of this daemon are busy` : "the pool has no workers"];
    case "shortage": return [(reason.shortage ? shortageText(reason.shortage) : detail) + until];
    case "agent": return [detail || "this daemon has no file for its agent"];
    case "permits": return [`can't take permits of this host: ${detail}`];
    case "network": return [`it waits for the network or its provider (${detail})`];
    case "ending": return endingText(reason);
    case "leftovers": return ["it waits until the processes of an earlier attempt have ended; they are being ended"];
    case "store": return [`its output can't be stored: ${detail}`];
    case "other": return [detail];
  }
}

export function reasonText(reason: WaitReason, now: number): Text {
  if (!reason.indirect) return directText(reason, now);
  const { ahead, ...first } = reason; // the place in line is that of the first run, not of this one
  const text: Text = ["behind other runs of its agent in the queue; the first of them waits: ", ...directText(first, now)];
  if (ahead !== undefined) text.push(ahead === 0 ? "; the first of them is next in line" : `; ${ahead} ahead of the first of them in line`);
  return text;
}

/** The lines of `stint why`, without its head, and without what the page shows beside them: the state, and buttons instead of commands. */
export function whyLines(why: Why, now: number): Text[] {
  const lines = why.reasons.map((reason) => reasonText(reason, now));
  const state: State = why.state;
  if (state === "queued" && lines.length === 0) lines.push(["nothing blocks it: it is about to begin"]);
  if (state === "in_doubt") lines.push(["its effects are unknown. Check them, then decide below"]);
  return lines;
}
