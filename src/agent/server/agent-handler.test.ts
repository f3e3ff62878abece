import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import t from "tap";
import { StatusError, unauthorized } from "../../api/status.ts";
import type { HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { type AgentHandlerOptions, createAgentHandler, createHealthHandler } from "./agent-handler.ts";

async function text(response: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  const body = response.body instanceof Uint8Array ? [response.body] : response.body;
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

t.test("createAgentHandler() serves logs of the current and the previous container, and 404 for others", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", (attempt) => (attempt === 0 ? { exitAfterMs: 100, exitCode: 1 } : {}));
  at.manager.put(testPod("web"));
  at.manager.put(testPod("pulled", { containers: [{ name: "c", image: "none:1" }] }));
  at.manager.put(testPod("late", { containers: [{ name: "c", image: "none:1", imagePullPolicy: "Never" }] }));
  await at.run(3);
  for (const [index, run] of (at.manager.worker("uid-web")?.observation.containers ?? []).entries()) {
    await mkdir(dirname(run.logPath), { recursive: true });
    await writeFile(run.logPath, `2026-01-01T00:00:00.000000000Z stdout F run ${index}\n`);
  }
  const base: AgentHandlerOptions = {
    pods: at.manager,
    clock: at.clock,
    authenticate: undefined,
    problems: () => [],
    configz: {},
    debugging: true,
  };
  const handler = createAgentHandler(base);
  const get = async (path: string, query = ""): Promise<string> => {
    const response = await handler(makeRequest({ path, query }));
    return `${response.status} ${await text(response)}`;
  };
  t.equal(await get("/healthz"), "200 ok");
  t.equal(await get("/containerLogs/default/web/c"), "200 run 0\n");
  t.equal(await get("/containerLogs/default/web/c", "previous=true"), "200 run 1\n");
  t.equal(await get("/containerLogs/default/web/other"), '404 container "other" not found in pod "web"');
  t.equal(await get("/containerLogs/default/none/c"), '404 pod "none" does not exist');
  t.match(await get("/containerLogs/default/late/c"), /^400 .*is waiting to start: ErrImageNeverPull/);
  const pull = /^400 .*is waiting to start: (image can't be pulled|trying and failing to pull image)$/;
  t.match(await get("/containerLogs/default/pulled/c"), pull);
  t.match(await get("/containerLogs/default/web/c", "tailLines=x"), /^400 /);
  t.equal(await get("/nonsense"), "404 404 page not found\n");
  t.match(await get("/pods/"), /^200 .*"name":"web"/);
  t.match(await get("/runningpods/"), /^200 .*"uid":"uid-web"/);

  const refusing = createAgentHandler({ ...base, authenticate: () => Promise.reject(unauthorized()) });
  t.equal((await refusing(makeRequest({ path: "/pods" }))).status, 401);
  t.equal((await refusing(makeRequest({ path: "/nonsense" }))).status, 404, "before authentication");
  const unauthenticated = createAgentHandler({ ...base, authenticate: async () => undefined });
  t.equal((await unauthenticated(makeRequest({ path: "/pods" }))).status, 401);
  const withoutDebugging = createAgentHandler({ ...base, debugging: false });
  for (const path of ["/containerLogs/default/web/c", "/runningpods/", "/exec/default/web/c", "/logs/syslog"]) {
    const refused = await withoutDebugging(makeRequest({ path }));
    t.equal(`${refused.status} ${await text(refused)}`, "405 Debug endpoints are disabled.\n", path);
  }
  t.equal((await withoutDebugging(makeRequest({ path: "/configz" }))).status, 404);
  t.equal((await withoutDebugging(makeRequest({ path: "/pods" }))).status, 200);
});

t.test("createAgentHandler() serves the terminated container as the previous one during back-off", async (t) => {
  await using at = await podHarness();
  at.fake.programs.set("c", () => ({ exitAfterMs: 100, exitCode: 1 }));
  at.manager.put(testPod("crash"));
  // The second back-off is long enough to be observed.
  await at.run(24);
  const [latest] = at.manager.worker("uid-crash")?.observation.containers ?? [];
  await mkdir(dirname(latest?.logPath ?? ""), { recursive: true });
  await writeFile(latest?.logPath ?? "", "2026-01-01T00:00:00.000000000Z stdout F crashed\n");
  const options = { authenticate: undefined, problems: () => [], configz: {}, debugging: true };
  const handler = createAgentHandler({ pods: at.manager, clock: at.clock, ...options });
  const path = "/containerLogs/default/crash/c";
  t.equal(await text(await handler(makeRequest({ path, query: "previous=true" }))), "crashed\n");
  t.equal(await text(await handler(makeRequest({ path }))), "crashed\n");
});

t.test("createAgentHandler() ends a followed log after four hours", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(3);
  const [run] = at.manager.worker("uid-web")?.observation.containers ?? [];
  await mkdir(dirname(run?.logPath ?? ""), { recursive: true });
  await writeFile(run?.logPath ?? "", "2026-01-01T00:00:00.000000000Z stdout F one\n");
  const options = { authenticate: undefined, problems: () => [], configz: {}, debugging: true };
  const handler = createAgentHandler({ pods: at.manager, clock: at.clock, ...options });
  const response = await handler(makeRequest({ path: "/containerLogs/default/web/c", query: "follow=true" }));
  const started = at.clock.now();
  let ended = 0;
  const reading = text(response).then((log) => {
    ended = at.clock.now();
    return log;
  });
  for (let step = 0; step < 200 && ended === 0; step++) {
    await at.clock.advance(5 * 60_000);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  t.equal(await reading, "one\n");
  t.ok(ended - started >= 4 * 3_600_000 && ended - started < 5 * 3_600_000, `${ended - started} ms`);
});

t.test("createAgentHandler() responds with the status of a route's error, and hides those of reviews", async (t) => {
  await using at = await podHarness();
  const inUse = async (): Promise<never> => {
    throw new StatusError(409, "Conflict", "it is mounted");
  };
  const send = async (authenticate: AgentHandlerOptions["authenticate"], localVolumes = inUse) => {
    const options = { pods: at.manager, clock: at.clock, problems: () => [], configz: {}, debugging: true };
    const handler = createAgentHandler({ ...options, authenticate, localVolumes });
    const response = await handler(makeRequest({ method: "POST", path: "/localVolumes/pvc-1/remove" }));
    return [response.status, JSON.parse(await text(response)).message];
  };
  const admin = { name: "admin", uid: "", groups: [], extra: {} };
  const hidden = "Internal error occurred: the server could not handle this request";
  t.same(await send(async () => admin), [409, "it is mounted"]);
  t.same(await send(inUse), [500, hidden]);
  const fail = async (): Promise<never> => {
    throw new Error("secret");
  };
  t.same(await send(async () => admin, fail), [500, hidden]);
});

t.test("createHealthHandler() has the check ping only, as kubelet's health port", async (t) => {
  const respond = async (path: string, query = "") =>
    await text(await createHealthHandler()(makeRequest({ path, query })));
  t.equal(await respond("/healthz"), "ok");
  t.equal(await respond("/healthz", "verbose"), "[+]ping ok\nhealthz check passed\n");
  t.match(await respond("/healthz", "verbose&exclude=log"), 'no matches for "log"');
  t.equal(await respond("/healthz/ping"), "ok");
  t.equal(await respond("/healthz/syncloop"), "404 page not found\n");
});
