/** Hints for the zones that should use an endpoint, by `spec.trafficDistribution` of a service. */
import type { Endpoint, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { draftOf, type SliceDrafts } from "./slice-draft.ts";

export function isReadyEndpoint({ conditions }: Endpoint): boolean {
  return conditions?.ready === true;
}

export function withoutHints({ hints: _, ...endpoint }: Endpoint): Endpoint {
  return endpoint;
}

export function withZone(endpoint: Endpoint, zone: string): Endpoint {
  return { ...endpoint, hints: { forZones: [{ name: zone }] } };
}

/** Each ready endpoint gets a hint for its own zone. */
export function preferOwnZones(drafts: SliceDrafts): void {
  moveToUpdate(drafts, ({ endpoints }) =>
    endpoints.some((endpoint) => isReadyEndpoint(endpoint) && !hasOwnZone(endpoint)),
  );
  for (const { endpoints } of [...drafts.create, ...drafts.update]) {
    for (const [index, endpoint] of endpoints.entries()) {
      if (!isReadyEndpoint(endpoint)) continue;
      endpoints[index] = endpoint.zone === undefined ? withoutHints(endpoint) : withZone(endpoint, endpoint.zone);
    }
  }
}

function hasOwnZone({ zone, hints }: Endpoint): boolean {
  const zones = hints?.forZones ?? [];
  return zone === undefined ? hints === undefined : zones.length === 1 && zones[0]?.name === zone;
}

export function removeHints(drafts: SliceDrafts): void {
  moveToUpdate(drafts, ({ endpoints }) => endpoints.some(({ hints }) => hints !== undefined));
  for (const { endpoints } of [...drafts.create, ...drafts.update]) {
    for (const [index, endpoint] of endpoints.entries()) endpoints[index] = withoutHints(endpoint);
  }
}

export function moveToUpdate(drafts: SliceDrafts, isOutdated: (slice: EndpointSlice) => boolean): void {
  const kept: EndpointSlice[] = [];
  for (const slice of drafts.unchanged) {
    if (isOutdated(slice)) drafts.update.push(draftOf(slice));
    else kept.push(slice);
  }
  drafts.unchanged = kept;
}
