import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type MutatingWebhookConfiguration, mutatingWebhookConfiguration } from "./schema.ts";
import { setWebhookDefaults, validateWebhooks } from "./validation.ts";

const strategy: Strategy<MutatingWebhookConfiguration> = {
  allowUnconditionalUpdate: false,
  setDefaults: (object) => {
    if (object.webhooks === undefined) return object;
    const webhooks = object.webhooks.map((webhook) => ({
      ...setWebhookDefaults(webhook),
      reinvocationPolicy: webhook.reinvocationPolicy ?? "Never",
    }));
    return { ...object, webhooks };
  },
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.webhooks, previous.webhooks)),
  validateInSteps: (object, previous) => validateWebhooks(object.webhooks, previous?.webhooks),
};

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
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "mutatingwebhookconfigurations",
  schema: mutatingWebhookConfiguration,
  columns: [nameColumn, integerColumn("Webhooks", (object) => (object.webhooks ?? []).length), ageColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy,
};
