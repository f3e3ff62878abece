/** Plugins by which an operator narrows what pods may say. */
import t from "tap";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod, PodSpec } from "../../../api/core/pod/schema.ts";
import type { Toleration } from "../../../api/core/pod-spec/affinity.ts";
import { runPlugin, type ClusterObjects, pluginDeps, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { alwaysPullImages } from "../always-pull-images/always-pull-images.ts";
import { extendedResourceToleration } from "../extended-resource-toleration/extended-resource-toleration.ts";
import { limitPodHardAntiAffinityTopology } from "../limit-pod-hard-anti-affinity-topology/limit-pod-hard-anti-affinity-topology.ts";
import { podNodeSelector } from "../pod-node-selector/pod-node-selector.ts";
import { mergedTolerations } from "./merge-tolerations.ts";
import { podTolerationRestriction } from "./pod-toleration-restriction.ts";

const pod = (spec: Partial<PodSpec>, namespace = "default"): Pod => ({
  metadata: { name: "web", namespace },
  spec: { containers: [], ...spec },
});
const configured = (value: PluginConfiguration["value"]): PluginConfiguration => ({
  value,
  locationOf: (path) => `f:${path}`,
  duplicates: [],
});
const namespace = (name: string, annotations: Readonly<Record<string, string>>): ClusterObjects[number] => [
  namespaceKind,
  { metadata: { name, annotations } },
];

t.test("alwaysPullImages() has every image of a new pod pulled, those of volumes too", async (t) => {
  const plugin = alwaysPullImages();
  const own = { name: "a", image: "i", imagePullPolicy: "Never" as const };
  const volumes = [
    { name: "v", image: { reference: "r" } },
    { name: "e", emptyDir: {} },
  ];
  const { object } = await runPlugin(plugin, podKind, pod({ containers: [own], initContainers: [own], volumes }));
  t.match(object.spec, {
    containers: [{ imagePullPolicy: "Always" }],
    initContainers: [{ imagePullPolicy: "Always" }],
    volumes: [{ image: { reference: "r", pullPolicy: "Always" } }, { name: "e", emptyDir: {} }],
  });
  const before = pod({ containers: [own] });
  t.equal((await runPlugin(plugin, podKind, before, { oldObject: before })).object, before, "no image is new");
  const changed = pod({ containers: [{ ...own, image: "j" }] });
  t.match((await runPlugin(plugin, podKind, changed, { oldObject: before })).object.spec?.containers, [
    { imagePullPolicy: "Always" },
  ]);
  const spoilt = { ...plugin, mutate: () => undefined };
  t.equal(
    await rejectionOf(runPlugin(spoilt, podKind, before)),
    'pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
  );
});

t.test("extendedResourceToleration() lets pods onto nodes that are kept for what they ask for", async (t) => {
  const asking = (...names: readonly string[]) => ({
    name: "a",
    resources: { requests: Object.fromEntries(names.map((name) => [name, "1"])) },
  });
  const tolerations = async (spec: Partial<PodSpec>) =>
    (await runPlugin(extendedResourceToleration(), podKind, pod(spec))).object.spec?.tolerations;
  const both = { containers: [asking("cpu", "b.com/gpu")], initContainers: [asking("a.com/nic", "b.com/gpu")] };
  const expected = [
    { key: "a.com/nic", operator: "Exists" },
    { key: "b.com/gpu", operator: "Exists" },
  ];
  t.same(await tolerations(both), expected);
  t.same(await tolerations({ ...both, tolerations: expected as readonly Toleration[] }), expected);
  t.equal(await tolerations({ containers: [asking("cpu", "hugepages-2Mi", "kubernetes.io/x")] }), undefined);
});

t.test("limitPodHardAntiAffinityTopology() lets pods keep others off their node alone", async (t) => {
  const keeping = (topologyKey: string) =>
    pod({
      affinity: {
        podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: {} }] },
      },
    });
  const plugin = limitPodHardAntiAffinityTopology();
  t.equal(await rejectionOf(runPlugin(plugin, podKind, keeping("kubernetes.io/hostname"))), "");
  t.equal(
    await rejectionOf(runPlugin(plugin, podKind, keeping("zone"))),
    'pods "web" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed',
  );
});

t.test("podNodeSelector() adds the selector of the namespace, and keeps pods within what it may have", async (t) => {
  const annotation = "scheduler.alpha.kubernetes.io/node-selector";
  const present = [
    namespace("own", { [annotation]: "env=dev, disk=ssd" }),
    namespace("empty", { [annotation]: "" }),
    namespace("broken", { [annotation]: "env" }),
    namespace("narrow", {}),
  ];
  const configuration = configured({
    podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: "env=any", narrow: "env=any,disk=hdd" },
  });
  const plugin = podNodeSelector(pluginDeps(present, { configuration }));
  const selector = async (name: string, nodeSelector: Readonly<Record<string, string>> = {}) =>
    (await runPlugin(plugin, podKind, pod({ nodeSelector }, name))).object.spec?.nodeSelector;
  t.same(await selector("own", { a: "b" }), { a: "b", env: "dev", disk: "ssd" });
  t.same(await selector("empty"), {});
  t.same(await selector("narrow", { disk: "hdd" }), { env: "any", disk: "hdd" });
  t.same(await selector("unknown"), { env: "any" });
  const why = (name: string, nodeSelector: Readonly<Record<string, string>>) => rejectionOf(selector(name, nodeSelector));
  t.match(await why("own", { env: "prod" }), /node label selector conflicts with its namespace node label selector$/);
  t.match(await why("narrow", { disk: "ssd" }), /labels conflict with its namespace whitelist$/);
  t.match(await why("broken", {}), /^invalid selector/);
  const bad = (value: PluginConfiguration["value"]) => () =>
    podNodeSelector(pluginDeps([], { configuration: configured(value) }));
  t.throws(bad({ other: {} }), {
    message: "Cannot use f:other: other: unknown field: podNodeSelectorPluginConfig is expected",
  });
  t.throws(bad({ podNodeSelectorPluginConfig: { a: 3 } }), /f:podNodeSelectorPluginConfig\.a: .* must be a selector/);
});

t.test(
  "podTolerationRestriction() gives pods what their namespace has, and refuses what it may not have",
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
    const configuration = configured({
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
    t.match(await rejectionOf(tolerations("broken")), /^cannot read annotation scheduler\.alpha/);
    const wrong = configured({ apiVersion: "v1", kind: "Configuration" });
    t.throws(() => podTolerationRestriction(pluginDeps([], { configuration: wrong })), /expected apiVersion: podtoler/);
  },
);

t.test("mergedTolerations() keeps those that no other one covers, the first of equals", (t) => {
  const exists = { key: "a", operator: "Exists" as const };
  const equal = { key: "a", operator: "Equal" as const, value: "b" };
  const all = { operator: "Exists" as const };
  const until = (tolerationSeconds: number) => ({ ...exists, effect: "NoExecute" as const, tolerationSeconds });
  t.same(mergedTolerations([equal], [exists]), [exists]);
  t.same(mergedTolerations([exists], [exists]), [exists]);
  t.same(mergedTolerations([exists, equal], [all]), [all]);
  t.same(mergedTolerations([until(5)], [until(9)]), [until(9)]);
  t.same(mergedTolerations([equal], [{ ...equal, value: "c" }]), [equal, { ...equal, value: "c" }]);
  t.end();
});
