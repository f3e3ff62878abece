/** Looks up the runtime handler of a pod's RuntimeClass. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { runtimeClassKind } from "../../api/node/runtime-class/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";

/** Handlers cached for when the API server is not reachable. */
const CACHED_HANDLERS_MAX = 256;

export class RuntimeClasses {
  readonly #client: Client | undefined;
  readonly #handlers = new Map<string, string>();

  constructor(client: Client | undefined) {
    this.#client = client;
  }

  /** Empty for the runtime's default. Rejects when the class does not exist or cannot be read. */
  async lookupHandler(pod: Pod): Promise<string> {
    const name = pod.spec?.runtimeClassName ?? "";
    if (name === "") return "";
    if (this.#client === undefined) throw new Error(`failed to lookup RuntimeClass ${name}: there is no API server`);
    try {
      const { handler } = await this.#client.get(runtimeClassKind, { name });
      this.#cacheHandler(name, handler);
      return handler;
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) {
        this.#handlers.delete(name);
        throw new Error(`runtimeclass.node.k8s.io "${name}" not found`);
      }
      const known = this.#handlers.get(name);
      if (known !== undefined) return known;
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`failed to lookup RuntimeClass ${name}: ${text}`, { cause: error });
    }
  }

  #cacheHandler(name: string, handler: string): void {
    this.#handlers.delete(name);
    this.#handlers.set(name, handler);
    const [oldest] = this.#handlers.keys();
    if (this.#handlers.size > CACHED_HANDLERS_MAX && oldest !== undefined) this.#handlers.delete(oldest);
  }
}
