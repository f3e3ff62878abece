/**
 * Naming an owner lets the garbage collector delete the object when the owner goes, and may keep the owner from going:
 * who does so must be allowed to delete the object, or to set finalizers on the owner.
 */
import { podKind } from "../../../api/core/pod/kind.ts";
import type { ApiObject } from "../../../api/kind.ts";
import type { OwnerReference } from "../../../api/meta/object-meta.ts";
import { parseApiVersion } from "../../../api/scheme.ts";
import type { Authorizer } from "../../../auth/user.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { matchesResource, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";

export function ownerReferencesPermissionEnforcement({
  authorizer,
  scheme,
}: Pick<PluginDeps, "authorizer" | "scheme">): AdmissionPlugin {
  return {
    name: "OwnerReferencesPermissionEnforcement",
    // Agents write statuses of pods, and change no owners thereby.
    handles: (attributes) =>
      (attributes.operation === "CREATE" || attributes.operation === "UPDATE") &&
      !matchesResource(attributes, podKind, ["UPDATE"], "status"),
    validate(request) {
      if (!changesOwners(request.object, request.oldObject)) return;
      return check(authorizer, scheme, request);
    },
  };
}

async function check(authorizer: Authorizer, scheme: PluginDeps["scheme"], request: AdmissionRequest): Promise<void> {
  const { kind, group, namespace, name, subresource, user } = request;
  const resourceRequest = { user, isResourceRequest: true as const, path: "", namespace };
  const about = { apiGroup: group, apiVersion: kind.version, resource: kind.plural, subresource, name };
  const mine = await authorizer.authorize({ ...resourceRequest, ...about, verb: "delete" });
  if (mine.decision !== "allow") {
    throw newForbidden(request, `cannot set an ownerRef on a resource you can't delete: ${mine.reason}, <nil>`);
  }
  for (const owner of newlyBlocked(request.object, request.oldObject)) {
    const { group: ownerGroup, version } = parseApiVersion(owner.apiVersion) ?? { group: "", version: "" };
    const ownerKind = scheme.byKind(ownerGroup, version, owner.kind);
    if (ownerKind === undefined) {
      const what = `cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}`;
      const why = `no matches for kind ${JSON.stringify(owner.kind)} in version ${JSON.stringify(owner.apiVersion)}`;
      throw newForbidden(request, `cannot set blockOwnerDeletion in this case because ${what}: ${why}`);
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
  return now.some((owner) => !before.some((old) => old.uid === owner.uid && deepEqual(old, owner)));
}

function newlyBlocked(object: ApiObject | undefined, previous: ApiObject | undefined): readonly OwnerReference[] {
  const blocked = new Set(
    ownersOf(previous)
      .filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true)
      .map(({ uid }) => uid),
  );
  return ownersOf(object).filter((owner) => owner.blockOwnerDeletion === true && !blocked.has(owner.uid));
}
