import type { Kind } from "../../api/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";

/** State of a definition that may change while its kinds stay the same. */
export interface DefinitionState {
  /** The definition is being deleted: creates are rejected. */
  readonly terminating: boolean;
}

/**
 * A served version of a custom resource. After it is retired, requests in flight complete with it and watches end, so
 * that their clients reconnect to the new version.
 */
export class ServedKind {
  readonly kind: Kind;
  state: DefinitionState;
  readonly #registries: Registries;
  readonly #retired = new AbortController();
  readonly #drained = Promise.withResolvers<void>();
  #requests = 0;

  constructor(kind: Kind, state: DefinitionState, registries: Registries) {
    this.kind = kind;
    this.state = state;
    this.#registries = registries;
  }

  /** Created on first use. */
  get registry(): Registry {
    return this.#registries.of(this.kind);
  }

  /** Aborts when the kind is retired, which ends watches. */
  get retired(): AbortSignal {
    return this.#retired.signal;
  }

  /** Runs a request, during which the registry stays open. */
  async runRequest<T>(request: () => Promise<T>): Promise<T> {
    this.#requests++;
    try {
      return await request();
    } finally {
      this.#requests--;
      if (this.#requests === 0 && this.retired.aborted) this.#drained.resolve();
    }
  }

  /** Resolves when all requests are completed and the registry is closed. */
  async retire(): Promise<void> {
    this.#retired.abort(new Error(`${this.kind.plural} are not served in this version any more`));
    if (this.#requests > 0) await this.#drained.promise;
    await this.#registries.removeKind(this.kind);
  }
}
