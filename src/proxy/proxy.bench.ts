/**
 * Run by `make bench`, as root with nft: 10,000 services with 10 endpoints each in nftables, in a
 * network namespace of its own. One JSON line with milliseconds: all rules at the start, and the median and maximum
 * from a change of one endpoint until the rules are in the kernel; another with the median time of a connection with
 * an answer, directly and by a service.
 *
 *     unshare --net node --expose-gc src/proxy/proxy.bench.ts
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { nodeKind } from "../api/core/node/kind.ts";
import { serviceKind } from "../api/core/service/kind.ts";
import { endpointSliceKind } from "../api/discovery/endpoint-slice/kind.ts";
import type { EndpointSlice } from "../api/discovery/endpoint-slice/schema.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { createNft, runProgram } from "../std/nftables/nft.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeInformers } from "../testing/client/fake-informers.ts";
import { proxyService, proxySlice } from "../testing/proxy/objects.ts";
import { addresses, findNetworkProblem, SimulatedNetwork } from "../testing/proxy/simulated-network.ts";
import { readSlice } from "./endpoints.ts";
import { computeFrontends, type ServiceFrontends } from "./frontends.ts";
import { ServiceTable } from "./nftables/service-table.ts";
import { startServiceProxy } from "./service-proxy.ts";

const SERVICES = 10_000;
const ENDPOINTS = 10;
const CHANGES = 50;
const CONNECTIONS = 1000;
const IN_NAMESPACE = "SVC_BENCH_NAMESPACE";

const problem = findNetworkProblem();
if (problem !== undefined) process.stdout.write(`${JSON.stringify({ skipped: `service proxy: ${problem}` })}\n`);
else if (process.env[IN_NAMESPACE] === undefined) {
  const args = ["--net", process.execPath, ...process.execArgv, fileURLToPath(import.meta.url)];
  spawnSync("unshare", args, { stdio: "inherit", env: { ...process.env, [IN_NAMESPACE]: "1" } });
  await measureConnections();
} else await measure();

function address(block: number, index: number): string {
  return `10.${block + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
}

function slice(service: number, count: number) {
  const endpoints = Array.from({ length: count }, (_, index) => `${address(128, service * ENDPOINTS + index)} node=n2`);
  const made = proxySlice(`web-${service}`, endpoints);
  return { ...made, metadata: { ...made.metadata, name: `web-${service}-x` } };
}

async function measure(): Promise<void> {
  const informers = new FakeInformers();
  informers.put(nodeKind, { metadata: { name: "n1" } });
  for (let index = 0; index < SERVICES; index++) {
    informers.put(serviceKind, proxyService(`web-${index}`, { clusterIP: address(96, index + 1) }));
    informers.put(endpointSliceKind, slice(index, ENDPOINTS));
  }
  const nft = createNft((await findSystemProgram("nft")) ?? "nft");
  let applied = Promise.withResolvers<void>();
  const before = memoryMiB();
  const began = performance.now();
  const proxy = startServiceProxy({
    nodeName: "n1",
    table: "svc-bench",
    clusterCidrs: ["10.128.0.0/12"],
    serviceCidrs: ["10.96.0.0/12"],
    nodes: informers.of(nodeKind),
    informers,
    nft: {
      apply: async (commands) => {
        await nft.apply(commands);
        applied.resolve();
      },
    },
    listeningPorts: async () => new Set(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    onProblem: () => {},
  });
  informers.sync();
  await proxy.ready;
  const startMs = performance.now() - began;
  const memory = memoryMiB() - before;
  const times: number[] = [];
  for (let change = 0; change < CHANGES; change++) {
    applied = Promise.withResolvers<void>();
    const at = performance.now();
    informers.put(endpointSliceKind, slice(change * 7, ENDPOINTS - 1));
    await applied.promise;
    times.push(performance.now() - at);
  }
  await proxy.close({ removeRules: true });
  times.sort((a, b) => a - b);
  const figures = {
    benchmark: "service proxy",
    services: SERVICES,
    endpoints: SERVICES * ENDPOINTS,
    startMs: Math.round(startMs),
    changeMs: round(times[CHANGES >> 1]!),
    changeMaxMs: round(times.at(-1)!),
    memoryMiB: Math.round(memory),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

/** From one pod to another on the same node: directly, and by a service beside all the others. */
async function measureConnections(): Promise<void> {
  await using network = await SimulatedNetwork.create();
  const options = { family: "IPv4", table: "svc-bench", clusterCidrs: ["10.1.0.0/16"], serviceCidrs: [] } as const;
  const table = new ServiceTable(options);
  const node = { name: "n1", zone: undefined, addresses: [] };
  const frontends = (name: string, clusterIP: string, endpoints: EndpointSlice): ServiceFrontends =>
    computeFrontends(proxyService(name, { clusterIP }), [readSlice(endpoints)!], "IPv4", node);
  const services = new Map<string, ServiceFrontends>();
  for (let index = 1; index < SERVICES; index++) {
    services.set(`web-${index}`, frontends(`web-${index}`, address(96, index), slice(index, ENDPOINTS)));
  }
  const ip = address(96, SERVICES);
  services.set("web", frontends("web", ip, proxySlice("web", [addresses.pod2])));
  table.update(services);
  const enter = [`--net=/run/netns/${network.namespace("node")}`, (await findSystemProgram("nft")) ?? "nft", "-f", "-"];
  await runProgram("nsenter", enter, table.rebuild());
  const measureTo = async (destination: string, port: number): Promise<number> => {
    const times: number[] = [];
    for (let connection = 0; connection < CONNECTIONS; connection++) {
      const at = performance.now();
      const answer = await network.open("pod1", "tcp", destination, port);
      if (!answer.startsWith("pod2")) throw new Error(`Unexpected answer: ${answer}`);
      times.push(performance.now() - at);
    }
    return Math.round(times.sort((a, b) => a - b)[CONNECTIONS >> 1]! * 1000);
  };
  await measureTo(addresses.pod2, 8080);
  const figures = {
    benchmark: "service connection",
    services: SERVICES,
    directMicroseconds: await measureTo(addresses.pod2, 8080),
    serviceMicroseconds: await measureTo(ip, 80),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

function memoryMiB(): number {
  global.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

function round(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
