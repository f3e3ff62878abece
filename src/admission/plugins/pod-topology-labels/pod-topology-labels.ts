/** PodTopologyLabels: copies the zone and region labels of the node to the pods bound to it, for the downward API. */
import type { Binding } from "../../../api/core/binding/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { andThen } from "../../../std/async/maybe-promise.ts";
import { type AdmissionAttributes, matchesResource, metadataOf } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const LABELS = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

export function podTopologyLabels({ reader }: Pick<PluginDeps, "reader">): AdmissionPlugin {
  return {
    name: "PodTopologyLabels",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE"]) || isBinding(attributes),
    mutate(request) {
      const { object, objectKind } = request;
      const nodeName = objectKind.kind === "Binding" ? targetOf(object as Binding) : (object as Pod).spec?.nodeName;
      if (!nodeName) return undefined;
      return andThen(reader.get(nodeKind, "", nodeName, request), (node) => {
        const nodeLabels = node?.metadata?.labels ?? {};
        const added = LABELS.flatMap((label) =>
          nodeLabels[label] === undefined ? [] : [[label, nodeLabels[label]] as const],
        );
        if (added.length === 0) return undefined;
        const metadata = metadataOf(object);
        return { ...object, metadata: { ...metadata, labels: { ...Object.fromEntries(added), ...metadata.labels } } };
      });
    },
  };
}

function isBinding(attributes: AdmissionAttributes): boolean {
  const { kind, operation, subresource } = attributes;
  const legacy = kind.plural === "bindings" && kind.group === "" && subresource === "" && operation === "CREATE";
  return legacy || matchesResource(attributes, podKind, ["CREATE"], "binding");
}

function targetOf({ target }: Binding & ApiObject): string | undefined {
  return !target.kind || target.kind === "Node" ? target.name : undefined;
}
