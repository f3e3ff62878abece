/** Cases that were recorded while the pod of another case was running and depend on it. The recordings show which. */
import type { Case, Json } from "./cases.ts";
import { settingsOf } from "./settings.ts";

/** Whether `first` holds what `one` lacks, or has to end before it. */
function precedes(first: Case, one: Case): boolean {
  if (first === one || settingsOf(first) !== settingsOf(one)) return false;
  switch (endReason(one)) {
    case "NodePorts":
      return endReason(first) !== "NodePorts" && hostPorts(one).some((port) => hostPorts(first).includes(port));
    case "OutOfpods":
      return endReason(first) === undefined && first.pod !== undefined;
    default:
      return isCritical(one) && first.events.some(({ reason }) => reason === "Preempting");
  }
}

function endReason({ snapshots }: Case): string | undefined {
  return snapshots.at(-1)?.status.reason;
}

function hostPorts({ pod }: Case): readonly string[] {
  const { containers = [] } = (pod?.spec ?? {}) as { containers?: readonly { ports?: readonly Json[] }[] };
  return containers.flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, protocol = "TCP" }) => (hostPort === undefined ? [] : [`${protocol} ${hostPort}`])),
  );
}

function isCritical({ pod }: Case): boolean {
  return /^system-/.test(String((pod?.spec as Json | undefined)?.priorityClassName));
}

/** The case that starts when this one's pod is running. */
export function followerOf(one: Case, cases: readonly Case[]): Case | undefined {
  return cases.find((other) => predecessorOf(other, cases) === one);
}

/** Whether the case starts after another one. */
export function isFollower(one: Case, cases: readonly Case[]): boolean {
  return predecessorOf(one, cases) !== undefined;
}

function predecessorOf(one: Case, cases: readonly Case[]): Case | undefined {
  return cases.find((first) => precedes(first, one));
}

/** The cases of these ids with those that they depend on, or that depend on them. */
export function withCompanions(ids: readonly string[], cases: readonly Case[]): readonly Case[] {
  const pairs = cases.flatMap((one) => {
    const first = predecessorOf(one, cases);
    return first === undefined ? [] : [[one, first]];
  });
  const wanted = new Set(ids);
  for (const pair of pairs) if (pair.some(({ id }) => ids.includes(id))) for (const { id } of pair) wanted.add(id);
  return cases.filter(({ id }) => wanted.has(id));
}
