import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { dropStatus, keepStatus, replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type APIService, apiService } from "./schema.ts";
import { validateApiService } from "./validation.ts";

const SERVICE_PORT = 443;

function setAPIServiceDefaults(object: APIService): APIService {
  const { spec } = object;
  if (spec?.service === undefined || spec.service.port !== undefined) return object;
  return { ...object, spec: { ...spec, service: { ...spec.service, port: SERVICE_PORT } } };
}

/** What this server serves itself is there at once. */
function prepareForCreate(object: APIService, now: string): APIService {
  const fresh = dropStatus(object);
  if (object.spec?.service !== undefined) return fresh;
  const available = {
    type: "Available",
    status: "True",
    lastTransitionTime: now,
    reason: "Local",
    message: "Local APIServices are always available",
  };
  return { ...fresh, status: { conditions: [available] } };
}

const apiServiceStrategy: Strategy<APIService> = {
  setDefaults: setAPIServiceDefaults,
  prepareForCreate,
  prepareForUpdate: keepStatus,
  validate: validateApiService,
};

function availableText({ status }: APIService): string {
  const available = status?.conditions?.find(({ type }) => type === "Available");
  if (available === undefined) return "Unknown";
  return available.status === "True" ? "True" : `${available.status} (${available.reason ?? ""})`;
}

export const apiServiceKind: Kind<APIService> = {
  group: "apiregistration.svc.io",
  version: "v1",
  kind: "APIService",
  listKind: "APIServiceList",
  plural: "apiservices",
  singular: "apiservice",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("APIService", { prepareForUpdate: replaceStatusOnly })],
  storageName: "apiregistration.k8s.io/apiservices",
  schema: apiService,
  nameFormat: pathSegment,
  allowsAnyFinalizer: true,
  columns: [
    nameColumn,
    column(
      "Service",
      ({ spec }) => (spec?.service === undefined ? "Local" : `${spec.service.namespace}/${spec.service.name}`),
      "The service behind which the API is.",
    ),
    column("Available", availableText, "Whether the API can be asked."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: apiServiceStrategy,
};
