/**
 * Run by `make bench`, as root with nft: 1,000 pods in 50 namespaces and 200 policies in nftables, in a network
 * namespace of its own; 100 of the pods run on this node. A JSON line with milliseconds: all rules when the first
 * policy appears, and the median and maximum from the change of one pod, policy or namespace until the rules are in the
 * kernel.
 *
 *     unshare --net node --expose-gc src/network-policy/network-policy.bench.ts
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { networkPolicyKind } from "../api/networking/network-policy/kind.ts";
import type { NetworkPolicy } from "../api/networking/network-policy/schema.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { createNft } from "../std/nftables/nft.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import { findNetworkProblem } from "../testing/proxy/simulated-network.ts";
import { startNetworkPolicies } from "./network-policies.ts";

const PODS = 1000;
const NAMESPACES = 50;
const POLICIES = 200;
/** One of so many pods runs on this node. */
const NODES = 10;
const CHANGES = 50;
const IN_NAMESPACE = "SVC_BENCH_NAMESPACE";

const problem = findNetworkProblem();
if (problem !== undefined) process.stdout.write(`${JSON.stringify({ skipped: `network policies: ${problem}` })}\n`);
else if (process.env[IN_NAMESPACE] === undefined) {
  const args = ["--net", process.execPath, ...process.execArgv, fileURLToPath(import.meta.url)];
  spawnSync("unshare", args, { stdio: "inherit", env: { ...process.env, [IN_NAMESPACE]: "1" } });
} else await measure();

function makePod(index: number, labels: Readonly<Record<string, string>> = {}): Pod {
  return {
    metadata: {
      namespace: `ns-${index % NAMESPACES}`,
      name: `pod-${index}`,
      uid: `pod-${index}`,
      labels: { app: `app-${index % 7}`, ...labels },
    },
    spec: {
      nodeName: `n${Math.floor(index / NAMESPACES) % NODES}`,
      containers: [{ name: "c", ports: [{ name: "http", containerPort: 8080 }] }],
    },
    status: { podIPs: [{ ip: `10.244.${index >> 8}.${index & 255}` }] },
  };
}

function makePolicy(index: number, port = 80): NetworkPolicy {
  return {
    metadata: { namespace: `ns-${index % NAMESPACES}`, name: `policy-${index}` },
    spec: {
      podSelector: { matchLabels: { app: `app-${index % 7}` } },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        {
          from: [
            { namespaceSelector: { matchLabels: { team: `team-${index % 5}` } } },
            { podSelector: { matchLabels: { app: `app-${(index + 1) % 7}` } } },
          ],
          ports: [{ port, protocol: "TCP" }, { port: "http" }],
        },
      ],
      egress: [
        { to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8"] } }] },
        { to: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: `app-${index % 3}` } } }] },
      ],
    },
  };
}

async function measure(): Promise<void> {
  const informers = new FakeInformers();
  const setNamespace = (index: number, team: number): void => {
    informers.put(namespaceKind, { metadata: { name: `ns-${index}`, labels: { team: `team-${team % 5}` } } });
  };
  for (let index = 0; index < NAMESPACES; index++) setNamespace(index, index);
  for (let index = 0; index < PODS; index++) informers.put(podKind, makePod(index));
  for (let index = 0; index < POLICIES; index++) informers.put(networkPolicyKind, makePolicy(index));
  const nft = createNft((await findSystemProgram("nft")) ?? "nft");
  const directory = mkdtempSync(join(tmpdir(), "svc-bench-"));
  let applied = Promise.withResolvers<void>();
  let bytes = 0;
  let syncMs = 0;
  const before = memoryMiB();
  const began = performance.now();
  const policies = startNetworkPolicies({
    nodeName: "n0",
    table: "svc-bench",
    families: ["IPv4", "IPv6"],
    bridges: ["svc0"],
    dnsAddresses: ["10.96.0.10"],
    nft: {
      apply: async (commands) => {
        bytes = commands.length;
        const at = performance.now();
        await nft.apply(commands);
        syncMs = performance.now() - at;
        applied.resolve();
      },
    },
    prepareHost: async () => undefined,
    informers,
    openInformers: () => Object.assign(informers, { [Symbol.asyncDispose]: async () => {} }),
    file: join(directory, "saved"),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    onProblem: (text) => void process.stderr.write(`${text}\n`),
  });
  informers.sync();
  await applied.promise;
  const startMs = performance.now() - began;
  const startBytes = bytes;
  const memory = memoryMiB() - before;
  const times = async (change: (index: number) => void): Promise<object> => {
    const all: number[] = [];
    const inNft: number[] = [];
    for (let index = 0; index < CHANGES; index++) {
      applied = Promise.withResolvers<void>();
      const at = performance.now();
      change(index);
      await applied.promise;
      all.push(performance.now() - at);
      inNft.push(syncMs);
    }
    for (const list of [all, inNft]) list.sort((a, b) => a - b);
    return {
      medianMs: round(all[CHANGES >> 1]!),
      maxMs: round(all.at(-1)!),
      ofNftMs: round(inNft[CHANGES >> 1]!),
      bytes,
    };
  };
  const figures = {
    benchmark: "network policies",
    pods: PODS,
    policies: POLICIES,
    startMs: Math.round(startMs),
    startBytes,
    // A pod of another node becomes or ceases to be a peer.
    pod: await times((index) =>
      informers.put(podKind, makePod(NAMESPACES + index, { app: (NAMESPACES + index) % 7 < 3 ? "app-5" : "app-1" })),
    ),
    policy: await times((index) => informers.put(networkPolicyKind, makePolicy(index, 81 + index))),
    namespace: await times((index) => setNamespace(index, index + 1)),
    memoryMiB: Math.round(memory * 10) / 10,
  };
  await policies.close({ removeRules: true });
  rmSync(directory, { recursive: true });
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

function memoryMiB(): number {
  global.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
