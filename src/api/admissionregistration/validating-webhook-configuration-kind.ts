import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { type ValidatingWebhookConfiguration, validatingWebhookConfiguration } from "./webhook-configuration.ts";

export const validatingWebhookConfigurationKind: Kind<ValidatingWebhookConfiguration> = {
  group: "admissionregistration.svc.io",
  version: "v1",
  kind: "ValidatingWebhookConfiguration",
  listKind: "ValidatingWebhookConfigurationList",
  plural: "validatingwebhookconfigurations",
  singular: "validatingwebhookconfiguration",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "validatingwebhookconfigurations",
  schema: validatingWebhookConfiguration,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
