// A list of any length that draws only the rows near the viewport. Rows have one height, so nothing moves while rows come and go.
import type { JSX, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const kMargin = 10; // rows drawn above and below the viewport

interface Props<T> {
  items: T[];
  rowHeight: number;
  label: string;
  columns: string[];
  keyOf: (item: T) => string;
  row: (item: T, at: number) => JSX.Element[];
  rowClass: (item: T) => string;
  current: string; // key of the row that has the keyboard
  onNearEnd: () => void;
  onOpen: (item: T) => void;
  placeRef?: Ref<HTMLDivElement>;
}

export function VirtualList<T>(props: Props<T>): JSX.Element {
  const { items, rowHeight, keyOf } = props;
  const place = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 40 });
  const look = (): void => {
    const box = place.current?.getBoundingClientRect();
    if (!box) return;
    const first = Math.max(0, Math.floor(-box.top / rowHeight) - kMargin);
    const last = Math.ceil((innerHeight - box.top) / rowHeight) + kMargin;
    setSeen((old) => (old.first === first && old.last === last ? old : { first, last }));
    if (last >= items.length) props.onNearEnd();
  };
  useEffect(() => {
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look, { passive: true });
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  });
  const drawn = items.slice(seen.first, seen.last);
  return (
    <div role="table" class="list" aria-label={props.label} aria-rowcount={items.length + 1}>
      <div role="row" class="list-head" aria-rowindex={1}>{props.columns.map((name) => <span role="columnheader" key={name}>{name}</span>)}</div>
      <div ref={place} role="rowgroup" class="list-body" style={{ height: `${items.length * rowHeight}px` }}>
        {drawn.map((item, index) => {
          const at = seen.first + index;
          const key = keyOf(item);
          return (
            <div role="row" key={key} data-key={key} aria-rowindex={at + 2} aria-current={key === props.current ? "true" : undefined}
              class={`list-row ${props.rowClass(item)}`} style={{ top: `${at * rowHeight}px`, height: `${rowHeight}px` }} onClick={(event) => { if (!(event.target as HTMLElement).closest("a,button,input,label")) props.onOpen(item); }}>
              {props.row(item, at)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
