/** Hints for the zones that should use an endpoint, by `spec.trafficDistribution` of a service. */
import type { Endpoint, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
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

/** Each ready endpoint gets a hint for its own zone, and with `prefersNodes` for its own node. */
export function preferOwnZones(drafts: SliceDrafts, prefersNodes = false): void {
  const hinted = (endpoint: Endpoint): Endpoint => withOwnHints(endpoint, prefersNodes);
  moveToUpdate(drafts, ({ endpoints }) =>
    endpoints.some((endpoint) => isReadyEndpoint(endpoint) && !deepEqual(hinted(endpoint).hints, endpoint.hints)),
  );
  for (const { endpoints } of [...drafts.create, ...drafts.update]) {
    for (const [index, endpoint] of endpoints.entries()) {
      if (isReadyEndpoint(endpoint)) endpoints[index] = hinted(endpoint);
    }
  }
}

function withOwnHints(endpoint: Endpoint, prefersNodes: boolean): Endpoint {
  const { zone, nodeName } = endpoint;
  const hints = {
    ...(zone === undefined ? {} : { forZones: [{ name: zone }] }),
    ...(prefersNodes && nodeName !== undefined ? { forNodes: [{ name: nodeName }] } : {}),
  };
  return Object.keys(hints).length === 0 ? withoutHints(endpoint) : { ...endpoint, hints };
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
