/** Whether owners are there, asked of the server; those that are not are remembered for a while. */
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { parseApiVersion, type Scheme } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";

/** A uid never comes back, so what is absent stays so. As many as Kubernetes keeps; the oldest makes room. */
const ABSENT_MAX = 500;

export type Owner =
  | { readonly state: "present"; readonly kind: Kind; readonly metadata: ObjectMeta }
  | { readonly state: "absent" }
  /** A cluster-wide object cannot be owned by one in a namespace: nothing can be said, now or later. */
  | { readonly state: "impossible" };

export class OwnerLookup {
  readonly #scheme: Scheme;
  readonly #client: Client;
  /** Uids of those known to be gone, and places where they were looked for in vain. */
  readonly #absent = new Set<string>();

  constructor(scheme: Scheme, client: Client) {
    this.#scheme = scheme;
    this.#client = client;
  }

  /** The owner that an object in this namespace names. Throws when its kind is not known. */
  async find(reference: OwnerReference, namespaceOfDependent: string, signal: AbortSignal): Promise<Owner> {
    if (this.#absent.has(reference.uid)) return { state: "absent" };
    const kind = this.#kindOf(reference);
    if (kind.namespaced && namespaceOfDependent === "") return { state: "impossible" };
    const namespace = kind.namespaced ? namespaceOfDependent : "";
    const key = keyOf(kind, namespace, reference.name, reference.uid);
    if (this.#absent.has(key)) return { state: "absent" };
    const metadata = await this.live(kind, { name: reference.name, namespace }, signal);
    if (metadata?.uid === reference.uid) return { state: "present", kind, metadata };
    this.#remember(key);
    return { state: "absent" };
  }

  /** The object as the store has it; undefined when it has none. */
  async live(
    kind: Kind,
    name: { readonly name: string; readonly namespace: string },
    signal: AbortSignal,
  ): Promise<ObjectMeta | undefined> {
    try {
      return (await this.#client.get(metadataOnly(kind), name, signal)).metadata ?? {};
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 404) return undefined;
      throw error;
    }
  }

  /** The object is known to be gone for good, wherever it was said to be. */
  isGone(uid: string): void {
    this.#remember(uid);
  }

  #kindOf({ apiVersion, kind }: OwnerReference): Kind {
    const version = parseApiVersion(apiVersion);
    const found = version === undefined ? undefined : this.#scheme.byKind(version.group, version.version, kind);
    if (found === undefined) throw new UnknownOwnerError(`no kind ${kind} in ${apiVersion}`);
    return found;
  }

  #remember(key: string): void {
    this.#absent.delete(key);
    this.#absent.add(key);
    for (const oldest of this.#absent) {
      if (this.#absent.size <= ABSENT_MAX) break;
      this.#absent.delete(oldest);
    }
  }
}

/** The kind may come to be known later. */
export class UnknownOwnerError extends Error {}

function keyOf({ group, plural }: Kind, namespace: string, name: string, uid: string): string {
  return `${group}/${plural}/${namespace}/${name}/${uid}`;
}
