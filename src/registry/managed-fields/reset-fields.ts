import type { Kind } from "../../api/kind.ts";
import { difference, type FieldSet, setOfPaths } from "../../schema/apply/fieldpath/field-set.ts";
import { excludeFields, type FieldFilter, includeFields } from "../../schema/apply/fieldpath/filter.ts";
import { fieldElement } from "../../schema/apply/fieldpath/path-element.ts";

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

/** Fields that no manager owns. */
const systemFields = setOfPaths(
  [fieldElement("apiVersion")],
  [fieldElement("kind")],
  [fieldElement("metadata")],
  ...SYSTEM_MEMBERS.map((name) => [fieldElement("metadata"), fieldElement(name)]),
);

export function withoutSystemFields(fields: FieldSet): FieldSet {
  return difference(fields, systemFields);
}

/** The fields that a write to the object, or through one of its subresources, can manage. */
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
  const strategy = kind.subresources.find(({ name }) => name === subresource)?.strategy;
  if (strategy?.manageableFields !== undefined) return includeFields(...strategy.manageableFields);
  return excludePaths(strategy?.resetFields ?? []);
}

/** Such a kind has its status written through the subresource only. */
function hasStatus(kind: Kind): boolean {
  return kind.subresources.some(({ name, strategy }) => name === "status" && strategy !== undefined);
}

function excludePaths(paths: readonly (readonly string[])[]): FieldFilter {
  if (paths.length === 0) return (fields) => fields;
  return excludeFields(setOfPaths(...paths.map((path) => path.map(fieldElement))));
}
