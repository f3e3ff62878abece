/** NamespaceLifecycle: rejects writes in missing or terminating namespaces, and the deletion of system namespaces. */

import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { pathSegment } from "../../../api/meta/validation/names.ts";
import { internalError, notFound, StatusError } from "../../../api/status.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import {
  type AdmissionAttributes,
  type AdmissionRequest,
  matchesResource,
  newForbidden,
} from "../../chain/attributes.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";

/** Namespaces that cannot be deleted. */
const IMMORTAL_NAMESPACES: ReadonlySet<string> = new Set(["default", "svc-system", "kube-system", "kube-public"]);

/** Access reviews are allowed in any namespace, so that their result does not reveal whether it exists. */
const ACCESS_REVIEWS: ReadonlySet<string> = new Set(["localsubjectaccessreviews"]);

export function namespaceLifecycle({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  return {
    name: "NamespaceLifecycle",
    handles: (attributes) => matchesResource(attributes, namespaceKind, ["DELETE"]) || isInNamespace(attributes),
    mutate(request) {
      if (request.operation === "DELETE") return rejectImmortal(request);
      const found = reader.peek(namespaceKind, "", request.namespace);
      return found === undefined ? readAndCheck(request, reader) : checkTerminating(request, found);
    },
  };
}

function isInNamespace({ kind, operation }: AdmissionAttributes): boolean {
  return kind.namespaced && !ACCESS_REVIEWS.has(kind.plural) && (operation === "CREATE" || operation === "UPDATE");
}

function rejectImmortal(request: AdmissionRequest): undefined {
  if (IMMORTAL_NAMESPACES.has(request.name)) throw newForbidden(request, "this namespace may not be deleted");
}

async function readAndCheck(request: AdmissionRequest, reader: ObjectReader): Promise<undefined> {
  const { namespace } = request;
  if (namespace === "") return;
  // Kubernetes fails to build the path of the namespace.
  const reasons = pathSegment(namespace);
  if (reasons.length > 0) throw internalError(`invalid resource name ${goQuote(namespace)}: [${reasons.join(" ")}]`);
  const found = await reader.get(namespaceKind, "", namespace, request);
  if (found === undefined) throw notFound({ group: "", resource: namespaceKind.plural, name: namespace });
  checkTerminating(request, found);
}

function checkTerminating(request: AdmissionRequest, { status }: Namespace): undefined {
  if (request.operation !== "CREATE" || status?.phase !== "Terminating") return;
  const { namespace } = request;
  const reason = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { message, details } = newForbidden(request, reason).status;
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  throw new StatusError(403, "Forbidden", message ?? reason, { details: { ...details, causes: [cause] } });
}
