import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type APIService, apiService } from "./schema.ts";
import { apiServiceStrategy } from "./strategy.ts";

function availableText({ status }: APIService): string {
  const available = status?.conditions?.find(({ type }) => type === "Available");
  if (available === undefined) return "Unknown";
  return available.status === "True" ? "True" : `${available.status} (${available.reason ?? ""})`;
}

export const apiServiceKind: Kind<APIService> = {
  group: "apiregistration.svc.io",
  version: "v1",
  kind: "APIService",
  listKind: "APIServiceList",
  plural: "apiservices",
  singular: "apiservice",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("APIService", { prepareForUpdate: replaceStatusOnly })],
  storageName: "apiregistration.k8s.io/apiservices",
  schema: apiService,
  nameFormat: pathSegment,
  allowsAnyFinalizer: true,
  columns: [
    nameColumn,
    column("Service", ({ spec }) =>
      spec?.service === undefined ? "Local" : `${spec.service.namespace}/${spec.service.name}`,
    ),
    column("Available", availableText),
    ageColumn,
  ],
  selectableFields: {},
  strategy: apiServiceStrategy,
};
