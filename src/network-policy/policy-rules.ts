/**
 * The table of network policies without pods, and the chains of policies:
 *
 *     egress-forward:  source address of an isolated pod → goto egress-H, the chain of its policies
 *     ingress-forward: destination address of an isolated pod → goto ingress-H
 *     ingress-H:       jump in-A, jump in-B, drop
 *     in-A:            source in peers-H, port → accept
 *
 * `accept` ends one of the two base chains: a packet between two isolated pods passes both. So the change of a pod
 * changes elements of maps and sets, that of a policy the rules of its chains.
 */
import { formatIp, type IpFamily } from "../std/net/ip.ts";
import { nftFamily, removeTable, tablePrefix } from "../std/nftables/table.ts";
import {
  type AddressRange,
  type CompiledPeers,
  type CompiledPolicy,
  type CompiledPorts,
  type CompiledRule,
  type Direction,
  hash,
} from "./compiled-policy.ts";

export interface PolicyTableOptions {
  readonly family: IpFamily;
  readonly table: string;
  /** Addresses of the node itself at which pods use a service of the cluster, such as its DNS. */
  readonly nodeServices: readonly string[];
  /** The bridges of pods, whose link-local addresses no policy selects. */
  readonly bridges: readonly string[];
}

/** Neighbor discovery and multicast listener reports (RFC 4861, RFC 3810), without which no IPv6 address is reached. */
const NEIGHBOR_DISCOVERY = "icmpv6 type { 130-136, 143 } accept";

/** Text that replaces the table by one without policies. */
export function basePolicyRules({ family, table, nodeServices, bridges }: PolicyTableOptions): string {
  const ip = nftFamily(family);
  const address = addressType(family);
  const always = [
    "ct direction reply accept",
    "ct state related accept",
    ...(family === "IPv6" ? [NEIGHBOR_DISCOVERY] : []),
    `${ip} saddr . ${ip} daddr @own accept`,
  ];
  const linkLocal =
    family === "IPv6"
      ? bridges.map((bridge) => `iifname "${bridge}" oifname "${bridge}" ip6 saddr fe80::/10 drop`)
      : [];
  const chain = (name: string, hook: string, priority: number, rules: readonly string[]): string =>
    ` chain ${name} {\n  type filter hook ${hook} priority ${priority}; policy accept;\n` +
    `${rules.map((rule) => `  ${rule}\n`).join("")} }\n`;
  const input = [...always.slice(0, 2), `${ip} daddr @node-services ${ip} saddr vmap @egress`];
  return (
    `${removeTable({ family, table })}table ${tablePrefix({ family, table })} {\n` +
    ` map ingress { type ${address} : verdict; }\n map egress { type ${address} : verdict; }\n` +
    ` set own { type ${address} . ${address}; }\n` +
    (nodeServices.length === 0
      ? ""
      : ` set node-services { type ${address}; elements = { ${nodeServices.join(", ")} } }\n`) +
    chain("egress-forward", "forward", -5, [...always, ...linkLocal, `${ip} saddr vmap @egress`]) +
    chain("ingress-forward", "forward", -4, [...always, `${ip} daddr vmap @ingress`]) +
    (nodeServices.length === 0 ? "" : chain("egress-input", "input", -5, input)) +
    "}\n"
  );
}

/** Text that removes the rules of the table. */
export function removePolicyRules(table: string, families: readonly IpFamily[]): string {
  return families.map((family) => removeTable({ family, table })).join("");
}

function addressType(family: IpFamily): "ipv4_addr" | "ipv6_addr" {
  return family === "IPv4" ? "ipv4_addr" : "ipv6_addr";
}

/** The definition of a set of pods' addresses. */
export function peerSet(family: IpFamily): string {
  return `{ type ${addressType(family)}; }`;
}

/** The definition of a set of pods' addresses with their ports of one name. */
export function portSet(family: IpFamily): string {
  return `{ type ${addressType(family)} . inet_proto . inet_service; }`;
}

export function policyChain(direction: Direction, key: string): string {
  return `${direction === "ingress" ? "in" : "out"}-${hash(key)}`;
}

/** Of a rule for several ports. */
const REPEATED_RANGES_MAX = 16;
/** The maximum of a rule's comment, in bytes. */
const COMMENT_BYTES_MAX = 120;

/** The chain of pods with these policies, and its rules. */
export function isolationChain(
  direction: Direction,
  policies: readonly string[],
): { readonly name: string; readonly rules: readonly string[] } {
  const jumps = policies.map((key) => `jump ${policyChain(direction, key)} comment "${toComment(key)}"`);
  return { name: `${direction}-${hash(policies)}`, rules: [...jumps, "drop"] };
}

function toComment(key: string): string {
  return key.replaceAll(/[^-\w./]/g, "_").slice(0, COMMENT_BYTES_MAX);
}

export interface PolicyRules {
  readonly rules: readonly string[];
  /** Definitions of sets that the rules use, by name. */
  readonly sets: ReadonlyMap<string, string>;
}

/** The rules of a policy in one direction. */
export function policyRules(policy: CompiledPolicy, direction: Direction, family: IpFamily): PolicyRules | undefined {
  const sets = new Map<string, string>();
  const rules = policy[direction]?.flatMap((rule) => ruleTexts(rule, direction, family, sets));
  return rules && { rules, sets };
}

function ruleTexts(
  { peers, ports }: CompiledRule,
  direction: Direction,
  family: IpFamily,
  sets: Map<string, string>,
): readonly string[] {
  const portMatches = ports === undefined ? [""] : portTexts(ports, family);
  const isRepeated = portMatches.length > 1;
  const peerMatches = peers === undefined ? [""] : peerTexts(peers, direction, family, isRepeated ? sets : undefined);
  return peerMatches.flatMap((peer) => portMatches.map((port) => `${peer}${port}accept`));
}

/** Blocks of addresses that several rules would repeat go to a set: thousands of each would be a gigabyte of text. */
function peerTexts(
  { group, blocks }: CompiledPeers,
  direction: Direction,
  family: IpFamily,
  sets: Map<string, string> | undefined,
): readonly string[] {
  const address = `${nftFamily(family)} ${direction === "ingress" ? "saddr" : "daddr"}`;
  const ranges = blocks[family];
  const ofGroup = group === undefined ? [] : [`${address} @${group.name} `];
  if (ranges.length === 0) return ofGroup;
  const elements = `{ ${ranges.map((range) => rangeText(range, family)).join(", ")} }`;
  if (sets === undefined || ranges.length <= REPEATED_RANGES_MAX) return [...ofGroup, `${address} ${elements} `];
  const name = `blocks-${hash(elements)}`;
  sets.set(name, `{ type ${addressType(family)}; flags interval; elements = ${elements}; }`);
  return [...ofGroup, `${address} @${name} `];
}

function rangeText({ first, last }: AddressRange, family: IpFamily): string {
  const start = formatIp({ family, value: first });
  return first === last ? start : `${start}-${formatIp({ family, value: last })}`;
}

function portTexts({ protocols, ranges, named }: CompiledPorts, family: IpFamily): readonly string[] {
  const numbered = Object.entries(ranges).filter(([, list]) => list.length > 0);
  return [
    ...(protocols.length === 0 ? [] : [`meta l4proto { ${protocols.join(", ")} } `]),
    ...numbered.map(([protocol, list]) => `${protocol} dport { ${list.join(", ")} } `),
    ...named.map(({ set }) => `${nftFamily(family)} daddr . meta l4proto . th dport @${set} `),
  ];
}
