/** What lies in namespaces. */
import { customKind } from "../../api/apiextensions/custom-kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition-kind.ts";
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
  return items.filter(isEstablished).flatMap((definition) => {
    const { scope, versions } = definition.spec;
    const served = versions.filter((version) => version.served);
    // What is stored need not be converted.
    const version = served.find(({ storage }) => storage) ?? served[0];
    return scope !== "Namespaced" || version === undefined ? [] : [customKind(definition, version.name)];
  });
}

function isEstablished({ status }: CustomResourceDefinition): boolean {
  return status?.conditions?.some((one) => one.type === "Established" && one.status === "True") === true;
}
