/** PodNodeSelector: adds the node selector of the namespace to pods, and rejects selectors outside its whitelist. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { type AdmissionRequest, matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { PluginConfiguration, PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
/** The key of the selector for namespaces without annotation. */
const CLUSTER_DEFAULT = "clusterDefaultNodeSelector";
const MEMBER = "podNodeSelectorPluginConfig";

type Labels = Readonly<Record<string, string>>;

/** Throws an error in one sentence, for the operator. */
export function podNodeSelector({ reader, configuration }: Pick<PluginDeps, "reader" | "configuration">) {
  const configured = readConfiguration(configuration);
  const namespaceSelector = async (request: AdmissionRequest): Promise<Labels> => {
    const found = await reader.get(namespaceKind, "", request.namespace, request);
    const text = found?.metadata?.annotations?.[ANNOTATION];
    return text === undefined ? (configured.get(CLUSTER_DEFAULT) ?? {}) : parseAnnotation(text);
  };
  const check = async ({ spec }: Pod, request: AdmissionRequest): Promise<void> => {
    const requested = spec?.nodeSelector ?? {};
    rejectConflict(request, await namespaceSelector(request), requested);
    const allowed = configured.get(request.namespace) ?? {};
    if (Object.keys(allowed).length === 0) return;
    if (Object.entries(requested).every(([label, value]) => allowed[label] === value)) return;
    throw newForbidden(request, "pod node label selector labels conflict with its namespace whitelist");
  };
  const plugin: AdmissionPlugin = {
    name: "PodNodeSelector",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE"]),
    async mutate(request) {
      const pod = request.object as Pod;
      const selector = await namespaceSelector(request);
      const nodeSelector = { ...pod.spec?.nodeSelector, ...selector };
      rejectConflict(request, selector, pod.spec?.nodeSelector);
      const next = { ...pod, spec: { ...pod.spec, nodeSelector } } as Pod;
      await check(next, request);
      return Object.keys(selector).length === 0 ? undefined : next;
    },
    validate: async (request) => await check(request.object as Pod, request),
  };
  return plugin;
}

function rejectConflict(request: AdmissionRequest, own: Labels, desired: Labels = {}): void {
  if (Object.entries(own).every(([label, value]) => desired[label] === undefined || desired[label] === value)) return;
  throw newForbidden(request, "pod node label selector conflicts with its namespace node label selector");
}

/** Parses `a=b,c=d`. Throws a 500 for an invalid annotation, as Kubernetes does. */
function parseAnnotation(text: string): Labels {
  const labels = parseLabels(text);
  if (labels === undefined) throw new StatusError(500, "", `invalid selector: [${text}]`);
  return labels;
}

function parseLabels(text: string): Labels | undefined {
  if (text === "") return {};
  const pairs = text.split(",").map((pair) => pair.split("="));
  if (pairs.some((pair) => pair.length !== 2)) return undefined;
  return Object.fromEntries(pairs.map(([label = "", value = ""]) => [label.trim(), value.trim()]));
}

function readConfiguration(configuration: PluginConfiguration | undefined): ReadonlyMap<string, Labels> {
  if (configuration === undefined) return new Map();
  const { value, locationOf, duplicates } = configuration;
  const fail = (path: string, reason: string): Error => new Error(`Cannot use ${locationOf(path)}: ${path}: ${reason}`);
  const [duplicate] = duplicates;
  if (duplicate !== undefined) throw fail(duplicate, "it is set twice");
  const unknown = Object.keys(value).find((name) => name !== MEMBER);
  if (unknown !== undefined) throw fail(unknown, `unknown field: ${MEMBER} is expected`);
  const selectors = value[MEMBER] ?? {};
  if (!isPlainObject(selectors)) throw fail(MEMBER, "it must be an object");
  return new Map(
    Object.entries(selectors).map(([name, text]) => {
      const labels = typeof text === "string" ? parseLabels(text) : undefined;
      if (labels === undefined) throw fail(`${MEMBER}.${name}`, "it must be a selector such as env=dev,disk=ssd");
      return [name, labels];
    }),
  );
}
