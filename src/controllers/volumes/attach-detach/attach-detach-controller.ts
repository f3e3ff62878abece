/**
 * The attach-detach controller: creates a VolumeAttachment for every volume that a pod needs on its node, which the CSI
 * driver's attacher attaches, reports attached volumes in the node's status, and deletes those that no pod needs.
 *
 *     pods, claims, volumes → desired attachments → queue → VolumeAttachment, Node status
 */

import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { csiDriverKind } from "../../../api/storage/csi-driver/kind.ts";
import { volumeAttachmentKind } from "../../../api/storage/volume-attachment/kind.ts";
import { createEventRecorder } from "../../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../../std/async/wait-for-abort.ts";
import { KeyTimers } from "../../../std/time/key-timers.ts";
import type { ControllerDeps } from "../../controller.ts";
import { createControllerQueue } from "../../controller-queue.ts";
import { keyOf } from "../../workload/object-keys.ts";
import { claimNamesOf } from "../pod-claims.ts";
import { attachableVolumeOf, isManaged, isOutOfService, isReady, needsVolumes } from "./attachable-volumes.ts";
import { registerAttachmentCounts, registerForcedDetaches } from "./attachment-metrics.ts";
import { AttachmentSync } from "./attachment-sync.ts";
import { DesiredAttachments } from "./desired-attachments.ts";

const WORKERS = 10;
/** As Kubernetes' back-off of operations on one volume. */
const BACKOFF = { initialMs: 500, maxMs: 122_000, jitter: 0 };
const NODE = "node:";

export async function runAttachDetachController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, options } = deps;
  const pods = informers.of(podKind);
  const nodes = informers.of(nodeKind);
  const claims = informers.of(persistentVolumeClaimKind);
  const volumes = informers.of(persistentVolumeKind);
  const drivers = informers.of(csiDriverKind);
  const attachments = informers.of(volumeAttachmentKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: "attachdetach-controller" });
  using timers = new KeyTimers(clock, (key) => queue.add(key));
  const desired = new DesiredAttachments();
  const sync = new AttachmentSync({
    client,
    clock,
    log,
    recorder,
    timers,
    desired,
    nodes,
    volumes,
    attachments,
    forcesDetach: !options.disableForceDetachOnTimeout,
    forcedDetaches: deps.registry && registerForcedDetaches(deps.registry),
    queueAttachment: (name) => queue.add(name),
    queueNode: (name) => queue.add(`${NODE}${name}`),
  });
  if (deps.registry !== undefined) registerAttachmentCounts(deps.registry, desired, () => attachments.list());
  await using queue = createControllerQueue(deps, {
    name: "attachdetach",
    workers: WORKERS,
    backoff: BACKOFF,
    sync: (key, stopping) =>
      key.startsWith(NODE) ? sync.reportAttached(key.slice(NODE.length), stopping) : sync.syncAttachment(key, stopping),
    onError: (key, error) =>
      log.v(2)?.info("Failed to sync volume attachment, will retry", { key, error: String(error) }),
  });
  const sources = {
    claim: (namespace: string, name: string) => claims.get(name, namespace),
    volume: (name: string) => volumes.get(name),
    driver: (name: string) => drivers.get(name),
  };
  /** Undefined until all caches are filled. */
  let initial: Set<string> | undefined = new Set();
  const queueAll = (names: readonly string[]): void => {
    for (const name of names) {
      if (initial === undefined) queue.add(name);
      else initial.add(name);
    }
  };
  const setPod = (pod: Pod): void => {
    const names = needsVolumes(pod, nodes.get(pod.spec?.nodeName ?? "")) ? claimNamesOf(pod) : [];
    const needed = names.flatMap((name) => attachableVolumeOf(pod, name, sources) ?? []);
    queueAll(desired.set(pod, needed));
  };
  const setPods = (isConcerned: (pod: Pod) => boolean): void => {
    for (const pod of pods.list()) {
      if (pod.spec?.nodeName && (pod.spec.volumes ?? []).length > 0 && isConcerned(pod)) setPod(pod);
    }
  };
  const setPodsOfClaim = (namespace: string | undefined, name: string | undefined): void => {
    if (name === undefined) return;
    setPods((pod) => pod.metadata?.namespace === namespace && claimNamesOf(pod).includes(name));
  };
  const all = [pods, nodes, claims, volumes, drivers, attachments];
  await waitForCacheSync(all, signal);
  using subscriptions = new DisposableStack();
  const onChange = <T extends ApiObject>(
    informer: { subscribe(handlers: { put(object: T, before?: T): void; delete(object: T): void }): () => void },
    handle: (object: T, before: T | undefined) => void,
    remove: (object: T) => void = (object) => handle(object, undefined),
  ): void => {
    let isInitial = true;
    const put = (object: T, before?: T): void => {
      if (!isInitial) handle(object, before);
    };
    subscriptions.defer(informer.subscribe({ put, delete: remove }));
    isInitial = false;
  };
  // What exists now is processed together, when all of it is known.
  setPods(() => true);
  queueAll([...attachments.list()].map(({ metadata }) => metadata?.name ?? ""));
  const existing = initial;
  initial = undefined;
  queueAll([...existing]);
  onChange(
    pods,
    (pod, before) => {
      if (before === undefined || hasMoved(pod, before)) setPod(pod);
    },
    (pod) => queueAll(desired.set(pod, [])),
  );
  onChange(claims, ({ metadata }) => setPodsOfClaim(metadata?.namespace, metadata?.name));
  onChange(volumes, ({ spec }) => setPodsOfClaim(spec?.claimRef?.namespace, spec?.claimRef?.name));
  onChange(drivers, () => setPods(() => true));
  onChange(attachments, (attachment) => sync.attachmentChanged(attachment));
  onChange(nodes, (node, before) => {
    const { name } = node.metadata ?? {};
    if (before === undefined || isManaged(node) !== isManaged(before)) setPods(({ spec }) => spec?.nodeName === name);
    if (before === undefined || hasChanged(node, before)) sync.nodeChanged(name ?? "");
  });
  await waitForAbort(signal);
}

/** Only these changes decide whether a pod needs its volumes. */
function hasMoved(pod: Pod, before: Pod): boolean {
  const isMarked = pod.metadata?.deletionTimestamp !== undefined;
  return (
    isMarked ||
    pod.spec?.nodeName !== before.spec?.nodeName ||
    pod.status?.phase !== before.status?.phase ||
    keyOf(pod) !== keyOf(before) ||
    pod.metadata?.uid !== before.metadata?.uid
  );
}

function hasChanged(node: Node, before: Node): boolean {
  const volumesOf = ({ status }: Node): string => JSON.stringify([status?.volumesInUse, status?.volumesAttached]);
  return (
    isReady(node) !== isReady(before) ||
    isOutOfService(node) !== isOutOfService(before) ||
    isManaged(node) !== isManaged(before) ||
    volumesOf(node) !== volumesOf(before)
  );
}
