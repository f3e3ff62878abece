/** Real packets through the rules of network policies, in network namespaces of their own. */
import t, { type Test } from "tap";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { setNetworkPolicyDefaults } from "../api/networking/network-policy/defaults.ts";
import { networkPolicyKind } from "../api/networking/network-policy/kind.ts";
import type { NetworkPolicySpec } from "../api/networking/network-policy/schema.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { runProgram } from "../std/nftables/nft.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import {
  addresses,
  findNetworkProblem,
  type NetworkNamespace,
  SimulatedNetwork,
} from "../testing/proxy/simulated-network.ts";
import { type NetworkPolicies, startNetworkPolicies } from "./network-policies.ts";

t.setTimeout(240_000);

const problem = findNetworkProblem();
const skip = problem === undefined ? false : `cannot make network namespaces: ${problem}`;
const { node, outside, pod1, pod2, pod3, pod1Six, pod2Six } = addresses;
const DNS = "10.96.0.10";
const SERVICE = "10.96.0.5";
/** How long a packet that passes may take, on a busy machine too. */
const timeoutMs = 600;
const BRIDGE_SETTING = "net.bridge.bridge-nf-call-iptables";

/** pod1 is shop/web, pod2 is shop/db, pod3 is other/job. */
const pods = {
  pod1: { namespace: "shop", name: "web", ips: [pod1, pod1Six] },
  pod2: { namespace: "shop", name: "db", ips: [pod2, pod2Six] },
  pod3: { namespace: "other", name: "job", ips: [pod3, addresses.pod3Six] },
} as const;

/** `pod1 tcp 10.1.0.12 8080` */
type Attempt = `${NetworkNamespace} ${"tcp" | "udp"} ${string} ${number}`;

class PolicyNode {
  readonly network: SimulatedNetwork;
  readonly informers = new FakeInformers();
  readonly policies: NetworkPolicies;
  /** Transactions that were applied. */
  applied = 0;
  readonly #directory: string;

  constructor(network: SimulatedNetwork, directory: string) {
    this.network = network;
    this.#directory = directory;
    for (const name of ["shop", "other", "kube-system"]) {
      this.informers.put(namespaceKind, { metadata: { name, labels: { "kubernetes.io/metadata.name": name } } });
    }
    for (const { namespace, name, ips } of Object.values(pods)) {
      this.informers.put(podKind, {
        metadata: { namespace, name, uid: name, labels: { app: name } },
        spec: { nodeName: "n1", containers: [{ name: "c", ports: [{ name: "http", containerPort: 8080 }] }] },
        status: { podIPs: ips.map((ip) => ({ ip })) },
      });
    }
    this.policies = this.start();
  }

  start(): NetworkPolicies {
    const policies = startNetworkPolicies({
      nodeName: "n1",
      table: "svc-network-policy",
      families: ["IPv4", "IPv6"],
      bridges: ["br0"],
      dnsAddresses: [DNS],
      nft: { apply: (commands) => this.apply(commands) },
      prepareHost: async () => undefined,
      informers: this.informers,
      openInformers: () => Object.assign(this.informers, { [Symbol.asyncDispose]: async () => {} }),
      file: `${this.#directory}/saved`,
      clock: systemClock,
      random: systemRandom,
      log: silentLogger,
      onProblem: (message) => t.fail(message),
    });
    this.informers.of(podKind);
    this.informers.of(namespaceKind);
    this.informers.sync();
    return policies;
  }

  async apply(commands: string): Promise<void> {
    const net = `--net=/run/netns/${this.network.namespace("node")}`;
    await runProgram("nsenter", [net, (await findSystemProgram("nft")) ?? "nft", "-f", "-"], commands);
    this.applied++;
  }

  /** Replaces all policies; resolves when the kernel has them. */
  async set(...specs: readonly (readonly [namespace: string, spec: NetworkPolicySpec])[]): Promise<void> {
    for (const { metadata } of [...this.informers.of(networkPolicyKind).list()]) {
      this.informers.delete(networkPolicyKind, { metadata });
    }
    for (const [index, [namespace, spec]] of specs.entries()) {
      const metadata = { namespace, name: `p${index}`, uid: `p${index}` };
      this.informers.put(networkPolicyKind, setNetworkPolicyDefaults({ metadata, spec }));
    }
    const hasTable = (): boolean => this.ruleset().includes("table ip svc-network-policy");
    while (hasTable() !== specs.length > 0) await systemClock.sleep(20);
    // An address that changes goes into the next transaction, which has all of the above.
    const probe = { metadata: { namespace: "probe", name: "probe", uid: "probe" }, spec: { containers: [] } };
    await this.policies.setPod(probe, [`192.0.2.${++this.#probes % 250}`], this.#signal);
    this.policies.removePod("probe");
  }

  #probes = 0;
  readonly #signal = new AbortController().signal;

  /** The attempts that get an answer. */
  async answered(...attempts: readonly Attempt[]): Promise<readonly Attempt[]> {
    const results = await Promise.all(
      attempts.map(async (attempt) => {
        const [from, protocol, address, port] = attempt.split(" ") as [NetworkNamespace, "tcp" | "udp", string, string];
        const answer = await this.network.open(from, protocol, address, Number(port), { timeoutMs });
        return /^(?:pod\d|node|outside) /.test(answer) ? attempt : [];
      }),
    );
    return results.flat();
  }

  ruleset(): string {
    return this.network.inside("node", "nft", "list", "ruleset");
  }
}

const app = (name: string) => ({ matchLabels: { app: name } });
const inNamespace = (name: string) => ({ matchLabels: { "kubernetes.io/metadata.name": name } });
const both = (from: NetworkNamespace, address: string, port = 8080): readonly Attempt[] => [
  `${from} tcp ${address} ${port}`,
  `${from} udp ${address} ${port}`,
];

t.test("packets of pods with policies", { skip, timeout: 180_000 }, async (t) => {
  await using network = await SimulatedNetwork.create();
  const cluster = new PolicyNode(network, t.testdir());
  await network.serve("pod1", 9000);
  await network.serve("pod2", 9000);
  network.inside("node", "ip", "addr", "add", `${DNS}/32`, "dev", "lo");
  network.inside("outside", "ip", "addr", "add", "198.51.100.3/24", "dev", "eth0");
  await network.serve("node", 53);
  const check = async (
    t: Test,
    attempts: readonly Attempt[],
    allowed: readonly Attempt[],
    message = "attempts with an answer",
  ): Promise<void> => {
    t.same(await cluster.answered(...attempts), allowed, message);
  };
  const everything = [
    ...both("pod1", pod2),
    ...both("pod2", pod1),
    ...both("pod3", pod1),
    ...both("pod1", pod3),
    ...both("node", pod1),
    ...both("outside", pod1),
    ...both("pod1", outside, 9999),
    `pod1 tcp ${DNS} 53` as const,
  ];
  const except = (...dropped: readonly Attempt[]): readonly Attempt[] =>
    everything.filter((attempt) => !dropped.includes(attempt));

  await t.test("without policies nothing is installed, and everything passes", async (t) => {
    await systemClock.sleep(200);
    t.equal(cluster.ruleset(), "");
    await check(t, everything, everything);
  });

  await t.test("deny all ingress: only the node and replies reach the pods", async (t) => {
    await cluster.set(["shop", { podSelector: {}, policyTypes: ["Ingress"] }]);
    const dropped = [...both("pod1", pod2), ...both("pod2", pod1), ...both("pod3", pod1), ...both("outside", pod1)];
    await check(t, everything, except(...dropped));
  });

  await t.test("deny all egress: pods reach the node and clients get replies", async (t) => {
    await cluster.set(["shop", { podSelector: {}, policyTypes: ["Egress"] }]);
    const dropped = [
      ...both("pod1", pod2),
      ...both("pod2", pod1),
      ...both("pod1", pod3),
      ...both("pod1", outside, 9999),
      `pod1 tcp ${DNS} 53` as const,
    ];
    await check(t, everything, except(...dropped));
    await check(
      t,
      both("pod1", addresses.bridge, 53),
      both("pod1", addresses.bridge, 53),
      "an address of the node itself",
    );
  });

  await t.test("allow from a namespace", async (t) => {
    const from = [{ namespaceSelector: inNamespace("other") }];
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from }], policyTypes: ["Ingress"] }]);
    await check(t, everything, except(...both("pod2", pod1), ...both("outside", pod1)));
  });

  await t.test("allow from pods of the own namespace", async (t) => {
    const from = [{ podSelector: app("db") }];
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from }], policyTypes: ["Ingress"] }]);
    await check(t, everything, except(...both("pod3", pod1), ...both("outside", pod1)));
  });

  await t.test("allow by port, range of ports and name", async (t) => {
    const attempts = [...both("pod2", pod1), ...both("pod2", pod1, 9000)];
    const rules: readonly (readonly [ports: object, allowed: readonly Attempt[]])[] = [
      [{ protocol: "TCP", port: 9000 }, [`pod2 tcp ${pod1} 9000`]],
      [{ protocol: "UDP", port: 8000, endPort: 8999 }, [`pod2 udp ${pod1} 8080`]],
      [{ protocol: "TCP", port: 8000, endPort: 9000 }, [`pod2 tcp ${pod1} 8080`, `pod2 tcp ${pod1} 9000`]],
      [{ protocol: "TCP", port: "http" }, [`pod2 tcp ${pod1} 8080`]],
      [{ protocol: "UDP" }, [`pod2 udp ${pod1} 8080`, `pod2 udp ${pod1} 9000`]],
      [{ protocol: "SCTP", port: 1, endPort: 65535 }, []],
    ];
    for (const [ports, allowed] of rules) {
      await cluster.set(["shop", { podSelector: app("web"), ingress: [{ ports: [ports] }], policyTypes: ["Ingress"] }]);
      await check(t, attempts, allowed, JSON.stringify(ports));
    }
  });

  await t.test("egress to a block with an exception", async (t) => {
    const attempts = [...both("pod1", outside, 9999), "pod1 tcp 198.51.100.3 9999" as const, ...both("pod1", pod3)];
    const to = (cidr: string, ...excepted: readonly string[]) =>
      cluster.set([
        "shop",
        {
          podSelector: app("web"),
          egress: [{ to: [{ ipBlock: { cidr, except: excepted } }] }],
          policyTypes: ["Egress"],
        },
      ]);
    await to("198.51.100.0/24", "198.51.100.3/32");
    await check(t, attempts, both("pod1", outside, 9999));
    await to("0.0.0.0/0", "10.1.0.0/16");
    await check(t, attempts, [...both("pod1", outside, 9999), "pod1 tcp 198.51.100.3 9999" as const]);
    await to("0.0.0.0/0");
    await check(t, attempts, attempts);
  });

  await t.test("DNS only", async (t) => {
    const attempts = [`pod1 tcp ${DNS} 53` as const, ...both("pod1", pod2), ...both("pod1", outside, 9999)];
    const dns = {
      namespaceSelector: inNamespace("kube-system"),
      podSelector: { matchLabels: { "k8s-app": "kube-dns" } },
    };
    const ports = [
      { protocol: "UDP", port: 53 },
      { protocol: "TCP", port: "dns-tcp" },
    ] as const;
    await cluster.set(["shop", { podSelector: app("web"), egress: [{ to: [dns], ports }], policyTypes: ["Egress"] }]);
    await check(t, attempts, [`pod1 tcp ${DNS} 53`]);
    await cluster.set(["shop", { podSelector: app("web"), egress: [{ ports }], policyTypes: ["Egress"] }]);
    await check(t, attempts, [`pod1 tcp ${DNS} 53`]);
  });

  await t.test("packets to services match the addresses of their pods", async (t) => {
    const target = `ip daddr ${SERVICE} meta l4proto { tcp, udp } dnat to ${pod2}:8080`;
    const own = `ip daddr ${SERVICE} meta l4proto { tcp, udp } th dport 81 dnat to ${pod1}:8080`;
    await cluster.apply(
      `table ip test-services {\n chain a {\n  type nat hook prerouting priority dstnat;\n  ${own}\n  ${target}\n }\n` +
        ` chain b {\n  type nat hook postrouting priority srcnat;\n  ct status dnat ip saddr ${pod1} ip daddr ${pod1} masquerade\n }\n}\n`,
    );
    const attempts = [...both("pod1", SERVICE, 80), ...both("pod3", SERVICE, 80), ...both("pod1", SERVICE, 81)];
    await cluster.set([
      "shop",
      {
        podSelector: {},
        ingress: [{ from: [{ namespaceSelector: inNamespace("other") }] }],
        policyTypes: ["Ingress", "Egress"],
      },
    ]);
    await check(
      t,
      attempts,
      [...both("pod3", SERVICE, 80), ...both("pod1", SERVICE, 81)],
      "a pod always reaches itself",
    );
    await cluster.set([
      "shop",
      {
        podSelector: {},
        ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 8080 }, { protocol: "UDP", port: 8080 }] }],
        egress: [{ to: [{ podSelector: app("db") }] }],
        policyTypes: ["Ingress", "Egress"],
      },
    ]);
    await check(t, attempts, [...both("pod1", SERVICE, 80), ...both("pod1", SERVICE, 81)]);
    await cluster.apply("delete table ip test-services\n");
  });

  await t.test("IPv6 packets", async (t) => {
    const attempts = [...both("pod2", pod1Six), ...both("pod3", pod1Six), ...both("node", pod1Six)];
    const from = [{ podSelector: app("db") }];
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from }], policyTypes: ["Ingress"] }]);
    await check(t, attempts, [...both("pod2", pod1Six), ...both("node", pod1Six)]);
    const ipBlock = { cidr: "fd00:1::/64", except: [`${pod2Six}/128`] };
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from: [{ ipBlock }] }] }]);
    await check(t, attempts, [...both("pod3", pod1Six), ...both("node", pod1Six)]);
    const linkLocal = /inet6 (fe80::\S+)\/64/.exec(
      network.inside("pod1", "ip", "-6", "addr", "show", "dev", "eth0"),
    )?.[1];
    const through = (from: NetworkNamespace) => network.open(from, "tcp", `${linkLocal}%eth0`, 8080);
    t.equal(await through("pod3"), "timeout", "link-local addresses");
    await cluster.set();
    t.match(await through("pod3"), "pod1 fe80::");
  });

  await t.test("a changed policy applies to flows that exist", async (t) => {
    const from = [{ podSelector: app("db") }];
    const open = () => network.open("pod2", "udp", pod1, 8080, { localPort: 4000, timeoutMs });
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from }] }]);
    t.equal(await open(), `pod1 ${pod2}`);
    await cluster.set(["shop", { podSelector: app("web") }]);
    t.equal(await open(), "timeout");
    await cluster.set(["shop", { podSelector: app("web"), ingress: [{ from }] }]);
    t.equal(await open(), `pod1 ${pod2}`);
  });

  await t.test("connections are neither refused nor let through while rules change and agents restart", async (t) => {
    const from = [{ podSelector: app("db") }];
    const spec = { podSelector: app("web"), ingress: [{ from }] };
    await cluster.set(["shop", spec]);
    let isChanging = true;
    const allowed: string[] = [];
    const denied: string[] = [];
    const clients = [
      (async () => {
        while (isChanging) allowed.push(await network.open("pod2", "tcp", pod1, 8080));
      })(),
      (async () => {
        while (isChanging) denied.push(await network.open("pod3", "tcp", pod1, 8080, { timeoutMs }));
      })(),
    ];
    for (let i = 0; i < 10; i++) {
      await cluster.set(["shop", spec], ["other", { podSelector: {}, ingress: [{}] }]);
      await cluster.set(["shop", spec]);
    }
    const before = cluster.applied;
    const other = cluster.start();
    await systemClock.sleep(300);
    t.ok(cluster.applied > before, "the next agent replaces the tables");
    await other.close({ removeRules: false });
    isChanging = false;
    await Promise.all(clients);
    t.ok(allowed.length > 50);
    t.same(new Set(allowed), new Set([`pod1 ${pod2}`]));
    t.same(new Set(denied), new Set(["timeout"]));
  });

  await t.test("packets within the bridge pass the rules by bridge-nf-call-iptables only", async (t) => {
    await cluster.set(["shop", { podSelector: app("web") }]);
    const attempts = both("pod2", pod1);
    await check(t, attempts, []);
    network.inside("node", "sysctl", "-q", "-w", `${BRIDGE_SETTING}=0`);
    await check(t, attempts, attempts);
    network.inside("node", "sysctl", "-q", "-w", `${BRIDGE_SETTING}=1`);
    await check(t, attempts, []);
  });

  await t.test("when the last policy goes, and when the node closes, nothing is left", async (t) => {
    t.match(cluster.ruleset(), "svc-network-policy");
    await cluster.set();
    t.equal(cluster.ruleset(), "");
    await cluster.set(["shop", { podSelector: {} }]);
    await cluster.policies.close({ removeRules: false });
    t.match(cluster.ruleset(), "svc-network-policy", "pods that keep running keep their rules");
    const next = cluster.start();
    await systemClock.sleep(200);
    await next.close({ removeRules: true });
    t.equal(cluster.ruleset(), "");
  });
  t.match(await network.open("outside", "tcp", node, 53), /node/);
});
