/** ConfigMaps and Secrets that pods refer to. What was read once is remembered for when the API server is away. */
import type { ConfigMap } from "../api/core/config-map.ts";
import { configMapKind } from "../api/core/config-map-kind.ts";
import type { Secret } from "../api/core/secret.ts";
import { secretKind } from "../api/core/secret-kind.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../client/client.ts";
import type { EnvironmentSources } from "./pods/environment.ts";
import type { VolumeObjects } from "./volumes/payload.ts";

type Bytes = Readonly<Record<string, Uint8Array>>;

export class ObjectReader implements VolumeObjects {
  readonly #client: Client | undefined;
  /**
   * By kind, namespace and name; an entry goes when the object does or when no pod of the node refers to it (see
   * `keep`).
   */
  readonly #known = new Map<string, Bytes>();

  constructor(client: Client | undefined) {
    this.#client = client;
  }

  configMap(namespace: string, name: string): Promise<Bytes | undefined> {
    return this.#read(`configMap/${namespace}/${name}`, async (client) => {
      const found: ConfigMap = await client.get(configMapKind, { namespace, name });
      const text = Object.entries(found.data ?? {}).map(([key, value]) => [key, Buffer.from(value)] as const);
      return Object.fromEntries([...text, ...decoded(found.binaryData)]);
    });
  }

  secret(namespace: string, name: string): Promise<Bytes | undefined> {
    return this.#read(`secret/${namespace}/${name}`, async (client) => {
      const found: Secret = await client.get(secretKind, { namespace, name });
      return Object.fromEntries(decoded(found.data));
    });
  }

  /** The same as text, for environments. */
  get text(): EnvironmentSources {
    return {
      configMap: async (namespace, name) => asText(await this.configMap(namespace, name)),
      secret: async (namespace, name) => asText(await this.secret(namespace, name)),
    };
  }

  /** Forgets all but these keys: `secret/<namespace>/<name>`, `configMap/…`. */
  keep(wanted: ReadonlySet<string>): void {
    for (const key of this.#known.keys()) {
      if (!wanted.has(key)) this.#known.delete(key);
    }
  }

  async #read(key: string, get: (client: Client) => Promise<Bytes>): Promise<Bytes | undefined> {
    if (this.#client === undefined) throw new Error(`cannot read ${key}: the agent has no API server`);
    try {
      const found = await get(this.#client);
      this.#known.set(key, found);
      return found;
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) {
        this.#known.delete(key);
        return undefined;
      }
      const known = this.#known.get(key);
      if (known === undefined || error instanceof StatusError) throw error;
      return known;
    }
  }
}

function decoded(data: Readonly<Record<string, string>> | undefined): readonly (readonly [string, Uint8Array])[] {
  return Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64")] as const);
}

function asText(bytes: Bytes | undefined): Readonly<Record<string, string>> | undefined {
  return (
    bytes && Object.fromEntries(Object.entries(bytes).map(([key, value]) => [key, Buffer.from(value).toString("utf8")]))
  );
}
