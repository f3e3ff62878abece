/** What `kubectl explain` says of kinds and their fields. Loaded when a document is first asked for, and not before. */
import type { Texts } from "./texts.ts";

/** The sentences for a schema: for itself under the empty name, for its members under theirs. */
export type Describe = (schemaName: string) => Readonly<Record<string, string>> | undefined;

/** What is the same in every object; a schema's own sentences go first. */
const common = {
  apiVersion: "The group and version in which the object is written.",
  kind: "The kind of the object.",
  metadata: "The object's names, labels, owners and history.",
  spec: "What is wanted.",
  status: "What is observed; filled in by the system.",
};

/** What is the same in every condition. */
const condition = {
  "": "One thing that is observed of an object.",
  type: "What it is about.",
  status: "True, False or Unknown.",
  reason: "Why, in a word.",
  message: "Why, for people.",
  lastTransitionTime: "When the status last changed.",
  lastProbeTime: "When it was last looked at.",
};

export async function loadDescriptions(): Promise<Describe> {
  const groups = await Promise.all([
    import("./access.ts").then(({ accessTexts }) => accessTexts),
    import("./coordination.ts").then(({ coordinationTexts }) => coordinationTexts),
    import("./core.ts").then(({ coreTexts }) => coreTexts),
    import("./extensions.ts").then(({ extensionTexts }) => extensionTexts),
    import("./meta.ts").then(({ metaTexts }) => metaTexts),
    import("./networking.ts").then(({ networkingTexts }) => networkingTexts),
    import("./pods.ts").then(({ podTexts }) => podTexts),
    import("./pod-status.ts").then(({ podStatusTexts }) => podStatusTexts),
    import("./scheduling.ts").then(({ schedulingTexts }) => schedulingTexts),
    import("./volumes.ts").then(({ volumeTexts }) => volumeTexts),
    import("./workloads.ts").then(({ workloadTexts }) => workloadTexts),
  ]);
  const texts: Texts = Object.assign({}, ...groups);
  return (name) => {
    const base = name.endsWith("Condition") ? { ...common, ...condition } : common;
    // Beta versions have the form, and so the meaning, of the first stable one.
    const said = Object.hasOwn(texts, name) ? name : name.replace("/v1beta1.", "/v1.");
    return { ...base, ...(Object.hasOwn(texts, said) ? texts[said] : undefined) };
  };
}
