import { spawnSync } from "node:child_process";
import t from "tap";
import type { NetworkPolicy, NetworkPolicySpec } from "../api/networking/network-policy/schema.ts";
import { findNetworkProblem } from "../testing/proxy/simulated-network.ts";
import type { PolicyPod } from "./policy-pod.ts";
import { PolicySet } from "./policy-set.ts";

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function policy(spec: Partial<NetworkPolicySpec>): NetworkPolicy {
  return { metadata: { namespace: "shop", name: "web" }, spec: { podSelector: {}, ...spec } };
}

function newSet(pod: Partial<PolicyPod> = {}): PolicySet {
  const set = new PolicySet({ table: "t", families: ["IPv4", "IPv6"], bridges: ["b"], nodeServices: [] });
  set.putNamespace("shop", {});
  set.putPod({
    uid: "local",
    namespace: "shop",
    labels: {},
    ports: [{ name: "p1", protocol: "tcp", port: 80 }],
    addresses: [{ family: "IPv4", text: "10.1.0.1" }],
    isLocal: true,
    since: 1,
    ...pod,
  });
  return set;
}

/** Blocks of addresses, and named ports. */
function product(blocks: number, ports: number): NetworkPolicy {
  const from = times(blocks, (index) => ({ ipBlock: { cidr: `20.${index >> 8}.${index & 255}.0/25` } }));
  return policy({ ingress: [{ from, ports: times(ports, (index) => ({ port: `p${index}` })) }] });
}

t.test("a policy of thousands of blocks and named ports has rules for their sum, not for their product", async (t) => {
  const set = newSet();
  set.putPolicy(product(5_000, 3_000));
  const { length } = set.takeAll();
  t.ok(length < 2e6, `${length} characters`);
});

t.test("sets of blocks follow the policy, and nft accepts the changes", async (t) => {
  const set = newSet();
  const changes: string[] = [];
  set.putPolicy(product(1_000, 20));
  changes.push(set.takeAll());
  t.match(changes[0], /add set ip t blocks-\w+ \{ type ipv4_addr; flags interval;/);
  for (const next of [product(900, 20), product(3, 20), product(100, 20), product(100, 1)]) {
    set.putPolicy(next);
    changes.push(set.takeChanges());
  }
  t.notMatch(changes[2], /add set/, "few blocks are in the rules");
  set.deletePod("local");
  changes.push(set.takeChanges());
  const count = (verb: string): number => changes.join("").split(`${verb} set ip t blocks-`).length - 1;
  t.same([count("add"), count("delete")], [3, 3]);
  if (findNetworkProblem() !== undefined) return;
  const script = "nft -f - && nft list sets";
  const { status, stdout, stderr } = spawnSync("unshare", ["--net", "sh", "-c", script], {
    input: changes.join(""),
    encoding: "utf8",
  });
  t.equal(status, 0, stderr.slice(0, 1_000));
  t.notMatch(stdout, /blocks-|ports-/);
});

t.test("named ports of thousands of pods and rules take time for those that match", async (t) => {
  const set = newSet({ ports: times(3_000, (index) => ({ name: `p${index}`, protocol: "tcp", port: index + 1 })) });
  for (let index = 0; index < 1_000; index++) {
    const addresses = [{ family: "IPv4", text: `10.2.${index >> 8}.${index & 255}` }] as const;
    const ports = [{ name: "p1", protocol: "tcp", port: 8080 }] as const;
    set.putPod({ uid: `u${index}`, namespace: "shop", labels: {}, ports, addresses, isLocal: false, since: 1 });
  }
  const began = process.cpuUsage();
  set.putPolicy(product(1, 3_000));
  const ms = process.cpuUsage(began).user / 1000;
  // Each port with each port of each pod took seconds.
  t.ok(ms < 500, `${Math.round(ms)} ms`);
  const text = set.takeAll();
  t.equal(text.split("10.1.0.1 . tcp . ").length - 1, 3_000);
  t.equal(text.split(" . tcp . 8080").length - 1, 1_000);
  set.putPolicy(policy({ ingress: [] }));
  const removed = set.takeChanges();
  t.equal(removed.split("10.1.0.1 . tcp . ").length - 1, 3_000);
  t.equal(removed.split("delete set ip t ports-").length - 1, 3_000);
});
