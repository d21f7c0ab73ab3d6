// The page and its filters, from the fragment of the address: `#/runs?state=failed`.
import { computed, signal } from "@preact/signals";
import { start } from "./live.ts";
import { takeToken } from "./session.ts";

export interface Route {
  page: string;
  name: string; // a run, a limit, an agent
  query: URLSearchParams;
}

const hash = signal(location.hash);
window.addEventListener("hashchange", () => {
  if (takeToken()) start(); // pasted into an open tab
  hash.value = location.hash;
});

export const route = computed<Route>(() => {
  const [path = "", query = ""] = hash.value.replace(/^#\/?/, "").split("?");
  const [page = "", name = ""] = path.split("/");
  return { page: page || "fleet", name: decodeURIComponent(name), query: new URLSearchParams(query) };
});

export function go(address: string): void {
  location.hash = address;
}

/** Changes the query without a new entry in the history. */
export function replaceQuery(query: URLSearchParams): void {
  const text = query.toString();
  const { page, name } = route.value;
  history.replaceState(null, "", `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}${text ? `?${text}` : ""}`);
  hash.value = location.hash;
}

export const runAddress = (id: string): string => `#/run/${id}`;
export const limitAddress = (name: string): string => `#/limits/${encodeURIComponent(name)}`;
export const agentAddress = (name: string): string => `#/agents/${encodeURIComponent(name)}`;
