/** The resources of a group version in aggregated discovery, read from what an extension server sent. */

/** An entry of `resources` in `APIVersionDiscovery`. */
export interface ResourceDiscovery {
  readonly resource: string;
  readonly responseKind: GroupVersionKind;
  readonly scope: string;
  readonly singularResource: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly SubresourceDiscovery[];
}

interface SubresourceDiscovery {
  readonly subresource: string;
  readonly responseKind?: GroupVersionKind;
  readonly acceptedTypes?: readonly GroupVersionKind[];
  readonly verbs: readonly string[];
}

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

type Json = Readonly<Record<string, unknown>>;

/** By `group/version`. Members of other types than those of the document are left out. */
export function readGroupDiscoveryList(value: unknown): ReadonlyMap<string, readonly ResourceDiscovery[]> {
  const versions = new Map<string, readonly ResourceDiscovery[]>();
  for (const group of objectsOf(objectOf(value).items)) {
    const name = textOf(objectOf(group.metadata).name);
    for (const version of objectsOf(group.versions)) {
      versions.set(`${name}/${textOf(version.version)}`, objectsOf(version.resources).map(readResource));
    }
  }
  return versions;
}

/** Converts an `APIResourceList`, whose subresources are entries of their own. */
export function convertResourceList(value: unknown): readonly ResourceDiscovery[] {
  const entries = new Map<string, ResourceDiscovery>();
  const subresources = new Map<string, SubresourceDiscovery[]>();
  for (const item of objectsOf(objectOf(value).resources)) {
    const [resource = "", subresource] = textOf(item.name).split("/");
    const scope = item.namespaced === true ? "Namespaced" : "Cluster";
    const verbs = textsOf(item.verbs);
    const { group, version, kind } = item;
    const responseKind = { group: textOf(group), version: textOf(version), kind: textOf(kind) };
    if (subresource === undefined) {
      const entry = { resource, responseKind, scope, singularResource: textOf(item.singularName), verbs };
      entries.set(resource, { ...entry, ...namesOf(item) });
      continue;
    }
    if (!entries.has(resource)) {
      const unknownKind = { group: "", version: "", kind: "" };
      entries.set(resource, { resource, responseKind: unknownKind, scope, singularResource: "", verbs: [] });
    }
    const own = subresources.get(resource);
    if (own === undefined) subresources.set(resource, [{ subresource, responseKind, verbs }]);
    else own.push({ subresource, responseKind, verbs });
  }
  return [...entries.values()].map((entry) => {
    const own = subresources.get(entry.resource);
    return own === undefined ? entry : { ...entry, subresources: own };
  });
}

function readResource(item: Json): ResourceDiscovery {
  const subresources = objectsOf(item.subresources).map((each) => ({
    subresource: textOf(each.subresource),
    responseKind: readKind(each.responseKind),
    ...(each.acceptedTypes === undefined ? {} : { acceptedTypes: objectsOf(each.acceptedTypes).map(readKind) }),
    verbs: textsOf(each.verbs),
  }));
  return {
    resource: textOf(item.resource),
    responseKind: readKind(item.responseKind),
    scope: textOf(item.scope),
    singularResource: textOf(item.singularResource),
    verbs: textsOf(item.verbs),
    ...namesOf(item),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}

function namesOf(item: Json): Pick<ResourceDiscovery, "shortNames" | "categories"> {
  const shortNames = textsOf(item.shortNames);
  const categories = textsOf(item.categories);
  return {
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
}

function readKind(value: unknown): GroupVersionKind {
  const { group, version, kind } = objectOf(value);
  return { group: textOf(group), version: textOf(version), kind: textOf(kind) };
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function objectsOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
