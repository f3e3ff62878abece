import type { Kind } from "../../api/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";

/** What the definition of a kind says beyond the kind; it may change while the kind is served. */
export interface DefinitionState {
  /** The definition is to go, and with it all objects: no new ones are taken. */
  readonly terminating: boolean;
}

/**
 * One version of a custom resource while it is served. Requests that have begun when it is retired finish with what
 * they began with; watches end, and their clients come back to what is served then.
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

  /** Made when first asked for. */
  get registry(): Registry {
    return this.#registries.of(this.kind);
  }

  /** Aborts when the kind is retired: what would go on for long is to end. */
  get retired(): AbortSignal {
    return this.#retired.signal;
  }

  /** Runs a request; the registry lives for as long as it lasts. */
  async runRequest<T>(request: () => Promise<T>): Promise<T> {
    this.#requests++;
    try {
      return await request();
    } finally {
      this.#requests--;
      if (this.#requests === 0 && this.retired.aborted) this.#drained.resolve();
    }
  }

  /** Resolves when its requests are answered and its registry is closed. */
  async retire(): Promise<void> {
    this.#retired.abort(new Error(`${this.kind.plural} are not served in this form any more`));
    if (this.#requests > 0) await this.#drained.promise;
    await this.#registries.removeKind(this.kind);
  }
}
