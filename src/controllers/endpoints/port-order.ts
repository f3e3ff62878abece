/**
 * The order of ports in EndpointSlices and Endpoints: by the hash of the Go value as github.com/davecgh/go-spew prints
 * it with `%#v`, so that both implementations write the same lists.
 */
import { createHash } from "node:crypto";
import type { EndpointPort as SubsetPort } from "../../api/core/endpoints/schema.ts";
import type { EndpointPort } from "../../api/discovery/endpoint-slice/schema.ts";

/** FNV-1a with 128 bits. */
const FNV_OFFSET = 0x6c62272e07bb014262b821756295c58dn;
const FNV_PRIME = 0x0000000001000000000000000000013bn;
const FNV_MASK = (1n << 128n) - 1n;

export function sortSlicePorts(ports: readonly EndpointPort[]): readonly EndpointPort[] {
  return sortBy(ports, ({ name, protocol, port, appProtocol }) => {
    const printed =
      `(v1.EndpointPort){Name:(*string)${name ?? "<nil>"} Protocol:(*v1.Protocol)${protocol ?? "<nil>"} ` +
      `Port:(*int32)${port ?? "<nil>"} AppProtocol:(*string)${appProtocol ?? "<nil>"}}`;
    return fnv128(Buffer.from(printed)).toString(16).padStart(32, "0");
  });
}

export function sortSubsetPorts(ports: readonly SubsetPort[]): readonly SubsetPort[] {
  return sortBy(ports, ({ name = "", protocol = "", port, appProtocol }) => {
    const printed =
      `(v1.EndpointPort){Name:(string)${name} Port:(int32)${port} Protocol:(v1.Protocol)${protocol} ` +
      `AppProtocol:(*string)${appProtocol ?? "<nil>"}}`;
    return createHash("md5").update(printed).digest("hex");
  });
}

function sortBy<T>(items: readonly T[], hashOf: (item: T) => string): readonly T[] {
  if (items.length < 2) return items;
  const hashed = items.map((item) => ({ item, hash: hashOf(item) }));
  return hashed.sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : 0)).map(({ item }) => item);
}

function fnv128(bytes: Uint8Array): bigint {
  let hash = FNV_OFFSET;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * FNV_PRIME) & FNV_MASK;
  return hash;
}
