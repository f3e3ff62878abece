import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { dropStatus, keepStatus, statusSubresource } from "../../strategy.ts";
import { type ResourceQuota, resourceQuota } from "./schema.ts";
import { validateResourceQuota, validateResourceQuotaStatusUpdate, validateResourceQuotaUpdate } from "./validation.ts";

/** Used and hard quantities: `pods: 3/10, requests.cpu: 500m/4`. */
function usageText({ status }: ResourceQuota, ofLimits: boolean): string {
  return Object.entries(status?.hard ?? {})
    .filter(([name]) => name.startsWith("limits.") === ofLimits)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hard]) => `${name}: ${status?.used?.[name] ?? "0"}/${hard}`)
    .join(", ");
}

export const resourceQuotaKind: Kind<ResourceQuota> = {
  group: "",
  version: "v1",
  kind: "ResourceQuota",
  listKind: "ResourceQuotaList",
  plural: "resourcequotas",
  singular: "resourcequota",
  shortNames: ["quota"],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [statusSubresource("ResourceQuota", { validateUpdate: validateResourceQuotaStatusUpdate })],
  storageName: "resourcequotas",
  schema: resourceQuota,
  columns: [
    nameColumn,
    column("Request", (object) => usageText(object, false)),
    column("Limit", (object) => usageText(object, true)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: {
    prepareForCreate: dropStatus,
    prepareForUpdate: keepStatus,
    validate: validateResourceQuota,
    validateUpdate: validateResourceQuotaUpdate,
  },
};
