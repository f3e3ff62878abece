/** Which API servers of the cluster serve a resource, by the StorageVersion objects that they publish. */
import { storageVersionKind } from "../../api/apiserverinternal/storage-version/kind.ts";
import type { ServerStorageVersion } from "../../api/apiserverinternal/storage-version/schema.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { storageVersionName } from "./storage-versions.ts";

const RETRY_MS = 1000;

export class ServedResources {
  /** By the name of the object: `apps.deployments`. */
  readonly #servers = new Map<string, readonly ServerStorageVersion[]>();

  /** The ids of the servers; empty for unknown resources: custom ones, and those of extension servers. */
  serversOf({ group, version, resource }: Pick<RequestInfo, "group" | "version" | "resource">): readonly string[] {
    const servers = this.#servers.get(storageVersionName(group, resource)) ?? [];
    const wanted = formatApiVersion(kubernetesGroup(group), version);
    return servers
      .filter(({ servedVersions }) => servedVersions?.includes(wanted) === true)
      .flatMap(({ apiServerID }) => apiServerID ?? []);
  }

  /** Runs until the signal aborts. `onReady` is called when the stored objects are known. */
  async follow(registries: Registries, log: Logger, signal: AbortSignal, onReady: () => void): Promise<void> {
    const { cache, objects } = registries.of(storageVersionKind);
    while (!signal.aborted) {
      try {
        await cache.ready();
        this.#servers.clear();
        for await (const event of cache.watch({ prefix: objects.prefix(), initialEventsEnd: true, signal })) {
          if (event.type === "BOOKMARK") {
            onReady();
            continue;
          }
          const { metadata, status } = event.item.object;
          const name = metadata?.name ?? "";
          if (event.type === "DELETED") this.#servers.delete(name);
          else this.#servers.set(name, status?.storageVersions ?? []);
        }
      } catch (error) {
        if (signal.aborted) return;
        log.error("Restarting the watch of storage versions", error);
        await registries.deps.clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }
}
