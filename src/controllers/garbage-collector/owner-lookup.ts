/** Reads owners from the server, and caches which ones do not exist. */
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { parseApiVersion, type Scheme } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";

/** Uids are never reused, so absence is permanent. The size is Kubernetes'; the oldest entry is evicted. */
const ABSENT_MAX = 500;

export type Owner =
  | { readonly state: "present"; readonly kind: Kind; readonly metadata: ObjectMeta }
  | { readonly state: "absent" }
  /** A cluster-scoped object cannot have a namespaced owner, so the reference cannot be resolved. */
  | { readonly state: "impossible"; readonly kind: Kind };

export class OwnerLookup {
  readonly #scheme: Scheme;
  readonly #client: Client;
  /** Uids of deleted objects, and references that did not resolve. */
  readonly #absent = new Set<string>();

  constructor(scheme: Scheme, client: Client) {
    this.#scheme = scheme;
    this.#client = client;
  }

  /** Returns the owner that a dependent in this namespace references. Throws if the kind is unknown. */
  async find(reference: OwnerReference, namespaceOfDependent: string, signal: AbortSignal): Promise<Owner> {
    if (this.#absent.has(reference.uid)) return { state: "absent" };
    const kind = this.#kindOf(reference);
    if (kind.namespaced && namespaceOfDependent === "") return { state: "impossible", kind };
    const namespace = kind.namespaced ? namespaceOfDependent : "";
    const key = keyOf(kind, namespace, reference.name, reference.uid);
    if (this.#absent.has(key)) return { state: "absent" };
    const metadata = await this.readMetadata(kind, { name: reference.name, namespace }, signal);
    if (metadata?.uid === reference.uid) return { state: "present", kind, metadata };
    this.#addAbsent(key);
    return { state: "absent" };
  }

  /** Reads the object's metadata from the server; undefined if it does not exist. */
  async readMetadata(
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

  /** Records that the object was deleted. */
  markAbsent(uid: string): void {
    this.#addAbsent(uid);
  }

  #kindOf({ apiVersion, kind }: OwnerReference): Kind {
    const version = parseApiVersion(apiVersion);
    const found = version === undefined ? undefined : this.#scheme.byKind(version.group, version.version, kind);
    if (found === undefined) throw new UnknownOwnerError(`no kind ${kind} in ${apiVersion}`);
    return found;
  }

  #addAbsent(key: string): void {
    this.#absent.delete(key);
    this.#absent.add(key);
    for (const oldest of this.#absent) {
      if (this.#absent.size <= ABSENT_MAX) break;
      this.#absent.delete(oldest);
    }
  }
}

/** The kind may be defined later. */
export class UnknownOwnerError extends Error {}

function keyOf({ group, plural }: Kind, namespace: string, name: string, uid: string): string {
  return `${group}/${plural}/${namespace}/${name}/${uid}`;
}
