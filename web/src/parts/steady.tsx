// A list that does not move under the pointer: while the pointer or the focus is in it, rows keep their places. What has come since waits
// behind a pill; what has gone stays, marked, until the pointer leaves.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";

interface Props<T> {
  items: T[];
  keyOf: (item: T) => string;
  row: (item: T, gone: boolean) => JSX.Element; // an <li> with the key
  kind: string; // class of the list
  empty: JSX.Element;
}

export function Steady<T>({ items, keyOf, row, kind, empty }: Props<T>): JSX.Element {
  const [held, setHeld] = useState(false);
  const shown = useRef<T[]>(items);
  const byKey = new Map(items.map((item) => [keyOf(item), item]));
  const waiting = held ? items.filter((item) => !shown.current.some((each) => keyOf(each) === keyOf(item))).length : 0;
  shown.current = held ? shown.current.map((item) => byKey.get(keyOf(item)) ?? item) : items;
  if (shown.current.length === 0 && waiting === 0) return empty;
  const release = (): void => {
    shown.current = items;
    setHeld(false);
  };
  const leave = (event: FocusEvent): void => {
    const place = event.currentTarget as HTMLElement;
    if (!place.contains(event.relatedTarget as Element | null) && !place.matches(":hover")) release();
  };
  return (
    <div class="steady" onPointerEnter={() => setHeld(true)} onPointerLeave={(event) => !event.currentTarget.contains(document.activeElement) && release()} onFocusIn={() => setHeld(true)} onFocusOut={leave}>
      {waiting > 0 && <button type="button" class="pill" onClick={release}>{waiting} new</button>}
      <ul class={kind}>{shown.current.map((item) => row(item, !byKey.has(keyOf(item))))}</ul>
    </div>
  );
}
