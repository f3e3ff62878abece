import type { IngressClass } from "./schema.ts";

export function setIngressClassDefaults(object: IngressClass): IngressClass {
  const { spec } = object;
  if (spec?.parameters === undefined || spec.parameters.scope !== undefined) return object;
  return { ...object, spec: { ...spec, parameters: { ...spec.parameters, scope: "Cluster" } } };
}
