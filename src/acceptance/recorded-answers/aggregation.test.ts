/**
 * Compares API services and requests to their extension server with the recording of a Kubernetes 1.33 server
 * (`shared/oracles/recorded-apiserver-more/aggregation.jsonl`). `testdata/recorded-differences/aggregation.json` lists
 * the scenarios that differ by reason; none may be added.
 *
 *     SVC_SCENARIO=identity node src/acceptance/recorded-answers/aggregation.test.ts   prints the differences of these
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { makeCertificate, SERVER_AUTH } from "../../testing/http/test-certificates.ts";
import { startRecordedBackend } from "./recorded-backend.ts";
import { RecordedDifferences } from "./recorded-differences.ts";
import type { Scenario, Step } from "./scenario.ts";
import { Player, recordedScenarios, startRecordedServer } from "./scenarios.ts";

const ATTEMPTS_MAX = 200;

/** Checks of extension servers take real time, and their retries that of the server's clock. */
async function waitFor(server: TestServer, { request, until = {} }: Step): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const { method, path, headers } = request!;
    const token = { authorization: "Bearer admin-token", accept: "application/json" };
    const response = await server.send(`${method} ${path}`, { user: "", headers: { ...token, ...headers } as never });
    const { code = response.status, text = "", pointer, value } = until;
    const found = pointer === undefined ? undefined : valueAt(response.json, pointer);
    const isFound = pointer === undefined || (value === undefined ? found !== undefined : found === value);
    if (response.status === code && response.text.includes(text) && isFound) return;
    await systemClock.sleep(10);
    await server.clock.advance(10);
  }
}

function valueAt(value: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce((each: unknown, name) => (each as Record<string, unknown> | undefined)?.[name], value);
}

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function play(server: TestServer, scenario: Scenario): Promise<string | undefined> {
  const player = new Player(server);
  const { setup = [] } = scenario;
  const prepared = await player.play({ ...scenario, setup, steps: [] });
  if (prepared !== undefined) return prepared;
  for (const [index, step] of scenario.steps.entries()) {
    if (step.action === "poll") await waitFor(server, step);
    else if (step.action !== "sleep") {
      const difference = await player.play({ ...scenario, setup: [], steps: [step] });
      if (difference !== undefined) return `step ${index}: ${difference}`;
    }
  }
  return undefined;
}

t.test("requests to extension servers get the responses of a Kubernetes 1.33 server", async (t) => {
  const scenarios = recordedScenarios("aggregation", "recorded-apiserver-more");
  if (scenarios === undefined) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "recorded-aggregation-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const front = await makeCertificate({ subject: [{ CN: ["front"] }], authority: {} });
  const client = await makeCertificate({ subject: [{ CN: ["front-proxy"] }], issuer: front });
  const ca = await makeCertificate({ subject: [{ CN: ["back-ca"] }], authority: {} });
  const names = ["back.default.svc"];
  const certificate = await makeCertificate({ subject: [{ CN: ["back"] }], issuer: ca, names, usages: [SERVER_AUTH] });
  const files = { certFile: join(folder, "client.crt"), keyFile: join(folder, "client.key") };
  writeFileSync(files.certFile, client.cert);
  writeFileSync(files.keyFile, client.key);
  await using backend = await startRecordedBackend(certificate);
  const closed = await closedPort();
  await using server = await startRecordedServer({ proxyClientCertificate: files });
  for (const [name, port] of [
    ["back", backend.port],
    ["closed", closed],
  ] as const) {
    const body = { metadata: { name }, spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] } };
    const headers = { authorization: "Bearer admin-token" };
    const created = await server.send("POST /api/v1/namespaces/default/services", { body, user: "", headers });
    t.equal(created.status, 201, created.text);
  }
  const wanted = process.env.SVC_SCENARIO;
  const differences = new RecordedDifferences("aggregation");
  const selected = scenarios.filter(({ id }) => wanted === undefined || id.includes(wanted));
  for (const recorded of selected) {
    const text = JSON.stringify(recorded)
      .replaceAll("43495", String(backend.port))
      .replaceAll("43496", String(closed))
      .replaceAll("{{backCA}}", Buffer.from(ca.cert).toString("base64"));
    const difference = await play(server, JSON.parse(text) as Scenario);
    differences.add(recorded.id, difference);
    if (wanted !== undefined && difference !== undefined) console.log(`${recorded.id}\n    ${difference}`);
  }
  t.comment(`${selected.length - differences.count}/${selected.length} scenarios`);
  if (wanted !== undefined) return;
  t.same(differences.unlisted(), []);
  t.same(differences.resolved(), [], "every listed scenario differs (SVC_RECORD=1 removes the others)");
});
