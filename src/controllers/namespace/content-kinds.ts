/** The kinds of namespaced resources. */
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import { versionForReading } from "../../api/apiextensions/custom-resource-definition/status.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { type Kind, onePerResource } from "../../api/kind.ts";
import type { Client } from "../../client/client.ts";

/**
 * Kinds whose objects can be deleted: those that the server computes, as metrics of pods, cannot.
 * Pods are first, since the objects that they use must not be deleted before they stop.
 */
export function builtinContentKinds(served: readonly Kind[]): readonly Kind[] {
  const isContent = ({ namespaced, verbs }: Kind): boolean =>
    namespaced && verbs.includes("list") && verbs.includes("delete");
  const kinds = onePerResource(served).filter(isContent);
  const isPod = (kind: Kind): boolean => kind.kind === podKind.kind;
  return [...kinds.filter(isPod), ...kinds.filter((kind) => !isPod(kind))];
}

/** Custom kinds, each in one of its served versions. */
export async function customContentKinds(client: Client, signal: AbortSignal): Promise<readonly Kind[]> {
  const { items } = await client.list(customResourceDefinitionKind, {}, signal);
  return items.flatMap((definition) => {
    const version = definition.spec.scope === "Namespaced" ? versionForReading(definition) : undefined;
    return version === undefined ? [] : [createCustomKind(definition, version.name)];
  });
}
