import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { deviceTaintRuleKind } from "../../../api/resource/device-taint-rule/kind.ts";
import {
  betaDeviceClassKind,
  betaResourceClaimKind,
  betaResourceSliceKind,
} from "../../../api/resource/flat-versions/kinds.ts";
import type { BetaResourceSlice, FlatResourceClaim } from "../../../api/resource/flat-versions/schemas.ts";
import { conflict, notFound } from "../../../api/status.ts";
import type { Client, PatchType } from "../../../client/client.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeInformers } from "../../../testing/client/fake-informers.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { NodeInfo } from "../../cache/node-info.ts";
import { PodInfo } from "../../cache/pod-info.ts";
import type { ClusterEvent } from "../../framework/cluster-event.ts";
import type { Cycle, Plugin } from "../../framework/plugin.ts";
import { openDynamicResources } from "./open-dynamic-resources.ts";

const FINALIZER = "resource.kubernetes.io/delete-protection";

function claim(name: string, status: FlatResourceClaim["status"] = {}, rest: object = {}): FlatResourceClaim {
  const request = { name: "r", deviceClassName: "gpu", allocationMode: "ExactCount", count: 1 };
  return {
    metadata: { name, namespace: "default", uid: `uid-${name}`, resourceVersion: "1", ...rest },
    spec: { devices: { requests: [request] } },
    status,
  };
}

function slice(node: string, ...devices: readonly string[]): BetaResourceSlice {
  const pool = { name: node, generation: 1, resourceSliceCount: 1 };
  const listed = devices.map((name) => ({ name, basic: {} }));
  return { metadata: { name: node }, spec: { driver: "gpu.example.com", nodeName: node, pool, devices: listed } };
}

function pod(name: string, ...claims: readonly string[]): Pod {
  const resourceClaims = claims.map((each) => ({ name: each, resourceClaimName: each }));
  return { metadata: { name, namespace: "default", uid: name }, spec: { containers: [], resourceClaims } };
}

const allocation = (device: string, node: string) => ({
  devices: { results: [{ request: "r", driver: "gpu.example.com", pool: node, device }] },
  nodeSelector: {
    nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" as const, values: [node] }] }],
  },
});

/** A plugin over claims, slices and the class `gpu`. */
async function open(t: { teardown(stop: () => Promise<void>): void }, ...claims: readonly FlatResourceClaim[]) {
  const informers = new FakeInformers();
  const writes: [verb: string, object: unknown][] = [];
  const failures: Error[] = [];
  let revision = 100;
  const write = (verb: string) => async (_kind: unknown, object: FlatResourceClaim) => {
    writes.push([verb, object]);
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(++revision) } };
  };
  const client: Pick<Client, "get" | "update" | "updateStatus" | "patch"> = {
    get: async (kind, { name, namespace }) => informers.of(kind).get(name, namespace)!,
    update: write("update") as never,
    updateStatus: write("status") as never,
    patch: async (_kind: unknown, { name }: { name: string }, type: PatchType, patch: unknown) => {
      writes.push([`${type} ${name}`, patch]);
      return {} as never;
    },
  };
  const clock = new FakeClock();
  const features = { adminAccess: false, prioritizedList: false, partitionableDevices: false, deviceTaints: true };
  const opened = await openDynamicResources({
    client: client as Client,
    informers,
    clock,
    log: silentLogger,
    features,
  });
  t.teardown(async () => await opened[Symbol.asyncDispose]());
  const events: ClusterEvent[] = [];
  opened.subscribe((event) => events.push(event));
  informers.put(betaDeviceClassKind, { metadata: { name: "gpu" }, spec: {} });
  informers.put(betaResourceClaimKind, ...claims);
  informers.put(betaResourceSliceKind, slice("n1", "a", "b"), slice("n2", "c"));
  return { ...opened, informers, writes, failures, clock, events };
}

const node = (name: string): NodeInfo => new NodeInfo(name);
const cycleOf = (of: Pod): Cycle => ({ pod: new PodInfo(of), filters: new Map(), states: new Map() });

/** `undefined` for a node that passes. */
function filter(plugin: Plugin, cycle: Cycle, ...nodes: readonly string[]): readonly (string | undefined)[] {
  const result = plugin.preFilter?.(cycle) ?? "skip";
  if (result === "skip") return ["skip"];
  if ("rejection" in result) return [result.rejection.reasons.join()];
  return nodes.map((name) => result.filter.filter(node(name))?.reasons.join());
}

const signal = new AbortController().signal;

t.test("preEnqueue and preFilter reject pods whose claims are not there", async (t) => {
  const template = (status: object): Pod => ({
    ...pod("p"),
    spec: { containers: [], resourceClaims: [{ name: "c", resourceClaimTemplateName: "t" }] },
    status,
  });
  const generated = template({ resourceClaimStatuses: [{ name: "c", resourceClaimName: "mine" }] });
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const { plugin } = await open(t, claim("mine"), claim("gone", {}, { deletionTimestamp }));
  const cases: readonly (readonly [Pod, string | undefined])[] = [
    [pod("p"), undefined],
    [pod("p", "mine"), undefined],
    [pod("p", "none"), 'could not find ResourceClaim "default/none"'],
    [pod("p", "gone"), 'resourceclaim "gone" is being deleted'],
    [template({}), 'pod "default/p": ResourceClaim not created yet'],
    [generated, "ResourceClaim default/mine was not created for pod default/p (pod is not owner)"],
    [template({ resourceClaimStatuses: [{ name: "c" }] }), undefined],
  ];
  for (const [of, expected] of cases) {
    t.equal(plugin.preEnqueue?.(new PodInfo(of))?.reasons.join(), expected);
    if (expected !== undefined) t.same(filter(plugin, cycleOf(of), "n1"), [expected]);
  }
  t.same(filter(plugin, cycleOf(pod("p")), "n1"), ["skip"]);
});

t.test("a claim is allocated on the selected node, and written before the pod is bound", async (t) => {
  const { plugin, writes, informers } = await open(t, claim("one"), claim("two"));
  const cycle = cycleOf(pod("p", "one"));
  t.same(filter(plugin, cycle, "n1", "n2", "n3"), [undefined, undefined, "cannot allocate all claims"]);
  t.equal(plugin.reserve?.(cycle, node("n2")), undefined);
  const other = cycleOf(pod("q", "two"));
  t.same(filter(plugin, other, "n1", "n2"), [undefined, "cannot allocate all claims"], "the device is taken");
  const waiting = "resource claim default/one is in the process of being allocated";
  t.same(filter(plugin, cycleOf(pod("r", "one")), "n1"), [waiting]);
  t.equal(await plugin.preBind?.(cycle, node("n2"), signal), undefined);
  const reservedFor = [{ resource: "pods", name: "p", uid: "p" }];
  t.match(writes, [
    ["update", { metadata: { name: "one", finalizers: [FINALIZER] } }],
    ["status", { metadata: { name: "one" }, status: { allocation: allocation("c", "n2"), reservedFor } }],
  ]);
  t.same(filter(plugin, other, "n1", "n2"), [undefined, "cannot allocate all claims"], "before the informer has it");
  informers.put(betaResourceClaimKind, claim("one", {}, { resourceVersion: "200" }));
  t.same(filter(plugin, other, "n1", "n2"), [undefined, undefined], "the device is free again");
});

t.test("preBind retries conflicts, and reports what it cannot write", async (t) => {
  const { plugin, writes, failures, clock, informers } = await open(t, claim("one"));
  const cycle = cycleOf(pod("p", "one"));
  filter(plugin, cycle, "n1");
  plugin.reserve?.(cycle, node("n1"));
  const outdated = conflict({ group: "resource.k8s.io", resource: "resourceclaims", name: "one" }, "changed");
  failures.push(outdated);
  const bound = plugin.preBind?.(cycle, node("n1"), signal);
  await clock.advance(100);
  t.equal(await bound, undefined);
  t.equal(writes.length, 3);

  informers.put(betaResourceClaimKind, claim("two"));
  const second = cycleOf(pod("q", "two"));
  filter(plugin, second, "n1");
  plugin.reserve?.(second, node("n1"));
  failures.push(new Error("no"));
  const rejection = await plugin.preBind?.(second, node("n1"), signal);
  t.match(rejection, { code: "Error", reasons: ["add finalizer to claim default/two: no"] });
  plugin.unreserve?.(second);
  t.same(filter(plugin, cycleOf(pod("r", "two")), "n1"), [undefined], "the device is free again");
});

t.test("an allocated claim restricts the nodes, and postFilter releases it", async (t) => {
  const { plugin, writes } = await open(t, claim("one", { allocation: allocation("c", "n2") }));
  const cycle = cycleOf(pod("p", "one"));
  t.same(filter(plugin, cycle, "n1", "n2"), ["resourceclaim not available on the node", undefined]);
  const result = await plugin.postFilter?.(cycle, { byNode: new Map(), absent: undefined });
  t.match(result, { rejection: { reasons: ["deallocation of ResourceClaim completed"] } });
  t.match(writes, [["status", { metadata: { name: "one" }, status: {} }]]);
  t.notMatch(writes[0]?.[1], { status: { allocation: {} } });
});

t.test("postFilter leaves claims that other pods use, and pods without claims", async (t) => {
  const reservedFor = [{ resource: "pods", name: "q", uid: "q" }];
  const { plugin, writes } = await open(t, claim("one", { allocation: allocation("c", "n2"), reservedFor }));
  const cycle = cycleOf(pod("p", "one"));
  filter(plugin, cycle, "n1");
  const none = { byNode: new Map(), absent: undefined };
  t.match(await plugin.postFilter?.(cycle, none), { rejection: { reasons: ["still not schedulable"] } });
  t.match(await plugin.postFilter?.(cycleOf(pod("p")), none), { rejection: { reasons: [] } });
  t.match(await plugin.postFilter?.(cycleOf(pod("p", "x")), none), {
    rejection: { reasons: ["no new claims to deallocate"] },
  });
  t.same(writes, []);
});

t.test("a claim is reserved for a further pod, and unreserve removes the reservation", async (t) => {
  const {
    plugin,
    writes,
    [Symbol.asyncDispose]: dispose,
  } = await open(t, claim("one", { allocation: allocation("c", "n2") }));
  const cycle = cycleOf(pod("p", "one"));
  filter(plugin, cycle, "n2");
  t.equal(plugin.reserve?.(cycle, node("n2")), undefined);
  t.equal(await plugin.preBind?.(cycle, node("n2"), signal), undefined);
  plugin.unreserve?.(cycle);
  await dispose();
  t.match(writes, [
    ["status", { status: { reservedFor: [{ resource: "pods", name: "p", uid: "p" }] } }],
    ["strategic one", { metadata: { uid: "uid-one" }, status: { reservedFor: [{ $patch: "delete", uid: "p" }] } }],
  ]);
});

t.test("rules taint devices until they are gone", async (t) => {
  const { plugin, informers, events } = await open(t, claim("one"));
  const rule = {
    metadata: { name: "bad" },
    spec: {
      deviceSelector: { driver: "gpu.example.com", pool: "n2", selectors: [{ cel: { expression: "true" } }] },
      taint: { key: "broken", effect: "NoExecute" as const },
    },
  };
  informers.put(deviceTaintRuleKind, rule);
  t.same(filter(plugin, cycleOf(pod("p", "one")), "n1", "n2"), [undefined, "cannot allocate all claims"]);
  informers.delete(deviceTaintRuleKind, rule);
  t.same(filter(plugin, cycleOf(pod("p", "one")), "n2"), [undefined]);
  t.match(events.slice(-2), [
    { resource: "ResourceSlice", action: "Update" },
    { resource: "ResourceSlice", action: "Update" },
  ]);
});

t.test(
  "a change of a claim, of its name in the pod, of a class or of a slice may make a pod schedulable",
  async (t) => {
    const { plugin } = await open(t, claim("one"), claim("two"));
    const concerns = (resource: string, of: Pod, before: unknown, after: unknown): boolean => {
      const registration = plugin.events?.find((each) => each.resource === resource);
      const event = { resource, action: "Update", before, after } as ClusterEvent;
      return registration !== undefined && (registration.hint?.(of, event) ?? true);
    };
    const held = claim("two", { allocation: allocation("c", "n2") });
    t.equal(concerns("ResourceClaim", pod("p", "one"), undefined, claim("one")), true);
    t.equal(concerns("ResourceClaim", pod("p", "one"), undefined, claim("two")), false);
    t.equal(concerns("ResourceClaim", pod("p", "one"), held, claim("two")), true, "its devices are free");
    t.equal(concerns("ResourceClaim", pod("p", "one"), claim("one"), claim("one", {}, { labels: {} })), false);
    t.equal(concerns("ResourceClaim", pod("p", "none"), undefined, claim("one")), false);
    t.equal(concerns("UnschedulablePod", pod("p", "one"), pod("p", "one"), pod("p", "one")), true);
    t.equal(concerns("UnschedulablePod", pod("p", "one"), pod("q", "one"), pod("q", "one")), false);
    t.equal(concerns("DeviceClass", pod("p", "one"), undefined, {}), true);
    t.equal(concerns("ResourceSlice", pod("p", "one"), undefined, {}), true);
  },
);

t.test("pods with claims are rejected while the API is not served, and others are not", async (t) => {
  const client: Pick<Client, "listResources"> = {
    listResources: async () => {
      throw notFound({ group: "", resource: "", name: "" });
    },
  };
  const features = { adminAccess: false, prioritizedList: false, partitionableDevices: false, deviceTaints: false };
  const shared = { informers: new FakeInformers(), clock: new FakeClock(), log: silentLogger, features };
  await using opened = await openDynamicResources({ client: client as Client, ...shared });
  await opened.synced;
  t.same(filter(opened.plugin, cycleOf(pod("p")), "n1"), ["skip"]);
  const message = "the API server does not serve resource.k8s.io/v1beta1";
  t.same(filter(opened.plugin, cycleOf(pod("p", "one")), "n1"), [message]);
});
