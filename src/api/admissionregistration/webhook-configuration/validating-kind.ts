import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type ValidatingWebhookConfiguration, validatingWebhookConfiguration } from "./schema.ts";
import { setWebhookDefaults, validateWebhooks } from "./validation.ts";

const strategy: Strategy<ValidatingWebhookConfiguration> = {
  allowUnconditionalUpdate: false,
  setDefaults: (object) =>
    object.webhooks === undefined ? object : { ...object, webhooks: object.webhooks.map(setWebhookDefaults) },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.webhooks, previous.webhooks)),
  validateInSteps: (object, previous) => validateWebhooks(object.webhooks, previous?.webhooks),
};

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
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "validatingwebhookconfigurations",
  schema: validatingWebhookConfiguration,
  columns: [nameColumn, integerColumn("Webhooks", (object) => (object.webhooks ?? []).length), ageColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy,
};
