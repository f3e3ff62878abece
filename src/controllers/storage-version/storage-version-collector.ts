/**
 * The storage version garbage collector: removes from StorageVersion objects what API servers without an identity lease
 * have published, and deletes objects of which nothing is left.
 */

import { storageVersionKind } from "../../api/apiserverinternal/storage-version/kind.ts";
import type { ServerStorageVersion } from "../../api/apiserverinternal/storage-version/schema.ts";
import { withServerVersions } from "../../api/apiserverinternal/storage-version/status.ts";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { ignoreNotFound } from "../../api/status.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";

const NAMESPACE = "kube-system";
const IDENTITY = "apiserver.kubernetes.io/identity";
const COMPONENT = "kube-apiserver";

export async function runStorageVersionCollector(deps: ControllerDeps): Promise<void> {
  const { client, clock, log, signal, informers } = deps;
  const leases = informers.of(leaseKind);
  const versions = informers.of(storageVersionKind);

  /** Keeps what servers with a lease have published. */
  async function syncVersion(name: string, stopping: AbortSignal): Promise<void> {
    const object = await client.get(storageVersionKind, { name }, stopping).catch(ignoreNotFound);
    if (object === undefined) return;
    const { storageVersions = [] } = object.status ?? {};
    const valid: ServerStorageVersion[] = [];
    for (const server of storageVersions) {
      if (isIdentity(await findLease(server.apiServerID ?? "", stopping))) valid.push(server);
    }
    if (valid.length === storageVersions.length) return;
    if (valid.length === 0) return await client.delete(storageVersionKind, { name }, {}, stopping);
    const next = withServerVersions(object, valid, formatTime(clock.now()));
    await client.updateStatus(storageVersionKind, next, stopping);
  }

  async function findLease(name: string, stopping: AbortSignal): Promise<Lease | undefined> {
    return await client.get(leaseKind, { namespace: NAMESPACE, name }, stopping).catch(ignoreNotFound);
  }

  await using queue = createControllerQueue(deps, {
    name: "storage_version_garbage_collector_storageversions",
    workers: 1,
    backoff: RATE_LIMITER,
    sync: syncVersion,
    onError: (key, error) => {
      if (isNotFoundOrConflict(error)) return;
      log.warn("Failed to sync storage versions, will retry", { key, error: String(error) });
    },
  });
  await waitForCacheSync([leases, versions], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    leases.subscribe({
      delete: (lease) => {
        if (lease.metadata?.namespace !== NAMESPACE || !isIdentity(lease)) return;
        for (const { metadata, status } of versions.list()) {
          const isListed = (status?.storageVersions ?? []).some(
            ({ apiServerID }) => apiServerID === lease.metadata?.name,
          );
          if (isListed) queue.add(metadata?.name ?? "");
        }
      },
    }),
  );
  subscriptions.defer(
    versions.subscribe({
      put: ({ metadata, status }) => {
        const isKnown = ({ apiServerID = "" }: ServerStorageVersion): boolean =>
          isIdentity(leases.get(apiServerID, NAMESPACE));
        if (!(status?.storageVersions ?? []).every(isKnown)) queue.add(metadata?.name ?? "");
      },
    }),
  );
  await waitForAbort(signal);
}

function isIdentity(lease: Lease | undefined): boolean {
  return lease?.metadata?.labels?.[IDENTITY] === COMPONENT;
}
