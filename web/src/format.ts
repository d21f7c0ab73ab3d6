// Values as text, the same as the commands print them (src/cli/fleet_text.cpp).
import type { RunSummary, Usage } from "./types.ts";

export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

const kUnits: [string, number][] = [["d", 86400_000], ["h", 3600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];

function durationText(ms: number): string {
  let rest = ms;
  let out = "";
  for (const [name, length] of kUnits) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) out += `${count}${name}`;
  }
  return out || "0s";
}

/** A length with the precision that a person needs: `320 ms`, `4.2s`, `3m12s`, `2h5m`. */
export function lengthText(ms: number): string {
  const length = Math.max(0, ms);
  if (length < 1000) return `${Math.floor(length)} ms`;
  if (length < 10_000) return `${(length / 1000).toFixed(1)}s`;
  if (length < 3600_000) return durationText(Math.floor(length / 1000) * 1000);
  return durationText(Math.floor(length / 60_000) * 60_000);
}

export function momentText(at: number): string {
  const time = new Date(at);
  const two = (n: number): string => String(n).padStart(2, "0");
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

export function clockText(at: number): string {
  return momentText(at).slice(11);
}

export function countText(count: number): string {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1e3).toFixed(1)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

export function costText(micros: number, estimated = false): string {
  if (micros === 0) return "–";
  const cost = micros / 1e6;
  return `${estimated ? "~" : ""}$${cost.toFixed(cost < 0.01 ? 4 : 2)}`;
}

export function exactCost(micros: number): string {
  const text = `${Math.floor(micros / 1e6)}.${String(micros % 1_000_000).padStart(6, "0")}`;
  return text.replace(/(\.\d\d\d*?)0+$/, "$1");
}

export function usageText(usage: Usage): string {
  return `${countText(usage.tokens)} tokens, ${costText(usage.cost_micros, usage.estimated)}`;
}

export function some(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

/** The error of a run, unless it only repeats the state. */
export function errorOf(run: RunSummary): string {
  return run.error === undefined || run.error === run.state || run.error === run.stop ? "" : run.error;
}

/** Removes what a terminal obeys and a reader can't see. */
export function cleanText(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, "").replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g, "");
}
