/** What is done about namespaces that are not there: refused, or they are made. */
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { notFound, StatusError } from "../../../api/status.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest, ObjectReader, Operation, AdmissionAttributes } from "../../chain/plugin.ts";

export function namespaceExists({ reader: lookup }: Pick<PluginDeps, "lookup">): AdmissionPlugin {
  return {
    name: "NamespaceExists",
    handles: (place) => isInNamespace(place, ["CREATE", "UPDATE", "DELETE"]),
    async validate(request) {
      if (await isThere(request, lookup)) return;
      throw notFound({ group: "", resource: namespaceKind.plural, name: request.namespace });
    },
  };
}

export function namespaceAutoProvision({ reader: lookup, writer: effects }: Pick<PluginDeps, "lookup" | "effects">): AdmissionPlugin {
  return {
    name: "NamespaceAutoProvision",
    handles: (place) => isInNamespace(place, ["CREATE"]),
    async mutate(request) {
      if (request.dryRun || (await isThere(request, lookup))) return undefined;
      try {
        await effects.create(namespaceKind, "", { metadata: { name: request.namespace } }, request.signal);
      } catch (error) {
        // Somebody else was faster.
        if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
      }
      return undefined;
    },
  };
}

function isInNamespace({ kind, operation }: AdmissionAttributes, operations: readonly Operation[]): boolean {
  return kind.namespaced && operations.includes(operation);
}

async function isThere(request: AdmissionRequest, lookup: ObjectReader): Promise<boolean> {
  const { namespace } = request;
  if (namespace === "" || lookup.peek(namespaceKind, "", namespace) !== undefined) return true;
  return (await lookup.get(namespaceKind, "", namespace, request)) !== undefined;
}
