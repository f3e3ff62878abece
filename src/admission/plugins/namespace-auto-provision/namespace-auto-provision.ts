/** NamespaceAutoProvision: creates the namespace of a new object if it does not exist. */
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { StatusError } from "../../../api/status.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { hasNamespace } from "../namespace-exists/namespace-exists.ts";

export function namespaceAutoProvision({ reader, writer }: Pick<PluginDeps, "reader" | "writer">): AdmissionPlugin {
  return {
    name: "NamespaceAutoProvision",
    handles: ({ kind, operation }) => kind.namespaced && operation === "CREATE",
    async mutate(request) {
      if (request.dryRun || (await hasNamespace(request, reader))) return undefined;
      try {
        await writer.create(namespaceKind, "", { metadata: { name: request.namespace } }, request.signal);
      } catch (error) {
        // A concurrent request created it.
        if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
      }
      return undefined;
    },
  };
}
