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
import { podTolerationRestriction } from "./pod-toleration-restriction.ts";

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
  "podTolerationRestriction() adds the default tolerations of the namespace and rejects those outside its whitelist",
  async (t) => {
    const [defaults, whitelist] = ["defaultTolerations", "tolerationsWhitelist"].map(
      (name) => `scheduler.alpha.kubernetes.io/${name}`,
    ) as [string, string];
    const gpu = { key: "gpu", operator: "Exists", effect: "NoSchedule" };
    const present = [
      namespace("given", { [defaults]: JSON.stringify([gpu]), [whitelist]: JSON.stringify([{ ...gpu, effect: "" }]) }),
      namespace("broken", { [defaults]: "{" }),
      namespace("none", { [defaults]: "" }),
    ];
    const configuration = configurationOf({
      apiVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1",
      kind: "Configuration",
      default: [{ key: "all", operator: "Exists" }],
    });
    const plugin = podTolerationRestriction(pluginDeps(present, { configuration }));
    const tolerations = async (name: string, spec: Partial<PodSpec> = {}) =>
      (await runPlugin(plugin, podKind, pod(spec, name))).object.spec?.tolerations;
    t.same(await tolerations("given"), [gpu]);
    t.same(await tolerations("other"), [{ key: "all", operator: "Exists" }]);
    t.same(await tolerations("none"), undefined);
    const burstable = { containers: [{ name: "a", resources: { requests: { cpu: "1" } } }] };
    t.match(await tolerations("none", burstable), [{ key: "node.kubernetes.io/memory-pressure" }]);
    const more = { tolerations: [{ key: "other", operator: "Exists" as const }] };
    t.equal(
      await rejectionOf(tolerations("given", more)),
      "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
    );
    t.equal(await rejectionOf(tolerations("broken")), "unexpected end of JSON input");
    const limited = { configuration: configurationOf({ ...configuration.value, whitelist: [gpu] }) };
    const strict = podTolerationRestriction(pluginDeps(present, limited));
    const rejection = await rejectionOf(runPlugin({ ...strict, validate: () => {} }, podKind, pod({}, "other")));
    t.match(
      rejection,
      /conflict with its cluster whitelist$/,
      "the added tolerations are checked before other plugins",
    );
    const wrong = configurationOf({ apiVersion: "v1", kind: "Configuration" });
    t.throws(() => podTolerationRestriction(pluginDeps([], { configuration: wrong })), /expected apiVersion: podtoler/);
  },
);
