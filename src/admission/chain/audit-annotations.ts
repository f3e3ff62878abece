/** The annotations that admission plugins add to the audit event of one request. */

/** More than all plugins together add; a request with hundreds of containers must not fill the log. */
const ENTRIES_MAX = 128;
const VALUE_CHARACTERS_MAX = 10_240;

export class AuditAnnotations {
  #entries: Map<string, string> | undefined;

  /** The first value of a key stays, as in Kubernetes. Long values are truncated; keys beyond the limit are dropped. */
  add(key: string, value: string): void {
    this.#entries ??= new Map();
    if (this.#entries.has(key) || this.#entries.size >= ENTRIES_MAX) return;
    this.#entries.set(key, value.slice(0, VALUE_CHARACTERS_MAX));
  }

  get entries(): ReadonlyMap<string, string> {
    return this.#entries ?? NONE;
  }
}

const NONE: ReadonlyMap<string, string> = new Map();
