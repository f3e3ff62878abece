/** What lies in namespaces. */
import { customKind } from "../../api/apiextensions/custom-kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition-kind.ts";
import { versionToRead } from "../../api/apiextensions/definition-status.ts";
import { builtinScheme } from "../../api/builtin.ts";
import { podKind } from "../../api/core/pod-kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { Client } from "../../client/client.ts";

/** Pods come first: what they use should not be taken from under them while they stop. */
export function builtinContentKinds(): readonly Kind[] {
  const kinds = builtinScheme()
    .kinds()
    .filter((kind) => kind.namespaced && kind.conversion === undefined && kind.verbs.includes("list"));
  return [podKind as Kind, ...kinds.filter((kind) => kind.kind !== podKind.kind)];
}

/** Those that are defined now, each in one of the versions in which it is served. */
export async function customContentKinds(client: Client, signal: AbortSignal): Promise<readonly Kind[]> {
  const { items } = await client.list(customResourceDefinitionKind, {}, signal);
  return items.flatMap((definition) => {
    const version = definition.spec.scope === "Namespaced" ? versionToRead(definition) : undefined;
    return version === undefined ? [] : [customKind(definition, version.name)];
  });
}
