import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Transport } from "../../client/client.ts";
import { readValue } from "../../client/response.ts";
import { makeRequest } from "../../http/request.ts";
import { stringify } from "../../schema/json/encode.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { NodeInfo } from "../cache/node-info.ts";
import type { PodInfo } from "../cache/pod-info.ts";
import { MAX_NODE_SCORE } from "../framework/plugin.ts";
import { type Rejection, unresolvable, unschedulable } from "../framework/rejection.ts";
import type { Victims } from "../preemption/victims.ts";
import type { Extender } from "./extender.ts";

export interface ExtenderConfig {
  readonly urlPrefix: string;
  readonly filterVerb?: string | undefined;
  readonly prioritizeVerb?: string | undefined;
  readonly preemptVerb?: string | undefined;
  readonly bindVerb?: string | undefined;
  readonly weight?: number | undefined;
  /** The extender has the nodes itself: only their names are sent. */
  readonly nodeCacheCapable?: boolean | undefined;
  readonly managedResources?: readonly { readonly name: string }[] | undefined;
  readonly ignorable?: boolean | undefined;
  readonly timeoutMs: number;
}

/** The maximum score of an extender. */
const MAX_EXTENDER_SCORE = 10;
const EXTENDER = "Extender";

export function createHttpExtender(config: ExtenderConfig, transport: Transport, clock: Clock): Extender {
  const { filterVerb, prioritizeVerb, preemptVerb, bindVerb, weight = 1, ignorable = false } = config;
  const post = (verb: string, body: string, signal?: AbortSignal) => send(verb, body, config, transport, clock, signal);
  const managed = (config.managedResources ?? []).map(({ name }) => name);
  return {
    name: config.urlPrefix,
    ignorable,
    isInterested: ({ pod }) => managed.length === 0 || usesResource(pod, managed),
    ...(filterVerb
      ? {
          async filter(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal) {
            return readFilterResult(await post(filterVerb, extenderArgs(pod, nodes, config), signal), nodes);
          },
        }
      : {}),
    ...(prioritizeVerb
      ? {
          async prioritize(pod: PodInfo, nodes: readonly NodeInfo[], signal: AbortSignal) {
            const scores = await post(prioritizeVerb, extenderArgs(pod, nodes, config), signal);
            const factor = weight * (MAX_NODE_SCORE / MAX_EXTENDER_SCORE);
            return new Map(
              (Array.isArray(scores) ? scores : []).map((entry: unknown) => {
                const { host, score } = lowerCaseKeys(entry);
                return [String(host), Number(score) * factor] as const;
              }),
            );
          },
        }
      : {}),
    ...(preemptVerb
      ? {
          async preempt(pod: PodInfo, candidates: readonly Victims[]) {
            return readVictims(await post(preemptVerb, preemptionArgs(pod, candidates)), candidates);
          },
        }
      : {}),
    ...(bindVerb
      ? {
          async bind({ name, namespace, uid }: PodInfo, nodeName: string, signal: AbortSignal) {
            const args = { PodName: name, PodNamespace: namespace, PodUID: uid, Node: nodeName };
            throwError(await post(bindVerb, JSON.stringify(args), signal));
          },
        }
      : {}),
  };
}

async function send(
  verb: string,
  body: string,
  { timeoutMs }: ExtenderConfig,
  transport: Transport,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const timeout = new AbortController();
  const timer = clock.timer(timeoutMs, () => timeout.abort(new Error(`extender did not answer in ${timeoutMs} ms`)));
  try {
    const request = makeRequest({
      method: "POST",
      path: `/${verb.replace(/^\/+/, "")}`,
      headers: { "content-type": "application/json" },
      body,
      signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
    });
    return await readValue(await transport(request));
  } finally {
    timer.cancel();
  }
}

function extenderArgs({ pod }: PodInfo, nodes: readonly NodeInfo[], { nodeCacheCapable }: ExtenderConfig): string {
  const names = JSON.stringify(nodes.map(({ name }) => name));
  const objects = nodeCacheCapable === true ? [] : nodes.map(({ node }) => stringify(nodeKind.schema, node));
  const list = nodeCacheCapable === true ? "null" : `{"metadata":{},"items":[${objects.join(",")}]}`;
  return `{"Pod":${encodePod(pod)},"Nodes":${list},"NodeNames":${nodeCacheCapable === true ? names : "null"}}`;
}

function encodePod(pod: Pod): string {
  return stringify(podKind.schema, { ...pod, kind: "Pod", apiVersion: "v1" });
}

/** Go programs accept and send member names in any case. */
function lowerCaseKeys(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toLowerCase(), member]));
}

function throwError(result: unknown): void {
  const { error } = lowerCaseKeys(result);
  if (typeof error === "string" && error !== "") throw new Error(error);
}

function readFilterResult(value: unknown, nodes: readonly NodeInfo[]) {
  throwError(value);
  const result = lowerCaseKeys(value);
  const listed = lowerCaseKeys(result.nodes).items;
  const names = Array.isArray(result.nodenames)
    ? result.nodenames.map(String)
    : (Array.isArray(listed) ? listed : []).map((node: unknown) =>
        String(lowerCaseKeys(lowerCaseKeys(node).metadata).name),
      );
  const accepted = new Set(names);
  const rejections = new Map<string, Rejection>();
  for (const [name, reason] of Object.entries(result.failednodes ?? {})) {
    rejections.set(name, unschedulable(EXTENDER, String(reason)));
  }
  for (const [name, reason] of Object.entries(result.failedandunresolvablenodes ?? {})) {
    rejections.set(name, unresolvable(EXTENDER, String(reason)));
  }
  return { nodes: nodes.filter(({ name }) => accepted.has(name)), rejections };
}

function preemptionArgs({ pod }: PodInfo, candidates: readonly Victims[]): string {
  const victims = Object.fromEntries(
    candidates.map(({ node, pods, violations }) => [
      node.name,
      { Pods: pods.map(({ uid }) => ({ UID: uid })), NumPDBViolations: violations },
    ]),
  );
  return `{"Pod":${encodePod(pod)},"NodeNameToVictims":null,"NodeNameToMetaVictims":${JSON.stringify(victims)}}`;
}

function readVictims(value: unknown, candidates: readonly Victims[]): readonly Victims[] {
  const accepted = Object.entries(lowerCaseKeys(lowerCaseKeys(value).nodenametometavictims ?? {}));
  return candidates.flatMap((candidate) => {
    const entry = accepted.find(([name]) => name === candidate.node.name.toLowerCase());
    if (entry === undefined) return [];
    const { pods, numpdbviolations } = lowerCaseKeys(entry[1]);
    const uids = new Set((Array.isArray(pods) ? pods : []).map((pod: unknown) => String(lowerCaseKeys(pod).uid)));
    const chosen = [...candidate.node.pods.values()].filter(({ uid }) => uids.has(uid));
    return [{ node: candidate.node, pods: chosen, violations: Number(numpdbviolations ?? 0) }];
  });
}

function usesResource({ spec }: Pod, managed: readonly string[]): boolean {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return containers.some(({ resources }) =>
    managed.some((name) => resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined),
  );
}
