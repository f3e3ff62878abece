import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type MutatingWebhookConfiguration, mutatingWebhookConfiguration } from "./webhook-configuration.ts";

export const mutatingWebhookConfigurationKind: Kind<MutatingWebhookConfiguration> = {
  group: "admissionregistration.svc.io",
  version: "v1",
  kind: "MutatingWebhookConfiguration",
  listKind: "MutatingWebhookConfigurationList",
  plural: "mutatingwebhookconfigurations",
  singular: "mutatingwebhookconfiguration",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "mutatingwebhookconfigurations",
  schema: mutatingWebhookConfiguration,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
