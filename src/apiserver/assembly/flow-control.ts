/** Puts API priority and fairness together. */
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { PriorityAndFairness } from "../filters/priority-and-fairness.ts";
import type { ServerMetrics } from "../metrics/server-metrics.ts";
import { resourceName } from "../metrics/storage-metrics.ts";

export interface FlowControlDeps {
  readonly registries: Registries;
  readonly metrics: ServerMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resources: AsyncDisposableStack;
}

/** Undefined with `--enable-priority-and-fairness=false`. */
export async function createFlowControl(
  { limits: { inFlight }, watchList }: ApiServerConfig,
  { registries, metrics, clock, log, resources }: FlowControlDeps,
): Promise<PriorityAndFairness | undefined> {
  if (!inFlight.shared) return undefined;
  const [{ FlowController }, { WorkEstimator }, { WatchTracker }] = await Promise.all([
    import("../fairness/flow-controller.ts"),
    import("../fairness/work-estimator.ts"),
    import("../fairness/watch-tracker.ts"),
  ]);
  const concurrencyLimit = inFlight.readOnly + inFlight.mutating;
  const controller = resources.use(
    new FlowController({ concurrencyLimit, clock, log: log.child("flowcontrol"), metrics: metrics.registry }),
  );
  const watches = new WatchTracker();
  const estimator = new WorkEstimator({
    watches,
    watchList,
    countObjects({ group, version, resource }) {
      const kind = registries.scheme.byResource(group, version, resource);
      if (kind === undefined) return undefined;
      return registries.of(kind).cacheInUse?.size ?? metrics.objectCount(resourceName(kind));
    },
  });
  return { controller, estimator, watches };
}
