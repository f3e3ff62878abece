/** Converts V8's profiles to stacks. */
import type { Profiler, Runtime } from "node:inspector";
import type { StackFrame, StackProfile, StackSample } from "./pprof.ts";

/** V8's sampled heap profile, with the members that Node's types lack. */
export interface SampledHeap {
  readonly head: HeapNode;
  readonly samples: readonly { readonly size: number; readonly nodeId: number }[];
}

interface HeapNode {
  readonly id: number;
  readonly callFrame: Runtime.CallFrame;
  readonly children: readonly HeapNode[];
}

/** V8's function name of idle samples. */
const IDLE = "(idle)";

export function toCpuStacks(profile: Profiler.Profile, intervalUs: number, startedMs: number): StackProfile {
  const parents = new Map<number, number>();
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id);
  const counts = new Map<number, { samples: number; microseconds: number }>();
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const count = counts.get(id) ?? { samples: 0, microseconds: 0 };
    count.samples++;
    count.microseconds += Math.max(0, profile.timeDeltas?.[index] ?? intervalUs);
    counts.set(id, count);
  }
  const samples: StackSample[] = [];
  for (const [id, { samples: count, microseconds }] of counts) {
    if (nodes.get(id)?.callFrame.functionName === IDLE) continue;
    const frames: StackFrame[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const node = nodes.get(at);
      if (node !== undefined && parents.has(at)) frames.push(frameOf(node.callFrame));
    }
    samples.push({ frames, values: [count, microseconds * 1000] });
  }
  return {
    types: [
      { type: "samples", unit: "count" },
      { type: "cpu", unit: "nanoseconds" },
    ],
    samples,
    period: { type: "cpu", unit: "nanoseconds", value: intervalUs * 1000 },
    startedMs,
    durationMs: (profile.endTime - profile.startTime) / 1000,
  };
}

/** `kind`: live allocations (`inuse`) or all allocations (`alloc`). */
export function toHeapStacks(
  profile: SampledHeap,
  kind: "inuse" | "alloc",
  intervalBytes: number,
  times: { readonly startedMs: number; readonly durationMs: number },
): StackProfile {
  const counts = new Map<number, { objects: number; bytes: number }>();
  for (const { nodeId, size } of profile.samples) {
    const count = counts.get(nodeId) ?? { objects: 0, bytes: 0 };
    count.objects++;
    count.bytes += size;
    counts.set(nodeId, count);
  }
  const samples: StackSample[] = [];
  // Iterative, because stacks may be deep.
  const pending: { readonly node: HeapNode; readonly below: readonly StackFrame[] }[] = [
    { node: profile.head, below: [] },
  ];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, below } = next;
    const frames = node === profile.head ? below : [frameOf(node.callFrame), ...below];
    const count = counts.get(node.id);
    if (count !== undefined) samples.push({ frames, values: [count.objects, count.bytes] });
    for (const child of node.children) pending.push({ node: child, below: frames });
  }
  return {
    types: [
      { type: `${kind}_objects`, unit: "count" },
      { type: `${kind}_space`, unit: "bytes" },
    ],
    samples,
    period: { type: "space", unit: "bytes", value: intervalBytes },
    ...times,
  };
}

function frameOf({ functionName, url, lineNumber }: Runtime.CallFrame): StackFrame {
  return {
    functionName: functionName === "" ? "(anonymous)" : functionName,
    file: url.replace(/^file:\/\//, ""),
    startLine: Math.max(0, lineNumber + 1),
  };
}
