/** The kinds of namespaced resources. */

import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import { versionForReading } from "../../api/apiextensions/custom-resource-definition/status.ts";
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { type Kind, onePerResource } from "../../api/kind.ts";
import type { Client, ListedResource } from "../../client/client.ts";

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

export interface ExtensionContent {
  readonly kinds: readonly Kind[];
  /** Why kinds are missing, in Kubernetes' words. */
  readonly failure: string | undefined;
}

/** The kinds of extension servers. While one of them does not respond, a namespace is not finalized. */
export async function extensionContentKinds(client: Client, signal: AbortSignal): Promise<ExtensionContent> {
  const { items } = await client.list(apiServiceKind, {}, signal);
  const kinds: Kind[] = [];
  const failed: string[] = [];
  for (const service of items.filter(({ spec }) => spec?.service !== undefined)) {
    const groupVersion = `${service.spec?.group}/${service.spec?.version}`;
    try {
      if (!isAvailable(service)) throw new Error("it is not available");
      const resources = (await client.listResources?.(groupVersion, signal)) ?? [];
      kinds.push(...resources.flatMap((resource) => extensionKind(service, resource) ?? []));
    } catch {
      signal.throwIfAborted();
      failed.push(`${groupVersion}: stale GroupVersion discovery: ${groupVersion}`);
    }
  }
  const failure =
    `Discovery failed for some groups, ${failed.length} failing: ` +
    `unable to retrieve the complete list of server APIs: ${failed.join(", ")}`;
  return { kinds, failure: failed.length === 0 ? undefined : failure };
}

function isAvailable({ status }: APIService): boolean {
  return status?.conditions?.some((each) => each.type === "Available" && each.status === "True") === true;
}

function extensionKind({ spec }: APIService, { name, kind, namespaced, verbs }: ListedResource): Kind | undefined {
  const isContent = namespaced && !name.includes("/") && verbs.includes("list") && verbs.includes("delete");
  if (!isContent) return undefined;
  const { group = "", version = "" } = spec ?? {};
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const definition = {
    metadata: { name: `${name}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: name, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
  return createCustomKind(definition, version);
}
