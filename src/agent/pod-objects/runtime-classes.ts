/** Which of the runtime's handlers a pod's runtime class stands for. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { runtimeClassKind } from "../../api/node/runtime-class/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";

/** Names kept for when the API server is away. */
const KNOWN_MAX = 256;

export class RuntimeClasses {
  readonly #client: Client | undefined;
  readonly #known = new Map<string, string>();

  constructor(client: Client | undefined) {
    this.#client = client;
  }

  /** Empty for the runtime's default. Rejects when the class does not exist, or nobody can say. */
  async handler(pod: Pod): Promise<string> {
    const name = pod.spec?.runtimeClassName ?? "";
    if (name === "") return "";
    if (this.#client === undefined) throw new Error(`failed to lookup RuntimeClass ${name}: there is no API server`);
    try {
      const { handler } = await this.#client.get(runtimeClassKind, { name });
      this.#remember(name, handler);
      return handler;
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) {
        this.#known.delete(name);
        throw new Error(`runtimeclass.node.k8s.io "${name}" not found`);
      }
      const known = this.#known.get(name);
      if (known !== undefined) return known;
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`failed to lookup RuntimeClass ${name}: ${text}`, { cause: error });
    }
  }

  #remember(name: string, handler: string): void {
    this.#known.delete(name);
    this.#known.set(name, handler);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}
