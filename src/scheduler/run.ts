/** Runs the scheduler against an API server, while this instance is the leader. */
import { podKind } from "../api/core/pod/kind.ts";
import { createClient } from "../client/api-client.ts";
import { createSharedInformers } from "../client/informer/shared-informers.ts";
import { type ComponentDeps, type RunningComponent, runElected } from "../component/run-elected.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { createSchedulerMetrics } from "./metrics.ts";
import type { SchedulerOptions } from "./options.ts";
import { registerResourceMetrics } from "./resource-metrics.ts";
import { runScheduler } from "./scheduler.ts";

/** The program's name in user agents, and as the source of events. */
export const PROGRAM = "kube-scheduler";

interface SchedulerProgramDeps extends Omit<ComponentDeps, "program"> {
  /** Gets the requests and limits of pods while this instance is the leader. */
  readonly resourceMetrics: MetricRegistry;
}

export function runElectedScheduler(
  { election, contentType, streamsLists, cbor, config, features }: SchedulerOptions,
  deps: SchedulerProgramDeps,
  signal: AbortSignal,
): RunningComponent {
  const { connection, clock, random, log, metrics } = deps;
  const work = async (leading: AbortSignal): Promise<void> => {
    const client = createClient({
      transport: connection.transport,
      userAgent: PROGRAM,
      contentType,
      streamsLists,
      cbor,
    });
    const shared = { client, clock, random, log };
    await using informers = createSharedInformers({ ...shared, log: log.child("informers") }, leading);
    log.info("Started scheduling", { profiles: config.profiles.map(({ schedulerName }) => schedulerName) });
    const schedulerMetrics = createSchedulerMetrics(metrics);
    registerResourceMetrics(deps.resourceMetrics, () => informers.of(podKind).list());
    await runScheduler({ ...shared, informers, config, features, metrics: schedulerMetrics, signal: leading });
  };
  return runElected(election, { ...deps, program: PROGRAM }, work, signal);
}
