/** Who may do what, per endpoint: requests on the main listener by right, and on the read-only one. */
import t from "tap";
import type { UserInfo } from "../../auth/user.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { RequestMetrics } from "../stats/request-metrics.ts";
import { createAgentHandler } from "./agent-handler.ts";
import { findSubresources } from "./authorization.ts";

const SUBRESOURCES = ["pods", "healthz", "configz", "stats", "metrics", "log", "checkpoint", "statusz", "proxy"];

/** Method and path, the rights of which each suffices, and the status on the read-only port. */
const endpoints: readonly (readonly [request: string, rights: readonly string[], readOnly: number])[] = [
  ["GET /healthz", ["healthz", "proxy"], 200],
  ["GET /healthz/ping", ["healthz", "proxy"], 200],
  ["GET /pods", ["pods", "proxy"], 200],
  ["GET /runningpods/", ["pods", "proxy"], 405],
  ["GET /configz", ["configz", "proxy"], 404],
  ["GET /flagz", ["configz"], 404],
  ["GET /statusz", ["statusz"], 404],
  ["GET /metrics", ["metrics"], 200],
  ["GET /metrics/cadvisor", ["metrics"], 200],
  ["GET /metrics/resource", ["metrics"], 200],
  ["GET /metrics/probes", ["metrics"], 200],
  ["GET /stats/summary", ["stats"], 200],
  ["GET /logs/", ["log"], 405],
  ["POST /checkpoint/default/web/c", ["checkpoint"], 404],
  ["GET /containerLogs/default/web/c", ["proxy"], 405],
  ["POST /exec/default/web/c", ["proxy"], 405],
  ["POST /attach/default/web/c", ["proxy"], 405],
  ["POST /portForward/default/web", ["proxy"], 405],
  ["POST /run/default/web/c", ["proxy"], 405],
  ["GET /debug/pprof/cmdline", ["proxy"], 405],
  ["POST /localVolumes/x/remove", ["proxy"], 404],
  ["PUT /debug/flags/v", ["proxy"], 404],
];

t.test("each endpoint requires its subresource of the node, and the read-only port serves no other", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(1);
  const registry = new MetricRegistry();
  const figures = {
    registry,
    refresh: async () => undefined,
    probes: new MetricRegistry(),
    requests: new RequestMetrics(registry, new FakeClock()),
    renderContainers: async () => "",
    renderResources: () => "",
    readSummary: async () => ({}),
  };
  const shared = {
    ...{ pods: at.manager, clock: at.clock, problems: () => [], configz: {}, figures },
    nodeLogs: at.rootDir,
    localVolumes: async () => textResponse(200, "done"),
    debugPages: { profiling: true, setVerbosity: () => undefined },
    status: { flags: {}, statusPage: true, version: "v1.33.0" },
  };
  let right = "";
  const handler = createAgentHandler({
    ...shared,
    debugging: true,
    authenticate: async (): Promise<UserInfo> => ({ name: "eve", uid: "", groups: [], extra: {} }),
    authorize: async (_user, { path }) =>
      findSubresources(path, true).includes(right) ? undefined : textResponse(403, "Forbidden\n"),
  });
  const readOnly = createAgentHandler({ ...shared, debugging: false, authenticate: undefined });
  for (const [line, rights, status] of endpoints) {
    const [method = "", path = ""] = line.split(" ");
    const request = () => makeRequest({ method, path, headers: { accept: "*/*" } });
    for (right of SUBRESOURCES) {
      const response = await handler(request());
      t.equal(response.status !== 403, rights.includes(right), `${line} with nodes/${right}: ${response.status}`);
    }
    t.equal((await readOnly(request())).status, status, `${line} on the read-only port`);
  }
});
