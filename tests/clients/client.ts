// Uses a TypeScript client generated from the OpenAPI document.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const token = process.env.STINT_TOKEN ?? "";
const client = createClient<paths>({ baseUrl: process.env.STINT_URL ?? "", headers: { Authorization: `Bearer ${token}` } });

function check(condition: boolean, what: unknown): asserts condition {
  if (!condition) throw new Error(JSON.stringify(what));
}

const ended = await client.POST("/v1/runs", { body: { agent: "quick", args: { what: 0.5 }, wait: true } });
check(ended.data !== undefined && "result" in ended.data && ended.data.result === "said 0.5", ended);

const started = await client.POST("/v1/runs", { body: { agent: "slow", args: { seconds: ["60"] } } });
check(started.response.status === 201 && started.data !== undefined, started);

const page = await client.GET("/v1/runs", { params: { query: { limit: 1, state: ["succeeded", "queued", "running"] } } });
check(page.data !== undefined && page.data.runs.length === 1 && page.data.next !== null, page);
const rest = await client.GET("/v1/runs", { params: { query: { before: page.data.next } } });
check(rest.data !== undefined && rest.data.runs.length === 1, rest);

const receipt = await client.POST("/v1/runs/{id}/cancel", { params: { path: { id: started.data.id } } });
check(receipt.data?.state === "cancelled", receipt);

const refused = await client.POST("/v1/runs", { body: { agent: "nobody" } });
check(refused.response.status === 404 && refused.error?.status === 404, refused);
console.log("done");
