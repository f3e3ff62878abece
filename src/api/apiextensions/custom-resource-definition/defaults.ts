import type { CustomResourceDefinition, CustomResourceDefinitionSpec } from "./schema.ts";
import { addStoredVersion } from "./stored-versions.ts";

const HTTPS = 443;

export function setCustomResourceDefinitionDefaults(object: CustomResourceDefinition): CustomResourceDefinition {
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
