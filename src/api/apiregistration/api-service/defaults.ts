import type { APIService } from "./schema.ts";

const SERVICE_PORT = 443;

export function setAPIServiceDefaults(object: APIService): APIService {
  const { spec } = object;
  if (spec?.service === undefined || spec.service.port !== undefined) return object;
  return { ...object, spec: { ...spec, service: { ...spec.service, port: SERVICE_PORT } } };
}
