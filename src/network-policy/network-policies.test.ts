/** When rules are written, and what pods wait for. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { networkPolicyKind } from "../api/networking/network-policy/kind.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import { NftTables } from "../testing/network-policy/nft-evaluator.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { findFamilies, prepareBridges } from "./host.ts";
import { type NetworkPolicies, startNetworkPolicies } from "./network-policies.ts";
import { createPolicyMetrics } from "./policy-metrics.ts";
import { keepPolicyFields } from "./policy-pod.ts";
import { readSavedObjects, writeSavedObjects } from "./saved-objects.ts";
import { policyTableName } from "./table-name.ts";

const shop = { metadata: { name: "shop", labels: { team: "blue" } } };
const policy = (name: string, app: string): NetworkPolicy => ({
  metadata: { namespace: "shop", name },
  spec: { podSelector: { matchLabels: { app } }, policyTypes: ["Ingress"] },
});
const deny = policy("deny", "web");

function pod(name: string, ip?: string, more: { readonly nodeName?: string; readonly app?: string } = {}): Pod {
  const { nodeName = "n1", app = name } = more;
  return {
    metadata: {
      namespace: "shop",
      name,
      uid: `${name}-uid`,
      labels: { app },
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    spec: { nodeName, containers: [{ name: "c" }] },
    ...(ip === undefined ? {} : { status: { podIPs: [{ ip }] } }),
  };
}

/** Reads and writes of files take real time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await setTimeout(1);
}

class Fixture {
  readonly policies: NetworkPolicies;
  readonly policyInformers = new FakeInformers();
  /** Of pods and namespaces. */
  informers: FakeInformers | undefined;
  /** How many were opened and closed. */
  readonly opened = { count: 0, closed: 0 };
  readonly clock: FakeClock;
  readonly transactions: string[] = [];
  readonly tables = new NftTables();
  readonly problems: string[] = [];
  readonly metrics = new MetricRegistry();
  readonly file: string;
  readonly signal = new AbortController().signal;
  isFailing = false;
  hostProblem: string | undefined;
  /** Objects of informers that are opened later. */
  readonly #pods: readonly Pod[];

  constructor(t: Test, options: { readonly pods?: readonly Pod[]; readonly file?: string } = {}) {
    this.#pods = options.pods ?? [];
    this.file = options.file ?? join(t.testdir(), "saved");
    this.clock = new FakeClock();
    this.policies = startNetworkPolicies({
      nodeName: "n1",
      table: "t",
      families: ["IPv4"],
      bridges: ["br0"],
      dnsAddresses: [],
      nft: {
        apply: async (commands) => {
          if (this.isFailing) throw new Error("Could not process rule");
          this.transactions.push(commands);
          if (!commands.startsWith("list ")) this.tables.apply(commands);
        },
      },
      prepareHost: async () => this.hostProblem,
      informers: this.policyInformers,
      openInformers: () => this.#open(),
      file: this.file,
      metrics: createPolicyMetrics(this.metrics, this.clock),
      clock: this.clock,
      random: systemRandom,
      log: silentLogger,
      onProblem: (message) => void this.problems.push(message),
    });
    t.teardown(() => this.policies.close({ removeRules: false }));
  }

  #open() {
    const informers = new FakeInformers();
    this.informers = informers;
    this.opened.count++;
    informers.put(namespaceKind, shop);
    informers.put(podKind, ...this.#pods);
    return Object.assign(informers, {
      [Symbol.asyncDispose]: async () => {
        this.opened.closed++;
      },
    });
  }

  async pass(milliseconds = 20): Promise<void> {
    await settle();
    await this.clock.advance(milliseconds);
    await settle();
  }

  /** Completes the first lists. */
  async sync(...policies: readonly NetworkPolicy[]): Promise<void> {
    await settle();
    this.policyInformers.put(networkPolicyKind, ...policies);
    this.policyInformers.sync();
    await this.pass();
    this.informers?.sync();
    await this.pass();
  }

  /** Whether a new connection from elsewhere reaches the address. */
  isOpen(destination: string): boolean {
    const packet = { hook: "forward", source: "10.9.9.9", destination, protocol: "tcp", port: 80 } as const;
    return this.tables.verdict(packet) === "accept";
  }

  /** Whether the start of the pod's containers may go on. */
  async hasStarted(object: Pod, ip: string): Promise<boolean> {
    let started = false;
    void Promise.resolve(this.policies.setPod(object, [ip], this.signal)).then(() => {
      started = true;
    });
    await this.pass();
    return started;
  }
}

t.test("without policies nothing is watched or installed, and pods start at once", async (t) => {
  const f = new Fixture(t);
  await f.sync();
  t.same(f.transactions, ["add table ip t\ndelete table ip t\n"], "what an earlier run has left is removed once");
  t.equal(f.policies.setPod(pod("web"), ["10.1.0.2"], f.signal), undefined);
  await f.pass(600_000);
  t.equal(f.transactions.length, 1);
  t.equal(f.opened.count, 0);
  t.notOk(existsSync(f.file));
});

t.test("the first policy opens informers; one transaction has all that they list", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2"), pod("db", "10.1.0.3")] });
  await f.sync();
  f.policyInformers.put(networkPolicyKind, deny);
  await f.pass();
  t.equal(f.opened.count, 1);
  t.equal(f.transactions.length, 1, "not before all pods are known");
  f.informers?.sync();
  await f.pass();
  t.equal(f.transactions.length, 2);
  t.notOk(f.isOpen("10.1.0.2"));
  t.ok(f.isOpen("10.1.0.3"));
  f.informers?.put(podKind, pod("other", "10.1.0.9", { nodeName: "n2", app: "web" }));
  await f.pass();
  t.equal(f.transactions.length, 2, "a pod of another node that no rule is about");
  t.ok(f.isOpen("10.1.0.9"), "another node isolates it");
});

t.test("policies that select no pod of the node have no rules", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2", { nodeName: "n2" })] });
  await f.sync(deny);
  t.same(f.tables.names, []);
  f.informers?.put(podKind, pod("web2", "10.1.0.3", { app: "web" }));
  await f.pass();
  t.same(f.tables.names, ["ip t"]);
  f.informers?.delete(podKind, pod("web2"));
  await f.pass();
  t.same(f.tables.names, [], "the last pod takes the table with it");
});

t.test("a pod starts when the kernel has its rules", async (t) => {
  const f = new Fixture(t);
  const waiting = f.hasStarted(pod("web"), "10.1.0.2");
  t.notOk(await waiting, "not before policies are known");
  await f.sync(deny);
  t.notOk(f.isOpen("10.1.0.2"));
  t.equal(f.policies.setPod(pod("web"), ["10.1.0.2"], f.signal), undefined, "it is enforced now");
  f.isFailing = true;
  t.notOk(await f.hasStarted(pod("web2", undefined, { app: "web" }), "10.1.0.3"), "not while nft fails");
  t.match(f.problems, ["Cannot enforce network policies: Could not process rule"]);
  f.isFailing = false;
  await f.pass(1000);
  t.equal(f.policies.setPod(pod("web2", undefined, { app: "web" }), ["10.1.0.3"], f.signal), undefined);
  t.notOk(f.isOpen("10.1.0.3"));
  t.equal(f.problems.length, 1, "once");
  const host = { ...pod("host"), spec: { hostNetwork: true, containers: [] } };
  t.equal(f.policies.setPod(host, ["192.0.2.1"], f.signal), undefined, "the network of the node has no policies");
});

t.test("a pod that waits is released when its worker stops, and when the agent closes", async (t) => {
  const f = new Fixture(t);
  const stop = new AbortController();
  const first = f.policies.setPod(pod("web"), ["10.1.0.2"], stop.signal);
  stop.abort();
  await first;
  const second = f.policies.setPod(pod("db"), ["10.1.0.3"], f.signal);
  await Promise.all([second, f.policies.close({ removeRules: false })]);
});

t.test("the addresses come from the agent, labels from the API server", async (t) => {
  const f = new Fixture(t);
  await f.sync(deny);
  t.ok(await f.hasStarted(pod("web"), "10.1.0.2"), "before its status has an address");
  f.informers?.put(podKind, { ...pod("web"), metadata: { ...pod("web").metadata, labels: { app: "db" } } });
  await f.pass();
  t.ok(f.isOpen("10.1.0.2"));
  f.informers?.put(podKind, pod("web", "10.1.0.77"));
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"));
  t.ok(f.isOpen("10.1.0.77"));
  f.informers?.delete(podKind, pod("web"));
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"), "while the pod terminates");
  f.policies.removePod("web-uid");
  await f.pass();
  t.ok(f.isOpen("10.1.0.2"));
});

t.test("an address belongs to the pod that started last, and to none that has ended", async (t) => {
  const f = new Fixture(t);
  await f.sync(deny);
  const old = {
    ...pod("web", "10.1.0.2"),
    status: { podIPs: [{ ip: "10.1.0.2" }], startTime: "2026-01-01T00:00:00Z" },
  };
  f.informers?.put(podKind, old);
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"));
  t.ok(await f.hasStarted(pod("db"), "10.1.0.2"));
  t.ok(f.isOpen("10.1.0.2"));
  f.policies.removePod("db-uid");
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"));
  f.informers?.put(podKind, { ...old, status: { ...old.status, phase: "Succeeded" } });
  await f.pass();
  t.ok(f.isOpen("10.1.0.2"));
});

t.test("a pod whose sandbox is made again has the address of a later pod that has left it", async (t) => {
  const f = new Fixture(t);
  await f.sync(deny);
  t.ok(await f.hasStarted(pod("web"), "10.1.0.2"));
  t.ok(await f.hasStarted(pod("db"), "10.1.0.3"));
  t.ok(await f.hasStarted(pod("web"), "10.1.0.3"));
  t.notOk(f.isOpen("10.1.0.3"));
  t.ok(f.isOpen("10.1.0.2"));
});

t.test("another node cannot take an address by the status of its pods", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  await f.sync(deny);
  const thief = pod("thief", "10.1.0.2", { nodeName: "n2" });
  f.informers?.put(podKind, { ...thief, status: { ...thief.status, startTime: "2099-01-01T00:00:00Z" } });
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"));
});

t.test("changes that follow one another are one transaction", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2"), pod("db", "10.1.0.3")] });
  await f.sync(deny);
  const before = f.transactions.length;
  f.policyInformers.put(networkPolicyKind, policy("db", "db"));
  f.informers?.put(podKind, pod("web2", "10.1.0.4", { app: "web" }));
  await f.pass();
  t.equal(f.transactions.length, before + 1);
  t.notOk(f.transactions.at(-1)?.includes("delete table"), "which changes what differs");
  f.informers?.put(podKind, {
    ...pod("web2", "10.1.0.4", { app: "web" }),
    status: { podIPs: [{ ip: "10.1.0.4" }], message: "x" },
  });
  await f.pass();
  t.equal(f.transactions.length, before + 1, "a change that policies do not use is none");
});

t.test("after a failure the tables are replaced", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2"), pod("db", "10.1.0.3")] });
  await f.sync(deny);
  f.isFailing = true;
  f.policyInformers.put(networkPolicyKind, policy("db", "db"));
  await f.pass();
  t.ok(f.isOpen("10.1.0.3"));
  f.isFailing = false;
  await f.pass(1000);
  t.match(f.transactions.at(-1), /^add table ip t\ndelete table ip t\ntable ip t \{/);
  t.notOk(f.isOpen("10.1.0.3"));
});

t.test("the tables and the host are checked once a minute", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  f.hostProblem = "br_netfilter is missing";
  await f.sync(deny);
  t.same(f.problems, ["br_netfilter is missing"]);
  await f.pass(61_000);
  t.equal(f.transactions.at(-1), "list chain ip t ingress-forward\n");
  t.equal(f.problems.length, 1, "a problem is reported once");
  f.isFailing = true;
  await f.pass(61_000);
  f.isFailing = false;
  await f.pass(40_000);
  t.match(f.transactions.at(-1), /^add table ip t\ndelete table ip t\ntable ip t \{/, "another program removed them");
});

t.test("after the last policy the tables are removed at once, the informers after five minutes", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  await f.sync(deny);
  f.policyInformers.delete(networkPolicyKind, deny);
  await f.pass();
  t.same(f.tables.names, []);
  t.equal(f.opened.closed, 0);
  await f.pass(100_000);
  f.policyInformers.put(networkPolicyKind, deny);
  await f.pass();
  t.notOk(f.isOpen("10.1.0.2"));
  f.policyInformers.delete(networkPolicyKind, deny);
  await f.pass(299_000);
  t.equal(f.opened.closed, 0);
  await f.pass(2_000);
  t.equal(f.opened.closed, 1);
  f.policyInformers.put(networkPolicyKind, deny);
  await f.pass();
  t.equal(f.opened.count, 2);
  t.notOk(
    await f.hasStarted(pod("web2", undefined, { app: "web" }), "10.1.0.3"),
    "not before the pods are known again",
  );
  f.informers?.sync();
  await f.pass();
  t.notOk(f.isOpen("10.1.0.3"));
});

t.test("while the API server is away, the objects of the last run apply to pods that start", async (t) => {
  const first = new Fixture(t, { pods: [pod("web", "10.1.0.2"), pod("job", "10.1.9.9", { nodeName: "n2" })] });
  const from = [{ podSelector: { matchLabels: { app: "job" } } }];
  await first.sync({ ...deny, spec: { podSelector: { matchLabels: { app: "web" } }, ingress: [{ from }] } });
  await first.pass(10_000);
  await first.policies.close({ removeRules: false });
  t.match(readFileSync(first.file, "utf8"), /^svc network policies 1\n\["policy",/);
  const next = new Fixture(t, { file: first.file });
  t.notOk(await next.hasStarted(pod("web"), "10.1.0.7"));
  await next.pass(9_000);
  t.same(next.transactions, [], "the rules of the last run stay for ten seconds");
  await next.pass(2_000);
  t.notOk(next.isOpen("10.1.0.7"));
  const packet = { hook: "forward", source: "10.1.9.9", destination: "10.1.0.7", protocol: "tcp", port: 80 } as const;
  t.equal(next.tables.verdict(packet), "accept", "a peer of another node");
  t.equal(next.policies.setPod(pod("web"), ["10.1.0.7"], next.signal), undefined);
  await next.sync();
  t.same(next.tables.names, [], "the API server's policies replace them");
  await next.pass();
  t.same((await readSavedObjects(first.file))?.policies, []);
});

t.test("without policies in the last run, pods wait two seconds for the API server", async (t) => {
  const f = new Fixture(t);
  t.notOk(await f.hasStarted(pod("web"), "10.1.0.2"));
  await f.pass(2_000);
  t.equal(f.policies.setPod(pod("web"), ["10.1.0.2"], f.signal), undefined);
  t.same(f.transactions, []);
  t.match(f.problems, [/^The API server has not listed network policies/]);
  await f.sync(deny);
  t.notOk(f.isOpen("10.1.0.2"));
});

t.test("a file that cannot be read is ignored", async (t) => {
  const file = join(t.testdir({ saved: "something else" }), "saved");
  await t.rejects(readSavedObjects(file), /does not start with "svc network policies 1"/);
  const f = new Fixture(t, { file, pods: [pod("web", "10.1.0.2")] });
  await f.sync(deny);
  t.notOk(f.isOpen("10.1.0.2"));
});

t.test("close() removes the tables on request", async (t) => {
  const kept = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  await kept.sync(deny);
  await kept.policies.close({ removeRules: false });
  t.same(kept.tables.names, ["ip t"]);
  const removed = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  await removed.sync(deny);
  await Promise.all([removed.policies.close({ removeRules: true }), removed.policies.close({ removeRules: true })]);
  t.same(removed.tables.names, []);
  const failing = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  await failing.sync(deny);
  failing.isFailing = true;
  await failing.policies.close({ removeRules: true });
});

t.test("metrics count transactions and failures", async (t) => {
  const f = new Fixture(t, { pods: [pod("web", "10.1.0.2")] });
  f.isFailing = true;
  await f.sync(deny);
  f.isFailing = false;
  await f.pass(1000);
  const text = formatMetrics([f.metrics], "prometheus");
  t.match(text, /svc_network_policy_sync_failures_total 1/);
  t.match(text, /svc_network_policy_sync_duration_seconds_count [1-9]/);
});

t.test("keepPolicyFields() keeps what policies use of pods and namespaces", async (t) => {
  const ports = [{ name: "http", containerPort: 80 }];
  const object: Pod = {
    ...pod("web", "10.1.0.2"),
    spec: { nodeName: "n1", containers: [{ name: "c", image: "i", env: [{ name: "A", value: "secret" }], ports }] },
  };
  const kept = keepPolicyFields(object);
  t.notMatch(JSON.stringify(kept), "secret");
  t.same(kept.spec?.containers, [{ name: "c", ports, restartPolicy: undefined }]);
  t.same(keepPolicyFields(shop).metadata.labels, shop.metadata.labels);
});

t.test("prepareBridges() loads br_netfilter, and returns why packets within a bridge do not pass", async (t) => {
  const host = (values: readonly (string | undefined)[], isReadOnly = false) => {
    const left = [...values];
    let value = left.shift();
    return {
      read: async () => value,
      write: async () => {
        if (isReadOnly) throw new Error("EROFS");
        value = "1";
      },
      loadModule: async () => {
        if (left.length === 0) throw new Error("modprobe: FATAL: Module br_netfilter not found");
        value = left.shift();
      },
    };
  };
  t.equal(await prepareBridges(silentLogger, host(["1"])), undefined);
  t.equal(await prepareBridges(silentLogger, host([undefined, "0"])), undefined);
  t.match(await prepareBridges(silentLogger, host([undefined])), /br_netfilter not found/);
  t.match(await prepareBridges(silentLogger, host(["0"], true)), /the setting cannot be changed/);
  t.same(await findFamilies("/nowhere"), ["IPv4"]);
  t.same(await findFamilies("/"), ["IPv4", "IPv6"]);
  t.equal(policyTableName("a"), "svc-network-policy-a");
});

t.test("writeSavedObjects() and readSavedObjects() keep all objects", async (t) => {
  const file = join(t.testdir(), "saved");
  const objects = { policies: [deny], namespaces: [shop], pods: [pod("web", "10.1.0.2")] };
  await writeSavedObjects(file, objects);
  t.same(await readSavedObjects(file), objects);
  t.equal(await readSavedObjects(`${file}.absent`), undefined);
});
