import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { alreadyExists } from "../../../api/status.ts";
import { runPlugin, pluginDeps, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import type { ObjectWriter } from "../../chain/plugin.ts";
import { namespaceAutoProvision, namespaceExists } from "./namespace-exists.ts";

const here: readonly (readonly [unknown, Namespace])[] = [[namespaceKind, { metadata: { name: "here" } }]];
const map = (namespace: string) => ({ metadata: { name: "m", namespace } });

t.test("namespaceExists() refuses all that would be in a namespace that is not there", async (t) => {
  const plugin = namespaceExists(pluginDeps(here));
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map("here"))), "");
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, map("gone"))), 'namespaces "gone" not found');
  const removal = { operation: "DELETE", previous: map("gone") } as const;
  t.equal(await rejectionOf(runPlugin(plugin, configMapKind, undefined, removal)), 'namespaces "gone" not found');
  t.equal(await rejectionOf(runPlugin(plugin, nodeKind, { metadata: { name: "n" } })), "");
});

t.test("namespaceAutoProvision() makes a namespace that is missing, unless nothing is to be written", async (t) => {
  const made: string[] = [];
  const writer: ObjectWriter = {
    ...pluginDeps().writer,
    create: async (kind, _namespace, object) => {
      const name = object.metadata?.name ?? "";
      if (name === "raced") throw alreadyExists({ group: "", resource: "namespaces", name });
      if (name === "bad") throw new Error("the store is gone");
      made.push(`${kind.plural}/${name}`);
      return object;
    },
  };
  const plugin = namespaceAutoProvision(pluginDeps(here, { writer }));
  await runPlugin(plugin, configMapKind, map("here"));
  await runPlugin(plugin, configMapKind, map("dry"), { dryRun: true });
  await runPlugin(plugin, configMapKind, map("raced"));
  await runPlugin(plugin, configMapKind, map("new"));
  t.same(made, ["namespaces/new"]);
  await t.rejects(runPlugin(plugin, configMapKind, map("bad")), { message: "the store is gone" });
});
