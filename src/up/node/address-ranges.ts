/** The ranges of services and pods: their first addresses, and whether they collide with the host's own networks. */
import { isPodRoute } from "../../pod-network/network-names.ts";
import { type Cidr, contains, formatCidr, formatIp, parseCidr } from "../../std/net/ip.ts";

/** Throws for text that is not a range, or too small a one. */
export function addressInRange(range: string, index: bigint): string {
  const block = parseCidr(range);
  if (block === undefined) throw new Error(`Cannot use ${JSON.stringify(range)}: it is not a CIDR`);
  const ip = { family: block.family, value: block.network + index };
  if (!contains(block, ip)) throw new Error(`Cannot use the range ${range}: it has fewer than ${index + 1n} addresses`);
  return formatIp(ip);
}

/** The prefix of the names of bridges that svc makes. */
const BRIDGE = "svc";

interface NamedRange {
  /** The flag that sets it. */
  readonly flag: string;
  readonly range: string;
}

/** Throws an error for the operator if ranges collide. */
export function checkRanges(ranges: readonly NamedRange[], routes: string | undefined): void {
  const problem = findCollision(ranges, routes);
  if (problem !== undefined) throw new Error(problem);
}

/**
 * Why ranges cannot be used that overlap one another or a route of the host: packets to hosts there would go to pods or
 * services, or the other way round. Bridges of pods and routes to pods do not count.
 */
export function findCollision(ranges: readonly NamedRange[], routes: string | undefined): string | undefined {
  const blocks = ranges.map(({ flag, range }) => ({ flag, block: parseCidr(range) }));
  for (const [index, one] of blocks.entries()) {
    for (const other of blocks.slice(index + 1)) {
      if (!overlaps(one.block, other.block)) continue;
      return `--${one.flag}=${show(one.block)} overlaps --${other.flag}=${show(other.block)}`;
    }
  }
  for (const { name, block } of readRoutes(routes ?? "")) {
    if (name.startsWith(BRIDGE)) continue;
    const found = blocks.find((one) => overlaps(one.block, block));
    if (found === undefined) continue;
    return (
      `--${found.flag}=${show(found.block)} overlaps the network ${formatCidr(block)} of this host's interface ${name}; ` +
      `choose another range with --${found.flag}`
    );
  }
  return undefined;
}

/** Whether the whole of a range is in another. */
export function isInside(range: string, outer: string): boolean {
  const [inner, block] = [parseCidr(range), parseCidr(outer)];
  if (inner === undefined || block === undefined || inner.prefixLength < block.prefixLength) return false;
  return contains(block, { family: inner.family, value: inner.network });
}

function show(block: Cidr | undefined): string {
  return block === undefined ? "" : formatCidr(block);
}

function overlaps(a: Cidr | undefined, b: Cidr | undefined): boolean {
  if (a === undefined || b === undefined || a.family !== b.family) return false;
  const [wide, narrow] = a.prefixLength <= b.prefixLength ? [a, b] : [b, a];
  return contains(wide, { family: narrow.family, value: narrow.network });
}

/**
 * The routes in `/proc/net/route` except default routes and those to pods of other nodes. The numbers of addresses
 * there are little-endian.
 */
function readRoutes(text: string): readonly { readonly name: string; readonly block: Cidr }[] {
  return text
    .split("\n")
    .slice(1)
    .flatMap((line) => {
      const [name = "", destination = "", , , , , metric = "", mask = ""] = line.split("\t");
      if (isPodRoute(Number(metric))) return [];
      const prefixLength = [...Number.parseInt(mask, 16).toString(2)].filter((bit) => bit === "1").length;
      const bytes = destination.match(/../g)?.reverse() ?? [];
      const address = bytes.map((byte) => Number.parseInt(byte, 16)).join(".");
      const block = prefixLength === 0 ? undefined : parseCidr(`${address}/${prefixLength}`);
      return block === undefined ? [] : [{ name, block }];
    });
}
