/**
 * The kinds a server knows. Groups have two spellings (`coordination.svc.io`, `coordination.k8s.io`) that name the same
 * kinds; `apps`, `batch`, `autoscaling`, `policy` and core have but one.
 */
import type { Kind } from "./kind.ts";

const OWN_DOMAIN = ".svc.io";
const KUBERNETES_DOMAIN = ".k8s.io";

/** The Kubernetes spelling of a group. */
export function kubernetesGroup(group: string): string {
  return group.endsWith(OWN_DOMAIN) ? `${group.slice(0, -OWN_DOMAIN.length)}${KUBERNETES_DOMAIN}` : group;
}

/** The project's own spelling of a group. */
export function svcGroup(group: string): string {
  return group.endsWith(KUBERNETES_DOMAIN) ? `${group.slice(0, -KUBERNETES_DOMAIN.length)}${OWN_DOMAIN}` : group;
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** `apps/v1`, `v1` → group and version; undefined when it is neither form. */
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

  /** Throws when the resource or the kind is known already. */
  register(kind: Kind): void {
    const resource = keyOf(kind.group, kind.version, kind.plural);
    const name = keyOf(kind.group, kind.version, kind.kind);
    if (this.#byResource.has(resource) || this.#byKind.has(name)) throw new Error(`Cannot register ${name} twice`);
    this.#byResource.set(resource, kind);
    this.#byKind.set(name, kind);
  }

  /** Any spelling of the group. */
  byResource(group: string, version: string, plural: string): Kind | undefined {
    return this.#byResource.get(keyOf(svcGroup(group), version, plural));
  }

  /** Any spelling of the group. */
  byKind(group: string, version: string, kind: string): Kind | undefined {
    return this.#byKind.get(keyOf(svcGroup(group), version, kind));
  }

  /** In the order of registration. */
  kinds(): readonly Kind[] {
    return [...this.#byKind.values()];
  }
}

function keyOf(group: string, version: string, name: string): string {
  return `${group}/${version}/${name}`;
}
