/**
 * The order of ports in EndpointSlices and Endpoints: by the hash of the Go value as github.com/davecgh/go-spew prints
 * it with `%#v`, so that both implementations write the same lists.
 */
import { createHash } from "node:crypto";
import type { EndpointPort as SubsetPort } from "../../api/core/endpoints/schema.ts";
import type { EndpointPort } from "../../api/discovery/endpoint-slice/schema.ts";

/** FNV-1a with 128 bits: the offset from its lowest word on, and the prime, which is 2 ** 88 + 0x13b. */
const FNV_OFFSET = [0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e] as const;
const FNV_PRIME_LOW = 0x13b;
const WORD = 2 ** 32;

export function sortSlicePorts(ports: readonly EndpointPort[]): readonly EndpointPort[] {
  return sortBy(ports, ({ name, protocol, port, appProtocol }) => {
    const printed =
      `(v1.EndpointPort){Name:(*string)${name ?? "<nil>"} Protocol:(*v1.Protocol)${protocol ?? "<nil>"} ` +
      `Port:(*int32)${port ?? "<nil>"} AppProtocol:(*string)${appProtocol ?? "<nil>"}}`;
    return fnv128(Buffer.from(printed));
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

/** In words, as BigInt takes ten times as long: a service may have thousands of ports. Returns hexadecimal digits. */
function fnv128(bytes: Uint8Array): string {
  let [a, b, c, d]: [number, number, number, number] = [...FNV_OFFSET];
  for (const byte of bytes) {
    a = (a ^ byte) >>> 0;
    const low = a * FNV_PRIME_LOW;
    const second = b * FNV_PRIME_LOW + Math.floor(low / WORD);
    const third = c * FNV_PRIME_LOW + Math.floor(second / WORD) + ((a << 24) >>> 0);
    const fourth = d * FNV_PRIME_LOW + Math.floor(third / WORD) + ((b << 24) >>> 0) + (a >>> 8);
    a = low % WORD;
    b = second % WORD;
    c = third % WORD;
    d = fourth % WORD;
  }
  return [d, c, b, a].map((word) => word.toString(16).padStart(8, "0")).join("");
}
