import type { ConfigMap } from "../../api/core/config-map.ts";
import { configMapKind } from "../../api/core/config-map-kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { ensure, systemScope } from "./ensure.ts";

export const AUTHENTICATION = "extension-apiserver-authentication";
/** Where Kubernetes' own extension servers look, and where the project's do. */
export const AUTHENTICATION_NAMESPACES = ["kube-system", "svc-system"] as const;

/** Tells extension servers whom client certificates come from, so that they know users as this server does. */
export async function publishAuthentication(
  registries: Registries,
  clientCa: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const data: Readonly<Record<string, string>> = clientCa === undefined ? {} : { "client-ca-file": clientCa };
  for (const namespace of AUTHENTICATION_NAMESPACES) {
    const wanted: ConfigMap = { metadata: { name: AUTHENTICATION, namespace }, data };
    await ensure(registries.of(configMapKind), systemScope(namespace, signal), wanted, (found) => {
      const missing = Object.entries(data).some(([key, value]) => found.data?.[key] !== value);
      return missing ? { ...found, data: { ...found.data, ...data } } : undefined;
    });
  }
}
