import t from "tap";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { create } from "./create.ts";
import { deleteNamespace } from "./delete-namespace.ts";
import { get } from "./get.ts";
import { update } from "./update.ts";

const finalize = namespaceKind.subresources.find(({ name }) => name === "finalize")?.strategy;

t.test("deleteNamespace() marks the namespace; removing the last finalizer of its spec deletes it", async (t) => {
  await using f = fixture();
  const namespaces = f.registries.of(namespaceKind);
  await create(namespaces, f.scope(""), { metadata: { name: "x" } });
  const { object, deleted } = await deleteNamespace(namespaces, f.scope(""), "x", {});
  t.equal(deleted, false);
  t.match(object, { metadata: { deletionTimestamp: /^2026/ }, status: { phase: "Terminating" } });
  const again = await deleteNamespace(namespaces, f.scope(""), "x", {});
  t.equal(again.object.metadata?.resourceVersion, object.metadata?.resourceVersion);
  const plain = await update(namespaces, f.scope(""), "x", { ...object, spec: {} });
  t.same(plain.object.spec?.finalizers, ["kubernetes"], "only the finalize subresource changes them");
  await update(
    namespaces,
    f.scope(""),
    "x",
    { ...object, spec: { finalizers: [] } },
    { subresourceStrategy: finalize },
  );
  t.equal((await rejectionStatus(get(namespaces, f.scope(""), "x"))).code, 404);
});
