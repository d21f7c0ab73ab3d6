// The output of a run. Follows new text only while the reader is at the bottom.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Output } from "../run_model.ts";
import { Empty } from "./states.tsx";

const kNear = 24; // pixels that count as "at the bottom"

export function OutputView({ output, live }: { output: Output; live: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const atBottom = useRef(true);
  const [unseen, setUnseen] = useState(false);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (atBottom.current) element.scrollTop = element.scrollHeight;
    else setUnseen(true);
  }, [output]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => {
      atBottom.current = element.scrollHeight - element.scrollTop - element.clientHeight < kNear;
      if (atBottom.current) setUnseen(false);
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [output.pieces.length > 0]);
  if (output.pieces.length === 0) return <Empty title={live ? "No output yet." : "It printed nothing."} />;
  const jump = (): void => {
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  return (
    <div class="output-place">
      <div ref={box} class="output" tabIndex={0} role="log" aria-label="Output of the run" aria-live="off">
        {output.from > 0 && <p class="left-out">{output.from} bytes before this are not shown; <code>stint logs</code> has what is kept.</p>}
        <pre>{output.pieces.map((piece) => <span key={piece.offset}>{piece.text}</span>)}</pre>
      </div>
      {unseen && <button type="button" class="pill" onClick={jump}>New output ↓</button>}
      <p class="muted">{output.bytes} bytes{live && (unseen ? ", more below" : ", follows while you are at the bottom")}</p>
    </div>
  );
}
