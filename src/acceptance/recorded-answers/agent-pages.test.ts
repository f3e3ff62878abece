/**
 * Compares the agent's pages with those recorded of kubelet 1.33 (`shared/oracles/recorded-streams/pages.jsonl`): code,
 * headers and body. `testdata/recorded-differences/agent-pages.json` lists those that differ by reason.
 *
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/agent-pages.test.ts     removes pages that agree now
 */
import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { type Exchange, readRecording, shared, startRecordedAgent } from "./agent-http.ts";
import { RecordedDifferences } from "./recorded-differences.ts";

interface Page {
  readonly id: string;
  readonly to: "agent" | "read-only";
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body?: string;
  };
  readonly response: {
    readonly status: number;
    readonly headers: readonly (readonly [string, string])[];
    readonly body?: unknown;
  };
}

const file = `${shared}/oracles/recorded-streams/pages.jsonl`;

function toExchange({ to, request, response }: Page): Exchange {
  const { method, path, headers, body } = request;
  return {
    what: to === "read-only" ? "read-only port" : "page",
    as: to === "read-only" ? "nobody" : "client certificate",
    method,
    path: path.replace("/st/", "/default/"),
    requestHeaders: Object.fromEntries(headers),
    ...(body === undefined ? {} : { requestBody: body }),
    code: response.status,
    headers: Object.fromEntries(response.headers),
    ...(typeof response.body === "string" && method !== "HEAD" ? { body: response.body } : {}),
  };
}

t.test("pages of the agent are those of kubelet 1.33", async (t) => {
  const recording = readRecording();
  if (recording === undefined || !existsSync(file)) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  await using agent = await startRecordedAgent(recording, true);
  const pages = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Page);
  const differences = new RecordedDifferences("agent-pages");
  for (const page of pages) differences.add(page.id, await agent.compare(toExchange(page)));
  t.comment(`${pages.length - differences.count}/${pages.length} pages`);
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "every listed page differs (SVC_RECORD=1 removes the others)");
});
