// Questions before an action that can't be taken back, and the message about its result. One dialog and one message at a time.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { why } from "../http.ts";
import { refresh } from "../live.ts";

interface Question {
  title: string;
  body: ComponentChildren;
  action: string;
  danger?: boolean;
  number?: { label: string; value: number; least: number }; // asks for a number, too
  run: (number: number) => Promise<string>; // gives what to say when it is done
}

const question = signal<Question | null>(null);
const message = signal<{ text: string; bad: boolean } | null>(null);

export function confirm(asked: Question): void {
  question.value = asked;
}

/** Runs an action of the person and says how it went. */
export async function act(what: string, run: () => Promise<string>): Promise<void> {
  message.value = { text: `${what} …`, bad: false };
  try {
    message.value = { text: await run(), bad: false };
  } catch (error) {
    message.value = { text: `${what} failed: ${why(error)}`, bad: true };
  }
  void refresh();
}

export function Dialog({ open, onClose, label, children }: { open: boolean; onClose: () => void; label: string; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const before = useRef<Element | null>(null);
  useEffect(() => {
    const element = dialog.current;
    if (!element) return;
    if (open && !element.open) {
      before.current = document.activeElement;
      element.showModal();
    }
    if (!open && element.open) element.close();
    if (!open && before.current instanceof HTMLElement) before.current.focus();
  }, [open]);
  return <dialog ref={dialog} aria-label={label} onClose={onClose}>{open && children}</dialog>;
}

export function Confirm(): JSX.Element {
  const asked = question.value;
  const field = useRef<HTMLInputElement>(null);
  const close = (): void => {
    question.value = null;
  };
  const accept = (event: Event): void => {
    event.preventDefault();
    if (!asked) return;
    const number = Number(field.current?.value ?? 0);
    close();
    void act(asked.action, () => asked.run(number));
  };
  return (
    <Dialog open={asked !== null} onClose={close} label={asked?.title ?? "Question"}>
      <form onSubmit={accept}>
        <h2>{asked?.title}</h2>
        <div>{asked?.body}</div>
        {asked?.number && <label class="field">{asked.number.label} <input ref={field} type="number" min={asked.number.least} defaultValue={String(asked.number.value)} required /></label>}
        <p class="buttons">
          <button type="button" onClick={close}>Keep as it is</button>
          <button type="submit" class={asked?.danger ? "danger" : "primary"}>{asked?.action}</button>
        </p>
      </form>
    </Dialog>
  );
}

export function Message(): JSX.Element {
  const said = message.value;
  return (
    <div class="message-place" role="status" aria-live="polite">
      {said && (
        <p class={said.bad ? "message bad" : "message"}>
          {said.text}
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => (message.value = null)}>✕</button>
        </p>
      )}
    </div>
  );
}
