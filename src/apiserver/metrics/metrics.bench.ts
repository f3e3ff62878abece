/** Run by `make bench`: prints the cost of the metrics of every request as JSON lines. */
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { builtinScheme } from "../../api/builtin.ts";
import type { Authenticator, Authorizer } from "../../auth/user.ts";
import { measureAuthenticator, measureAuthorizer } from "../../component/auth-metrics.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { RequestMetrics, withRequestMetrics } from "./request-metrics.ts";

const CALLS = 200_000;

const registry = new MetricRegistry();
const scheme = builtinScheme();
const request = makeRequest({ method: "GET", path: "/api/v1/namespaces/default/pods/web", query: "", headers: {} });
const { signal } = new AbortController();
const user = { name: "admin", uid: "", groups: [], extra: {} };
const context: RequestContext = {
  request,
  info: parseRequestInfo(request),
  user,
  signal,
  warnings: [],
  auditId: "",
  annotations: new AuditAnnotations(),
};
const credentials = { certificates: [] };
const attributes = { ...context.info, user, apiGroup: "", apiVersion: "v1" };
const response = textResponse(200, "ok");

const respond = async () => response;
const authenticate: Authenticator = async () => user;
const authorizer: Authorizer = { authorize: async () => ({ decision: "allow", reason: "" }) };
const filter = withRequestMetrics(new RequestMetrics(registry, () => scheme), systemClock)(respond);
const measuredAuthenticate = measureAuthenticator(authenticate, registry, systemClock);
const measuredAuthorizer = measureAuthorizer(authorizer, registry, systemClock);

await compare("request", respond, () => filter(context));
await compare(
  "authentication",
  async () => authenticate(credentials),
  async () => measuredAuthenticate(credentials),
);
await compare(
  "authorization",
  async () => await authorizer.authorize(attributes),
  async () => await measuredAuthorizer.authorize(attributes),
);

async function compare(what: string, plain: () => Promise<unknown>, measured: () => Promise<unknown>): Promise<void> {
  const without = await cpuUs(plain);
  const microseconds = Number(((await cpuUs(measured)) - without).toFixed(2));
  process.stdout.write(`${JSON.stringify({ measuring: what, us: microseconds })}\n`);
}

/** The best of five rounds, after one to warm up. */
async function cpuUs(run: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await run();
    const { user, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (user + system) / CALLS);
  }
  return best;
}
