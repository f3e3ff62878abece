import { deepEqual } from "../../../schema/value/equal.ts";
import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { keepStatus, setFirstGeneration, statusSubresource, updateGeneration } from "../../strategy.ts";
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionSpec,
  customResourceDefinition,
} from "./schema.ts";
import { markTerminating } from "./status.ts";
import { validateDefinition, validateStatus } from "./validation.ts";

const HTTPS = 443;

function setCustomResourceDefinitionDefaults(object: CustomResourceDefinition): CustomResourceDefinition {
  return addStoredVersion({ ...object, spec: setSpecDefaults(object.spec) }, "if none");
}

function setSpecDefaults(spec: CustomResourceDefinitionSpec): CustomResourceDefinitionSpec {
  const { names } = spec;
  const singular = names.singular || names.kind.toLowerCase();
  const listKind = names.listKind || (names.kind === "" ? "" : `${names.kind}List`);
  return {
    ...spec,
    names: { ...names, ...(singular === "" ? {} : { singular }), ...(listKind === "" ? {} : { listKind }) },
    conversion: setConversionDefaults(spec.conversion),
  };
}

type Conversion = NonNullable<CustomResourceDefinitionSpec["conversion"]>;

function setConversionDefaults(conversion: Conversion = { strategy: "None" }): Conversion {
  const { webhook } = conversion;
  const service = webhook?.clientConfig?.service;
  if (webhook === undefined || service === undefined || service.port !== undefined) return conversion;
  const clientConfig = { ...webhook.clientConfig, service: { ...service, port: HTTPS } };
  return { ...conversion, webhook: { ...webhook, clientConfig } };
}

/** The version that objects are stored in from now on is one that they may be stored in. */
function addStoredVersion(object: CustomResourceDefinition, when: "always" | "if none"): CustomResourceDefinition {
  const stored = object.status?.storedVersions ?? [];
  const storage = object.spec.versions.find((version) => version.storage)?.name;
  if (storage === undefined || stored.includes(storage) || (when === "if none" && stored.length > 0)) return object;
  return { ...object, status: { ...object.status, storedVersions: [...stored, storage] } };
}

const customResourceDefinitionStrategy: Strategy<CustomResourceDefinition> = {
  setDefaults: setCustomResourceDefinitionDefaults,
  prepareForCreate: ({ status: _, ...object }) => setFirstGeneration(addStoredVersion(object, "always")),
  prepareForUpdate: (next, previous) => {
    const kept = addStoredVersion(keepStatus(next, previous), "always");
    return updateGeneration(kept, previous, !deepEqual(next.spec, previous.spec));
  },
  validate: validateDefinition,
  prepareForDelete: markTerminating,
  allowUnconditionalUpdate: false,
};

export const customResourceDefinitionKind: Kind<CustomResourceDefinition> = {
  group: "apiextensions.svc.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  listKind: "CustomResourceDefinitionList",
  plural: "customresourcedefinitions",
  singular: "customresourcedefinition",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [
    statusSubresource("CustomResourceDefinition", {
      validateUpdate: validateStatus,
      resetFields: [["metadata"], ["spec"]],
    }),
  ],
  storageName: "apiextensions.k8s.io/customresourcedefinitions",
  storageVersion: "v1beta1",
  schema: customResourceDefinition,
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  allowsAnyFinalizer: true,
  strategy: customResourceDefinitionStrategy,
};
