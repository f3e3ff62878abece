import t from "tap";
import { respondHealth } from "../../http/health.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { fixture } from "../../testing/registry/registry-fixture.ts";
import { postStartHooks } from "./post-start-hooks.ts";
import { Readiness } from "./readiness.ts";

const text = async (path: string, server: Awaited<ReturnType<typeof startTestServer>>) => {
  const answer = await server.send(`GET ${path}`);
  return [answer.status, answer.text];
};

t.test("health endpoints respond with all checks or with a single one", async (t) => {
  await using server = await startTestServer();
  t.same(await text("/healthz", server), [200, "ok"]);
  const [, all = ""] = (await text("/livez?verbose", server)) as [number, string];
  t.match(all, /^\[\+\]ping ok\n\[\+\]log ok\n\[\+\]etcd ok\n(\[\+\]\S+ ok\n)+livez check passed\n$/);
  t.match(all, "[+]poststarthook/rbac/bootstrap-roles ok\n");
  const [, some = ""] = (await text("/livez?verbose&exclude=etcd&exclude=x&exclude=b", server)) as [number, string];
  t.match(some, "[+]etcd excluded: ok\n");
  t.match(some, '\nwarn: some health checks cannot be excluded: no matches for "b","x"\nlivez check passed\n');
  t.notMatch((await text("/livez?verbose&exclude=kvstore", server))[1], /warn/, "the store's other name");
  t.same(await text("/readyz/ping", server), [200, "ok"]);
  t.same(await text("/livez/kvstore", server), [200, "ok"]);
  t.same(await text("/readyz/none", server), [404, "404 page not found\n"]);
  t.same(await text("/healthz/", server), [404, "404 page not found\n"]);
  t.equal((await server.send("POST /healthz")).status, 200);
  t.equal((await server.send("HEAD /healthz")).status, 200);
});

t.test("the check of a startup step succeeds after the step is done", async (t) => {
  await using parts = fixture();
  const { registries, store, clock } = parts;
  const hooks = { fairness: true };
  const options = { clock, healthTimeoutMs: 1, readyTimeoutMs: 1, hooks, livezGraceMs: 0 };
  const readiness = new Readiness(store, registries, silentLogger, options);
  const [healthz] = readiness.endpoints();
  const statusOf = async (name: string) =>
    (await respondHealth(healthz!, name, new URLSearchParams(), silentLogger)).status;
  t.equal(await statusOf("autoregister-completion"), 500);
  readiness.markDone("apis");
  t.equal(await statusOf("autoregister-completion"), 200);
  t.equal(await statusOf("poststarthook/rbac/bootstrap-roles"), 500, "another step");
});

t.test("postStartHooks() names the filter that limits requests", async (t) => {
  const names = (fairness: boolean) => postStartHooks({ fairness }).map(({ name }) => name);
  t.ok(names(true).includes("poststarthook/priority-and-fairness-filter"));
  t.ok(names(false).includes("poststarthook/max-in-flight-filter"));
  t.notOk(names(false).some((name) => name.includes("fairness")));
});

t.test("a server that shuts down is live and not ready", async (t) => {
  await using server = await startTestServer();
  server.parts.readiness.markStopping();
  const [status, body] = await text("/readyz", server);
  t.equal(status, 500);
  t.match(body, /\[-\]shutdown failed: reason withheld\nreadyz check failed\n$/);
  t.same(await text("/livez", server), [200, "ok"]);
  t.equal(await server.parts.readiness.isAlive(), true);
});

t.test("answerHealth() keeps the reason for itself", async (t) => {
  const failing = { name: "disk", check: () => Promise.reject(new Error("secret path")) };
  const endpoint = { name: "livez", checks: [failing] };
  const all = await respondHealth(endpoint, "", new URLSearchParams(), silentLogger);
  t.equal(all.status, 500);
  t.equal(String(all.body), "[-]disk failed: reason withheld\nlivez check failed\n");
  const one = await respondHealth(endpoint, "disk", new URLSearchParams(), silentLogger);
  t.equal(String(one.body), "internal server error: reason withheld\n");
});

t.test("the reason of a check that shows it is sent, in both forms", async (t) => {
  const check = { name: "alarms", showReason: true, check: () => Promise.reject(new Error("the disk is full")) };
  const endpoint = { name: "readyz", checks: [check] };
  const all = await respondHealth(endpoint, "", new URLSearchParams(), silentLogger);
  t.equal(String(all.body), "[-]alarms failed: the disk is full\nreadyz check failed\n");
  const one = await respondHealth(endpoint, "alarms", new URLSearchParams(), silentLogger);
  t.equal(String(one.body), "internal server error: the disk is full\n");
  const passed = { name: "readyz", checks: [{ ...check, hideSuccess: true, check: () => {} }] };
  const verbose = await respondHealth(passed, "", new URLSearchParams("verbose"), silentLogger);
  t.equal(String(verbose.body), "readyz check passed\n");
});

t.test("a closed store makes the server unhealthy", async (t) => {
  await using server = await startTestServer();
  await server.send("GET /healthz");
  await server.parts.server[Symbol.asyncDispose]();
  t.equal((await server.send("GET /livez")).status, 500);
  t.equal(await server.parts.readiness.isAlive(), false);
});
