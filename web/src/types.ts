// Names of the API's types, as src/http/openapi.json defines them.
import type { components } from "./api.gen.ts";

type Schemas = components["schemas"];
export type Agent = Schemas["Agent"];
export type AgentArgument = Schemas["AgentArgument"];
export type AgentDefinition = Schemas["AgentDefinition"];
export type AgentDetail = Schemas["AgentDetail"];
export type Agents = Schemas["Agents"];
export type Attempt = Schemas["Attempt"];
export type Batch = Schemas["Batch"];
export type Batches = Schemas["Batches"];
export type Beat = Schemas["Beat"];
export type Event = Schemas["Event"];
export type FileProblem = Schemas["FileProblem"];
export type Fleet = Schemas["Fleet"];
export type Hold = Schemas["Hold"];
export type Limit = Schemas["Limit"];
export type LimitEntry = Schemas["LimitEntry"];
export type Mark = Schemas["Mark"];
export type Node = Schemas["Node"];
export type Pool = Schemas["Pool"];
export type Preset = Schemas["Preset"];
export type Presets = Schemas["Presets"];
export type Receipt = Schemas["Receipt"];
export type Run = Schemas["Run"];
export type RunFilter = Schemas["RunFilter"];
export type RunCause = Schemas["RunCause"];
export type RunSummary = Schemas["RunSummary"];
export type Runs = Schemas["Runs"];
export type Series = Schemas["Series"];
export type Sandbox = Schemas["Sandbox"];
export type SandboxAction = Schemas["SandboxAction"];
export type SandboxEvent = Schemas["SandboxEvent"];
export type SandboxKind = Schemas["SandboxKind"];
export type SandboxPlace = Schemas["SandboxPlace"];
export type SandboxResource = Schemas["SandboxResource"];
export type Segment = Schemas["Segment"];
export type Shortage = Schemas["Shortage"];
export type SpanData = Schemas["SpanData"];
export type SpanKind = Schemas["SpanKind"];
export type State = Schemas["State"];
export type Submitted = Schemas["Submitted"];
export type Timeline = Schemas["Timeline"];
export type Transcript = Schemas["Transcript"];
export type TranscriptItem = Schemas["TranscriptItem"];
export type Total = Schemas["Total"];
export type Usage = Schemas["Usage"];
export type Verdict = Schemas["Verdict"];
export type WaitGroup = Schemas["WaitGroup"];
export type WaitReason = Schemas["WaitReason"];
export type Why = Schemas["Why"];
export type Worker = Schemas["Worker"];

export const kStates: State[] = ["queued", "running", "parked", "in_doubt", "succeeded", "failed", "cancelled", "expired"];

export const kHolds: Hold[] = ["none", "session", "delay", "backoff", "quota", "person"];

export function isEnded(state: State): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled" || state === "expired";
}

/** A value from the server. A part of a page can't show it without saying what it shows while there is none. */
export type Loaded<T> = { kind: "loading" } | { kind: "failed"; why: string } | { kind: "ok"; value: T };
export const kLoading = { kind: "loading" } as const;
