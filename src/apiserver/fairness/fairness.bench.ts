/** Run by `make bench`: prints the cost of priority and fairness for a request that does not wait, as JSON lines. */
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "../../api/flowcontrol/mandatory-configuration.ts";
import { suggestedFlowSchemas, suggestedPriorityLevels } from "../../api/flowcontrol/suggested-configuration.ts";
import { makeRequest } from "../../http/request.ts";
import { textResponse } from "../../http/respond.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { withPriorityAndFairness } from "../filters/priority-and-fairness.ts";
import type { RequestContext } from "../request/request-context.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { FlowController } from "./flow-controller.ts";
import { WatchTracker } from "./watch-tracker.ts";
import { WorkEstimator } from "./work-estimator.ts";

const CALLS = 200_000;

const controller = new FlowController({
  concurrencyLimit: 600,
  clock: systemClock,
  log: silentLogger,
  metrics: new MetricRegistry(),
});
controller.configure(
  Object.entries({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels }).map(([name, spec]) => ({
    metadata: { name, uid: name },
    spec,
  })),
  Object.entries({ ...mandatoryFlowSchemas, ...suggestedFlowSchemas }).map(([name, spec]) => ({
    metadata: { name, uid: name },
    spec,
  })),
);
const watches = new WatchTracker();
const estimator = new WorkEstimator({ watches, watchList: false, countObjects: () => 1 });
const response = textResponse(200, "ok");
const filter = withPriorityAndFairness({
  controller,
  estimator,
  watches,
  clock: systemClock,
  timeoutMs: 60_000,
  onRejection: () => {},
  log: silentLogger,
})(async () => response);

function contextOf(method: string, name: string, groups: readonly string[]): RequestContext {
  const request = makeRequest({ method, path: "/api/v1/namespaces/default/pods/web", query: "", headers: {} });
  return {
    request,
    info: parseRequestInfo(request),
    user: { name, uid: "", groups, extra: {} },
    signal: new AbortController().signal,
    warnings: [],
    auditId: "",
    annotations: new AuditAnnotations(),
    responseHeaders: {},
  };
}

const authenticated = "system:authenticated";
await measure("an administrator's GET", contextOf("GET", "admin", ["system:masters", authenticated]));
await measure("a node's GET", contextOf("GET", "system:node:n1", ["system:nodes", authenticated]));
await measure("a user's GET", contextOf("GET", "jo", ["team", authenticated]));
await measure("a user's PUT", contextOf("PUT", "jo", ["team", authenticated]));
controller[Symbol.dispose]();

/** The best of five rounds, after one to warm up. */
async function measure(what: string, context: RequestContext): Promise<void> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await filter(context);
    const { user, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (user + system) / CALLS);
  }
  process.stdout.write(
    `${JSON.stringify({ measuring: `priority and fairness, ${what}`, us: Number(best.toFixed(2)) })}\n`,
  );
}
