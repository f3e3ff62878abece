/** Sets the condition Ready of ServiceCIDRs. A finalizer keeps a deleted one while services need its addresses. */
import type { Kind } from "../../api/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import { ignoreNotFound } from "../../api/status.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { objectReference } from "../workload/object-keys.ts";
import { allocatedAddress, containsAddress, needsRange, overlaps } from "./ranges.ts";

/** The field manager of the status and the source of events. */
const NAME = "service-cidr-controller";
const FINALIZER = "networking.k8s.io/service-cidr-finalizer";
const ADD_FINALIZER = { metadata: { finalizers: [FINALIZER] } };
const REMOVE_FINALIZER = { metadata: { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } };
const WORKERS = 5;

/** API servers may still allocate addresses of the range until their watches deliver the deletion. */
const DELETION_GRACE_MS = 10_000;

interface ReadyCondition {
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

const READY: ReadyCondition = { status: "True", reason: "", message: "Kubernetes Service CIDR is ready" };

const TERMINATING: ReadyCondition = {
  status: "False",
  reason: "Terminating",
  message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
};

export async function runServiceCidrController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers } = deps;
  const isServed = ({ plural, version }: Pick<Kind, "plural" | "version">): boolean =>
    deps.kinds.some((kind) => kind.plural === plural && kind.version === version);
  if (!isServed(serviceCIDRKind) || !isServed(ipAddressKind)) {
    log.info("Not managing ServiceCIDRs: the API server does not serve them");
    return;
  }
  const serviceCidrs = informers.of(serviceCIDRKind);
  const addresses = informers.of(ipAddressKind);
  await using recorder = createEventRecorder({ client, clock, random, log, component: NAME });

  const setFinalizers = (name: string, patch: object, stopping: AbortSignal): Promise<unknown> =>
    client.patch(serviceCIDRKind, { name }, "strategic", patch, { signal: stopping }).catch(ignoreNotFound);
  const setReady = (name: string, condition: ReadyCondition, stopping: AbortSignal): Promise<unknown> => {
    const patch = {
      apiVersion: formatApiVersion(kubernetesGroup(serviceCIDRKind.group), serviceCIDRKind.version),
      kind: serviceCIDRKind.kind,
      metadata: { name },
      status: { conditions: [{ type: "Ready", ...condition, lastTransitionTime: formatTime(clock.now()) }] },
    };
    const query = { fieldManager: NAME, force: true };
    const options = { subresource: "status", query, signal: stopping };
    return client.patch(serviceCIDRKind, { name }, "apply", patch, options).catch(ignoreNotFound);
  };
  const syncLive = async (object: ServiceCIDR, name: string, stopping: AbortSignal): Promise<void> => {
    if (!hasFinalizer(object)) await setFinalizers(name, ADD_FINALIZER, stopping);
    if (hasCondition(object, READY)) return;
    try {
      await setReady(name, READY, stopping);
    } catch (error) {
      const message = "The ServiceCIDR Status can not be set to Ready=True";
      recorder.record(objectReference(object), "Warning", "KubernetesServiceCIDRError", message);
      throw error;
    }
  };
  const syncDeleted = async (object: ServiceCIDR, name: string, deletedAt: number, stopping: AbortSignal) => {
    if (needsRange(object, [...serviceCidrs.list()], addresses.list())) {
      // The next change of an address or a range starts another sync.
      if (!hasCondition(object, TERMINATING)) await setReady(name, TERMINATING, stopping);
      return;
    }
    const graceMs = deletedAt + DELETION_GRACE_MS - clock.now();
    if (graceMs > 0) queue.addAfter(name, graceMs);
    else if (hasFinalizer(object)) await setFinalizers(name, REMOVE_FINALIZER, stopping);
  };

  await using queue = createControllerQueue(deps, {
    name: "ipaddresses",
    workers: WORKERS,
    backoff: RATE_LIMITER,
    sync: async (name, stopping) => {
      const object = serviceCidrs.get(name);
      if (object === undefined) return;
      const { deletionTimestamp } = object.metadata ?? {};
      if (deletionTimestamp === undefined) await syncLive(object, name, stopping);
      else await syncDeleted(object, name, Date.parse(deletionTimestamp), stopping);
    },
    onError: (name, error) => log.error("Failed to sync ServiceCIDR, will retry", error, { name }),
  });
  try {
    await Promise.all([serviceCidrs.synced, addresses.synced]);
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  /** A range that appears or goes decides whether the ranges that it overlaps can go. */
  const addOverlapping = (object: ServiceCIDR): void => {
    for (const other of serviceCidrs.list())
      if (nameOf(other) !== nameOf(object) && overlaps(other, object)) queue.add(nameOf(other));
  };
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    serviceCidrs.subscribe({
      put: (object, previous) => {
        queue.add(nameOf(object));
        if (previous === undefined) addOverlapping(object);
      },
      delete: addOverlapping,
    }),
  );
  const addContaining = (object: IPAddress): void => {
    const address = allocatedAddress(object);
    if (address === undefined) return;
    for (const each of serviceCidrs.list()) if (containsAddress(each, address)) queue.add(nameOf(each));
  };
  subscriptions.defer(
    addresses.subscribe({
      put: (object, previous) => {
        if (previous === undefined) addContaining(object);
      },
      delete: addContaining,
    }),
  );
  await waitForAbort(signal);
}

function nameOf({ metadata }: ServiceCIDR): string {
  return metadata?.name ?? "";
}

function hasFinalizer({ metadata }: ServiceCIDR): boolean {
  return metadata?.finalizers?.includes(FINALIZER) === true;
}

function hasCondition({ status }: ServiceCIDR, wanted: ReadyCondition): boolean {
  const found = status?.conditions?.find(({ type }) => type === "Ready");
  return found?.status === wanted.status && found.reason === wanted.reason && found.message === wanted.message;
}
