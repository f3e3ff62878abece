/** Descriptions of kinds and fields for `kubectl explain`, loaded with the first request for an OpenAPI document. */
import type { Texts } from "./texts.ts";

/** Returns the descriptions of a schema by field name; the empty name is the schema itself. */
export type Describe = (schemaName: string) => Readonly<Record<string, string>> | undefined;

/** Descriptions of fields that all objects share; those of the schema take precedence. */
const common = {
  apiVersion: "APIVersion defines the group and version of the object's schema.",
  kind: "Kind is a string value that names the kind of the object.",
  metadata: "Standard object's metadata: names, labels, owners and history.",
  spec: "The desired state.",
  status: "The observed state; set by the system.",
};

/** Descriptions of fields that all conditions share. */
const condition = {
  "": "A condition of an object.",
  type: "The type of the condition.",
  status: "True, False or Unknown.",
  reason: "The reason, in CamelCase.",
  message: "A human-readable message.",
  lastTransitionTime: "The time of the last change of the status.",
  lastProbeTime: "The time of the last probe.",
};

export async function loadDescriptions(): Promise<Describe> {
  const groups = await Promise.all([
    import("./access.ts").then(({ accessTexts }) => accessTexts),
    import("./coordination.ts").then(({ coordinationTexts }) => coordinationTexts),
    import("./core.ts").then(({ coreTexts }) => coreTexts),
    import("./extensions.ts").then(({ extensionTexts }) => extensionTexts),
    import("./legacy-volumes.ts").then(({ legacyVolumeTexts }) => legacyVolumeTexts),
    import("./meta.ts").then(({ metaTexts }) => metaTexts),
    import("./metrics.ts").then(({ metricsTexts }) => metricsTexts),
    import("./networking.ts").then(({ networkingTexts }) => networkingTexts),
    import("./pods.ts").then(({ podTexts }) => podTexts),
    import("./pod-status.ts").then(({ podStatusTexts }) => podStatusTexts),
    import("./resource.ts").then(({ resourceTexts }) => resourceTexts),
    import("./scheduling.ts").then(({ schedulingTexts }) => schedulingTexts),
    import("./volumes.ts").then(({ volumeTexts }) => volumeTexts),
    import("./workloads.ts").then(({ workloadTexts }) => workloadTexts),
  ]);
  const texts: Texts = Object.assign({}, ...groups);
  return (name) => {
    const base = name.endsWith("Condition") ? { ...common, ...condition } : common;
    // The versions of a kind have the same fields.
    const names = [
      name,
      ...["v1", "v1beta1", "v1beta2"].map((version) => name.replace(/\/v1(?:alpha|beta)\d+\./, `/${version}.`)),
    ];
    const described = names.find((candidate) => Object.hasOwn(texts, candidate)) ?? name;
    return { ...base, ...(Object.hasOwn(texts, described) ? texts[described] : undefined) };
  };
}
