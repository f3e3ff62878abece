import t from "tap";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { alreadyExists } from "../../../api/status.ts";
import { pluginDeps, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import type { ObjectWriter } from "../../chain/plugin.ts";
import { namespaceAutoProvision } from "./namespace-auto-provision.ts";

const here: readonly (readonly [unknown, Namespace])[] = [[namespaceKind, { metadata: { name: "here" } }]];
const map = (namespace: string) => ({ metadata: { name: "m", namespace } });

t.test("namespaceAutoProvision() creates a missing namespace, except for a dry run", async (t) => {
  const created: string[] = [];
  const writer: ObjectWriter = {
    ...pluginDeps().writer,
    create: async (kind, _namespace, object) => {
      const name = object.metadata?.name ?? "";
      if (name === "raced") throw alreadyExists({ group: "", resource: "namespaces", name });
      if (name === "bad") throw new Error("the store is gone");
      created.push(`${kind.plural}/${name}`);
      return object;
    },
  };
  const plugin = namespaceAutoProvision(pluginDeps(here, { writer }));
  await runPlugin(plugin, configMapKind, map("here"));
  await runPlugin(plugin, configMapKind, map("dry"), { dryRun: true });
  await runPlugin(plugin, configMapKind, map("raced"));
  await runPlugin(plugin, configMapKind, map("new"));
  t.same(created, ["namespaces/new"]);
  await t.rejects(runPlugin(plugin, configMapKind, map("bad")), { message: "the store is gone" });
});
