import t from "tap";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import {
  type ClusterObjects,
  pluginDeps,
  rejectionOf,
  runPlugin,
} from "../../../testing/admission/admission-fixture.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { podNodeSelector } from "./pod-node-selector.ts";

const pod = (spec: Partial<PodSpec>, namespace = "default"): Pod => ({
  metadata: { name: "web", namespace },
  spec: { containers: [], ...spec },
});

const configurationOf = (value: PluginConfiguration["value"]): PluginConfiguration => ({
  value,
  locationOf: (path) => `f:${path}`,
  duplicates: [],
});

const namespace = (name: string, annotations: Readonly<Record<string, string>>): ClusterObjects[number] => [
  namespaceKind,
  { metadata: { name, annotations } },
];

t.test(
  "podNodeSelector() adds the selector of the namespace and rejects a selector outside its whitelist",
  async (t) => {
    const annotation = "scheduler.alpha.kubernetes.io/node-selector";
    const present = [
      namespace("own", { [annotation]: "env=dev, disk=ssd" }),
      namespace("empty", { [annotation]: "" }),
      namespace("broken", { [annotation]: "env" }),
      namespace("narrow", {}),
    ];
    const configuration = configurationOf({
      podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: "env=any", narrow: "env=any,disk=hdd" },
    });
    const plugin = podNodeSelector(pluginDeps(present, { configuration }));
    const selector = async (name: string, nodeSelector: Readonly<Record<string, string>> = {}) =>
      (await runPlugin(plugin, podKind, pod({ nodeSelector }, name))).object.spec?.nodeSelector;
    t.same(await selector("own", { a: "b" }), { a: "b", env: "dev", disk: "ssd" });
    t.same(await selector("empty"), {});
    t.same(await selector("narrow", { disk: "hdd" }), { env: "any", disk: "hdd" });
    t.same(await selector("unknown"), { env: "any" });
    const why = (name: string, nodeSelector: Readonly<Record<string, string>>) =>
      rejectionOf(selector(name, nodeSelector));
    t.match(await why("own", { env: "prod" }), /node label selector conflicts with its namespace node label selector$/);
    t.match(await why("narrow", { disk: "ssd" }), /labels conflict with its namespace whitelist$/);
    t.match(await why("broken", {}), /^invalid selector/);
    const bad = (value: PluginConfiguration["value"]) => () =>
      podNodeSelector(pluginDeps([], { configuration: configurationOf(value) }));
    t.throws(bad({ other: {} }), {
      message: "Cannot use f:other: other: unknown field: podNodeSelectorPluginConfig is expected",
    });
    t.throws(bad({ podNodeSelectorPluginConfig: { a: 3 } }), /f:podNodeSelectorPluginConfig\.a: .* must be a selector/);
  },
);
