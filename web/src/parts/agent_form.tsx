// The arguments of an agent as a form that submits a run. What the server refuses is shown at the field that it names.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { change, why } from "../http.ts";
import { go, runAddress } from "../route.ts";
import type { AgentArgument, Submitted } from "../types.ts";

export const kPrompt = "prompt"; // the reserved name for runs of a prompt, without an agent's file

interface Refusal {
  field: string; // empty: the whole form
  text: string;
}

/** The field that a refusal is about: the argument that its text quotes. */
export function fieldOf(text: string, names: string[]): string {
  return names.find((name) => text.includes(`'${name}'`) || text.includes(`args.${name}`)) ?? "";
}

function Field({ arg, refusal }: { arg: AgentArgument; refusal: Refusal | null }): JSX.Element {
  const bad = refusal?.field === arg.name;
  const rows = arg.default?.includes("\n") ? 3 : 1;
  return (
    <label class="field">
      <span>{arg.name} <span class="muted">{arg.required ? "required" : "optional"}{arg.description && `: ${arg.description}`}</span></span>
      <textarea name={`arg.${arg.name}`} rows={rows} required={arg.required && arg.default === undefined} placeholder={arg.default ?? ""} aria-invalid={bad} aria-describedby={bad ? `bad-${arg.name}` : undefined} />
      {bad && <span id={`bad-${arg.name}`} class="bad" role="alert">{refusal.text}</span>}
    </label>
  );
}

export function SubmitForm({ agent, args, refused }: { agent: string; args: AgentArgument[]; refused: boolean }): JSX.Element {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [sending, setSending] = useState(false);
  const send = async (form: HTMLFormElement): Promise<void> => {
    const fields = new FormData(form);
    const values: Record<string, string> = {};
    for (const { name } of args) {
      const value = String(fields.get(`arg.${name}`) ?? "");
      if (value !== "") values[name] = value;
    }
    const session = String(fields.get("session") ?? "").trim();
    const what = agent === kPrompt ? { prompt: String(fields.get(kPrompt) ?? "") } : { agent, args: values };
    const key = crypto.randomUUID(); // a repeated request after a lost answer is the same run
    setSending(true);
    setRefusal(null);
    try {
      const made = await change<Submitted>("POST", "/v1/runs", { ...what, ...(session ? { session } : {}) }, key);
      go(runAddress(made.id));
    } catch (error) {
      const text = why(error);
      setRefusal({ field: fieldOf(text, args.map((arg) => arg.name)), text });
    } finally {
      setSending(false);
    }
  };
  const use = (event: Event): void => {
    event.preventDefault();
    void send(event.target as HTMLFormElement);
  };
  return (
    <form class="submit" onSubmit={use} aria-label={`Submit a run of ${agent}`}>
      {agent === kPrompt && <label class="field">prompt<textarea name={kPrompt} rows={3} required /></label>}
      {args.map((arg) => <Field key={arg.name} arg={arg} refusal={refusal} />)}
      <label class="field"><span>session <span class="muted">optional: runs of one session keep their order</span></span><input name="session" maxLength={128} autocomplete="off" /></label>
      {refusal?.field === "" && <p class="bad" role="alert">{refusal.text}</p>}
      <p class="buttons"><button type="submit" class="primary" disabled={refused || sending}>{sending ? "Submitting…" : "Submit a run"}</button></p>
    </form>
  );
}
