/** Node IPAM: gives each node a block of the cluster's range for its pods, of each IP family. */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { type Cidr, formatCidr, parseCidr } from "../../std/net/ip.ts";
import { isNotFoundOrConflict, isUnanswered } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import type { ControllerOptions } from "../controller-options.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { CidrSet } from "./cidr-set.ts";

/** One, so that nodes get their blocks in the order of their creation. */
const WORKERS = 1;
/** Attempts to write the blocks of a node before an event. */
const ATTEMPTS_MAX = 3;
const BACKOFF = { initialMs: 10, maxMs: 30_000, jitter: 0.1 };

/** Does nothing if no cluster range is configured. Rejects for ranges that cannot be divided. */
export async function runNodeIpamController(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal, informers, options } = deps;
  const sets = createCidrSets(options);
  if (sets.length === 0) return await waitForAbort(signal);
  const nodes = informers.of(nodeKind);
  registerMetrics(deps, sets);
  const presets = readPresets(options);
  for (const cidrs of presets.values()) for (const cidr of cidrs) for (const set of sets) set.occupy(cidr);
  /** The blocks of each node; bounded by the number of nodes. */
  const blocks = new Map<string, readonly Cidr[]>();
  /** Blocks in writes without a response, by node. */
  const unanswered = new Map<string, readonly Cidr[]>();
  await using recorder = createEventRecorder({ client, clock, random, log, component: "cidrAllocator" });

  /** But for those that nodes have by configuration. */
  const reserved = new Set([...presets.values()].flat().map(formatCidr));
  const release = (cidrs: readonly (Cidr | undefined)[]): void => {
    for (const [index, cidr] of cidrs.entries()) {
      if (cidr !== undefined && !reserved.has(formatCidr(cidr))) sets[index]?.release(cidr);
    }
  };

  /** Records the blocks that the node has. */
  const occupy = (node: Node): boolean => {
    const found = podCidrsOf(node);
    const { name = "" } = node.metadata ?? {};
    if (found.length === 0) return false;
    // What was written in vain is free again.
    release(unanswered.get(name) ?? []);
    unanswered.delete(name);
    for (const [index, cidr] of found.entries()) {
      if (sets[index]?.occupy(cidr) !== true) {
        log.warn("A node has a pod CIDR outside of the cluster's range", { node: name, cidr: formatCidr(cidr) });
      }
    }
    blocks.set(name, found);
    return true;
  };

  async function writeBlocks(name: string, podCIDRs: readonly string[], stopping: AbortSignal): Promise<void> {
    const patch = { spec: { podCIDR: podCIDRs[0], podCIDRs } };
    for (let attempt = 1; ; attempt++) {
      try {
        await client.patch(nodeKind, { name }, "strategic", patch, { signal: stopping });
        return;
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || stopping.aborted || isNotFoundOrConflict(error)) throw error;
      }
    }
  }

  async function syncNode(name: string, stopping: AbortSignal): Promise<void> {
    const node = nodes.get(name);
    if (node === undefined || node.metadata?.deletionTimestamp !== undefined) return;
    if (blocks.has(name) || occupy(node)) return;
    const preset = presets.get(name) ?? [];
    const allocated =
      unanswered.get(name) ?? sets.map((set) => preset.find(({ family }) => family === set.family) ?? set.allocate());
    const complete = allocated.flatMap((cidr) => cidr ?? []);
    const record = (reason: string): void => {
      const reference = { kind: "Node", apiVersion: "v1", name, uid: node.metadata?.uid, namespace: "" };
      recorder.record(reference, "Normal", reason, `Node ${name} status is now: ${reason}`);
    };
    if (complete.length < allocated.length) {
      release(allocated);
      record("CIDRNotAvailable");
      throw new Error(`failed to allocate cidr from cluster cidr for node ${name}: no block of the range is left`);
    }
    const podCIDRs = complete.map(formatCidr);
    try {
      await writeBlocks(name, podCIDRs, stopping);
      blocks.set(name, complete);
      unanswered.delete(name);
    } catch (error) {
      // The node may have them: no other one must get them.
      if (isUnanswered(error)) unanswered.set(name, complete);
      else {
        unanswered.delete(name);
        release(allocated);
      }
      // Another allocator may have been faster: its blocks are occupied with the next sync.
      if (!stopping.aborted && !isNotFoundOrConflict(error)) record("CIDRAssignmentFailed");
      throw error;
    }
  }

  await using queue = createControllerQueue(deps, {
    name: "cidrallocator_node",
    workers: WORKERS,
    backoff: BACKOFF,
    sync: syncNode,
    onError: (key, error) =>
      log.warn("Failed to give a node its pod CIDRs, will retry", { node: key, error: String(error) }),
  });
  await waitForCacheSync([nodes], signal);
  // What nodes have is known before the first block is given.
  for (const node of nodes.list()) occupy(node);
  const unsubscribe = nodes.subscribe({
    put: ({ metadata }) => {
      if (!blocks.has(metadata?.name ?? "")) queue.add(metadata?.name ?? "");
    },
    delete: (node) => {
      const { name = "" } = node.metadata ?? {};
      release(blocks.get(name) ?? unanswered.get(name) ?? podCidrsOf(node));
      blocks.delete(name);
      unanswered.delete(name);
      // Nodes that got none may get these blocks.
      for (const { metadata } of nodes.list()) if (!blocks.has(metadata?.name ?? "")) queue.add(metadata?.name ?? "");
    },
  });
  try {
    await waitForAbort(signal);
  } finally {
    unsubscribe();
  }
}

function createCidrSets({ clusterCidrs, serviceCidrs, nodeCidrMaskSizes }: ControllerOptions): readonly CidrSet[] {
  return clusterCidrs.map((text) => {
    const range = parseCidr(text);
    if (range === undefined) throw new Error(`Cannot use the cluster range ${JSON.stringify(text)}: it is no CIDR`);
    const set = new CidrSet(range, range.family === "IPv4" ? nodeCidrMaskSizes.ipv4 : nodeCidrMaskSizes.ipv6);
    for (const service of serviceCidrs) {
      const cidr = parseCidr(service);
      if (cidr?.family === range.family) set.occupy(cidr);
    }
    return set;
  });
}

/** Kubernetes' metrics of the ranges, one series for each. */
function registerMetrics({ registry: metrics, options }: ControllerDeps, sets: readonly CidrSet[]): void {
  if (metrics === undefined) return;
  const common = { stability: "ALPHA" as const, labels: ["clusterCIDR"] };
  const prefix = "node_ipam_controller_cidrset";
  const allocations = metrics.counter({
    ...common,
    name: `${prefix}_cidrs_allocations_total`,
    help: "Number of blocks that nodes got.",
  });
  const releases = metrics.counter({
    ...common,
    name: `${prefix}_cidrs_releases_total`,
    help: "Number of blocks that were released.",
  });
  const max = metrics.gauge({
    ...common,
    // Kubernetes' name, as it is misspelled there.
    name: "node_ipam_controller_cirdset_max_cidrs",
    help: "Number of blocks of the range.",
  });
  const tries = metrics.histogram(
    {
      ...common,
      name: `${prefix}_allocation_tries_per_request`,
      help: "Used blocks that a search for a free one met.",
    },
    exponentialBuckets(1, 5, 5),
  );
  for (const [index, set] of sets.entries()) {
    const observed = tries.with(options.clusterCidrs[index] ?? "");
    set.onAllocated = (count) => observed.observe(count);
  }
  const usage = metrics.gauge({ ...common, name: `${prefix}_usage_cidrs`, help: "Share of the blocks that are used." });
  metrics.onCollect(() => {
    for (const [index, set] of sets.entries()) {
      const range = options.clusterCidrs[index] ?? "";
      allocations.with(range).value = set.allocations;
      releases.with(range).value = set.releases;
      max.with(range).set(set.size);
      usage.with(range).set(set.usage);
    }
  });
}

function readPresets({ nodeCidrs }: ControllerOptions): ReadonlyMap<string, readonly Cidr[]> {
  return new Map(
    Object.entries(nodeCidrs).map(([name, texts]) => [name, texts.flatMap((text) => parseCidr(text) ?? [])]),
  );
}

function podCidrsOf({ spec }: Node): readonly Cidr[] {
  const texts = spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []);
  return texts.flatMap((text) => parseCidr(text) ?? []);
}
