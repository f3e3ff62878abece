/**
 * Three namespaces x, y, z with pods a, b, c each, as Kubernetes' end-to-end tests of network policies have: they serve
 * TCP, UDP and SCTP at the ports 80 and 81, named `serve-80-tcp` and so on. Packets between them pass the rules.
 */
import type { Pod } from "../../api/core/pod/schema.ts";
import { setNetworkPolicyDefaults } from "../../api/networking/network-policy/defaults.ts";
import type { NetworkPolicy, NetworkPolicySpec } from "../../api/networking/network-policy/schema.ts";
import { toPolicyPod } from "../../network-policy/policy-pod.ts";
import { PolicySet } from "../../network-policy/policy-set.ts";
import { NftTables, type Packet } from "./nft-evaluator.ts";

type Protocol = "tcp" | "udp" | "sctp";
type Labels = Readonly<Record<string, string>>;

const TABLE = "t";
export const clusterPods = ["x", "y", "z"].flatMap((namespace) => ["a", "b", "c"].map((pod) => `${namespace}/${pod}`));

/** A packet that the rules dropped or not, for an expectation: `x/a`, `y/b`. */
export interface Attempt {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly protocol: Protocol;
}

export class PolicyCluster {
  readonly tables = new NftTables();
  readonly #labels = new Map<string, Labels>();
  readonly #set: PolicySet;
  readonly #policies = new Map<string, NetworkPolicy>();
  readonly #namespaces = new Map<string, Labels>();

  constructor(pods: readonly string[] = clusterPods) {
    this.#set = this.#newSet();
    for (const name of ["x", "y", "z"]) this.setNamespace(name);
    for (const pod of pods) this.setPod(pod);
    this.#apply(true);
  }

  address(pod: string, family: 4 | 6 = 4): string {
    const index = clusterPods.indexOf(pod) + 11;
    return family === 4 ? `10.1.0.${index}` : `fd00:1::${index}`;
  }

  setNamespace(name: string, labels: Labels = {}): void {
    const all = { ns: name, "kubernetes.io/metadata.name": name, ...labels };
    this.#namespaces.set(name, all);
    this.#set.putNamespace(name, all);
    this.#apply();
  }

  setPod(pod: string, labels: Labels = {}): void {
    this.#labels.set(pod, labels);
    this.#set.putPod(this.#toPod(pod, labels));
    this.#apply();
  }

  removePod(pod: string): void {
    this.#labels.delete(pod);
    this.#set.deletePod(pod);
    this.#apply();
  }

  setPolicy(namespace: string, name: string, spec: NetworkPolicySpec): void {
    const policy = setNetworkPolicyDefaults({ metadata: { namespace, name }, spec });
    this.#policies.set(`${namespace}/${name}`, policy);
    this.#set.putPolicy(policy);
    this.#apply();
  }

  removePolicy(namespace: string, name: string): void {
    this.#policies.delete(`${namespace}/${name}`);
    this.#set.deletePolicy(`${namespace}/${name}`);
    this.#apply();
  }

  /** The commands of the last change. */
  lastChange = "";

  canReach({ from, to, port, protocol }: Attempt, family: 4 | 6 = 4): boolean {
    const [source, destination] = [this.address(from, family), this.address(to, family)];
    return this.passes({ source, destination, protocol, port });
  }

  passes(packet: Omit<Packet, "hook"> & Partial<Pick<Packet, "hook">>): boolean {
    return this.tables.verdict({ hook: "forward", ...packet }) === "accept";
  }

  /** What differs from the expectation, over all pods, ports and protocols, in both IP families. */
  differences(isAllowed: (attempt: Attempt) => boolean): readonly string[] {
    const differences: string[] = [];
    for (const from of clusterPods) {
      for (const to of clusterPods) {
        for (const port of [80, 81]) {
          for (const protocol of ["tcp", "udp", "sctp"] as const) {
            const attempt = { from, to, port, protocol };
            // A pod always reaches itself.
            const expected = from === to || isAllowed(attempt);
            for (const family of [4, 6] as const) {
              if (this.canReach(attempt, family) === expected) continue;
              differences.push(`${from} → ${to} ${port}/${protocol} IPv${family}: ${expected ? "dropped" : "passed"}`);
            }
          }
        }
      }
    }
    return differences;
  }

  /** Whether the tables that follow from all changes are those that a new set has. */
  isAsRebuilt(): boolean {
    const set = this.#newSet();
    for (const [name, labels] of this.#namespaces) set.putNamespace(name, labels);
    for (const policy of this.#policies.values()) set.putPolicy(policy);
    for (const [pod, labels] of this.#labels) set.putPod(this.#toPod(pod, labels));
    const rebuilt = new NftTables();
    rebuilt.apply(set.takeAll());
    return JSON.stringify(rebuilt.dump()) === JSON.stringify(this.tables.dump());
  }

  #newSet(): PolicySet {
    return new PolicySet({ table: TABLE, families: ["IPv4", "IPv6"], bridges: ["br0"], nodeServices: [] });
  }

  #toPod(name: string, labels: Labels) {
    const [namespace = "", pod = ""] = name.split("/");
    const ports = [80, 81].flatMap((containerPort) =>
      (["TCP", "UDP", "SCTP"] as const).map((protocol) => ({
        name: `serve-${containerPort}-${protocol.toLowerCase()}`,
        containerPort,
        protocol,
      })),
    );
    const object: Pod = {
      metadata: { namespace, name: pod, uid: name, labels: { pod, ...labels } },
      spec: { nodeName: "n1", containers: [{ name: "c", ports }] },
      status: {
        podIPs: [{ ip: this.address(name) }, { ip: this.address(name, 6) }],
        startTime: "2026-01-01T00:00:00Z",
      },
    };
    const reduced = toPolicyPod(object, "n1");
    if (reduced === undefined) throw new Error(`${name} is no pod with policies`);
    return reduced;
  }

  #apply(isFirst = false): void {
    if (isFirst) this.tables.apply(this.#set.takeAll());
    else if (this.tables.names.length > 0) {
      this.lastChange = this.#set.takeChanges();
      this.tables.apply(this.lastChange);
    }
  }
}
