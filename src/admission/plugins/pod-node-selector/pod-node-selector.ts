/** Pods of a namespace run on the nodes that the namespace is given, and on no others than it may have. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { PluginConfiguration, PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";

const ANNOTATION = "scheduler.alpha.kubernetes.io/node-selector";
/** Of namespaces that say nothing themselves. */
const CLUSTER_DEFAULT = "clusterDefaultNodeSelector";
const MEMBER = "podNodeSelectorPluginConfig";

type Labels = Readonly<Record<string, string>>;

/** Throws one sentence for an operator. */
export function podNodeSelector({ reader, configuration }: Pick<PluginDeps, "reader" | "configuration">) {
  const configured = selectorsOf(configuration);
  const selectorOf = async (request: AdmissionRequest): Promise<Labels> => {
    const found = await reader.get(namespaceKind, "", request.namespace, request);
    const text = found?.metadata?.annotations?.[ANNOTATION];
    return text === undefined ? (configured.get(CLUSTER_DEFAULT) ?? {}) : parse(text);
  };
  const plugin: AdmissionPlugin = {
    name: "PodNodeSelector",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE"]),
    async mutate(request) {
      const pod = request.object as Pod;
      const own = await selectorOf(request);
      const nodeSelector = { ...pod.spec?.nodeSelector, ...own };
      refuseConflict(request, own, pod.spec?.nodeSelector);
      return Object.keys(own).length === 0 ? undefined : ({ ...pod, spec: { ...pod.spec, nodeSelector } } as Pod);
    },
    async validate(request) {
      const wanted = (request.object as Pod).spec?.nodeSelector ?? {};
      refuseConflict(request, await selectorOf(request), wanted);
      const allowed = configured.get(request.namespace) ?? {};
      if (Object.keys(allowed).length === 0) return;
      if (Object.entries(wanted).every(([label, value]) => allowed[label] === value)) return;
      throw newForbidden(request, "pod node label selector labels conflict with its namespace whitelist");
    },
  };
  return plugin;
}

function refuseConflict(request: AdmissionRequest, own: Labels, wanted: Labels = {}): void {
  if (Object.entries(own).every(([label, value]) => wanted[label] === undefined || wanted[label] === value)) return;
  throw newForbidden(request, "pod node label selector conflicts with its namespace node label selector");
}

/** `a=b,c=d`. Throws a 500, as Kubernetes does, for what somebody has written to a namespace and is no such text. */
function parse(text: string): Labels {
  const labels = labelsOf(text);
  if (labels === undefined) throw new StatusError(500, "", `invalid selector: [${text}]`);
  return labels;
}

function labelsOf(text: string): Labels | undefined {
  if (text === "") return {};
  const pairs = text.split(",").map((pair) => pair.split("="));
  if (pairs.some((pair) => pair.length !== 2)) return undefined;
  return Object.fromEntries(pairs.map(([label = "", value = ""]) => [label.trim(), value.trim()]));
}

function selectorsOf(configuration: PluginConfiguration | undefined): ReadonlyMap<string, Labels> {
  if (configuration === undefined) return new Map();
  const { value, locationOf: at, duplicates } = configuration;
  const fail = (path: string, why: string): Error => new Error(`Cannot use ${at(path)}: ${path}: ${why}`);
  const [twice] = duplicates;
  if (twice !== undefined) throw fail(twice, "it is set twice");
  const unknown = Object.keys(value).find((name) => name !== MEMBER);
  if (unknown !== undefined) throw fail(unknown, `unknown field: ${MEMBER} is expected`);
  const selectors = value[MEMBER] ?? {};
  if (!isPlainObject(selectors)) throw fail(MEMBER, "it must be an object");
  return new Map(
    Object.entries(selectors).map(([name, text]) => {
      const labels = typeof text === "string" ? labelsOf(text) : undefined;
      if (labels === undefined) throw fail(`${MEMBER}.${name}`, "it must be a selector such as env=dev,disk=ssd");
      return [name, labels];
    }),
  );
}
