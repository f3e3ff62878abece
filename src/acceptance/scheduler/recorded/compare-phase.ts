/** Compares the state of a cluster with that of a recorded phase. */
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ExpectedPhase, ExpectedPod, Json, Scenario } from "./scenario.ts";

export interface PhaseState {
  readonly pods: ReadonlyMap<string, Pod>;
  readonly deleted: ReadonlyMap<string, Pod>;
  readonly claims: readonly PersistentVolumeClaim[];
  readonly volumes: readonly PersistentVolume[];
}

export function comparePhase(expected: ExpectedPhase, state: PhaseState, scenario: Scenario): readonly string[] {
  const differences: string[] = [];
  for (const [name, pod] of Object.entries(expected.pods)) {
    differences.push(...comparePod(name, pod, state, scenario).map((difference) => `${name}: ${difference}`));
  }
  for (const [name, { metadata }] of state.pods) {
    if (metadata?.deletionTimestamp !== undefined && expected.pods[name] === undefined) {
      differences.push(`${name} is terminating`);
    }
  }
  if (expected.tally !== undefined) differences.push(...compareTally(expected.tally, state, scenario));
  for (const [name, claim] of Object.entries(expected.claims ?? {})) {
    const found = state.claims.find(({ metadata }) => metadata?.name === name);
    differences.push(...compareJson(`claim ${name}`, found && claimSummary(found), claim));
  }
  for (const [name, volume] of Object.entries(expected.volumes ?? {})) {
    const found = state.volumes.find(({ metadata }) => metadata?.name === name);
    differences.push(...compareJson(`volume ${name}`, found && volumeSummary(found), volume));
  }
  return differences;
}

function comparePod(
  name: string,
  { node, any, condition, nominatedNodeName, terminating, disruptionTarget, deleted }: ExpectedPod,
  { pods, deleted: gone }: PhaseState,
  { quirk }: Scenario,
): readonly string[] {
  const pod = pods.get(name);
  if (pod === undefined) return deleted === true && gone.has(name) ? [] : ["does not exist"];
  if (deleted === true) return ["was not deleted"];
  const differences: string[] = [];
  const actualNode = pod.spec?.nodeName ?? null;
  if (node !== undefined && quirk === true && node === null && actualNode !== null) return [];
  if (node === "*" && any !== undefined && !any.includes(String(actualNode))) {
    differences.push(`node ${actualNode}, expected one of ${any.join()}`);
  }
  if (node === "*" && actualNode === null) differences.push("is not bound");
  if (node !== undefined && node !== "*" && node !== actualNode)
    differences.push(`node ${actualNode}, expected ${node}`);
  const conditionOf = (type: string) => pod.status?.conditions?.find((entry) => entry.type === type);
  const summary = (type: string): Json | null => {
    const found = conditionOf(type);
    return found === undefined ? null : { status: found.status, reason: found.reason, message: found.message };
  };
  if (condition !== undefined) differences.push(...compareJson("condition", summary("PodScheduled"), condition));
  if (node !== undefined) {
    differences.push(...compareJson("nomination", pod.status?.nominatedNodeName || undefined, nominatedNodeName));
  }
  if (Boolean(terminating) !== (pod.metadata?.deletionTimestamp !== undefined) && node === undefined) {
    differences.push(`terminating is not ${terminating}`);
  }
  if (disruptionTarget !== undefined) {
    differences.push(...compareJson("disruption", summary("DisruptionTarget"), disruptionTarget));
  }
  return differences;
}

function compareTally(
  expected: Readonly<Record<string, number>>,
  { pods }: PhaseState,
  { nodes, tally = "" }: Scenario,
): readonly string[] {
  const counts: Record<string, number> = {};
  for (const { spec } of pods.values()) {
    const node = nodes.find(({ metadata }) => (metadata as Json).name === spec?.nodeName);
    const { labels } = (node?.metadata ?? {}) as { readonly labels?: Readonly<Record<string, string>> };
    const key = tally === "node" ? (spec?.nodeName ?? "") : (labels?.[tally] ?? "");
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return compareJson("tally", counts, expected);
}

function claimSummary({ metadata, spec }: PersistentVolumeClaim): Json {
  const selectedNode = metadata?.annotations?.["volume.kubernetes.io/selected-node"];
  return { volumeName: spec?.volumeName || undefined, selectedNode };
}

function volumeSummary({ metadata, spec }: PersistentVolume): Json {
  const reference = spec?.claimRef;
  if (reference === undefined) return {};
  const boundByController = metadata?.annotations?.["pv.kubernetes.io/bound-by-controller"] ?? null;
  return { boundByController, claim: `${reference.namespace}/${reference.name}` };
}

function compareJson(name: string, actual: unknown, expected: unknown): readonly string[] {
  const [a, b] = [canonical(actual), canonical(expected)];
  return a === b ? [] : [`${name} ${a}, expected ${b}`];
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "undefined";
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return JSON.stringify(Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1))));
}
