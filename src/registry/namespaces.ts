/** What is special about namespaces: they hold other objects, and go after these. */
import type { Namespace } from "../api/core/namespace.ts";
import type { Kind } from "../api/kind.ts";
import { forbidden, notFound, StatusError } from "../api/status.ts";
import { change } from "./change.ts";
import type { Admit } from "./create.ts";
import { type DeleteOptions, type DeleteResult, remove } from "./delete.ts";
import { get } from "./get.ts";
import type { Registry, Scope } from "./registry.ts";
import { metadataOf } from "./write.ts";

/** Without these a cluster does not work. */
const IMMORTAL: ReadonlySet<string> = new Set(["default", "svc-system", "kube-system", "kube-public"]);

/** Forbids creating objects of a kind in a namespace that is missing or on its way out. */
export function namespaceLifecycle(namespaces: Registry<Namespace>, kind: Kind): Admit {
  return async (scope, object) => {
    if (scope.namespace === "") return undefined;
    const key = namespaces.objects.key(undefined, scope.namespace);
    const found = namespaces.cache.get(key) ?? (await namespaces.fresh(scope)).get(key);
    if (found === undefined) throw notFound({ group: "", resource: "namespaces", name: scope.namespace });
    if (found.object.status?.phase !== "Terminating") return undefined;
    const subject = { group: scope.group, resource: kind.plural, name: metadataOf(object).name ?? "" };
    throw terminating(subject, scope.namespace);
  };
}

function terminating(subject: { group: string; resource: string; name: string }, namespace: string): StatusError {
  const message = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const error = forbidden(subject, message);
  return new StatusError(403, "Forbidden", error.message, {
    details: {
      ...error.status.details,
      causes: [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    },
  });
}

/** Marks the namespace as terminating; the namespace controller empties it and takes its finalizer away. */
export async function removeNamespace(
  namespaces: Registry<Namespace>,
  scope: Scope,
  name: string,
  options: DeleteOptions,
): Promise<DeleteResult<Namespace>> {
  if (IMMORTAL.has(name)) {
    throw forbidden(namespaces.subject(scope, name), "this namespace may not be deleted");
  }
  const { object } = await get(namespaces, scope, name);
  if ((object.spec?.finalizers ?? []).length === 0) return await remove(namespaces, scope, name, options);
  if (object.metadata?.deletionTimestamp !== undefined) return { object, gone: false };
  const preconditions = options.preconditions;
  const marked = await change(
    namespaces,
    scope,
    name,
    (previous): Namespace => ({
      ...previous,
      metadata: { ...previous.metadata, deletionTimestamp: namespaces.timestamp() },
      status: { ...previous.status, phase: "Terminating" },
    }),
    { dryRun: options.dryRun, preconditions },
  );
  return { object: marked, gone: false };
}
