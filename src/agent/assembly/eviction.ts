/** Creates the eviction manager. */
import { EvictionManager, type Reclaimer } from "../eviction/eviction-manager.ts";
import type { EvictionRecords } from "../eviction/eviction-records.ts";
import { NodeObserver } from "../eviction/node-observer.ts";
import { measurePods } from "../eviction/pod-usage.ts";
import { makeThresholds } from "../eviction/thresholds.ts";
import { createCgroupReader } from "../stats/cgroup-reader.ts";
import { podsCgroup } from "../stats/stats-targets.ts";
import { createVolumeMeasure } from "../volumes/local/project-quotas.ts";
import type { Foundation } from "./foundation.ts";
import type { NodeComponents } from "./node.ts";
import type { PodComponents } from "./pods.ts";
import type { Reporting } from "./reporting.ts";

interface EvictionParts {
  readonly reporting: Reporting;
  readonly node: NodeComponents;
  readonly podComponents: PodComponents;
  readonly records: EvictionRecords;
  readonly reclaimers: { readonly containers: Reclaimer; readonly images: Reclaimer };
}

export function createEvictionManager(foundation: Foundation, parts: EvictionParts): EvictionManager {
  const { config, tree, isUnified, machine, images, cri, clock, log, signal } = foundation;
  const { reporting, node, podComponents, records, reclaimers } = parts;
  const { pods, metrics, services, sources } = podComponents;
  const { maxPodGraceSeconds, overwritesPodGrace, splitDisks, transitionMs, kernelMemcgNotification } = config.eviction;
  const cgroups = createCgroupReader(tree.hierarchy, isUnified, clock);
  const { rootDir } = config;
  const observer = new NodeObserver({
    cgroups,
    podsCgroup: podsCgroup(config.runtime),
    memoryBytes: machine.memoryBytes,
    rootDir,
    images: images.images,
    clock,
  });
  const { runtime } = cri;
  const measure = createVolumeMeasure(foundation.quotas);
  const { volumes } = services;
  const usage = { settings: config.runtime, cgroups, runtime, volumes, directories: config, measure };
  return new EvictionManager({
    thresholds: makeThresholds(config.eviction),
    maxPodGraceSeconds,
    overwritesPodGrace,
    splitDisks,
    transitionMs,
    kernelMemcgNotification,
    observer,
    measurePods: (workers, resource) => measurePods(usage, workers, resource),
    pods: () => pods.workers,
    areSourcesReady: () => sources.isReady,
    records,
    ...reclaimers,
    recordNodeEvent: reporting.recordNodeEvent,
    events: reporting.podEvents,
    onConditions: () => node.statusManager?.reportNow(),
    onEvicted: (evicted) => metrics.onEvicted(evicted),
    onStatsAge: (evicted, seconds) => metrics.onStatsAge(evicted, seconds),
    clock,
    log: log.child("eviction"),
    signal,
  });
}
