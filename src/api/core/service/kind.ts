import { ageColumn, column, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabels } from "../../columns/selector-text.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { dns1035Label } from "../../meta/validation/names.ts";
import { dropStatus, keepStatus, statusSubresource } from "../../strategy.ts";
import { externalText, portsText } from "./columns.ts";
import { setServiceDefaults } from "./defaults.ts";
import { type Service, service } from "./schema.ts";
import { dropInternalTraffic, dropTypeDependentFields } from "./strategy.ts";
import { specOf } from "./types.ts";
import {
  serviceStatusWarnings,
  serviceWarnings,
  validateService,
  validateServiceStatus,
  validateServiceUpdate,
} from "./validation.ts";

/** `registry/` allocates cluster IPs and node ports before validation. */
const serviceStrategy: Strategy<Service> = {
  setDefaults: setServiceDefaults,
  prepareForCreate: (object) => dropInternalTraffic(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    dropInternalTraffic(dropTypeDependentFields(keepStatus(next, previous), previous)),
  validate: validateService,
  validateUpdate: validateServiceUpdate,
  warnings: serviceWarnings,
  allowCreateOnUpdate: true,
};

export const serviceKind: Kind<Service> = {
  group: "",
  version: "v1",
  kind: "Service",
  listKind: "ServiceList",
  plural: "services",
  singular: "service",
  shortNames: ["svc"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  returnsDeletedObject: true,
  subresources: [
    { name: "proxy", kind: "ServiceProxyOptions", verbs: ["create", "delete", "get", "patch", "update"] },
    statusSubresource("Service", { validateUpdate: validateServiceStatus, warnings: serviceStatusWarnings }),
  ],
  storageName: "services/specs",
  schema: service,
  nameFormat: dns1035Label,
  columns: [
    nameColumn,
    column("Type", (object) => specOf(object).type ?? ""),
    column("Cluster-IP", (object) => specOf(object).clusterIPs?.[0] || "<none>"),
    column("External-IP", externalText),
    column("Port(s)", portsText),
    ageColumn,
    wideColumn("Selector", (object) => formatLabels(specOf(object).selector)),
  ],
  selectableFields: {
    "spec.clusterIP": (object) => specOf(object).clusterIP ?? "",
    "spec.type": (object) => specOf(object).type ?? "",
  },
  updateChecks: ["metadataUpdate", "change", "metadata", "spec"],
  strategy: serviceStrategy,
};
