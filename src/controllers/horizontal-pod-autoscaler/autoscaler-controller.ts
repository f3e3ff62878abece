/** The horizontal pod autoscaler: scales targets by metrics, once in each period. */

import { horizontalPodAutoscalerKind } from "../../api/autoscaling/horizontal-pod-autoscaler/kind.ts";
import type { HorizontalPodAutoscaler } from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { matchesLabels, type Requirement } from "../../api/meta/selectors/selector.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { keyOf, splitKey } from "../workload/object-keys.ts";
import { Scales } from "../workload/scales.ts";
import { createAutoscalerMetrics } from "./autoscaler-metrics.ts";
import { syncAutoscaler } from "./autoscaler-sync.ts";
import { ScalingHistory } from "./scaling-history.ts";

export async function runAutoscalerController(deps: ControllerDeps): Promise<void> {
  const { client, observer, kinds, clock, random, log, signal, informers } = deps;
  const options = deps.options.autoscaler;
  const autoscalers = informers.of(horizontalPodAutoscalerKind);
  const pods = informers.of(podKind);
  const scales = new Scales({ client, observer, kinds, clock });
  const metrics = createAutoscalerMetrics(deps.registry);
  /** By autoscaler. */
  const histories = new Map<string, ScalingHistory>();
  const selectors = new Map<string, readonly Requirement[]>();
  await using recorder = createEventRecorder({
    client,
    clock,
    random,
    log,
    component: "horizontal-pod-autoscaler",
    qps: 0,
  });
  await using queue = createControllerQueue(deps, {
    name: "horizontalpodautoscaler",
    workers: 5,
    sync: async (key, stopping) => {
      const { namespace, name } = splitKey(key);
      const autoscaler = autoscalers.get(name, namespace);
      if (autoscaler === undefined) return;
      // An error waits for the next period, too.
      queue.addAfter(key, options.syncPeriodMs);
      const history = histories.get(key) ?? new ScalingHistory();
      histories.set(key, history);
      const podsOf = (requirements: readonly Requirement[]): readonly Pod[] =>
        [...pods.list()].filter(
          ({ metadata }) => metadata?.namespace === namespace && matchesLabels(requirements, metadata.labels),
        );
      const autoscalersOf = (requirements: readonly Requirement[], selected: readonly Pod[]): readonly string[] => {
        selectors.set(key, requirements);
        return [...selectors]
          .filter(([other]) => splitKey(other).namespace === namespace)
          .filter(([, selector]) => selected.some(({ metadata }) => matchesLabels(selector, metadata?.labels)))
          .map(([other]) => other)
          .sort();
      };
      try {
        await syncAutoscaler(autoscaler, {
          client,
          clock,
          recorder,
          metrics,
          scales,
          options,
          history,
          podsOf,
          autoscalersOf,
          signal: stopping,
        });
      } catch (error) {
        if (!stopping.aborted) log.v(2)?.info("Failed to sync autoscaler", { key, error: String(error) });
      }
    },
    onError: () => {},
  });
  await waitForCacheSync([autoscalers, pods], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    autoscalers.subscribe({
      put: (autoscaler: HorizontalPodAutoscaler) => queue.addAfter(keyOf(autoscaler), options.syncPeriodMs),
      delete: (autoscaler: HorizontalPodAutoscaler) => {
        const key = keyOf(autoscaler);
        queue.forget(key);
        histories.delete(key);
        selectors.delete(key);
      },
    }),
  );
  await waitForAbort(signal);
}
