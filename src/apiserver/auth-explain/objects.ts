/** The objects that authentication and authorization read: of a running server, or of the store of a stopped one. */
import { existsSync } from "node:fs";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { isNotFound } from "../../api/status.ts";
import { createClient } from "../../client/api-client.ts";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import { openStore } from "../../storage/open.ts";
import { StoreError } from "../../storage/store.ts";
import type { ApiServerConfig } from "../config/config.ts";

export interface ObjectSource extends AsyncDisposable {
  /** Where the objects come from, for the operator. */
  readonly description: string;
  list<T extends ApiObject>(kind: Kind<T>): Promise<readonly T[]>;
  get<T extends ApiObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>;
}

const PAGE = 500;

/** Undefined: there is neither. Rejects with a sentence for the operator. */
export async function openObjects(
  svcconfig: string,
  storage: ApiServerConfig["storage"],
): Promise<ObjectSource | undefined> {
  if (svcconfig !== "") return await openServer(svcconfig);
  const [url = ""] = storage.urls;
  const directory = /^level:\/\/(.+)$/.exec(url)?.[1];
  // Opening a store creates its directory.
  if (directory === undefined || !existsSync(decodeURIComponent(directory))) return undefined;
  return await openStopped(url, storage);
}

async function openServer(file: string): Promise<ObjectSource> {
  const access = await loadKubeconfig(file);
  const transport = networkTransport(access);
  const client = createClient({ transport });
  return {
    description: `the server ${access.server}`,
    async list(kind) {
      const items = [];
      let next: string | undefined;
      do {
        const page = await client.list(kind, { limit: PAGE, continue: next });
        items.push(...page.items);
        next = page.continue;
      } while (next !== undefined && next !== "");
      return items;
    },
    async get(kind, namespace, name) {
      return await client.get(kind, { namespace, name }).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}

async function openStopped(url: string, { prefix }: ApiServerConfig["storage"]): Promise<ObjectSource> {
  const options = { urls: [url], clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
  const store = await openStore(options).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.code !== "locked") throw error;
    const fix = "name the connection of an administrator to the running server with --svcconfig";
    throw new Error(`Cannot open ${url}: a server uses it; ${fix}`, { cause: error });
  });
  const storeOf = <T extends ApiObject>(kind: Kind<T>): ObjectStore<T> => new ObjectStore({ store, kind, prefix });
  return {
    description: `the store ${url}`,
    async list(kind) {
      const objects = storeOf(kind);
      return (await objects.list(objects.prefix())).items;
    },
    async get(kind, namespace, name) {
      const objects = storeOf(kind);
      return await objects.get(objects.key(kind.namespaced ? namespace : undefined, name));
    },
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  };
}
