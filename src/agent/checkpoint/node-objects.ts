/**
 * Reads the objects that pods refer to: from the API server; from the checkpoint while that is unavailable; for static
 * pods, from their manifests.
 */
import type { TokenRequest } from "../../api/authentication/token-request.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { ObjectReader } from "../pod-objects/object-reader.ts";
import { findReferencedObjects } from "../pod-objects/references.ts";
import type { EnvironmentSources } from "../pods/environment/environment.ts";
import { podUid } from "../pods/pod-fields.ts";
import type { StaticPods } from "../sources/static-pods.ts";
import type { VolumeObjects } from "../volumes/projected/payload.ts";
import type { TokenRequestSource } from "../volumes/projected/token-manager.ts";
import type { Checkpoint } from "./checkpoint.ts";

export interface NodeObjectsOptions {
  readonly reader: ObjectReader;
  readonly staticPods: StaticPods;
  /** Undefined: there is no API server, and so no checkpoint. */
  readonly checkpoint: Checkpoint | undefined;
}

type Bytes = Readonly<Record<string, Uint8Array>>;
type Texts = Readonly<Record<string, string>>;
type ObjectKind = "configMap" | "secret";

const SERVICES = "services";

export class NodeObjects implements VolumeObjects, TokenRequestSource {
  readonly #options: NodeObjectsOptions;
  /** Set while the node uses its checkpoint. */
  isApiServerUnavailable = false;

  constructor(options: NodeObjectsOptions) {
    this.#options = options;
  }

  configMap(namespace: string, name: string): Promise<Bytes | undefined> {
    return this.#bytes("configMap", namespace, name);
  }

  secret(namespace: string, name: string): Promise<Bytes | undefined> {
    return this.#bytes("secret", namespace, name);
  }

  /** Empty when there is no such Secret, or while the API server is unavailable. */
  async secretUid(namespace: string, name: string): Promise<string> {
    if (this.isApiServerUnavailable) return "";
    return (await this.#options.reader.secretUid(namespace, name).catch(() => undefined)) ?? "";
  }

  /** Objects as text, for environment variables. */
  get text(): EnvironmentSources {
    const { text } = this.#options.reader;
    return {
      configMap: (namespace, name) =>
        this.#readOrRestore(
          `text/configMap/${namespace}/${name}`,
          () => text.configMap(namespace, name),
          identity,
          identity<Texts>,
        ),
      secret: (namespace, name) =>
        this.#readOrRestore(
          `text/secret/${namespace}/${name}`,
          () => text.secret(namespace, name),
          identity,
          identity<Texts>,
        ),
      services: () => this.#services(text),
    };
  }

  /** For static pods, which only see objects of manifests. */
  get forStaticPods(): VolumeObjects & { readonly text: EnvironmentSources } {
    const { reader, staticPods, checkpoint } = this.#options;
    const find = async (kind: ObjectKind, namespace: string, name: string): Promise<Bytes | undefined> => {
      const found = staticPods.object(kind, namespace, name);
      // The error of Kubernetes' kubelet, which is not authorized to read them for static pods.
      if (found !== undefined || checkpoint === undefined) return found;
      throw new Error(`failed to sync ${kind.toLowerCase()} cache: timed out waiting for the condition`);
    };
    return {
      configMap: (namespace, name) => find("configMap", namespace, name),
      secret: (namespace, name) => find("secret", namespace, name),
      text: {
        configMap: async (namespace, name) => decodeText(await find("configMap", namespace, name)),
        secret: async (namespace, name) => decodeText(await find("secret", namespace, name)),
        services: () => this.#services(reader.text),
      },
    };
  }

  /** Returns an earlier token while the API server is unavailable; it is renewed later. */
  async requestToken(namespace: string, account: string, request: TokenRequest): Promise<TokenRequest> {
    const { reader, checkpoint } = this.#options;
    const { audiences = [], boundObjectRef } = request.spec ?? {};
    const key = `token/${boundObjectRef?.uid ?? ""}/${namespace}/${account}/${audiences.join(" ")}`;
    const last = this.isApiServerUnavailable ? await checkpoint?.get(key) : undefined;
    if (last !== undefined) return last as TokenRequest;
    try {
      const response = await reader.requestToken(namespace, account, request);
      // Renewals are not written, to save disk writes: any token is sufficient to start the pod.
      if (checkpoint?.keys(key).length === 0) checkpoint.set(key, response);
      return response;
    } catch (error) {
      const known = isDefinitive(error) ? undefined : await checkpoint?.get(key);
      if (known === undefined) throw error;
      return known as TokenRequest;
    }
  }

  /** Watches the objects that these pods refer to. */
  watchReferenced(pods: readonly Pod[]): void {
    this.#options.reader.setPods(pods);
  }

  /** Removes objects to which none of the pods refers; the pods must be all of the node. */
  pruneCheckpoint(pods: readonly Pod[]): void {
    const { checkpoint } = this.#options;
    this.watchReferenced(pods);
    const needed = new Set<string>();
    for (const key of findReferencedObjects(pods)) needed.add(`text/${key}`).add(`bytes/${key}`);
    const uids = new Set(pods.map(podUid));
    const isWanted = (key: string): boolean =>
      key.startsWith("token/") ? uids.has(key.split("/")[1] ?? "") : needed.has(key);
    for (const prefix of ["text/", "bytes/", "token/"]) {
      for (const key of checkpoint?.keys(prefix) ?? []) if (!isWanted(key)) checkpoint?.delete(key);
    }
  }

  #bytes(kind: ObjectKind, namespace: string, name: string): Promise<Bytes | undefined> {
    const { reader } = this.#options;
    return this.#readOrRestore(
      `bytes/${kind}/${namespace}/${name}`,
      () => reader[kind](namespace, name),
      encodeBase64,
      decodeBase64,
    );
  }

  async #services(text: EnvironmentSources): Promise<Iterable<Service>> {
    const { checkpoint } = this.#options;
    if (this.isApiServerUnavailable) return ((await checkpoint?.get(SERVICES)) as readonly Service[] | undefined) ?? [];
    const found = [...(await text.services())];
    checkpoint?.set(SERVICES, found.map(trimService));
    return found;
  }

  /** Restores the last value while the API server is unavailable. A deleted object is not restored. */
  async #readOrRestore<T>(
    key: string,
    read: () => Promise<T | undefined>,
    encode: (value: T) => unknown,
    decode: (value: Texts) => T,
  ): Promise<T | undefined> {
    const { checkpoint } = this.#options;
    // Without a request, which might block until its timeout.
    const last = this.isApiServerUnavailable ? await checkpoint?.get(key) : undefined;
    if (last !== undefined) return decode(last as Texts);
    try {
      const found = await read();
      if (found === undefined) checkpoint?.delete(key);
      else checkpoint?.set(key, encode(found));
      return found;
    } catch (error) {
      const known = isDefinitive(error) ? undefined : await checkpoint?.get(key);
      if (known === undefined) throw error;
      return decode(known as Texts);
    }
  }
}

/** Whether the API server itself rejected the request, rather than a proxy or an overloaded server. */
function isDefinitive(error: unknown): boolean {
  return error instanceof StatusError && error.status.code < 500 && error.status.code !== 429;
}

/** Only the fields that environment variables are made of; others change often. */
function trimService({ metadata, spec }: Service): Service {
  return {
    metadata: { name: metadata?.name ?? "", namespace: metadata?.namespace ?? "" },
    ...(spec === undefined ? {} : { spec }),
  };
}

function identity<T>(value: T): T {
  return value;
}

function encodeBase64(bytes: Bytes): Texts {
  return Object.fromEntries(Object.entries(bytes).map(([key, value]) => [key, Buffer.from(value).toString("base64")]));
}

function decodeBase64(texts: Texts): Bytes {
  return Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, Buffer.from(value, "base64")]));
}

function decodeText(bytes: Bytes | undefined): Texts | undefined {
  return (
    bytes && Object.fromEntries(Object.entries(bytes).map(([key, value]) => [key, Buffer.from(value).toString("utf8")]))
  );
}
