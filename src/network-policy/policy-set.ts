/**
 * Policies, namespaces and pods, and the tables that follow from them. Only policies that select a pod of this node
 * have rules; their sets have the addresses of pods of all nodes.
 */
import { matchesLabels } from "../api/meta/selectors/selector.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import type { IpFamily } from "../std/net/ip.ts";
import { elementId, type MapElement, RuleTable } from "../std/nftables/rule-table.ts";
import { tablePrefix } from "../std/nftables/table.ts";
import {
  type CompiledPolicy,
  compilePolicy,
  type Direction,
  type NamedPort,
  type PeerGroup,
} from "./compiled-policy.ts";
import type { PodAddress, PolicyPod } from "./policy-pod.ts";
import {
  basePolicyRules,
  isolationChain,
  type PolicyTableOptions,
  peerSet,
  policyChain,
  policyRules,
  portSet,
} from "./policy-rules.ts";

export interface PolicySetOptions extends Omit<PolicyTableOptions, "family" | "nodeServices"> {
  readonly families: readonly IpFamily[];
  readonly nodeServices: readonly PodAddress[];
}

type Labels = Readonly<Record<string, string>>;

const DIRECTIONS = ["ingress", "egress"] as const;

/** A policy; it has rules while it selects pods of this node. */
interface PolicyEntry {
  readonly policy: CompiledPolicy;
  readonly pods: Set<PodEntry>;
  /** Of blocks of addresses, while it has rules. */
  readonly sets: { readonly family: IpFamily; readonly name: string }[];
}

/** The pods of a peer group, as long as rules use it. */
interface GroupEntry {
  readonly group: PeerGroup;
  readonly members: Set<PodEntry>;
  users: number;
}

interface PortEntry {
  readonly port: NamedPort;
  users: number;
}

/** A pod with what it has added to the tables. */
interface PodEntry {
  readonly pod: PolicyPod;
  /** Those that no later pod has. */
  readonly addresses: readonly PodAddress[];
  readonly groups: Set<GroupEntry>;
  readonly policies: Set<PolicyEntry>;
  /** By policies: chains and elements, to be released. */
  isolation: Isolation;
}

interface FamilyElement {
  readonly family: IpFamily;
  readonly element: MapElement;
}

interface Isolation {
  readonly chains: readonly string[];
  readonly elements: readonly FamilyElement[];
}

const noIsolation: Isolation = { chains: [], elements: [] };

export class PolicySet {
  readonly #options: PolicySetOptions;
  readonly #tables: ReadonlyMap<IpFamily, RuleTable>;
  readonly #policies = new Map<string, PolicyEntry>();
  readonly #policiesOf = new Map<string, Set<PolicyEntry>>();
  readonly #namespaces = new Map<string, Labels>();
  readonly #pods = new Map<string, PodEntry>();
  readonly #podsOf = new Map<string, Set<PodEntry>>();
  /** The pods that claim an address, by its text. */
  readonly #claims = new Map<string, readonly PolicyPod[]>();
  readonly #groups = new Map<string, GroupEntry>();
  /** By protocol and name. */
  readonly #ports = new Map<string, PortEntry>();
  /** The pods with ports of the protocol and name, and their numbers. */
  readonly #podsWithPort = new Map<string, Map<PodEntry, number[]>>();
  /** How many policies have rules. */
  #active = 0;

  constructor(options: PolicySetOptions) {
    this.#options = options;
    this.#tables = new Map(
      options.families.map((family) => [family, new RuleTable(tablePrefix({ family, table: options.table }))]),
    );
  }

  /** Whether a pod of this node has policies. */
  get isActive(): boolean {
    return this.#active > 0;
  }

  /** Commands for what changed since the last call; empty if nothing did. */
  takeChanges(): string {
    return [...this.#tables.values()].map((table) => table.takeChanges()).join("");
  }

  /** Commands that replace the tables by new ones. */
  takeAll(): string {
    return [...this.#tables]
      .map(([family, table]) => {
        const nodeServices = this.#options.nodeServices.filter((each) => each.family === family);
        const options = { ...this.#options, family, nodeServices: nodeServices.map(({ text }) => text) };
        return basePolicyRules(options) + table.takeAll();
      })
      .join("");
  }

  putNamespace(name: string, labels: Labels): void {
    const before = this.#namespaces.get(name);
    if (before !== undefined && sameLabels(before, labels)) return;
    this.#namespaces.set(name, labels);
    this.#regroup(name);
  }

  deleteNamespace(name: string): void {
    if (this.#namespaces.delete(name)) this.#regroup(name);
  }

  putPolicy(object: NetworkPolicy): void {
    const policy = compilePolicy(object);
    const before = this.#policies.get(policy.key);
    const entry: PolicyEntry = { policy, pods: new Set(), sets: [] };
    this.#policies.set(policy.key, entry);
    const list = this.#policiesOf.get(policy.namespace) ?? new Set();
    this.#policiesOf.set(policy.namespace, list.add(entry));
    for (const pod of this.#podsOf.get(policy.namespace) ?? []) {
      if (pod.pod.isLocal && matchesLabels(policy.selector, pod.pod.labels)) this.#select(entry, pod);
    }
    if (before !== undefined) this.#dropPolicy(before);
    for (const pod of entry.pods) this.#isolate(pod);
  }

  deletePolicy(key: string): void {
    const entry = this.#policies.get(key);
    if (entry === undefined) return;
    this.#policies.delete(key);
    this.#dropPolicy(entry);
  }

  /** Returns whether anything of the pod changed. */
  putPod(pod: PolicyPod): boolean {
    const before = this.#pods.get(pod.uid);
    if (before !== undefined && samePod(before.pod, pod)) return false;
    const changed = this.#claim(before?.pod, pod);
    this.#replacePod(pod.uid, pod);
    for (const uid of changed) this.#replacePod(uid, this.#pods.get(uid)?.pod);
    return true;
  }

  /** Returns whether the pod was there. */
  deletePod(uid: string): boolean {
    const before = this.#pods.get(uid)?.pod;
    if (before === undefined) return false;
    const changed = this.#claim(before, undefined);
    this.#replacePod(uid, undefined);
    for (const other of changed) this.#replacePod(other, this.#pods.get(other)?.pod);
    return true;
  }

  /** Returns the other pods that gained or lost an address. */
  #claim(before: PolicyPod | undefined, after: PolicyPod | undefined): ReadonlySet<string> {
    const changed = new Set<string>();
    const uid = before?.uid ?? after?.uid;
    const texts = new Set([...(before?.addresses ?? []), ...(after?.addresses ?? [])].map(({ text }) => text));
    for (const text of texts) {
      const others = (this.#claims.get(text) ?? []).filter((pod) => pod.uid !== uid);
      const claims = after?.addresses.some((address) => address.text === text) ? [...others, after] : others;
      if (claims.length === 0) this.#claims.delete(text);
      else this.#claims.set(text, claims.toSorted(compareClaims));
      for (const other of others) changed.add(other.uid);
    }
    return changed;
  }

  #replacePod(uid: string, pod: PolicyPod | undefined): void {
    const before = this.#pods.get(uid);
    if (pod === undefined) this.#pods.delete(uid);
    else {
      const addresses = pod.addresses.filter(({ text }) => this.#claims.get(text)?.[0]?.uid === uid);
      const entry: PodEntry = {
        pod,
        addresses,
        groups: new Set(),
        policies: new Set(),
        isolation: noIsolation,
      };
      this.#pods.set(uid, entry);
      const list = this.#podsOf.get(pod.namespace) ?? new Set();
      this.#podsOf.set(pod.namespace, list.add(entry));
      this.#attach(entry);
    }
    // Afterwards, so that what both have stays.
    if (before !== undefined) this.#detach(before);
  }

  #attach(entry: PodEntry): void {
    const { pod } = entry;
    for (const group of this.#groups.values()) if (this.#isMember(group.group, pod)) this.#join(group, entry);
    this.#addPorts(entry);
    if (!pod.isLocal) return;
    for (const policy of this.#policiesOf.get(pod.namespace) ?? []) {
      if (matchesLabels(policy.policy.selector, pod.labels)) this.#select(policy, entry);
    }
    this.#isolate(entry);
  }

  #detach(entry: PodEntry): void {
    const list = this.#podsOf.get(entry.pod.namespace);
    list?.delete(entry);
    if (list?.size === 0) this.#podsOf.delete(entry.pod.namespace);
    for (const group of [...entry.groups]) this.#leave(group, entry);
    this.#removePorts(entry);
    const policies = [...entry.policies];
    entry.policies.clear();
    this.#isolate(entry);
    for (const policy of policies) this.#deselect(policy, entry);
  }

  // Groups of peers

  #isMember({ selectors }: PeerGroup, { namespace, labels }: PolicyPod): boolean {
    const namespaceLabels = this.#namespaces.get(namespace);
    return selectors.some((selector) => {
      const isIn =
        typeof selector.namespace === "string"
          ? selector.namespace === namespace
          : // A namespace that the informer has not listed has no labels yet: it matches no selector.
            namespaceLabels !== undefined && matchesLabels(selector.namespace, namespaceLabels);
      return isIn && matchesLabels(selector.pods, labels);
    });
  }

  #regroup(namespace: string): void {
    for (const entry of this.#podsOf.get(namespace) ?? []) {
      for (const group of this.#groups.values()) {
        const isMember = this.#isMember(group.group, entry.pod);
        if (isMember && !entry.groups.has(group)) this.#join(group, entry);
        else if (!isMember && entry.groups.has(group)) this.#leave(group, entry);
      }
    }
  }

  #join(group: GroupEntry, entry: PodEntry): void {
    group.members.add(entry);
    entry.groups.add(group);
    for (const { family, text } of entry.addresses) {
      this.#tables.get(family)?.addElement({ map: group.group.name, key: text, value: "" });
    }
  }

  #leave(group: GroupEntry, entry: PodEntry): void {
    group.members.delete(entry);
    entry.groups.delete(group);
    for (const { family, text } of entry.addresses) {
      this.#tables.get(family)?.releaseElement(elementId({ map: group.group.name, key: text, value: "" }));
    }
  }

  #useGroup(group: PeerGroup): void {
    const existing = this.#groups.get(group.name);
    if (existing !== undefined) {
      existing.users++;
      return;
    }
    const entry: GroupEntry = { group, members: new Set(), users: 1 };
    this.#groups.set(group.name, entry);
    for (const [family, table] of this.#tables) table.addSet(group.name, peerSet(family));
    for (const pod of this.#pods.values()) if (this.#isMember(group, pod.pod)) this.#join(entry, pod);
  }

  #releaseGroup({ name }: PeerGroup): void {
    const entry = this.#groups.get(name);
    if (entry === undefined || --entry.users > 0) return;
    this.#groups.delete(name);
    for (const pod of [...entry.members]) this.#leave(entry, pod);
    for (const table of this.#tables.values()) table.releaseSet(name);
  }

  // Named ports

  #usePort(port: NamedPort): void {
    const existing = this.#ports.get(portKey(port.protocol, port.port));
    if (existing !== undefined) {
      existing.users++;
      return;
    }
    this.#ports.set(portKey(port.protocol, port.port), { port, users: 1 });
    for (const [family, table] of this.#tables) table.addSet(port.set, portSet(family));
    for (const { family, element } of this.#elementsOf(port)) this.#tables.get(family)?.addElement(element);
  }

  #releasePort(port: NamedPort): void {
    const entry = this.#ports.get(portKey(port.protocol, port.port));
    if (entry === undefined || --entry.users > 0) return;
    this.#ports.delete(portKey(port.protocol, port.port));
    this.#release(this.#elementsOf(port));
    for (const table of this.#tables.values()) table.releaseSet(port.set);
  }

  /** What the pods have in the set of the port. */
  #elementsOf({ set, protocol, port }: NamedPort): readonly FamilyElement[] {
    return [...(this.#podsWithPort.get(portKey(protocol, port)) ?? [])].flatMap(([{ addresses }, numbers]) =>
      numbers.flatMap((number) => portElements(addresses, set, protocol, number)),
    );
  }

  /** What the pod has in sets of named ports. */
  #portElementsOf({ pod, addresses }: PodEntry): readonly FamilyElement[] {
    return pod.ports.flatMap(({ name = "", protocol, port }) => {
      const set = this.#ports.get(portKey(protocol, name))?.port.set;
      return set === undefined ? [] : portElements(addresses, set, protocol, port);
    });
  }

  #addPorts(entry: PodEntry): void {
    for (const { name = "", protocol, port } of entry.pod.ports) {
      const key = portKey(protocol, name);
      const pods = this.#podsWithPort.get(key) ?? new Map<PodEntry, number[]>();
      this.#podsWithPort.set(key, pods);
      const numbers = pods.get(entry);
      if (numbers === undefined) pods.set(entry, [port]);
      else numbers.push(port);
    }
    for (const { family, element } of this.#portElementsOf(entry)) this.#tables.get(family)?.addElement(element);
  }

  #removePorts(entry: PodEntry): void {
    for (const { name = "", protocol } of entry.pod.ports) {
      const pods = this.#podsWithPort.get(portKey(protocol, name));
      if (pods?.delete(entry) === true && pods.size === 0) this.#podsWithPort.delete(portKey(protocol, name));
    }
    this.#release(this.#portElementsOf(entry));
  }

  #release(elements: readonly FamilyElement[]): void {
    for (const { family, element } of elements) this.#tables.get(family)?.releaseElement(elementId(element));
  }

  // Policies of the node's pods

  #select(policy: PolicyEntry, entry: PodEntry): void {
    policy.pods.add(entry);
    entry.policies.add(policy);
    if (policy.pods.size === 1) this.#activate(policy);
  }

  #deselect(policy: PolicyEntry, entry: PodEntry): void {
    entry.policies.delete(policy);
    if (policy.pods.delete(entry) && policy.pods.size === 0) this.#deactivate(policy);
  }

  #dropPolicy(entry: PolicyEntry): void {
    const list = this.#policiesOf.get(entry.policy.namespace);
    list?.delete(entry);
    if (list?.size === 0) this.#policiesOf.delete(entry.policy.namespace);
    const pods = [...entry.pods];
    for (const pod of pods) pod.policies.delete(entry);
    for (const pod of pods) this.#isolate(pod);
    for (const pod of pods) this.#deselect(entry, pod);
  }

  #activate(entry: PolicyEntry): void {
    const { policy } = entry;
    this.#active++;
    for (const direction of DIRECTIONS) {
      for (const { peers, ports } of policy[direction] ?? []) {
        if (peers?.group !== undefined) this.#useGroup(peers.group);
        for (const port of ports?.named ?? []) this.#usePort(port);
      }
      for (const [family, table] of this.#tables) {
        const made = policyRules(policy, direction, family);
        if (made === undefined) continue;
        for (const [name, definition] of made.sets) table.addSet(name, definition);
        table.addChain(policyChain(direction, policy.key), made.rules);
        entry.sets.push(...[...made.sets.keys()].map((name) => ({ family, name })));
      }
    }
  }

  #deactivate(entry: PolicyEntry): void {
    const { policy } = entry;
    this.#active--;
    for (const direction of DIRECTIONS) {
      for (const table of this.#tables.values()) {
        if (policy[direction] !== undefined) table.releaseChain(policyChain(direction, policy.key));
      }
      for (const { peers, ports } of policy[direction] ?? []) {
        if (peers?.group !== undefined) this.#releaseGroup(peers.group);
        for (const port of ports?.named ?? []) this.#releasePort(port);
      }
    }
    // After the chains whose rules use them.
    for (const { family, name } of entry.sets.splice(0)) this.#tables.get(family)?.releaseSet(name);
  }

  /** Replaces the chains and elements that the pod has by its policies. */
  #isolate(entry: PodEntry): void {
    const before = entry.isolation;
    const chains: string[] = [];
    const elements: FamilyElement[] = [];
    const add = ({ family, text }: PodAddress, map: Direction | "own", value: string): void => {
      const key = map === "own" ? `${text} . ${text}` : text;
      elements.push({ family, element: { map, key, value } });
    };
    for (const direction of DIRECTIONS) {
      const keys = [...entry.policies].flatMap(({ policy }) => (policy[direction] === undefined ? [] : policy.key));
      if (keys.length === 0) continue;
      const { name, rules } = isolationChain(direction, [...new Set(keys)].sort());
      chains.push(name);
      for (const table of this.#tables.values()) table.addChain(name, rules);
      for (const address of entry.addresses) add(address, direction, `goto ${name}`);
    }
    if (chains.length > 0) for (const address of entry.addresses) add(address, "own", "");
    for (const { family, element } of elements) this.#tables.get(family)?.addElement(element);
    entry.isolation = { chains, elements };
    this.#release(before.elements);
    for (const name of before.chains) for (const table of this.#tables.values()) table.releaseChain(name);
  }
}

function portElements(
  addresses: readonly PodAddress[],
  set: string,
  protocol: string,
  port: number,
): readonly FamilyElement[] {
  return addresses.map(({ family, text }) => {
    return { family, element: { map: set, key: `${text} . ${protocol} . ${port}`, value: "" } };
  });
}

function portKey(protocol: string, name: string): string {
  return `${protocol} ${name}`;
}

/** The order of claims of an address. Those of other nodes, which these report themselves, yield to the node's own. */
function compareClaims(a: PolicyPod, b: PolicyPod): number {
  if (a.isLocal !== b.isLocal) return a.isLocal ? -1 : 1;
  if (a.since !== b.since) return b.since - a.since;
  return a.uid < b.uid ? -1 : 1;
}

function sameLabels(a: Labels, b: Labels): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}

function samePod(a: PolicyPod, b: PolicyPod): boolean {
  return (
    a.namespace === b.namespace &&
    a.isLocal === b.isLocal &&
    a.since === b.since &&
    sameLabels(a.labels, b.labels) &&
    JSON.stringify([a.addresses, a.ports]) === JSON.stringify([b.addresses, b.ports])
  );
}
