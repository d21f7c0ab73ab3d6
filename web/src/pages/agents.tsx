// The agents of the daemon's checkout, and a form that submits a run of one.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { change, get, why } from "../http.ts";
import { act } from "../parts/confirm.tsx";
import { Commands } from "../parts/pieces.tsx";
import { Empty, Show } from "../parts/states.tsx";
import { agentAddress, go, limitAddress, runAddress } from "../route.ts";
import type { Agent, Loaded, Submitted } from "../types.ts";
import { kLoading } from "../types.ts";

const agents = signal<Loaded<Agent[]>>(kLoading);

async function load(): Promise<void> {
  try {
    agents.value = { kind: "ok", value: (await get<{ agents: Agent[] }>("/v1/agents")).agents };
  } catch (error) {
    if (agents.value.kind !== "ok") agents.value = { kind: "failed", why: why(error) };
  }
}

interface Argument {
  name: string;
  required: boolean;
}

/** The arguments that a usage line names: `review FILE [DEPTH]`. */
export function argumentsOf(usage: string): Argument[] {
  return usage.split(" ").slice(1).filter(Boolean).map((word) => ({ name: word.replace(/^\[|\]$/g, "").toLowerCase(), required: !word.startsWith("[") }));
}

const kPrompt = "prompt"; // the reserved name for runs of a prompt, without an agent's file

function submit(agent: Agent, form: HTMLFormElement): void {
  const args: Record<string, string> = {};
  const fields = new FormData(form);
  const isPrompt = agent.name === kPrompt;
  for (const { name } of argumentsOf(agent.usage)) {
    const value = String(fields.get(`arg.${name}`) ?? "");
    if (value !== "") args[name] = value;
  }
  const session = String(fields.get("session") ?? "").trim();
  const key = crypto.randomUUID(); // a repeated request after a lost answer is the same run
  void act(`Submit ${agent.name}`, async () => {
    const made = await change<Submitted>("POST", "/v1/runs", { ...(isPrompt ? { prompt: String(fields.get(kPrompt) ?? "") } : { agent: agent.name, args }), ...(session ? { session } : {}) }, key);
    go(runAddress(made.id));
    return `Submitted ${made.id}.`;
  });
}

function Form({ agent }: { agent: Agent }): JSX.Element {
  const use = (event: Event): void => {
    event.preventDefault();
    submit(agent, event.target as HTMLFormElement);
  };
  return (
    <form class="submit" onSubmit={use} aria-label={`Submit a run of ${agent.name}`}>
      {agent.name === kPrompt && <label class="field">prompt<textarea name={kPrompt} rows={3} required /></label>}
      {argumentsOf(agent.usage).map(({ name, required }) => (
        <label key={name} class="field">{name}{!required && <span class="muted"> optional</span>}<textarea name={`arg.${name}`} rows={1} required={required} /></label>
      ))}
      <label class="field">session <span class="muted">optional: runs of one session keep their order</span><input name="session" maxLength={128} autocomplete="off" /></label>
      <p class="buttons"><button type="submit" class="primary" disabled={agent.refused !== undefined}>Submit a run</button></p>
    </form>
  );
}

function AgentCard({ agent, open }: { agent: Agent; open: boolean }): JSX.Element {
  return (
    <section class={`card agent${open ? " chosen" : ""}`} aria-label={`Agent ${agent.name}`}>
      <h2><a href={agentAddress(agent.name)}>{agent.name}</a> <span class="muted">{agent.driver}</span></h2>
      <p>{agent.description}</p>
      {agent.refused && <p class="bad" role="note">It can't run: {agent.refused}</p>}
      <p class="facts">
        {agent.limits.map((limit) => <a key={limit.name} href={limitAddress(limit.name)}>{limit.name}{limit.weight > 1 && ` ×${limit.weight}`}</a>)}
        {agent.max_concurrency !== null && <span>at most {agent.max_concurrency} at once</span>}
        <a href={`#/runs?agent=${encodeURIComponent(agent.name)}`}>its runs</a>
      </p>
      {open ? <><Form agent={agent} /><Commands lines={[[agent.name === kPrompt ? "stint submit -p PROMPT" : `stint submit ${agent.usage}`, "the same, from a terminal"]]} /></> : <p class="buttons"><a class="button" href={agentAddress(agent.name)}>Submit…</a></p>}
    </section>
  );
}

export function AgentsPage({ chosen }: { chosen: string }): JSX.Element {
  useEffect(() => void load(), []);
  return (
    <>
      <h1>Agents</h1>
      <Show of={agents.value} what="the agents" retry={() => void load()}>
        {(list) => list.length === 0 ? (
          <Empty title="There is no agent yet."><Commands lines={[["stint init", "writes some into .stint/agents"], ["stint agents", "shows files that can't be read, with line and reason"]]} /></Empty>
        ) : <div class="cards loose">{list.map((agent) => <AgentCard key={agent.name} agent={agent} open={agent.name === chosen || list.length === 1} />)}</div>}
      </Show>
    </>
  );
}
