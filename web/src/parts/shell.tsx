// The frame of every page: where you are, whether the data is live, and how old it is.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ageText, clockText } from "../format.ts";
import { helpOpen } from "../keys.ts";
import { connection, fleet, now, readAt, start } from "../live.ts";
import { route } from "../route.ts";
import { setToken } from "../session.ts";
import { nextTheme, theme } from "../theme.ts";
import { Confirm, Dialog, Message } from "./confirm.tsx";

const kPages: [string, string, string][] = [["fleet", "#/", "Fleet"], ["runs", "#/runs", "Runs"], ["limits", "#/limits", "Limits"], ["agents", "#/agents", "Agents"], ["playground", "#/playground", "Playground"]];

const kFreshMs = 3000; // older data is never shown without its age

function ConnectionBadge(): JSX.Element {
  const state = connection.value;
  const age = readAt.value === 0 ? "" : ageText(now.value - readAt.value);
  const words = { connecting: "connecting", live: "live", lost: "disconnected", failing: "store failing", locked: "no token" }[state.kind];
  return (
    <span class={`connection ${state.kind}`} title={readAt.value ? `data read at ${clockText(readAt.value)}` : "nothing read yet"}>
      <span class="dot" aria-hidden="true" /> {words}
      {(state.kind !== "live" || now.value - readAt.value > kFreshMs) && age && <span class="age"> · data {age} old</span>}
    </span>
  );
}

/** Reads a change of the connection aloud, once. What counts seconds is outside: it would be read every second. */
function Announcement(): JSX.Element {
  const words = { connecting: "", live: "Connected.", lost: "Disconnected from the daemon. This page shows old data.", failing: "The store of the daemon fails. This page shows old data.", locked: "This page needs a token." };
  return <span class="hidden" role="status">{words[connection.value.kind]}</span>;
}

function Banner(): JSX.Element | null {
  const state = connection.value;
  if (state.kind !== "lost" && state.kind !== "failing") return null;
  const data = readAt.value === 0 ? "Nothing was read yet." : `What you see was read at ${clockText(readAt.value)}, ${ageText(now.value - readAt.value)} ago.`;
  return (
    <div class="banner">
      <strong>{state.kind === "lost" ? "Disconnected from the daemon." : "The daemon answers, but its store fails."}</strong> {state.detail.charAt(0).toUpperCase() + state.detail.slice(1)}. {data} This page
      reconnects by itself. {state.kind === "lost" && <>If the daemon has ended: <code>stint serve</code> starts it, <code>stint open</code> finds its address.</>}
    </div>
  );
}

function Locked({ detail }: { detail: string }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  const use = (event: Event): void => {
    event.preventDefault();
    setToken(field.current?.value.trim() ?? "");
    connection.value = { kind: "connecting" };
    start();
  };
  return (
    <main class="lock-page" id="main">
      <h1>This page needs the daemon's token</h1>
      <p>Run <code>stint open</code> in the project's folder: it opens this page with the token. <code>stint serve</code> prints the same address.</p>
      <form onSubmit={use}>
        <label>Token <input ref={field} type="password" autocomplete="off" name="token" required /></label>
        <button type="submit" class="primary">Open</button>
      </form>
      <p class="muted">{detail}</p>
    </main>
  );
}

const kKeys: [string, string][] = [
  ["g f", "Fleet"], ["g r", "Runs"], ["g l", "Limits"], ["g a", "Agents"], ["g p", "Playground"], ["/", "Go to the filter"], ["j  k", "Next and previous run"], ["Enter", "Open the run"],
  ["x", "Select the run, or take it out of the selection"],
  ["c", "Cancel the run (asks first)"], ["n  b", "Playground: next and previous event"], ["p", "Playground: play and pause"], ["Esc", "Leave a field, close a dialog"], ["?", "This list"],
];

function Help(): JSX.Element {
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog open={helpOpen.value} onClose={close} label="Keys">
      <h2>Keys</h2>
      <dl class="keys">{kKeys.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <p class="buttons"><button type="button" onClick={close}>Close</button></p>
    </Dialog>
  );
}

export function Shell({ children }: { children: ComponentChildren }): JSX.Element {
  const state = connection.value;
  const seen = fleet.value;
  const here = route.value.page === "run" ? "runs" : route.value.page;
  const title = [route.value.name, kPages.find(([page]) => page === here)?.[2], "Stint"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <header class="top">
        <a class="brand" href="#/" aria-label="Stint, fleet">Stint</a>
        <nav aria-label="Pages">
          {kPages.map(([page, address, title]) => <a key={page} href={address} aria-current={page === here ? "page" : undefined}>{title}</a>)}
        </nav>
        <span class="grow" />
        <ConnectionBadge />
        <Announcement />
        <button type="button" class="quiet" onClick={nextTheme} aria-label={`Theme: ${theme.value}. Change`}>{{ system: "◐", light: "☀", dark: "☾" }[theme.value]}</button>
        <button type="button" class="quiet" onClick={() => (helpOpen.value = true)} aria-label="Keys">?</button>
      </header>
      <Banner />
      {state.kind === "locked" ? <Locked detail={state.detail} /> : <main id="main" tabIndex={-1} class={state.kind === "lost" || state.kind === "failing" ? "old" : ""}>{children}</main>}
      <footer>{seen.kind === "ok" && <>Stint {seen.value.version} · store {seen.value.store} · {seen.value.phase}</>}</footer>
      <Message />
      <Confirm />
      <Help />
    </>
  );
}
