// The agents of the daemon's checkout, also those whose files can't be read; and one of them: definition, statistics, a form that
// submits a run.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { costText, countText, lengthText } from "../format.ts";
import { get, why } from "../http.ts";
import { onRecovery } from "../live.ts";
import { SubmitForm, kPrompt } from "../parts/agent_form.tsx";
import type { ChartData } from "../parts/charts.tsx";
import { Chart } from "../parts/charts.tsx";
import { Ago, Commands, RunLink } from "../parts/pieces.tsx";
import { Empty, Show, StateBadge, Unknown } from "../parts/states.tsx";
import { agentAddress, limitAddress } from "../route.ts";
import { kTopOfNoCost } from "../parts/series.tsx";
import type { Agent, AgentDefinition, AgentDetail, Agents, FileProblem, Loaded } from "../types.ts";
import { kLoading } from "../types.ts";

const agents = signal<Loaded<Agents>>(kLoading);
const detail = signal<Loaded<AgentDetail>>(kLoading);
let opened = ""; // the agent of `detail`

async function load(): Promise<void> {
  try {
    agents.value = { kind: "ok", value: await get<Agents>("/v1/agents") };
  } catch (error) {
    if (agents.value.kind !== "ok") agents.value = { kind: "failed", why: why(error) };
  }
}

async function loadOne(name: string): Promise<void> {
  if (name !== opened) detail.value = kLoading;
  opened = name;
  try {
    const value = await get<AgentDetail>(`/v1/agents/${encodeURIComponent(name)}`);
    if (name === opened) detail.value = { kind: "ok", value };
  } catch (error) {
    if (name === opened && detail.value.kind !== "ok") detail.value = { kind: "failed", why: why(error) };
  }
}

function Problems({ problems }: { problems: FileProblem[] }): JSX.Element | null {
  if (problems.length === 0) return null;
  return (
    <ul class="problems" aria-label="Problems of agent files">
      {problems.map((problem, at) => (
        <li key={at} class={problem.severity}>
          <strong>{problem.severity}</strong> <code>{problem.file}{problem.line ? `:${problem.line}` : ""}{problem.column ? `:${problem.column}` : ""}</code> {problem.field && <code>{problem.field}</code>} {problem.message}{problem.suggestion && <span class="muted">; {problem.suggestion}</span>}
        </li>
      ))}
    </ul>
  );
}

function AgentCard({ agent }: { agent: Agent }): JSX.Element {
  return (
    <section class="card agent" aria-label={`Agent ${agent.name}`}>
      <h2><a href={agentAddress(agent.name)}>{agent.name}</a> <span class="muted">{agent.driver}</span></h2>
      <p>{agent.description}</p>
      {agent.refused && <p class="bad" role="note">It can't run: {agent.refused}</p>}
      <p class="facts">
        {agent.limits.map((limit) => <a key={limit.name} href={limitAddress(limit.name)}>{limit.name}{limit.weight > 1 && ` ×${limit.weight}`}</a>)}
        {agent.max_concurrency !== null && <span>at most {agent.max_concurrency} at once</span>}
        <a href={`#/runs?agent=${encodeURIComponent(agent.name)}`}>its runs</a>
      </p>
      <p class="buttons"><a class="button" href={agentAddress(agent.name)}>{agent.refused ? "Open" : "Open or submit…"}</a></p>
    </section>
  );
}

const length = (ms: number | null): string => (ms === null ? "" : lengthText(ms));

/** The fields of the file that say something. */
function factsOf(of: AgentDefinition): [string, string][] {
  const { budget, retry } = of;
  const bounds = [
    budget.time_ms !== null && `time ${length(budget.time_ms)}`, budget.attempts !== null && `${budget.attempts} attempts`,
    budget.tokens !== null && `${countText(budget.tokens)} tokens`, budget.cost_micros !== null && costText(budget.cost_micros),
  ].filter(Boolean);
  const facts: [string, string][] = [
    ["File", of.file], ["Format", of.format === "stint" ? "" : of.format], ["Driver", [of.driver ?? "the default", of.model].filter(Boolean).join(" / ")],
    ["Command", of.command.join(" ")], ["Driver args", of.driver_args.join(" ")], ["At once", of.max_concurrency === null ? "unlimited" : `at most ${of.max_concurrency}`],
    ["Budget", bounds.join(", ")], ["Retry", retry.base_ms === null ? "" : `waits ${length(retry.base_ms)} to ${length(retry.cap_ms)}, doubling`],
    ["On crash", of.on_crash ?? ""], ["Idle timeout", length(of.idle_timeout_ms)], ["Memory", of.memory_bytes_max === null ? "" : `${Math.round(of.memory_bytes_max / 1048576)} MiB`],
    ["Permissions", of.permissions ?? ""], ["Tools", [...of.tools.map((tool) => `${tool.name} (${tool.class})`), ...(of.tool_names ?? [])].join(", ")],
    ["Tools denied", of.tool_names_denied.join(", ")], ["Home", of.home ?? ""], ["Next", of.next.join(", ")], ["Priority", of.priority === 0 ? "" : String(of.priority)], ["Title", of.title],
  ];
  return facts.filter(([, value]) => value !== "");
}

function Definition({ of }: { of: AgentDefinition }): JSX.Element {
  return (
    <section class="card" aria-label="Definition">
      <h2>Definition</h2>
      <p>{of.description}</p>
      <dl class="facts-list wide-terms">
        {factsOf(of).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
        {of.limits.length > 0 && <div><dt>Limits</dt><dd>{of.limits.map((limit) => <a key={limit.name} href={limitAddress(limit.name)}>{limit.name}{limit.weight > 1 && ` ×${limit.weight}`} </a>)}</dd></div>}
      </dl>
    </section>
  );
}

function chartsOf(of: AgentDetail): ChartData[] {
  const times = of.day.hours.map((hour) => hour.at);
  const chart = (title: string, label: string, colour: string, values: number[], show: (value: number) => string, topOfZero = 1): ChartData => ({ title, times, marks: [], show, topOfZero, lines: [{ label, colour, values, fill: true }] });
  return [
    chart("Cost, per hour", "cost", "--doubt", of.day.hours.map((hour) => hour.cost_micros), (value) => (value === 0 ? "0" : costText(value)), kTopOfNoCost),
    chart("Attempts that ended, per hour", "attempts", "--running", of.day.hours.map((hour) => hour.attempts), countText),
  ];
}

function Percentiles({ what, half, most }: { what: string; half: number | null; most: number | null }): JSX.Element {
  const unknown = "no run of the last day tells";
  return (
    <div><dt>{what}</dt><dd>{half === null || most === null ? <Unknown why={unknown} /> : <>{lengthText(half)} <span class="muted">(half)</span>, {lengthText(most)} <span class="muted">(nine of ten)</span></>}</dd></div>
  );
}

function Statistics({ of }: { of: AgentDetail }): JSX.Element {
  const { day } = of;
  const ends = day.succeeded + day.failed + day.cancelled + day.expired;
  return (
    <section class="card wide" aria-label="Statistics of the last day">
      <h2>The last day</h2>
      <dl class="facts-list wide-terms">
        <div><dt>Runs ended</dt><dd>{ends === 0 ? "none" : `${day.succeeded} succeeded, ${day.failed} failed, ${day.cancelled} cancelled, ${day.expired} expired`}{!day.complete && " (of the newest 10,000)"}</dd></div>
        <Percentiles what="Worked" half={day.worked_p50_ms} most={day.worked_p90_ms} />
        <Percentiles what="Waited" half={day.waited_p50_ms} most={day.waited_p90_ms} />
        <div><dt>Used</dt><dd>{countText(day.tokens)} tokens, {day.cost_micros === 0 ? "$0" : costText(day.cost_micros)} <span class="muted">in {day.attempts} attempts</span></dd></div>
      </dl>
      <div class="charts">{chartsOf(of).map((data) => <Chart key={data.title} data={data} />)}</div>
      {day.failures.length > 0 && (
        <>
          <h3>Last failures</h3>
          <div class="rows">{day.failures.map((run) => <div key={run.id} class="row"><RunLink id={run.id} /> <StateBadge state={run.state} /> <span class="error">{run.error || run.title}</span> {run.finished_at !== null && <Ago at={run.finished_at} />}</div>)}</div>
        </>
      )}
    </section>
  );
}

function One({ of }: { of: AgentDetail }): JSX.Element {
  const { definition } = of;
  const usage = definition ? definition.usage : of.name;
  return (
    <>
      {of.refused && <p class="trouble" role="note"><strong>It can't run.</strong> {of.refused}</p>}
      <Problems problems={of.problems} />
      <div class="cards pair">
        {definition && <Definition of={definition} />}
        {definition && (
          <section class="card" aria-label="Submit a run">
            <h2>Submit a run</h2>
            <SubmitForm agent={of.name} args={definition.args} refused={of.refused !== undefined} />
            <Commands lines={[[of.name === kPrompt ? "stint submit -p PROMPT" : `stint submit ${usage}`, "the same, from a terminal"], [`stint agents ${of.name}`, "this page, from a terminal"]]} />
          </section>
        )}
        <Statistics of={of} />
      </div>
    </>
  );
}

export function AgentsPage({ chosen }: { chosen: string }): JSX.Element {
  useEffect(() => {
    const read = (): void => void (chosen ? loadOne(chosen) : load());
    read();
    return onRecovery(read);
  }, [chosen]);
  if (chosen) {
    return (
      <>
        <p class="crumb"><a href="#/agents">Agents</a></p>
        <h1>{chosen} <a class="aside" href={`#/runs?agent=${encodeURIComponent(chosen)}`}>its runs</a></h1>
        <Show of={detail.value} what={`the agent ${chosen}`} retry={() => void loadOne(chosen)}>{(of) => <One of={of} />}</Show>
      </>
    );
  }
  return (
    <>
      <h1>Agents</h1>
      <Show of={agents.value} what="the agents" retry={() => void load()}>
        {({ agents: list, problems }) => (
          <>
            <Problems problems={problems} />
            {list.length === 0 ? (
              <Empty title="There is no agent yet."><Commands lines={[["stint init", "writes some into .stint/agents"], ["stint agents", "shows files that can't be read, with line and reason"]]} /></Empty>
            ) : <div class="cards loose">{list.map((agent) => <AgentCard key={agent.name} agent={agent} />)}</div>}
          </>
        )}
      </Show>
    </>
  );
}
