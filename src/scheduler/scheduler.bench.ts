/**
 * Decisions a second: 5,000 pending pods over 1,000 nodes in three zones, with an API server that answers at once.
 *   node src/scheduler/scheduler.bench.ts
 */
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { PodSpec } from "../api/core/pod-spec/schema.ts";
import type { Service } from "../api/core/service/schema.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import type { Client, ObjectName } from "../client/client.ts";
import { createSharedInformers } from "../client/informer/shared-informers.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { systemClock } from "../std/time/clock.ts";
import { runScheduler } from "./scheduler.ts";

const NODES = 1000;
const PODS = 5000;
const ZONES = 3;
const APPS = 50;

const nodes = Array.from({ length: NODES }, (_, index): Node => {
  const name = `node-${index}`;
  const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": `zone-${index % ZONES}` };
  return {
    metadata: { name, labels, resourceVersion: "1" },
    status: { allocatable: { cpu: "32", memory: "64Gi", pods: "110" } },
  };
});

const services = Array.from({ length: APPS }, (_, index): Service => {
  const name = `app-${index}`;
  return { metadata: { name, namespace: "default", resourceVersion: "1" }, spec: { selector: { app: name } } };
});

function createPod(index: number, spec: (app: string) => Partial<PodSpec>): Pod {
  const name = `pod-${index}`;
  const app = `app-${index % APPS}`;
  const container = { name: "c", image: "web:1", resources: { requests: { cpu: "100m", memory: "128Mi" } } };
  return {
    metadata: { name, namespace: "default", uid: name, labels: { app }, resourceVersion: "1" },
    spec: { containers: [container], ...spec(app) },
  };
}

const term = (app: string, topologyKey: string) => ({ labelSelector: { matchLabels: { app } }, topologyKey });

const workloads: Readonly<Record<string, (app: string) => Partial<PodSpec>>> = {
  "requests only": () => ({}),
  "spread over zones and nodes": (app) => ({
    topologySpreadConstraints: [
      { ...term(app, "topology.kubernetes.io/zone"), maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" },
      { ...term(app, "kubernetes.io/hostname"), maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
    ],
  }),
  "anti-affinity on nodes": (app) => ({
    affinity: {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app, "kubernetes.io/hostname")] },
    },
  }),
  "preferred affinity in zones": (app) => ({
    affinity: {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: term(app, "topology.kubernetes.io/zone") },
        ],
      },
    },
  }),
};

async function measure(title: string, spec: (app: string) => Partial<PodSpec>): Promise<void> {
  const pods = Array.from({ length: PODS }, (_, index) => createPod(index, spec));
  const objects: Readonly<Record<string, readonly ApiObject[]>> = { nodes, services, pods };
  const byName = new Map(pods.map((pod) => [pod.metadata?.name, pod]));
  const stop = new AbortController();
  const done = Promise.withResolvers<void>();
  let bound = 0;
  let send: ((pod: Pod) => void) | undefined;
  const client: Partial<Client> = {
    list: async (kind: Kind<never>) => ({ items: (objects[kind.plural] ?? []) as never[], resourceVersion: "1" }),
    async *watch(kind: Kind<never>, _query: unknown, signal: AbortSignal) {
      const queue: Pod[] = [];
      let wake = (): void => {};
      signal.addEventListener("abort", () => wake(), { once: true });
      if (kind.plural === "pods") {
        send = (pod) => {
          queue.push(pod);
          wake();
        };
      }
      while (!signal.aborted) {
        for (let pod = queue.shift(); pod !== undefined; pod = queue.shift()) {
          yield { type: "MODIFIED", object: pod as never } as const;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    create: async (_kind: unknown, object: unknown) => object as never,
    patch: async () => ({}) as never,
    async createSubresource(_kind: unknown, { name }: ObjectName, _subresource: string, body: unknown) {
      const pod = byName.get(name)!;
      const { target } = body as { readonly target: { readonly name: string } };
      send?.({
        ...pod,
        metadata: { ...pod.metadata, resourceVersion: "2" },
        spec: { ...pod.spec, containers: pod.spec?.containers ?? [], nodeName: target.name },
      });
      bound++;
      if (bound === PODS) done.resolve();
    },
  };
  const shared = { client: client as Client, clock: systemClock, random: seededRandom(1), log: silentLogger };
  const informers = createSharedInformers(shared, stop.signal);
  const began = performance.now();
  const cpu = process.cpuUsage();
  const running = runScheduler({ ...shared, informers, signal: stop.signal });
  await Promise.race([done.promise, running]);
  const ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  stop.abort();
  await running;
  await informers[Symbol.asyncDispose]();
  const rate = Math.round((PODS / ms) * 1000);
  console.log(
    `${title.padEnd(30)} ${String(rate).padStart(6)} pods/s  ${Math.round((user + system) / PODS)} µs CPU each`,
  );
}

for (const [title, spec] of Object.entries(workloads)) await measure(title, spec);
