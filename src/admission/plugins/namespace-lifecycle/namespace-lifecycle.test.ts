import t from "tap";
import { localSubjectAccessReviewKind } from "../../../api/authorization/access-review/kinds.ts";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { readerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";

const plugin = namespaceLifecycle({
  reader: readerOf([
    [namespaceKind, { metadata: { name: "here" } }],
    [namespaceKind, { metadata: { name: "terminating" }, status: { phase: "Terminating" } } as never],
  ]),
});
const map = (namespace: string) => ({ metadata: { name: "a", namespace } });

t.test("namespaceLifecycle() rejects writes in missing namespaces and creates in terminating ones", async (t) => {
  await runPlugin(plugin, configMapKind, map("here"));
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map("gone"))), 'namespaces "gone" not found');
  for (const [namespace, reasons] of [
    ["..", "may not be '..'"],
    ["a%b", "may not contain '%'"],
  ] as const) {
    const message = `Internal error occurred: invalid resource name "${namespace}": [${reasons}]`;
    t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map(namespace))), message);
  }
  const why = "unable to create new content in namespace terminating because it is being terminated";
  t.equal(
    await rejectionOf(runPlugin(plugin, configMapKind, map("terminating"))),
    `configmaps "a" is forbidden: ${why}`,
  );
  const error: unknown = await runPlugin(plugin, configMapKind, map("terminating")).catch((error: unknown) => error);
  t.match(error, {
    status: { details: { causes: [{ reason: "NamespaceTerminating", field: "metadata.namespace" }] } },
  });
  await runPlugin(plugin, configMapKind, map("terminating"), { oldObject: map("terminating") });
  await runPlugin(plugin, configMapKind, undefined, { operation: "DELETE", oldObject: map("gone") });
  t.equal(
    await rejectionOf(runPlugin(plugin, configMapKind, map("gone"), { oldObject: map("gone") })),
    'namespaces "gone" not found',
  );
});

t.test("namespaceLifecycle() ignores cluster-scoped objects and local access reviews", async (t) => {
  await runPlugin(plugin, nodeKind, { metadata: { name: "n" } });
  await runPlugin(plugin, namespaceKind, { metadata: { name: "new" } });
  const question = { metadata: { namespace: "gone" }, spec: {} };
  await runPlugin(plugin, localSubjectAccessReviewKind, question as never);
  t.pass();
});

t.test("namespaceLifecycle() rejects the deletion of system namespaces", async (t) => {
  const remove = (name: string) =>
    rejectionOf(
      runPlugin(plugin, namespaceKind, undefined, { operation: "DELETE", oldObject: { metadata: { name } } }),
    );
  for (const name of ["default", "svc-system", "kube-system", "kube-public"]) {
    t.equal(await remove(name), `namespaces "${name}" is forbidden: this namespace may not be deleted`);
  }
  t.equal(await remove("here"), "");
});
