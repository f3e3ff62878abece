/** Opens the stores of the server: one for all kinds, and those of `--kvstore-servers-overrides`. */
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import type { Connector } from "../../client/transport/connector.ts";
import type { HealthCheck } from "../../http/health.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { openStore } from "../../storage/open.ts";
import type { Store } from "../../storage/store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { serverIdHash } from "../metrics/server-id.ts";
import type { ServerMetrics } from "../metrics/server-metrics.ts";
import type { ThreadLink } from "../workers/thread-link.ts";

/** The namespace of the leases that nodes renew. */
const NODE_LEASES = "kube-node-lease";

export interface StoresDeps {
  /** The built-in kinds that are served. */
  readonly kinds: readonly Kind[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  /** Closes the stores. */
  readonly resources: AsyncDisposableStack;
  /** Replaces the store of the configuration. */
  readonly store?: Store | undefined;
  /** How to connect to remote stores; undefined: directly. */
  readonly connector?: Connector | undefined;
  /** Undefined: the server has one thread. */
  readonly threads?: ThreadLink | undefined;
}

export interface Stores {
  readonly store: Store;
  /** The store of a kind that has one of its own. */
  readonly ownStoreOf: ((kind: Kind) => Store | undefined) | undefined;
  readonly kmsChecks: readonly HealthCheck[] | undefined;
}

export async function openStores(config: ApiServerConfig, deps: StoresDeps): Promise<Stores> {
  const { storage } = config;
  const { clock, connector, resources, metrics } = deps;
  const heartbeats = `${storage.prefix}/${leaseKind.storageName}/${NODE_LEASES}/`;
  const isDeferrable = (key: string): boolean => key.startsWith(heartbeats);
  const options = { ...storage, statusIntervalMs: config.observability.sizePollMs, connector, clock, isDeferrable };
  const openHere = (urls: readonly string[]): Promise<Store> =>
    openStore({ ...options, urls, log: deps.log.child("store") });
  const { threads } = deps;
  const open = async (urls: readonly string[], openOwn = () => openHere(urls)): Promise<Store> =>
    resources.use(await (threads === undefined ? openOwn() : threads.openStore(urls, openOwn)));
  const { store: given } = deps;
  const main = metrics.measureStore(await open(storage.urls, given && (async () => given)));
  const { encrypt, kmsChecks } = await openEncryption(config, deps);
  const own = new Map<string, Store>();
  for (const { group, resource, urls } of storage.overrides) {
    const kind = deps.kinds.find((each) => each.group === svcGroup(group) && each.plural === resource);
    if (kind === undefined) {
      const name = `${group}/${resource}`;
      throw new Error(`Cannot use --kvstore-servers-overrides=${name}#…: the server has no built-in resource ${name}`);
    }
    own.set(kind.storageName, encrypt(await open(urls)));
  }
  const ownStoreOf = own.size === 0 ? undefined : (kind: Kind): Store | undefined => own.get(kind.storageName);
  return { store: encrypt(main), ownStoreOf, kmsChecks };
}

interface Encryption {
  encrypt(store: Store): Store;
  readonly kmsChecks: readonly HealthCheck[] | undefined;
}

async function openEncryption({ storage }: ApiServerConfig, deps: StoresDeps): Promise<Encryption> {
  const { encryption, prefix } = storage;
  if (encryption === undefined) return { encrypt: (store) => store, kmsChecks: undefined };
  const [{ StorageEncryption }, { EncryptedStore }, { EncryptionMetrics }] = await Promise.all([
    import("../../storage/encryption/storage-encryption.ts"),
    import("../../storage/encryption/encrypted-store.ts"),
    import("../../storage/encryption/encryption-metrics.ts"),
  ]);
  const metrics = new EncryptionMetrics(deps.metrics.registry, deps.clock, serverIdHash());
  const options = { ...deps, prefix, log: deps.log.child("encryption"), metrics };
  const transformers = deps.resources.use(await StorageEncryption.open(encryption, options));
  return {
    encrypt: (store) => new EncryptedStore(store, (key) => transformers.transformerOf(key)),
    kmsChecks: transformers.healthChecks(),
  };
}
