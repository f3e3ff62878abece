import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { storedClaims } from "../flat-versions/stored.ts";
import { type ResourceClaim, resourceClaim } from "../schemas.ts";
import { resourceClaimStatusStrategy, resourceClaimStrategy } from "./strategy.ts";

export const resourceClaimKind: Kind<ResourceClaim> = {
  group: "resource.svc.io",
  version: "v1beta2",
  since: "1.33",
  storageVersion: "v1beta1",
  storedVersions: storedClaims,
  kind: "ResourceClaim",
  listKind: "ResourceClaimList",
  plural: "resourceclaims",
  singular: "resourceclaim",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("ResourceClaim", resourceClaimStatusStrategy)],
  storageName: "resourceclaims",
  schema: resourceClaim,
  columns: [nameColumn, column("State", stateOf), ageColumn],
  selectableFields: {},
  updateChecks: ["metadataUpdate", "spec"],
  strategy: resourceClaimStrategy,
};

function stateOf({ metadata, status }: ResourceClaim): string {
  const isDeleted = metadata?.deletionTimestamp !== undefined;
  const deleted = isDeleted ? ["deleted"] : [];
  if (status?.allocation === undefined) return [...deleted, ...(isDeleted ? [] : ["pending"])].join(",");
  return [...deleted, "allocated", ...((status.reservedFor ?? []).length > 0 ? ["reserved"] : [])].join(",");
}
