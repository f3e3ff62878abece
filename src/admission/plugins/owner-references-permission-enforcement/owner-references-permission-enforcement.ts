/**
 * OwnerReferencesPermissionEnforcement: changing owner references requires permission to delete the object, since the
 * garbage collector deletes it with its owner; blockOwnerDeletion requires permission to update the owner's finalizers.
 */
import { podKind } from "../../../api/core/pod/kind.ts";
import type { ApiObject } from "../../../api/kind.ts";
import type { OwnerReference } from "../../../api/meta/object-meta.ts";
import { parseApiVersion } from "../../../api/scheme.ts";
import type { Authorizer } from "../../../auth/user.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { TimeSlice } from "../../../std/async/time-slice.ts";
import { type AdmissionRequest, matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

export function ownerReferencesPermissionEnforcement({
  authorizer,
  scheme,
}: Pick<PluginDeps, "authorizer" | "scheme">): AdmissionPlugin {
  return {
    name: "OwnerReferencesPermissionEnforcement",
    // The kubelet writes pod statuses, which cannot change owners.
    handles: (attributes) =>
      (attributes.operation === "CREATE" || attributes.operation === "UPDATE") &&
      !matchesResource(attributes, podKind, ["UPDATE"], "status"),
    validate(request) {
      if (!changesOwners(request.object, request.oldObject)) return;
      return checkPermissions(authorizer, scheme, request);
    },
  };
}

async function checkPermissions(
  authorizer: Authorizer,
  scheme: PluginDeps["scheme"],
  request: AdmissionRequest,
): Promise<void> {
  const { kind, group, namespace, name, subresource, user } = request;
  const resourceRequest = { user, isResourceRequest: true as const, path: "", namespace };
  const target = { apiGroup: group, apiVersion: kind.version, resource: kind.plural, subresource, name };
  const deletion = await authorizer.authorize({ ...resourceRequest, ...target, verb: "delete" });
  if (deletion.decision !== "allow") {
    throw newForbidden(request, `cannot set an ownerRef on a resource you can't delete: ${deletion.reason}, <nil>`);
  }
  const slice = new TimeSlice();
  for (const owner of newlyBlockedOwners(request.object, request.oldObject)) {
    if (slice.isOver) await slice.end();
    const { group: ownerGroup, version } = parseApiVersion(owner.apiVersion) ?? { group: "", version: "" };
    const ownerKind = scheme.byKind(ownerGroup, version, owner.kind);
    if (ownerKind === undefined) {
      const what = `cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}`;
      const cause = `no matches for kind ${JSON.stringify(owner.kind)} in version ${JSON.stringify(owner.apiVersion)}`;
      throw newForbidden(request, `cannot set blockOwnerDeletion in this case because ${what}: ${cause}`);
    }
    const { decision, reason } = await authorizer.authorize({
      ...resourceRequest,
      namespace: ownerKind.namespaced ? namespace : "",
      verb: "update",
      apiGroup: ownerGroup,
      apiVersion: version,
      resource: ownerKind.plural,
      subresource: "finalizers",
      name: owner.name,
    });
    if (decision === "allow") continue;
    const what = "an ownerReference refers to a resource you can't set finalizers on";
    throw newForbidden(request, `cannot set blockOwnerDeletion if ${what}: ${reason}, <nil>`);
  }
}

function ownersOf(object: ApiObject | undefined): readonly OwnerReference[] {
  return metadataOf(object).ownerReferences ?? [];
}

function changesOwners(object: ApiObject | undefined, previous: ApiObject | undefined): boolean {
  const [now, before] = [ownersOf(object), ownersOf(previous)];
  if (now.length !== before.length) return true;
  const byUid = Map.groupBy(before, ({ uid }) => uid);
  return now.some((owner) => !byUid.get(owner.uid)?.some((old) => deepEqual(old, owner)));
}

function newlyBlockedOwners(object: ApiObject | undefined, previous: ApiObject | undefined): readonly OwnerReference[] {
  const blocked = new Set(
    ownersOf(previous)
      .filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true)
      .map(({ uid }) => uid),
  );
  return ownersOf(object).filter((owner) => owner.blockOwnerDeletion === true && !blocked.has(owner.uid));
}
