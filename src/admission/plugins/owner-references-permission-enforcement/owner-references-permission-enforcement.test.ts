import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { OwnerReference } from "../../../api/meta/object-meta.ts";
import { authorizerOf, pluginDeps, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references-permission-enforcement.ts";

const owner = (more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  name: "web",
  uid: "1",
  ...more,
});
const map = (...ownerReferences: readonly OwnerReference[]) => ({
  metadata: { name: "m", namespace: "default", ownerReferences },
});
const pluginAllowing = (...what: readonly string[]) =>
  ownerReferencesPermissionEnforcement(
    pluginDeps([], {
      authorizer: authorizerOf((verb, resource, name) => what.includes(`${verb} ${resource} ${name}`)),
    }),
  );
const mayDelete = "delete configmaps m";

t.test(
  "ownerReferencesPermissionEnforcement() requires permission to delete an object for changing its owners",
  async (t) => {
    const why = `configmaps "m" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`;
    t.equal(await rejectionOf(runPlugin(pluginAllowing(), configMapKind, map(owner()), { oldObject: map() })), why);
    t.equal(
      await rejectionOf(runPlugin(pluginAllowing(mayDelete), configMapKind, map(owner()), { oldObject: map() })),
      "",
    );
    t.equal(
      await rejectionOf(runPlugin(pluginAllowing(), configMapKind, map(owner()), { oldObject: map(owner()) })),
      "",
    );
    t.equal(await rejectionOf(runPlugin(pluginAllowing(), configMapKind, map(), { oldObject: map(owner()) })), why);
    t.equal(await rejectionOf(runPlugin(pluginAllowing(), configMapKind, map())), "");
    const pod = { metadata: { name: "p", ownerReferences: [owner()] } } as never;
    t.equal(
      await rejectionOf(
        runPlugin(pluginAllowing(), podKind, pod, { oldObject: { metadata: {} }, subresource: "status" }),
      ),
      "",
    );
  },
);

t.test(
  "ownerReferencesPermissionEnforcement() requires permission to set the owner's finalizers for blockOwnerDeletion",
  async (t) => {
    const blocking = owner({ blockOwnerDeletion: true });
    const change = (plugin: ReturnType<typeof pluginAllowing>, next: OwnerReference, before = owner()) =>
      rejectionOf(runPlugin(plugin, configMapKind, map(next), { oldObject: map(before) }));
    const why = /cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: /;
    t.match(await change(pluginAllowing(mayDelete), blocking), why);
    t.equal(await change(pluginAllowing(mayDelete, "update deployments/finalizers web"), blocking), "");
    t.equal(
      await change(pluginAllowing(mayDelete), { ...blocking, name: "new" }, blocking),
      "",
      "it was blocked before",
    );
    t.match(
      await change(pluginAllowing(mayDelete), owner({ kind: "Thing", uid: "2", blockOwnerDeletion: true })),
      /cannot find RESTMapping for APIVersion apps\/v1 Kind Thing: no matches for kind "Thing" in version "apps\/v1"$/,
    );
  },
);
