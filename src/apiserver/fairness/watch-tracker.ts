/** Counts the watches of each resource, namespace and object: writes cost more when many watch their object. */
import { kubernetesGroup } from "../../api/scheme.ts";
import type { RequestInfo } from "../request/request-info.ts";

export class WatchTracker {
  /** One entry for each combination that has a watch. */
  readonly #counts = new Map<string, number>();

  /** Returns a function that removes the watch, once. */
  add({ group, resource, namespace, name }: RequestInfo): () => void {
    const key = keyOf(group, resource, namespace, name);
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    let isRemoved = false;
    return () => {
      if (isRemoved) return;
      isRemoved = true;
      const left = (this.#counts.get(key) ?? 0) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
  }

  /** Watches that receive the event of a write: of all objects, of those in the namespace, of the one. */
  countFor({ group, resource, namespace, name }: RequestInfo): number {
    const counts = this.#counts;
    if (counts.size === 0) return 0;
    let count = counts.get(keyOf(group, resource, "", "")) ?? 0;
    if (namespace !== "") count += counts.get(keyOf(group, resource, namespace, "")) ?? 0;
    if (name !== "") count += counts.get(keyOf(group, resource, namespace, name)) ?? 0;
    return count;
  }
}

function keyOf(group: string, resource: string, namespace: string, name: string): string {
  return `${kubernetesGroup(group)}/${resource}/${namespace}/${name}`;
}
