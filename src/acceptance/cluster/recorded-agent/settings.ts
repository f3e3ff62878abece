/** What a recording shows of the agent, the node and the pod that it was made with. */
import { availableParallelism } from "node:os";
import type { Case, Json } from "./cases.ts";
import type { TextTraits } from "./texts.ts";

/**
 * Configurations of the recorded kubelets by prefix of the case id, as the recordings' README lists them. Undefined:
 * the agent does not support it.
 */
const settings: Readonly<Record<string, Json | undefined>> = {
  "": {},
  "cfg-a-": { clusterDNS: [], allowedUnsafeSysctls: ["net.core.somaxconn"] },
  "cfg-m-": { clusterDNS: [], maxPods: 1 },
  // `evictionHard`
  "cfg-e-": undefined,
};

/** The configuration of a recorded case: the prefix of its id, if that has a meaning. */
export function settingsOf({ id }: Pick<Case, "id">): string {
  const prefix = /^cfg-[a-z]+-/.exec(id)?.[0] ?? "";
  return prefix in settings ? prefix : "";
}

export function configurationOf(prefix: string): Json {
  return settings[prefix] ?? {};
}

export function isPlayable(prefix: string): boolean {
  return settings[prefix] !== undefined;
}

export function traitsOf(one: Case): TextTraits {
  const text = JSON.stringify([one.pod, one.steps]);
  return {
    readsClock: /\bdate\b|\/proc\/uptime|\buptime\b|EPOCH/.test(text),
    readsNode: /resourceFieldRef|\/proc\/meminfo|\bfree\b|\bdf\b|\/proc\/mounts|\bmount\b/.test(text),
  };
}

/** Share of the node's CPUs that a pod may request beside others. */
const SHARED_MILLIS_MAX = 400;
const NODE_MILLIS = availableParallelism() * 1000;

/** Whether the pod requests so much that other pods of the replay could make the node reject it, or it others. */
export function needsNode({ pod }: Case): boolean {
  const { containers = [], initContainers = [] } = (pod?.spec ?? {}) as Readonly<Record<string, readonly Json[]>>;
  const requests = [...containers, ...initContainers].map(({ resources }) => {
    const { requests, limits } = (resources ?? {}) as { readonly requests?: Json; readonly limits?: Json };
    return toMillis(String(requests?.cpu ?? limits?.cpu ?? "0"));
  });
  const sum = requests.reduce((total, each) => total + each, 0);
  return sum > SHARED_MILLIS_MAX && sum <= NODE_MILLIS;
}

function toMillis(cpu: string): number {
  return cpu.endsWith("m") ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000;
}
