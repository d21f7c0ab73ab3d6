// Keys: `g` and a letter opens a page, `/` goes to the filter, `?` lists the keys. Pages add their own while they are open.
import { signal } from "@preact/signals";
import { go } from "./route.ts";

export const helpOpen = signal(false);

type Handler = (event: KeyboardEvent) => void;
const pageKeys = new Map<string, Handler>();
const kPages: Record<string, string> = { f: "#/", r: "#/runs", l: "#/limits", a: "#/agents", p: "#/playground" };
const kChordMs = 1200;
let chordAt = -Infinity; // when `g` was pressed; 0 would be the moment the page was loaded

/** Adds keys of a page; returns how to remove them. */
export function bindKeys(keys: Record<string, Handler>): () => void {
  for (const [key, handler] of Object.entries(keys)) pageKeys.set(key, handler);
  return () => {
    for (const key of Object.keys(keys)) pageKeys.delete(key);
  };
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const page = kPages[event.key];
  if (page && event.timeStamp - chordAt < kChordMs) {
    chordAt = -Infinity;
    event.preventDefault();
    go(page);
    return;
  }
  chordAt = event.key === "g" ? event.timeStamp : -Infinity;
  if (event.key === "?") {
    helpOpen.value = true;
  } else if (event.key === "/") {
    const field = document.querySelector<HTMLElement>("[data-search]");
    if (!field) return;
    field.focus();
  } else if (pageKeys.has(event.key)) {
    pageKeys.get(event.key)?.(event);
  } else {
    return;
  }
  event.preventDefault();
});
