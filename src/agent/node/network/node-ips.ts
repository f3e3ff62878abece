/** The node's addresses: those configured, or the host's, which may change. */
import { isIPv4, isIPv6 } from "node:net";
import { findForeignAddresses, readHostAddresses } from "../../../std/net/host-addresses.ts";

/** The address of a host without others. */
const LOOPBACK = "127.0.0.1";

/** The unspecified addresses stand for the default address of their family. */
const UNSPECIFIED: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Throws when an address is not one of this host's: no other host could reach the node there. */
export function checkNodeIps(
  configured: readonly string[],
  interfaces?: Parameters<typeof findForeignAddresses>[1],
): void {
  const named = configured.filter((address) => !UNSPECIFIED.has(address));
  const [foreign] = findForeignAddresses(named, interfaces);
  if (foreign === undefined) return;
  throw new Error(
    `Cannot use --node-ip: "${foreign}" not found in the host's network interfaces; set an address of this host, or ` +
      "leave the flag out to use that of the default route",
  );
}

/** `configured` with the host's address in place of an unspecified one; the host's first address without either. */
export function resolveNodeIps(configured: readonly string[], host: readonly string[]): readonly string[] {
  const fallback = host[0] ?? LOOPBACK;
  if (configured.length === 0) return [fallback];
  const resolved = configured.map((address) => {
    if (!UNSPECIFIED.has(address)) return address;
    return host.find(address === "::" ? isIPv6 : isIPv4) ?? fallback;
  });
  return [...new Set(resolved)];
}

export class NodeIps {
  readonly #configured: readonly string[];
  readonly #readAddresses: () => Promise<readonly string[]>;
  #current: readonly string[];

  private constructor(
    configured: readonly string[],
    read: () => Promise<readonly string[]>,
    current: readonly string[],
  ) {
    this.#configured = configured;
    this.#readAddresses = read;
    this.#current = current;
  }

  static async open(configured: readonly string[], readAddresses = readHostAddresses): Promise<NodeIps> {
    return new NodeIps(configured, readAddresses, resolveNodeIps(configured, await readAddresses()));
  }

  /** As of the latest refresh. */
  get current(): readonly string[] {
    return this.#current;
  }

  /** Reads the addresses again. A host that loses its network keeps the addresses it had. */
  async refresh(): Promise<readonly string[]> {
    const host = await this.#readAddresses();
    if (host.length > 0) this.#current = resolveNodeIps(this.#configured, host);
    return this.#current;
  }
}
