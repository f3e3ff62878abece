/** Who may do what: every endpoint with every method, on each listener, with each right. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import type { UserInfo } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { type Harness, podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import { type AgentHandlerOptions, createAgentHandler, createHealthHandler } from "./agent-handler.ts";
import { createAgentAuthorization } from "./authorization.ts";

const SUBRESOURCES = ["pods", "healthz", "configz", "stats", "metrics", "log", "checkpoint", "statusz", "proxy"];
/** With the verb of each. */
const METHODS: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
  OPTIONS: "",
};

interface Endpoint {
  readonly path: string;
  /** Each suffices. */
  readonly rights: readonly string[];
  /** Methods that the endpoint has; undefined: it responds to all in the same way. */
  readonly methods: readonly string[] | undefined;
  /** The status without debugging handlers and on the read-only port; undefined: as with them. */
  readonly withoutDebugging: 404 | 405 | undefined;
}

const endpoint = (path: string, rights: string, methods?: string, withoutDebugging?: 404 | 405): Endpoint => ({
  path,
  rights: rights.split(" "),
  methods: methods?.split(" "),
  withoutDebugging,
});

const endpoints: readonly Endpoint[] = [
  endpoint("/healthz", "healthz proxy"),
  endpoint("/healthz/ping", "healthz proxy"),
  endpoint("/healthz/log", "healthz proxy"),
  endpoint("/healthz/syncloop", "healthz proxy"),
  endpoint("/pods", "pods proxy", "GET"),
  endpoint("/stats/summary", "stats", "GET POST"),
  endpoint("/metrics", "metrics"),
  endpoint("/metrics/cadvisor", "metrics"),
  endpoint("/metrics/resource", "metrics"),
  endpoint("/metrics/probes", "metrics"),
  endpoint("/metrics/slis", "metrics"),
  endpoint("/runningpods/", "pods proxy", "GET", 405),
  endpoint("/configz", "configz proxy", undefined, 404),
  endpoint("/flagz", "configz", undefined, 404),
  endpoint("/statusz", "statusz", undefined, 404),
  endpoint("/logs/", "log", "GET", 405),
  endpoint("/logs/web.log", "log", "GET", 405),
  endpoint("/checkpoint/default/web/c", "checkpoint", "POST", 404),
  endpoint("/containerLogs/default/web/c", "proxy", "GET", 405),
  endpoint("/exec/default/web/c", "proxy", "GET POST", 405),
  endpoint("/exec/default/web/uid-web/c", "proxy", "GET POST", 405),
  endpoint("/attach/default/web/c", "proxy", "GET POST", 405),
  endpoint("/attach/default/web/uid-web/c", "proxy", "GET POST", 405),
  endpoint("/portForward/default/web", "proxy", "GET POST", 405),
  endpoint("/portForward/default/web/uid-web", "proxy", "GET POST", 405),
  endpoint("/connections", "proxy", "GET", 404),
  endpoint("/run/default/web/c", "proxy", "POST", 405),
  endpoint("/run/default/web/uid-web/c", "proxy", "POST", 405),
  endpoint("/debug/pprof/cmdline", "proxy", "GET", 405),
  endpoint("/debug/flags/v", "proxy", undefined, 404),
];

/** No client of the read-only port is known: it must not have what changes the node. */
const localVolumes = endpoint("/localVolumes/x/remove", "proxy", "POST", 404);

/** No listener has them, and no client is authenticated for them. */
const unknownPaths = ["/", "/absent", "/exec", "/metricsx", "/healthz/absent", "/spec", "/version", "/debug", "/flags"];

function createOptions(at: Harness): Omit<AgentHandlerOptions, "debugging" | "authenticate"> {
  const registry = new MetricRegistry();
  const figures = {
    registry,
    refresh: async () => undefined,
    probes: new MetricRegistry(),
    slis: new MetricRegistry(),
    observeHealth: () => undefined,
    requests: new RequestMetrics(registry, new FakeClock()),
    renderContainers: async () => "",
    renderResources: async () => "",
    readSummary: async () => ({}),
  };
  return {
    ...{ pods: at.manager, clock: at.clock, problems: () => [], configz: {}, figures },
    nodeLogs: at.rootDir,
    acceptConnection: () => undefined,
    localVolumes: async () => textResponse(200, "done"),
    debugPages: { profiling: true, contention: undefined, setVerbosity: () => undefined },
    status: { flags: {}, statusPage: true, version: "v1.33.0" },
  };
}

async function createHarness(): Promise<Harness> {
  const at = await podHarness();
  await writeFile(join(at.rootDir, "web.log"), "line\n");
  at.manager.put(testPod("web"));
  await at.run(1);
  return at;
}

/** Allows the user one verb of one subresource. */
function authorizeBy(verb: string, subresource: string): AgentHandlerOptions["authorize"] {
  const api = new FakeApi();
  api.allowed.add(`${user.name} ${verb} nodes/${subresource}`);
  const client = createClient({ transport: api.transport });
  const settings = { mode: "Webhook", allowedMs: 0, deniedMs: 0, fineGrained: true } as const;
  return createAgentAuthorization({ nodeName: "n1", settings, client, clock: new FakeClock(), log: silentLogger });
}

const user: UserInfo = { name: "eve", uid: "", groups: [], extra: {} };
const request = (method: string, path: string) => makeRequest({ method, path, headers: { accept: "*/*" } });

t.test("each endpoint requires its subresource of the node, with the verb of the method", async (t) => {
  await using at = await createHarness();
  const options = createOptions(at);
  for (const debugging of [true, false]) {
    for (const each of [...endpoints, localVolumes]) {
      // A path that the listener does not have is answered before.
      if (!debugging && each.withoutDebugging === 404 && each !== localVolumes) continue;
      for (const [method, verb] of Object.entries(METHODS)) {
        const isAllowed = async (granted: string, subresource: string): Promise<boolean> => {
          const authorize = authorizeBy(granted, subresource);
          const handler = createAgentHandler({ ...options, debugging, authenticate: async () => user, authorize });
          return (await handler(request(method, each.path))).status !== 403;
        };
        const allowed: string[] = [];
        for (const subresource of SUBRESOURCES) if (await isAllowed(verb, subresource)) allowed.push(subresource);
        t.same(allowed.sort(), [...each.rights].sort(), `${method} ${each.path}, debugging: ${debugging}`);
        const other = verb === "get" ? "create" : "get";
        for (const subresource of each.rights) {
          t.notOk(await isAllowed(other, subresource), `${method} ${each.path} with ${other} of nodes/${subresource}`);
        }
      }
    }
  }
});

t.test("each listener responds to the methods of its endpoints only", async (t) => {
  await using at = await createHarness();
  const options = createOptions(at);
  const main = createAgentHandler({ ...options, debugging: true, authenticate: async () => user });
  const withoutDebugging = createAgentHandler({ ...options, debugging: false, authenticate: async () => user });
  const readOnly = createAgentHandler({ ...options, debugging: false, authenticate: undefined });
  const health = createHealthHandler();
  for (const { path, methods, withoutDebugging: expected } of endpoints) {
    for (const method of Object.keys(METHODS)) {
      const name = `${method} ${path}`;
      const isServed = methods?.includes(method) ?? true;
      const { status } = await main(request(method, path));
      t.equal(status === 405, !isServed, `${name}: ${status}`);
      t.not(status, 404, name);
      for (const handler of [withoutDebugging, readOnly]) {
        const { status: found } = await handler(request(method, path));
        t.equal(found, expected ?? status, `${name} without debugging handlers`);
      }
      const isHealth = path === "/healthz" || path === "/healthz/ping";
      t.equal((await health(request(method, path))).status, isHealth ? 200 : 404, `${name} on the health port`);
    }
  }
  t.equal((await readOnly(request("POST", localVolumes.path))).status, 404);
});

t.test("unknown paths are answered before authentication", async (t) => {
  await using at = await createHarness();
  const options = createOptions(at);
  const authenticate = async (): Promise<undefined> => undefined;
  for (const debugging of [true, false]) {
    const main = createAgentHandler({ ...options, debugging, authenticate });
    const readOnly = createAgentHandler({ ...options, debugging: false, authenticate: undefined });
    for (const path of unknownPaths) {
      for (const method of Object.keys(METHODS)) {
        const { status } = await main(request(method, path));
        const { status: readable } = await readOnly(request(method, path));
        // The root of a service is known, and without debugging handlers redirects.
        const isKnown = path === "/exec";
        t.equal(status, isKnown ? (debugging ? 401 : 301) : 404, `${method} ${path}`);
        t.equal(readable, isKnown ? 301 : 404, `${method} ${path} on the read-only port`);
      }
    }
    for (const { path, withoutDebugging } of endpoints) {
      if (!debugging && withoutDebugging === 404) continue;
      t.equal((await main(request("GET", path))).status, 401, `${path} without credentials`);
    }
  }
});
