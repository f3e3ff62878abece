/** The device taint eviction controller: deletes pods whose claims have devices with NoExecute taints. */
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { deviceTaintRuleKind } from "../../api/resource/device-taint-rule/kind.ts";
import {
  betaDeviceClassKind,
  betaResourceClaimKind,
  betaResourceSliceKind,
} from "../../api/resource/flat-versions/kinds.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { SelectorCache } from "../../scheduler/plugins/dynamic-resources/selector-cache.ts";
import { SliceTracker } from "../../scheduler/plugins/dynamic-resources/slice-tracker.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { KeyTimers } from "../../std/time/key-timers.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { keyOf, objectReference, splitKey } from "../workload/object-keys.ts";
import { evictionTime, listEvictingTaints } from "./eviction-time.ts";

const WORKERS = 8;
const REASON = "DeviceTaintManagerEviction";
/** The key under which the evictions of all pods are planned anew. */
const ALL = "";
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240];

export async function runDeviceTaintEviction(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, registry } = deps;
  const pods = informers.of(podKind);
  const claims = informers.of(betaResourceClaimKind);
  const sliceInformer = informers.of(betaResourceSliceKind);
  const classes = informers.of(betaDeviceClassKind);
  const rules = informers.of(deviceTaintRuleKind);
  const selectors = new SelectorCache();
  using slices = new SliceTracker({ slices: sliceInformer, rules, classes, selectors, log });
  await using recorder = createEventRecorder({ client, clock, random, log, component: "device-taint-eviction" });
  const prefix = "device_taint_eviction_controller";
  const deletions = registry
    ?.counter({
      name: `${prefix}_pod_deletions_total`,
      help: "Total number of Pods deleted by DeviceTaintEvictionController since its start.",
      stability: "ALPHA",
    })
    .with();
  const latency = registry
    ?.histogram(
      {
        name: `${prefix}_pod_deletion_duration_seconds`,
        help:
          "Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion " +
          "via DeviceTaintEvictionController.",
        stability: "ALPHA",
      },
      BUCKETS,
    )
    .with();
  /** By the keys of pods: when they are evicted. Bounded by the number of pods with claims. */
  const planned = new Map<string, { readonly uid: string; readonly at: number }>();

  function plan(): void {
    const wanted = new Map<string, { readonly uid: string; readonly at: number }>();
    const taints = listEvictingTaints(slices.listAll());
    for (const claim of taints.size === 0 ? [] : claims.list()) {
      const at = evictionTime(claim, taints, clock.now());
      if (at === undefined) continue;
      for (const { name, uid } of claim.status?.reservedFor ?? []) {
        const pod = pods.get(name, claim.metadata?.namespace);
        if (pod?.metadata?.uid !== uid || !isRunning(pod)) continue;
        const earlier = wanted.get(keyOf(pod))?.at ?? at;
        wanted.set(keyOf(pod), { uid, at: Math.min(at, earlier) });
      }
    }
    for (const [key, { uid }] of planned) {
      if (wanted.get(key)?.uid === uid) continue;
      planned.delete(key);
      timers.delete(key);
      const { namespace, name } = splitKey(key);
      const pod = pods.get(name, namespace);
      if (pod?.metadata?.uid === uid && isRunning(pod)) record(pod, "Cancelling deletion");
    }
    for (const [key, eviction] of wanted) {
      if (planned.get(key)?.at === eviction.at) continue;
      planned.set(key, eviction);
      timers.set(key, eviction.at - clock.now());
    }
  }

  async function evict(key: string, stopping: AbortSignal): Promise<void> {
    const eviction = planned.get(key);
    const { namespace, name } = splitKey(key);
    const pod = pods.get(name, namespace);
    if (eviction === undefined || pod?.metadata?.uid !== eviction.uid || !isRunning(pod)) return;
    const { uid } = eviction;
    const condition = {
      type: "DisruptionTarget",
      status: "True",
      reason: "DeletionByDeviceTaintManager",
      message: "Device Taint manager: deleting due to NoExecute taint",
      lastTransitionTime: formatTime(clock.now()),
    };
    record(pod, "Marking for deletion");
    try {
      const patch = { metadata: { uid }, status: { conditions: [condition] } };
      await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal: stopping });
      await client.delete(podKind, { name, namespace }, { preconditions: { uid } }, stopping);
      deletions?.inc();
      latency?.observe(Math.max(0, clock.now() - eviction.at) / 1000);
      log.info("Evicted pod from tainted device", { pod: key });
    } catch (error) {
      if (statusCodeOf(error) !== 404) throw error;
    }
    planned.delete(key);
  }

  const record = (pod: Pod, message: string): void =>
    recorder.record({ ...objectReference(pod), apiVersion: "v1", kind: "Pod" }, "Normal", REASON, message);
  await using queue = createControllerQueue(deps, {
    name: "device-taint-eviction",
    workers: WORKERS,
    sync: async (key, stopping) => (key === ALL ? plan() : await evict(key, stopping)),
    onError: (key, error) => log.error("Failed to evict pod, will retry", error, { pod: key }),
  });
  using timers = new KeyTimers(clock, (key) => queue.add(key));
  await Promise.all([pods.synced, claims.synced, sliceInformer.synced, classes.synced, rules.synced]).catch((error) => {
    if (!signal.aborted) throw error;
  });
  using subscriptions = new DisposableStack();
  const planAll = (): void => queue.add(ALL);
  for (const informer of [claims, sliceInformer, classes, rules]) {
    subscriptions.defer(informer.subscribe({ put: planAll, delete: planAll }));
  }
  const podChanged = ({ spec }: Pod): void => {
    if ((spec?.resourceClaims ?? []).length > 0) planAll();
  };
  subscriptions.defer(pods.subscribe({ put: podChanged, delete: podChanged }));
  await waitForAbort(signal);
}

function isRunning({ metadata, spec, status }: Pod): boolean {
  const isDone = status?.phase === "Succeeded" || status?.phase === "Failed";
  return Boolean(spec?.nodeName) && metadata?.deletionTimestamp === undefined && !isDone;
}
