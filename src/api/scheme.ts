/**
 * The scheme: the kinds that a server serves or stores. A group has two aliases (`coordination.svc.io`,
 * `coordination.k8s.io`) for the same kinds; `apps`, `batch`, `autoscaling`, `policy` and core have one name.
 */
import type { FeatureLookup } from "../flags/gates.ts";
import type { Kind } from "./kind.ts";
import { compareVersions } from "./version-order.ts";

const SVC_DOMAIN = ".svc.io";
const KUBERNETES_DOMAIN = ".k8s.io";

/** The Kubernetes alias of a group: `events.svc.io` → `events.k8s.io`. */
export function kubernetesGroup(group: string): string {
  return group.endsWith(SVC_DOMAIN) ? `${group.slice(0, -SVC_DOMAIN.length)}${KUBERNETES_DOMAIN}` : group;
}

/** The project's own alias of a group: `events.k8s.io` → `events.svc.io`. */
export function svcGroup(group: string): string {
  return group.endsWith(KUBERNETES_DOMAIN) ? `${group.slice(0, -KUBERNETES_DOMAIN.length)}${SVC_DOMAIN}` : group;
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** Parses `apps/v1` or `v1`; undefined for any other text. */
export function parseApiVersion(text: string): { readonly group: string; readonly version: string } | undefined {
  const parts = text.split("/");
  const [first = "", second] = parts;
  if (parts.length > 2 || first === "" || second === "") return undefined;
  return second === undefined ? { group: "", version: first } : { group: first, version: second };
}

export function formatApiVersion(group: string, version: string): string {
  return group === "" ? version : `${group}/${version}`;
}

export class Scheme {
  readonly #byResource = new Map<string, Kind>();
  readonly #byKind = new Map<string, Kind>();
  readonly #builtin: Kind[] = [];
  /** Keyed by the storage name, which all versions of a resource share. */
  readonly #custom = new Map<string, readonly Kind[]>();
  #kinds: readonly Kind[] | undefined;
  #changeCount = 0;
  readonly #listeners: (() => void)[] = [];
  readonly #features: FeatureLookup | undefined;
  readonly #published = new WeakMap<Kind, Kind>();

  /** `features`: the feature gates that are on; absent, all are. */
  constructor(features?: FeatureLookup) {
    this.#features = features;
  }

  /** Calls `listener` after each change of the kinds, as long as the scheme exists. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Increments with each change of the kinds, so that callers can invalidate what they derive from them. */
  get changeCount(): number {
    return this.#changeCount;
  }

  /** Throws when the resource or the kind is registered already. */
  register(kind: Kind): void {
    this.#add(kind);
    this.#builtin.push(kind);
    this.#recordChange();
  }

  /**
   * Replaces the served versions of a custom resource; no kinds removes the resource. Throws, without a change, when a
   * name is registered already.
   */
  setCustomVersions(storageName: string, kinds: readonly Kind[]): void {
    const before = this.#custom.get(storageName) ?? [];
    for (const kind of before) this.#remove(kind);
    try {
      for (const kind of kinds) this.#add(kind);
    } catch (error) {
      for (const kind of kinds) this.#remove(kind);
      for (const kind of before) this.#add(kind);
      throw error;
    }
    if (kinds.length === 0) this.#custom.delete(storageName);
    else this.#custom.set(storageName, kinds);
    this.#recordChange();
  }

  /** Accepts either alias of the group. */
  byResource(group: string, version: string, plural: string): Kind | undefined {
    return this.#byResource.get(keyOf(svcGroup(group), version, plural));
  }

  /** Accepts either alias of the group. */
  byKind(group: string, version: string, kind: string): Kind | undefined {
    return this.#byKind.get(keyOf(svcGroup(group), version, kind));
  }

  /** Built-in kinds in the order of registration, then custom resources by group and version priority. */
  kinds(): readonly Kind[] {
    this.#kinds ??= [...this.#builtin, ...[...this.#custom.values()].flat().sort(compareKinds)];
    return this.#kinds;
  }

  /** The kind as clients see it: without the subresources whose feature gate is off. */
  published(kind: Kind): Kind {
    const features = this.#features;
    const isServed = ({ featureGate }: { readonly featureGate?: string }): boolean =>
      featureGate === undefined || features === undefined || features.has(featureGate);
    if (kind.subresources.every(isServed)) return kind;
    const published = this.#published.get(kind) ?? { ...kind, subresources: kind.subresources.filter(isServed) };
    this.#published.set(kind, published);
    return published;
  }

  #add(kind: Kind): void {
    const resource = keyOf(kind.group, kind.version, kind.plural);
    const name = keyOf(kind.group, kind.version, kind.kind);
    if (this.#byResource.has(resource) || this.#byKind.has(name)) throw new Error(`Cannot register ${name} twice`);
    this.#byResource.set(resource, kind);
    this.#byKind.set(name, kind);
  }

  #remove(kind: Kind): void {
    const resource = keyOf(kind.group, kind.version, kind.plural);
    const name = keyOf(kind.group, kind.version, kind.kind);
    if (this.#byResource.get(resource) === kind) this.#byResource.delete(resource);
    if (this.#byKind.get(name) === kind) this.#byKind.delete(name);
  }

  #recordChange(): void {
    this.#kinds = undefined;
    this.#changeCount++;
    for (const listener of this.#listeners) listener();
  }
}

function compareKinds(a: Kind, b: Kind): number {
  if (a.group !== b.group) return a.group < b.group ? -1 : 1;
  return compareVersions(a.version, b.version) || (a.plural < b.plural ? -1 : 1);
}

function keyOf(group: string, version: string, name: string): string {
  return `${group}/${version}/${name}`;
}
