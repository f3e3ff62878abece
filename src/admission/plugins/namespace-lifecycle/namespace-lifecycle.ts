/** Nothing comes into a namespace that is not there or on its way out, and some namespaces never go. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { notFound, StatusError } from "../../../api/status.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionAttributes, AdmissionPlugin, AdmissionRequest, ObjectReader } from "../../chain/plugin.ts";

/** Without these a cluster does not work. */
const IMMORTAL: ReadonlySet<string> = new Set(["default", "svc-system", "kube-system", "kube-public"]);

/** Questions whose answers must not tell whether a namespace is there. */
const QUESTIONS: ReadonlySet<string> = new Set(["localsubjectaccessreviews"]);

export function namespaceLifecycle({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  return {
    name: "NamespaceLifecycle",
    handles: (attributes) => matchesResource(attributes, namespaceKind, ["DELETE"]) || isInNamespace(attributes),
    mutate(request) {
      if (request.operation === "DELETE") return keepImmortal(request);
      const found = reader.peek(namespaceKind, "", request.namespace);
      return found === undefined ? look(request, reader) : check(request, found);
    },
  };
}

function isInNamespace({ kind, operation }: AdmissionAttributes): boolean {
  return kind.namespaced && !QUESTIONS.has(kind.plural) && (operation === "CREATE" || operation === "UPDATE");
}

function keepImmortal(request: AdmissionRequest): undefined {
  if (IMMORTAL.has(request.name)) throw newForbidden(request, "this namespace may not be deleted");
}

async function look(request: AdmissionRequest, reader: ObjectReader): Promise<undefined> {
  const { namespace } = request;
  if (namespace === "") return;
  const found = await reader.get(namespaceKind, "", namespace, request);
  if (found === undefined) throw notFound({ group: "", resource: namespaceKind.plural, name: namespace });
  check(request, found);
}

function check(request: AdmissionRequest, { status }: Namespace): undefined {
  if (request.operation !== "CREATE" || status?.phase !== "Terminating") return;
  const { namespace } = request;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { message, details } = newForbidden(request, why).status;
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  throw new StatusError(403, "Forbidden", message ?? why, { details: { ...details, causes: [cause] } });
}
