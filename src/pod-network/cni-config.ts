/**
 * The CNI configuration of a node: a bridge, addresses from the node's pod CIDRs, port mappings. The bridge plugin
 * creates the bridge and enables forwarding when the first pod starts; a host without pods is not changed.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { join } from "node:path";

export interface CniDirectories {
  readonly confDir: string;
  /** The leases of addresses; a reboot empties it, as it ends the pods. */
  readonly leaseDir: string;
}

export interface CniOptions extends CniDirectories {
  readonly bridge: string;
  /** `10.244.0.0/24`; at most one of each IP family. */
  readonly podCidrs: readonly string[];
  /** Whether the bridge plugin masquerades, by iptables; otherwise the node's own rules of nftables do. */
  readonly ipMasq: boolean;
  /** Whether a pod reaches itself through its service. */
  readonly hairpin: boolean;
  /** Without iptables there are no host ports. */
  readonly hasIptables: boolean;
}

const FILE = "10-svc.conflist";

export function conflist({ bridge, podCidrs, leaseDir, ipMasq, hairpin, hasIptables }: CniOptions): unknown {
  return {
    cniVersion: "0.4.0",
    name: "svc",
    plugins: [
      {
        type: "bridge",
        bridge,
        isGateway: true,
        // The bridge of a node that has got another pod CIDR gets its address.
        forceAddress: true,
        ipMasq,
        hairpinMode: hairpin,
        ipam: {
          type: "host-local",
          ranges: podCidrs.map((subnet) => [{ subnet }]),
          routes: podCidrs.map((subnet) => ({ dst: subnet.includes(":") ? "::/0" : "0.0.0.0/0" })),
          dataDir: leaseDir,
        },
      },
      ...(hasIptables ? [{ type: "portmap", capabilities: { portMappings: true }, snat: true }] : []),
    ],
  };
}

/** Replaces the file at once. False if it has this configuration already. */
export async function writeConflist(options: CniOptions): Promise<boolean> {
  const path = join(options.confDir, FILE);
  const text = `${JSON.stringify(conflist(options), undefined, 2)}\n`;
  if ((await readFile(path, "utf8").catch(() => undefined)) === text) return false;
  await mkdir(options.confDir, { recursive: true, mode: 0o755 });
  // The runtime does not read files with this ending.
  await writeFile(`${path}.new`, text, { mode: 0o644 });
  await rename(`${path}.new`, path);
  return true;
}

export async function hasConflist(confDir: string): Promise<boolean> {
  return (await readFile(join(confDir, FILE), "utf8").catch(() => undefined)) !== undefined;
}

export async function removeConflist(confDir: string): Promise<void> {
  await rm(join(confDir, FILE), { force: true });
}

/** A file of another network in the directory; undefined if there is none. */
export async function findForeignConfig(confDir: string): Promise<string | undefined> {
  const names = await readdir(confDir).catch(() => []);
  return names.sort().find((name) => name !== FILE && /\.(?:conflist|conf|json)$/.test(name));
}

/** The bridge's address: the first of the range. Throws for text that is not an IPv4 range. */
export function gatewayOf(podCidr: string): string {
  const [address = "", bits = ""] = podCidr.split("/");
  const size = Number(bits);
  if (!isIPv4(address) || !/^\d+$/.test(bits) || size < 8 || size > 30) {
    throw new Error(`Cannot use ${JSON.stringify(podCidr)} for pods: must be an IPv4 range such as 10.244.0.0/24`);
  }
  const number = address.split(".").reduce((total, part) => total * 256 + Number(part), 0);
  const first = number - (number % 2 ** (32 - size)) + 1;
  return [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join(".");
}
