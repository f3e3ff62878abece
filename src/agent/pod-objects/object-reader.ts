/**
 * Reads the API objects that pods refer to: ConfigMaps, Secrets, Services, tokens. Watches the ConfigMaps and Secrets
 * of the node's pods, unless configured otherwise, so that changes take effect at once and reads cost nothing. Caches
 * them for when the API server is not reachable.
 */
import type { TokenRequest } from "../../api/authentication/token-request.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ServiceAccount } from "../../api/core/service-account/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, ObjectName } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { EnvironmentSources } from "../pods/environment/environment.ts";
import { podUid } from "../pods/pod-fields.ts";
import type { ClaimSource } from "../volumes/claims.ts";
import type { VolumeObjects } from "../volumes/projected/payload.ts";
import type { TokenRequestSource } from "../volumes/projected/token-manager.ts";
import { findReferencedObjects } from "./references.ts";

export interface ObjectReaderOptions {
  /** Undefined: the agent has no API server. */
  readonly client: Client | undefined;
  /** All services, which the caller stops. Undefined: the agent has no API server. */
  readonly services: Informer<Service> | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Something that the pod refers to changed. */
  readonly onChange: (uid: string) => void;
  /** How long ConfigMaps and Secrets are cached, in milliseconds; undefined: they are watched. */
  readonly cacheTtlMs?: (() => Promise<number>) | undefined;
}

type Bytes = Readonly<Record<string, Uint8Array>>;
type ObjectKind = "configMap" | "secret";

/** The members that ConfigMaps and Secrets share. */
interface Data extends ApiObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
}

interface CachedObject {
  readonly object: Data;
  /** On the monotonic clock. */
  readonly readAt: number;
}

interface WatchedObject {
  readonly informer: Informer<Data>;
  readonly users: Set<string>;
}

const kinds = { configMap: configMapKind as Kind<Data>, secret: secretKind as Kind<Data> };
/** How long environments wait for the first list of Services. */
const SERVICES_WAIT_MS = 10_000;

export class ObjectReader implements VolumeObjects, TokenRequestSource, ClaimSource, AsyncDisposable {
  readonly #options: ObjectReaderOptions;
  /** By kind, namespace and name; bounded by what the node's pods refer to. */
  readonly #watched = new Map<string, WatchedObject>();
  /** Objects read, by the same keys. */
  readonly #cache = new Map<string, CachedObject>();
  /** The pods that refer to each, by the same keys. */
  #podsByKey: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  /** Watches that are being closed. */
  readonly #closing = new Set<Promise<void>>();

  constructor(options: ObjectReaderOptions) {
    this.#options = options;
  }

  async configMap(namespace: string, name: string): Promise<Bytes | undefined> {
    return decodeData("configMap", await this.#read("configMap", namespace, name));
  }

  async secret(namespace: string, name: string): Promise<Bytes | undefined> {
    return decodeData("secret", await this.#read("secret", namespace, name));
  }

  async secretUid(namespace: string, name: string): Promise<string | undefined> {
    return (await this.#read("secret", namespace, name))?.metadata?.uid;
  }

  async requestToken(namespace: string, account: string, request: TokenRequest): Promise<TokenRequest> {
    const { client } = this.#options;
    if (client === undefined) throw new Error("the agent has no API server");
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", ...request };
    const created = await client.createSubresource(serviceAccountKind, { namespace, name: account }, "token", body);
    return created as TokenRequest;
  }

  async serviceAccount(namespace: string, name: string): Promise<ServiceAccount | undefined> {
    return await this.#get(serviceAccountKind, { namespace, name });
  }

  async claim(namespace: string, name: string): Promise<PersistentVolumeClaim | undefined> {
    return await this.#get(persistentVolumeClaimKind, { namespace, name });
  }

  async persistentVolume(name: string): Promise<PersistentVolume | undefined> {
    return await this.#get(persistentVolumeKind, { name });
  }

  /** Writes the claim's new size to its status, and removes the conditions of the resize. */
  async updateClaimSize(claim: PersistentVolumeClaim, storage: string): Promise<void> {
    const { client } = this.#options;
    const { name = "", namespace } = claim.metadata ?? {};
    const resizing = new Set(["Resizing", "FileSystemResizePending", "NodeResizeError"]);
    const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !resizing.has(type));
    const capacity = { ...claim.status?.capacity, storage };
    const status = { capacity, conditions, allocatedResourceStatuses: { storage: null } };
    const options = { subresource: "status" };
    await client?.patch(persistentVolumeClaimKind, { name, namespace }, "merge", { status }, options);
  }

  /** ConfigMaps (without `binaryData`) and Secrets as text, and Services, for environments. */
  get text(): EnvironmentSources {
    return {
      configMap: async (namespace, name) => {
        const found = await this.#read("configMap", namespace, name);
        return found && (found.data ?? {});
      },
      secret: async (namespace, name) => decodeText(await this.secret(namespace, name)),
      services: () => this.#listServices(),
    };
  }

  /** Watches what these pods refer to, and drops everything else. */
  setPods(pods: readonly Pod[]): void {
    const users = new Map<string, Set<string>>();
    for (const pod of pods) {
      for (const key of findReferencedObjects([pod])) users.set(key, (users.get(key) ?? new Set()).add(podUid(pod)));
    }
    for (const [key, { informer }] of this.#watched) {
      if (users.has(key)) continue;
      this.#watched.delete(key);
      this.#cache.delete(key);
      void this.#close(informer);
    }
    for (const [key, cached] of this.#cache) {
      const uids = users.get(key);
      const before = this.#podsByKey.get(key);
      if (uids === undefined) this.#cache.delete(key);
      // A new pod gets the current object, not a cached one.
      else if ([...uids].some((uid) => before?.has(uid) !== true))
        this.#cache.set(key, { ...cached, readAt: Number.NEGATIVE_INFINITY });
    }
    this.#podsByKey = users;
    if (this.#options.cacheTtlMs === undefined) for (const [key, uids] of users) this.#watch(key, uids);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.setPods([]);
    await Promise.all(this.#closing);
  }

  async #close(informer: AsyncDisposable): Promise<void> {
    const closed = Promise.resolve(informer[Symbol.asyncDispose]());
    this.#closing.add(closed);
    await closed;
    this.#closing.delete(closed);
  }

  #watch(key: string, users: Set<string>): void {
    const { client, clock, random, log, onChange } = this.#options;
    const watched = this.#watched.get(key);
    if (watched !== undefined || client === undefined) {
      watched?.users.clear();
      for (const uid of users) watched?.users.add(uid);
      return;
    }
    const [kind, namespace, name] = key.split("/") as [ObjectKind, string, string];
    const query = { namespace, fieldSelector: `metadata.name=${name}` };
    const informer = startInformer({ client, kind: kinds[kind], query, clock, random, log });
    this.#watched.set(key, { informer, users });
    const changed = (object: Data): void => {
      if (object.metadata?.name !== name) return;
      for (const uid of users) onChange(uid);
    };
    informer.subscribe({ put: changed, delete: changed });
  }

  async #read(kind: ObjectKind, namespace: string, name: string): Promise<Data | undefined> {
    const key = `${kind}/${namespace}/${name}`;
    const { client, clock, cacheTtlMs: goodForMs } = this.#options;
    const informer = this.#watched.get(key)?.informer;
    if (informer?.isSynced === true) return informer.get(name, namespace);
    if (client === undefined) throw new Error(`cannot read ${key}: the agent has no API server`);
    const before = this.#cache.get(key);
    const ageMs = clock.monotonic() - (before?.readAt ?? Number.NEGATIVE_INFINITY);
    if (goodForMs !== undefined && ageMs < (await goodForMs())) return before?.object;
    try {
      const object = await client.get(kinds[kind], { namespace, name });
      this.#cache.set(key, { object, readAt: clock.monotonic() });
      return object;
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) {
        this.#cache.delete(key);
        return undefined;
      }
      const cached = this.#cache.get(key);
      if (cached === undefined || error instanceof StatusError) throw error;
      return cached.object;
    }
  }

  async #get<T extends ApiObject>(kind: Kind<T>, name: ObjectName): Promise<T | undefined> {
    const { client } = this.#options;
    if (client === undefined) throw new Error(`cannot read ${kind.plural}: the agent has no API server`);
    try {
      return await client.get(kind, name);
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) return undefined;
      throw error;
    }
  }

  async #listServices(): Promise<readonly Service[]> {
    const { services, clock, log } = this.#options;
    if (services === undefined) return [];
    if (!services.isSynced) {
      const done = new AbortController();
      await Promise.race([services.synced, clock.sleep(SERVICES_WAIT_MS, done.signal)]).catch(() => undefined);
      done.abort();
      if (!services.isSynced)
        log.warn("Services are not synced yet: containers start without their environment variables");
    }
    return [...services.list()];
  }
}

function decodeData(kind: ObjectKind, object: Data | undefined): Bytes | undefined {
  if (object === undefined) return undefined;
  const { data = {}, binaryData = {} } = object;
  const encoding = kind === "secret" ? "base64" : "utf8";
  return Object.fromEntries([
    ...Object.entries(data).map(([key, value]) => [key, Buffer.from(value, encoding)] as const),
    ...Object.entries(binaryData).map(([key, value]) => [key, Buffer.from(value, "base64")] as const),
  ]);
}

function decodeText(bytes: Bytes | undefined): Readonly<Record<string, string>> | undefined {
  return (
    bytes && Object.fromEntries(Object.entries(bytes).map(([key, value]) => [key, Buffer.from(value).toString("utf8")]))
  );
}
