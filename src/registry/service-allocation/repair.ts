/** Repairs the cluster IPs after a crash between the allocation of an address and the write of its service. */
import type { Service } from "../../api/core/service/schema.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import { MANAGER, MANAGER_LABEL } from "../../api/networking/ip-address/labels.ts";
import type { IPAddress } from "../../api/networking/ip-address/schema.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import type { Revision } from "../../storage/store.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { metadataOf } from "../write/object-metadata.ts";
import { AddressUnavailable, type ServiceAddresses } from "./addresses.ts";

export interface RepairResult {
  readonly released: number;
  readonly allocated: number;
}

/** As in Kubernetes: an address that is younger may belong to a service that another server is writing. */
const GRACE_MS = 60_000;

/**
 * Releases addresses without a service that are older than a minute, and allocates addresses of services that have no
 * IPAddress object. Checks only what was stored at `until`.
 */
export async function repairAddresses(
  services: Registry<Service>,
  objects: Registry<IPAddress>,
  addresses: ServiceAddresses,
  scope: Scope,
  until: Revision,
): Promise<RepairResult> {
  const [serviceCache, addressCache] = [await services.freshCache(scope), await objects.freshCache(scope)];
  const owners = new Map<string, Service>();
  for (const { object } of serviceCache.list(services.objects.prefix()).items) {
    for (const ip of clusterIPsOf(object)) owners.set(ip, object);
  }
  const held = addressCache.list(objects.objects.prefix()).items;
  let [released, allocated] = [0, 0];
  for (const { object, revision } of held) {
    const { name = "", labels } = metadataOf(object);
    const { resource, namespace = "", name: service = "" } = object.spec?.parentRef ?? {};
    if (revision > until || labels?.[MANAGER_LABEL] !== MANAGER || resource !== "services") continue;
    const owner = owners.get(name)?.metadata;
    if (owner?.name === service && owner.namespace === namespace) continue;
    if (owner === undefined && isYoung(object, objects.deps.clock.now())) continue;
    await addresses.release(scope, { namespace, name: service }, name);
    released++;
  }
  const names = new Set(held.map(({ object }) => metadataOf(object).name));
  for (const [ip, { metadata }] of owners) {
    if (names.has(ip) && released === 0) continue;
    const { namespace = "", name = "" } = metadata ?? {};
    if (await allocate(addresses, scope, { namespace, name }, ip)) allocated++;
  }
  return { released, allocated };
}

function isYoung({ metadata }: IPAddress, now: number): boolean {
  return now - Date.parse(metadata?.creationTimestamp ?? "") <= GRACE_MS;
}

/** In the canonical format, which is the name of the IPAddress object. */
function clusterIPsOf(service: Service): readonly string[] {
  const spec = specOf(service);
  if (isHeadless(spec)) return [];
  return (spec.clusterIPs ?? []).flatMap((text) => {
    const ip = parseIp(text);
    return ip === undefined ? [] : [formatIp(ip)];
  });
}

/** False when the address has an object already, or is in no ServiceCIDR. */
async function allocate(
  addresses: ServiceAddresses,
  scope: Scope,
  service: { namespace: string; name: string },
  ip: string,
) {
  try {
    await addresses.allocate(scope, service, ip, false);
    return true;
  } catch (error) {
    if (error instanceof AddressUnavailable) return false;
    throw error;
  }
}
