/** What an agent keeps of services and their endpoints, of which every agent has all. */
import type { Endpoint, EndpointConditions } from "../../../api/discovery/endpoint-slice/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { dropManagedFields } from "../../../api/meta/managed-fields.ts";

/** For informers: drops managed fields, and the references of endpoints to their pods. */
export function keepNetworkFields<T extends ApiObject & { readonly endpoints?: readonly Endpoint[] }>(object: T): T {
  const kept = dropManagedFields(object);
  return kept.endpoints === undefined ? kept : { ...kept, endpoints: kept.endpoints.map(keepEndpointFields) };
}

function keepEndpointFields({ targetRef: _, conditions, ...endpoint }: Endpoint): Endpoint {
  return conditions === undefined ? endpoint : { ...endpoint, conditions: shareConditions(conditions) };
}

/** Equal conditions; at most 27 combinations of three values, each true, false or absent. */
const shared = new Map<string, EndpointConditions>();

function shareConditions(conditions: EndpointConditions): EndpointConditions {
  const { ready, serving, terminating } = conditions;
  const key = `${ready} ${serving} ${terminating}`;
  const found = shared.get(key);
  if (found !== undefined) return found;
  shared.set(key, conditions);
  return conditions;
}
