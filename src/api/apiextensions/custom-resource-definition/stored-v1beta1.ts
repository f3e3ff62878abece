/**
 * Kubernetes 1.33 stores definitions in `apiextensions.k8s.io/v1beta1`, which it no longer serves. What all versions
 * share is there a member of the spec and not of the versions; it takes precedence, as in Kubernetes' conversion.
 */
import type { JsonObject } from "../../kind.ts";

/** Members of a v1beta1 spec, and those of a version in v1. */
const SHARED = [
  ["validation", "schema"],
  ["subresources", "subresources"],
  ["additionalPrinterColumns", "additionalPrinterColumns"],
  ["selectableFields", "selectableFields"],
] as const;

interface StoredSpec extends JsonObject {
  readonly version?: string;
  readonly versions?: readonly JsonObject[];
  readonly conversion?: JsonObject;
}

/** Returns the definition in v1. */
export function fromV1beta1(definition: JsonObject): JsonObject {
  const { version, versions, conversion, ...spec } = (definition.spec ?? {}) as StoredSpec;
  const isNamed = version !== undefined && version !== "";
  const listed = versions ?? (isNamed ? [{ name: version, served: true, storage: true }] : []);
  const shared = SHARED.filter(([member]) => spec[member] !== undefined);
  const own = Object.entries(spec).filter(([member]) => !SHARED.some(([name]) => name === member));
  const ofVersions = Object.fromEntries(shared.map(([member, name]) => [name, spec[member]]));
  const converted = {
    ...Object.fromEntries(own),
    versions: listed.map((each) => withColumnPaths({ ...each, ...ofVersions })),
    ...(conversion === undefined ? {} : { conversion: convertConversion(conversion) }),
  };
  return { ...definition, spec: converted };
}

/** The path of a column is `JSONPath` in v1beta1. */
function withColumnPaths(version: JsonObject): JsonObject {
  const columns = version.additionalPrinterColumns as readonly JsonObject[] | undefined;
  if (columns === undefined) return version;
  const renamed = columns.map(({ JSONPath, ...column }) => ({ ...column, jsonPath: JSONPath ?? column.jsonPath }));
  return { ...version, additionalPrinterColumns: renamed };
}

function convertConversion(conversion: JsonObject): JsonObject {
  const { webhookClientConfig: clientConfig, conversionReviewVersions, ...converted } = conversion;
  if (clientConfig === undefined && conversionReviewVersions === undefined) return converted;
  return {
    ...converted,
    webhook: { ...(clientConfig === undefined ? {} : { clientConfig }), conversionReviewVersions },
  };
}
