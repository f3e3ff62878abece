/** PodTolerationRestriction: adds the default tolerations of the namespace to pods, and enforces its whitelist. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { qosClassOf } from "../../../api/core/pod/qos.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type Toleration, toleration } from "../../../api/core/pod-spec/affinity.ts";
import { StatusError } from "../../../api/status.ts";
import { decode } from "../../../schema/decode/decode.ts";
import { list, object, optional, string } from "../../../schema/define.ts";
import { parseJson } from "../../../schema/json/parse.ts";
import { type AdmissionRequest, matchesResource } from "../../chain/attributes.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { isSuperset, mergeTolerations } from "./merge-tolerations.ts";

const DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

const IDENTITY: ConfigurationIdentity = {
  group: "podtolerationrestriction.admission.k8s.io",
  versions: ["v1alpha1"],
  kinds: ["Configuration"],
};
const schema = object("podtolerationrestriction/v1alpha1.Configuration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  default: optional(0, list(toleration)),
  whitelist: optional(0, list(toleration)),
});

const tolerationList = list(toleration);
const MEMORY_PRESSURE: Toleration = {
  key: "node.kubernetes.io/memory-pressure",
  operator: "Exists",
  effect: "NoSchedule",
};

/** Throws an error in one sentence, for the operator. */
export function podTolerationRestriction({ reader, configuration }: Pick<PluginDeps, "reader" | "configuration">) {
  const cluster = configuration === undefined ? {} : decodeConfiguration(configuration, IDENTITY, schema);
  /** Undefined if the namespace has no such annotation. */
  const annotatedTolerations = async (
    annotation: string,
    request: AdmissionRequest,
  ): Promise<readonly Toleration[] | undefined> => {
    const found = await reader.get(namespaceKind, "", request.namespace, request);
    const text = found?.metadata?.annotations?.[annotation];
    return text === undefined ? undefined : parseAnnotation(text);
  };
  const checkWhitelist = async ({ spec }: Pod, request: AdmissionRequest): Promise<void> => {
    const { tolerations = [] } = spec ?? {};
    if (tolerations.length === 0) return;
    const own = await annotatedTolerations(WHITELIST, request);
    const whitelist = own ?? cluster.whitelist ?? [];
    if (whitelist.length === 0) return;
    if (tolerations.every((one) => whitelist.some((allowed) => isSuperset(allowed, one)))) return;
    const what = "pod tolerations (possibly merged with namespace default tolerations)";
    throw new StatusError(
      500,
      "",
      `${what} conflict with its ${own === undefined ? "cluster" : "namespace"} whitelist`,
    );
  };
  const plugin: AdmissionPlugin = {
    name: "PodTolerationRestriction",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE", "UPDATE"]),
    async mutate(request) {
      const pod = request.object as Pod;
      if (pod.spec === undefined) return undefined;
      const { tolerations: podTolerations = [] } = pod.spec;
      const defaults =
        request.operation === "CREATE" ? ((await annotatedTolerations(DEFAULTS, request)) ?? cluster.default) : [];
      const added = [...(defaults ?? []), ...(qosClassOf(pod.spec) === "BestEffort" ? [] : [MEMORY_PRESSURE])];
      const tolerations = added.length === 0 ? podTolerations : mergeTolerations(podTolerations, added);
      const next = { ...pod, spec: { ...pod.spec, tolerations } } as Pod;
      await checkWhitelist(next, request);
      return tolerations === podTolerations ? undefined : next;
    },
    validate: async (request) => await checkWhitelist(request.object as Pod, request),
  };
  return plugin;
}

/** Throws a 500 for an invalid annotation, as Kubernetes does. */
function parseAnnotation(text: string): readonly Toleration[] {
  if (text === "") return [];
  try {
    const { value: json } = parseJson(Buffer.from(text));
    const { value, errors } = decode(tolerationList, json, { unknownFields: "drop" });
    const [error] = errors;
    if (error !== undefined) throw new Error(error.message);
    return value;
  } catch (cause) {
    const message = (cause as Error).message.replace(/ \(line \d+, column \d+\)$/, "");
    throw new StatusError(500, "", message, { cause });
  }
}
