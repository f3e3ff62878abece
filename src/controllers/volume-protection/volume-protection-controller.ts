/** Lets deleted claims and volumes go once nobody uses them: takes away the finalizer that held them. */

import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, WatchQuery } from "../../client/client.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

/** After a write that was overtaken, or a watch that broke off. */
const AGAIN_MS = 1_000;

export async function runClaimProtection(deps: ControllerDeps): Promise<void> {
  await letGo<PersistentVolumeClaim>(deps, {
    kind: persistentVolumeClaimKind,
    finalizer: "kubernetes.io/pvc-protection",
    useOf: async ({ metadata }, signal) => {
      const query = { namespace: metadata?.namespace };
      const claim = metadata?.name ?? "";
      const { items, resourceVersion } = await deps.client.list(podKind, query, signal);
      if (!items.some((pod) => uses(pod, claim))) return undefined;
      return { over: (until) => userGone(deps.client, { ...query, resourceVersion }, claim, until) };
    },
  });
}

/** Resolves with whether a pod that uses the claim went before the watch ended. */
async function userGone(client: Client, query: WatchQuery, claim: string, signal: AbortSignal): Promise<boolean> {
  for await (const event of client.watch(podKind, query, signal)) {
    if (event.type === "DELETED" && uses(event.object, claim)) return true;
  }
  return false;
}

export async function runVolumeProtection(deps: ControllerDeps): Promise<void> {
  await letGo<PersistentVolume>(deps, {
    kind: persistentVolumeKind,
    finalizer: "kubernetes.io/pv-protection",
    // That it is bound no longer is a change of its own.
    useOf: async ({ status }) => (status?.phase === "Bound" ? {} : undefined),
  });
}

/** Pods that no node has cannot have mounted anything, and no agent starts a pod whose claim is going away. */
function uses({ metadata, spec }: Pod, claim: string): boolean {
  if (!spec?.nodeName) return false;
  return (spec.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claim ||
      (ephemeral !== undefined && `${metadata?.name ?? ""}-${name}` === claim),
  );
}

interface Protection<T extends ApiObject> {
  readonly kind: Kind<T>;
  readonly finalizer: string;
  /** Undefined when nobody uses the object. */
  readonly useOf: (object: T, signal: AbortSignal) => Promise<Use | undefined>;
}

interface Use {
  /** Resolves with whether it is worth another look at once; absent where the object itself tells. */
  readonly over?: (signal: AbortSignal) => Promise<boolean>;
}

async function letGo<T extends ApiObject>(deps: ControllerDeps, protection: Protection<T>): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  const { kind, finalizer, useOf } = protection;
  /** One for each object that waits for others, so that none is watched for twice. */
  const watched = new Map<string, AbortController>();
  await using objects = startInformer({ client, clock, random, log, kind }, signal);
  const isWaiting = ({ metadata }: T): boolean =>
    metadata?.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes(finalizer);
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (key, stopping) => {
      const [namespace = "", name = ""] = key.split("/");
      const object = objects.get(name, namespace);
      if (object === undefined || !isWaiting(object)) return;
      const use = await useOf(object, stopping);
      if (use !== undefined) {
        if (use.over !== undefined) lookAgain(key, use.over);
        return;
      }
      const finalizers = (object.metadata?.finalizers ?? []).filter((other) => other !== finalizer);
      try {
        await client.update(kind, { ...object, metadata: { ...object.metadata, finalizers } }, stopping);
      } catch (error) {
        // Gone, or changed meanwhile: the informer will tell.
        if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
        if (error.status.code === 409) queue.addAfter(key, AGAIN_MS);
      }
    },
    onError: (key, error) => log.error(`Cannot let the ${kind.singular} go; trying again`, error, { key }),
  });
  const lookAgain = (key: string, over: (until: AbortSignal) => Promise<boolean>): void => {
    if (watched.has(key) || signal.aborted) return;
    const stop = new AbortController();
    watched.set(key, stop);
    const again = (delayMs: number): void => {
      watched.delete(key);
      if (!stop.signal.aborted && !signal.aborted) queue.addAfter(key, delayMs);
    };
    over(AbortSignal.any([signal, stop.signal])).then(
      (now) => again(now ? 0 : AGAIN_MS),
      () => again(AGAIN_MS),
    );
  };
  objects.subscribe({
    put: (object) => {
      if (isWaiting(object)) queue.add(keyOf(object));
    },
    delete: (object) => watched.get(keyOf(object))?.abort(),
  });
  await waitForAbort(signal);
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
