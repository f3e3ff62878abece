/** Which resource a key of the store is of. */
import type { Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { normalizePrefix } from "../keys.ts";
import type { GroupResource } from "./encrypted-resources.ts";

export type StoredKind = Pick<Kind, "group" | "plural" | "storageName">;

/** `deployments.apps`, `secrets` */
export function resourceText({ group, resource }: GroupResource): string {
  return group === "" ? resource : `${resource}.${kubernetesGroup(group)}`;
}

/** Custom resources, whose kinds come and go, are stored under group and plural name: the most that are remembered. */
const CUSTOM_RESOURCES_MAX = 4096;

/** Returns the resource of a key in the store; undefined for other keys. */
export function createResourceFinder(
  prefix: string,
  kinds: readonly StoredKind[],
): (key: string) => GroupResource | undefined {
  const root = normalizePrefix(prefix);
  const resources = new Map<string, GroupResource>();
  // Events of both groups are stored as those of the core group.
  for (const { group, plural, storageName } of kinds) {
    if (!resources.has(storageName) || group === "") resources.set(storageName, { group, resource: plural });
  }
  const customResources = new Map<string, GroupResource>();
  return (key) => {
    if (!key.startsWith(root)) return undefined;
    const [first = "", second = ""] = key.slice(root.length).split("/", 2);
    const builtIn = resources.get(first) ?? resources.get(`${first}/${second}`);
    if (builtIn !== undefined || !first.includes(".")) return builtIn;
    const name = `${first}/${second}`;
    let custom = customResources.get(name);
    if (custom === undefined) {
      if (customResources.size >= CUSTOM_RESOURCES_MAX) customResources.clear();
      custom = { group: first, resource: second };
      customResources.set(name, custom);
    }
    return custom;
  };
}
