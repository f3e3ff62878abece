import type { Kind, SubresourceStrategy } from "../../api/kind.ts";
import { difference, type FieldSet, setOfPaths } from "../../schema/apply/field-set.ts";
import { excludeFields, type FieldFilter, includeFields } from "../../schema/apply/filter.ts";
import { fieldElement } from "../../schema/apply/path-element.ts";

const filters = new WeakMap<Kind, Map<string, FieldFilter>>();

const SYSTEM_MEMBERS = [
  "name",
  "namespace",
  "creationTimestamp",
  "selfLink",
  "uid",
  "clusterName",
  "generation",
  "managedFields",
  "resourceVersion",
];

/** What nobody manages: it is the system's. */
const systemFields = setOfPaths(
  [fieldElement("apiVersion")],
  [fieldElement("kind")],
  [fieldElement("metadata")],
  ...SYSTEM_MEMBERS.map((name) => [fieldElement("metadata"), fieldElement(name)]),
);

export function withoutSystemFields(fields: FieldSet): FieldSet {
  return difference(fields, systemFields);
}

/** Which fields a write to the object, or to one of its subresources, can manage. */
export function manageableFields(kind: Kind, subresource: string): FieldFilter {
  let filtersOfKind = filters.get(kind);
  if (filtersOfKind === undefined) {
    filtersOfKind = new Map();
    filters.set(kind, filtersOfKind);
  }
  let filter = filtersOfKind.get(subresource);
  if (filter === undefined) {
    filter = createFilter(kind, subresource);
    filtersOfKind.set(subresource, filter);
  }
  return filter;
}

function createFilter(kind: Kind, subresource: string): FieldFilter {
  if (subresource === "") return excludePaths(kind.strategy.resetFields ?? (hasStatus(kind) ? [["status"]] : []));
  const part = kind.subresources.find(({ name }) => name === subresource)?.strategy as SubresourceStrategy | undefined;
  if (part?.manageableFields !== undefined) return includeFields(...part.manageableFields);
  return excludePaths(part?.resetFields ?? []);
}

/** What has a status subresource has its status written there alone. */
function hasStatus(kind: Kind): boolean {
  return kind.subresources.some(({ name, strategy: part }) => name === "status" && part !== undefined);
}

function excludePaths(paths: readonly (readonly string[])[]): FieldFilter {
  if (paths.length === 0) return (fields) => fields;
  return excludeFields(setOfPaths(...paths.map((path) => path.map(fieldElement))));
}
