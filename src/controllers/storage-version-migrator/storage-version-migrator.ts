/**
 * The storage version migrator: writes each object of a resource anew, so that the store has all of them in the present
 * version and with the present encryption key. Objects that are written meanwhile need no migration.
 */
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion, kubernetesGroup, svcGroup } from "../../api/scheme.ts";
import { storageVersionMigrationKind } from "../../api/storagemigration/storage-version-migration/kind.ts";
import type { StorageVersionMigration } from "../../api/storagemigration/storage-version-migration/schema.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict, isUnanswered, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue, RATE_LIMITER } from "../controller-queue.ts";
import { toCustomKinds } from "../garbage-collector/custom-kinds.ts";

/** The field manager of the migrator's writes, which set no field. */
const MANAGER = "storage-version-migrator-controller";
const PAGE = 500;
const WORKERS = 5;

type ConditionType = "Running" | "Succeeded" | "Failed";

const REASONS: Readonly<Record<ConditionType, string>> = {
  Running: "StorageVersionMigrationInProgress",
  Succeeded: "StorageVersionMigrationSucceeded",
  Failed: "StorageVersionMigrationFailed",
};

export async function runStorageVersionMigrator(deps: ControllerDeps): Promise<void> {
  const { client, clock, log, signal, informers, kinds } = deps;
  // The API is off unless --runtime-config enables it.
  if (!kinds.some(({ plural }) => plural === storageVersionMigrationKind.plural)) {
    log
      .v(2)
      ?.info("No migrations: the API server does not serve them", { resource: storageVersionMigrationKind.plural });
    return await waitForAbort(signal);
  }
  const migrations = informers.of(storageVersionMigrationKind);
  const definitions = informers.of(customResourceDefinitionKind);

  async function syncMigration(name: string, stopping: AbortSignal): Promise<void> {
    const found = migrations.get(name);
    if (found === undefined || isTrue(found, "Succeeded") || isTrue(found, "Failed")) return;
    const kind = findKind(found);
    if (kind === undefined) {
      await setCondition(found, "Failed", "resource does not exist in discovery", stopping);
      return;
    }
    const versioned = found.status?.resourceVersion ? found : await setResourceVersion(found, kind, stopping);
    // Conflicts if the informer has not seen the end of the migration yet.
    const running = await setCondition(versioned, "Running", "", stopping);
    try {
      await migrateAll(kind, stopping);
    } catch (error) {
      if (isUnanswered(error) || RETRIED.includes(statusCodeOf(error) ?? 0)) throw error;
      log.v(4)?.error("Failed to migrate the resource", error, { name, resource: kind.plural });
      await setCondition(running, "Failed", "migration encountered unhandled error", stopping);
      return;
    }
    await setCondition(running, "Succeeded", "", stopping);
  }

  /** Undefined if the server has no such resource. */
  function findKind({ spec }: StorageVersionMigration): Kind | undefined {
    const { group = "", version = "", resource = "" } = spec?.resource ?? {};
    const own = svcGroup(group);
    const isNamed = (kind: Kind): boolean => kind.version === version && kind.plural === resource;
    const builtIn = kinds.find((kind) => kind.group === own && isNamed(kind));
    if (builtIn !== undefined) return metadataOnly(builtIn);
    for (const name of new Set([`${resource}.${own}`, `${resource}.${kubernetesGroup(own)}`])) {
      const definition = definitions.get(name);
      const custom = definition && toCustomKinds(definition)?.versions.find(isNamed);
      if (custom !== undefined) return custom;
    }
    return undefined;
  }

  /** The version of the store at the start: objects that are written later have the present version. */
  async function setResourceVersion(
    migration: StorageVersionMigration,
    kind: Kind,
    stopping: AbortSignal,
  ): Promise<StorageVersionMigration> {
    const { resourceVersion } = await client.list(kind, { limit: 1 }, stopping);
    const status = { ...migration.status, resourceVersion };
    return await client.updateStatus(storageVersionMigrationKind, { ...migration, status }, stopping);
  }

  async function migrateAll(kind: Kind, stopping: AbortSignal): Promise<void> {
    let next: string | undefined;
    do {
      const page = await client.list(kind, { limit: PAGE, ...(next && { continue: next }) }, stopping);
      for (const object of page.items) await migrate(kind, object, stopping);
      next = page.continue;
    } while (next !== undefined);
  }

  /** The uid and the version make a conflict of an object that was written, deleted, or created again meanwhile. */
  async function migrate(kind: Kind, { metadata }: ApiObject, stopping: AbortSignal): Promise<void> {
    const { name = "", namespace, uid, resourceVersion } = metadata ?? {};
    const apiVersion = formatApiVersion(kind.group, kind.version);
    const patch = { apiVersion, kind: kind.kind, metadata: { uid, resourceVersion } };
    try {
      await client.patch(kind, { namespace, name }, "apply", patch, {
        query: { fieldManager: MANAGER },
        signal: stopping,
      });
    } catch (error) {
      if (!isNotFoundOrConflict(error)) throw error;
      log.v(6)?.info("Resource ignored due to conflict", { namespace, name, resource: kind.plural });
    }
  }

  async function setCondition(
    migration: StorageVersionMigration,
    type: ConditionType,
    message: string,
    stopping: AbortSignal,
  ): Promise<StorageVersionMigration> {
    const present = migration.status?.conditions ?? [];
    const lastUpdateTime = formatTime(clock.now());
    const added = { type, status: "True", lastUpdateTime, reason: REASONS[type], message };
    const ended = present.map((condition) =>
      condition.type === "Running" && type !== "Running" ? { ...condition, status: "False" } : condition,
    );
    const conditions = isTrue(migration, type) ? present : [...ended, added];
    const status = { ...migration.status, conditions };
    return await client.updateStatus(storageVersionMigrationKind, { ...migration, status }, stopping);
  }

  await using queue = createControllerQueue(deps, {
    name: "storage-version-migrator-controller",
    workers: WORKERS,
    backoff: RATE_LIMITER,
    sync: syncMigration,
    onError: (key, error) => {
      if (isNotFoundOrConflict(error)) return;
      log.v(2)?.info("Error syncing SVM resource, retrying", { svm: key, err: String(error) });
    },
  });
  await waitForCacheSync([migrations, definitions], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(migrations.subscribe({ put: ({ metadata }) => queue.add(metadata?.name ?? "") }));
  await waitForAbort(signal);
}

/** The server has no time, or a page is too old: the next attempt begins anew. */
const RETRIED = [429, 410];

function isTrue({ status }: StorageVersionMigration, type: ConditionType): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === "True") === true;
}
