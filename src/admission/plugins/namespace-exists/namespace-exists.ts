/** NamespaceExists: rejects requests in a namespace that does not exist. */
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { notFound } from "../../../api/status.ts";
import type { AdmissionRequest } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";

export function namespaceExists({ reader }: Pick<PluginDeps, "reader">): AdmissionPlugin {
  return {
    name: "NamespaceExists",
    handles: ({ kind, operation }) => kind.namespaced && operation !== "CONNECT",
    async validate(request) {
      if (await hasNamespace(request, reader)) return;
      throw notFound({ group: "", resource: namespaceKind.plural, name: request.namespace });
    },
  };
}

/** Whether the namespace of the request exists. */
export async function hasNamespace(request: AdmissionRequest, reader: ObjectReader): Promise<boolean> {
  const { namespace } = request;
  if (namespace === "" || reader.peek(namespaceKind, "", namespace) !== undefined) return true;
  return (await reader.get(namespaceKind, "", namespace, request)) !== undefined;
}
