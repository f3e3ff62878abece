import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { pluginDeps, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { namespaceExists } from "./namespace-exists.ts";

const here: readonly (readonly [unknown, Namespace])[] = [[namespaceKind, { metadata: { name: "here" } }]];
const map = (namespace: string) => ({ metadata: { name: "m", namespace } });

t.test("namespaceExists() rejects requests in a namespace that does not exist", async (t) => {
  const plugin = namespaceExists(pluginDeps(here));
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map("here"))), "");
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map("gone"))), 'namespaces "gone" not found');
  const removal = { operation: "DELETE", oldObject: map("gone") } as const;
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, undefined, removal)), 'namespaces "gone" not found');
  t.equal(await rejectionOf(runPlugin(plugin, nodeKind, { metadata: { name: "n" } })), "");
});
