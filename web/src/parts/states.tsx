// How a page says that it has nothing to show: loading, failed, empty and unknown differ in words and looks.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { connection, onRecovery } from "../live.ts";
import type { Loaded, State } from "../types.ts";

const kRetryMsMin = 1000, kRetryMsMax = 30_000; // doubles: what fails for another reason than the connection may fail for long

export function Loading({ what, lines = 3 }: { what: string; lines?: number }): JSX.Element {
  return (
    <div class="loading" role="status" aria-label={`Loading ${what}`}>
      {Array.from({ length: lines }, (_, at) => <span key={at} class="bone" />)}
    </div>
  );
}

/** Tries again by itself: when the connection has recovered, and now and then while it is live. */
export function Failed({ what, why, retry }: { what: string; why: string; retry?: () => void }): JSX.Element {
  const latest = useRef(retry);
  latest.current = retry;
  useEffect(() => {
    let pause = kRetryMsMin;
    let timer = 0;
    const later = (): void => {
      timer = window.setTimeout(() => {
        if (connection.peek().kind === "live" && !document.hidden) latest.current?.();
        pause = Math.min(kRetryMsMax, 2 * pause);
        later();
      }, pause);
    };
    later();
    const stop = onRecovery(() => latest.current?.());
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  return (
    <div class="trouble" role="alert">
      <strong>Can't load {what}.</strong> {why}
      {retry && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** A value that the server did not give. Never drawn as 0. */
export function Unknown({ why }: { why: string }): JSX.Element {
  return <span class="unknown" title={why} aria-label={`unknown: ${why}`}>–</span>;
}

export function Show<T>(props: { of: Loaded<T>; what: string; retry?: () => void; children: (value: T) => JSX.Element | null }): JSX.Element | null {
  const { of, what, retry, children } = props;
  if (of.kind === "loading") return <Loading what={what} />;
  if (of.kind === "failed") return <Failed what={what} why={of.why} {...(retry ? { retry } : {})} />;
  return children(of.value);
}

const kShapes: Record<State, string> = {
  queued: "○", running: "▶", parked: "‖", in_doubt: "?", succeeded: "✓", failed: "✕", cancelled: "⊘", expired: "⌛",
};

export const stateWords = (state: State): string => state.replace("_", " ");

/** The state by shape, word and colour. */
export function StateBadge({ state, stop }: { state: State; stop?: string | undefined }): JSX.Element {
  return (
    <span class={`state ${state}`}>
      <span aria-hidden="true" class="shape">{kShapes[state]}</span>
      {stop && state === "running" ? "ending" : stateWords(state)}
    </span>
  );
}
