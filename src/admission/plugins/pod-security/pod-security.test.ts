import t from "tap";
import { deploymentKind } from "../../../api/apps/deployment/kind.ts";
import type { Deployment } from "../../../api/apps/deployment/schema.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { Namespace } from "../../../api/core/namespace/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import {
  alice,
  type ClusterObjects,
  pluginDeps,
  rejectionOf,
  runPlugin,
} from "../../../testing/admission/admission-fixture.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { podSecurity } from "./pod-security.ts";

function namespace(labels: Record<string, string> = {}): Namespace {
  const full = Object.entries(labels).map(([name, value]) => [`pod-security.kubernetes.io/${name}`, value]);
  return { metadata: { name: "default", labels: Object.fromEntries(full) } };
}

function pod(name = "p", more: object = {}): Pod {
  const spec = { containers: [{ name: "a", image: "i", securityContext: { privileged: true } }], ...more };
  return { metadata: { name, namespace: "default" }, spec } as Pod;
}

const TEXT = '"baseline:latest": privileged (container "a" must not set securityContext.privileged=true)';

function configurationOf(value: object): PluginConfiguration {
  const identity = { apiVersion: "pod-security.admission.config.k8s.io/v1", kind: "PodSecurityConfiguration" };
  return { value: { ...identity, ...value }, locationOf: (path) => `file:${path}`, duplicates: [] };
}

function pluginIn(labels: Record<string, string>, configuration?: PluginConfiguration, more: ClusterObjects = []) {
  return podSecurity(
    pluginDeps([[namespaceKind, namespace(labels)], ...more], { configuration, isFeatureEnabled: () => false }),
  );
}

t.test("podSecurity() admits every pod in a namespace without labels", async (t) => {
  t.strictSame(await runPlugin(pluginIn({}), podKind, pod()), {
    object: pod(),
    warnings: [],
    annotations: { "pod-security.kubernetes.io/enforce-policy": "privileged:latest" },
  });
});

t.test("podSecurity() rejects pods that violate the enforced level", async (t) => {
  const plugin = pluginIn({ enforce: "baseline", warn: "baseline" });
  t.equal(await rejectionOf(runPlugin(plugin, podKind, pod())), `pods "p" is forbidden: violates PodSecurity ${TEXT}`);
});

t.test("podSecurity() adds warnings and audit annotations", async (t) => {
  const { warnings, annotations } = await runPlugin(pluginIn({ warn: "baseline", audit: "baseline" }), podKind, pod());
  t.strictSame(warnings, [`would violate PodSecurity ${TEXT}`]);
  t.strictSame(annotations, {
    "pod-security.kubernetes.io/enforce-policy": "privileged:latest",
    "pod-security.kubernetes.io/audit-violations": `would violate PodSecurity ${TEXT}`,
  });
});

t.test("podSecurity() only warns about pod templates, since their pods are evaluated on creation", async (t) => {
  const deployment = { metadata: { name: "d", namespace: "default" }, spec: { template: pod() } } as Deployment;
  const warned = [`would violate PodSecurity ${TEXT}`];
  const old = warned.map((text) => text.replace("latest", "v1.2"));
  const cases: readonly (readonly [labels: Record<string, string>, warnings: readonly string[]])[] = [
    [{ enforce: "restricted", warn: "baseline" }, warned],
    // Without a level to warn, that to enforce counts, with its version unless the labels have one to warn.
    [{ enforce: "baseline" }, warned],
    [{ enforce: "baseline", "enforce-version": "v1.2" }, old],
    [{ enforce: "baseline", "warn-version": "v1.2" }, old],
    [{ enforce: "baseline", warn: "privileged" }, []],
    [{ enforce: "strict" }, []],
  ];
  for (const [labels, warnings] of cases) {
    t.strictSame((await runPlugin(pluginIn(labels), deploymentKind, deployment)).warnings, warnings);
  }
});

t.test("podSecurity() evaluates updates of relevant fields, and ephemeral containers", async (t) => {
  const plugin = pluginIn({ enforce: "baseline" });
  const labelled = { ...pod(), metadata: { ...pod().metadata, labels: { a: "b" } } };
  t.equal(await rejectionOf(runPlugin(plugin, podKind, labelled, { oldObject: pod() })), "", "a label");
  const image = pod("p", { containers: [{ ...pod().spec!.containers[0]!, image: "other" }] });
  t.match(
    await rejectionOf(runPlugin(plugin, podKind, image, { oldObject: pod() })),
    "violates PodSecurity",
    "an image",
  );
  const debugged = pod("p", { ephemeralContainers: [{ name: "d", image: "i" }] });
  const fields = { oldObject: pod(), subresource: "ephemeralcontainers" };
  t.match(
    await rejectionOf(runPlugin(plugin, podKind, debugged, fields)),
    "violates PodSecurity",
    "an ephemeral container",
  );
  t.equal(
    await rejectionOf(runPlugin(plugin, podKind, image, { oldObject: pod(), subresource: "status" })),
    "",
    "the status",
  );
});

t.test("podSecurity() treats an invalid enforce label as restricted", async (t) => {
  const plugin = pluginIn({ enforce: "strict", "enforce-version": "1.2", warn: "strict" });
  const text = await rejectionOf(runPlugin(plugin, podKind, pod()));
  t.match(text, 'violates PodSecurity "restricted:latest": privileged');
});

t.test(
  "podSecurity() exempts the configured users, namespaces and runtime classes with an audit annotation",
  async (t) => {
    const labels = { enforce: "restricted" };
    const cases: readonly (readonly [string, object, Pod])[] = [
      ["user", { usernames: ["alice"] }, pod()],
      ["namespace", { namespaces: ["default"] }, pod()],
      ["runtimeClass", { runtimeClasses: ["vm"] }, pod("p", { runtimeClassName: "vm" })],
    ];
    for (const [sort, exemptions, subject] of cases) {
      const plugin = pluginIn(labels, configurationOf({ exemptions }));
      const { annotations } = await runPlugin(plugin, podKind, subject, { user: alice });
      t.strictSame(annotations, { "pod-security.kubernetes.io/exempt": sort }, sort);
    }
  },
);

t.test("podSecurity() uses the configured defaults for labels that a namespace does not set", async (t) => {
  const defaults = { enforce: "restricted", "enforce-version": "v1.24" };
  const text = await rejectionOf(
    runPlugin(pluginIn({ enforce: "baseline" }, configurationOf({ defaults })), podKind, pod()),
  );
  t.match(text, 'violates PodSecurity "baseline:v1.24"');
});

t.test("podSecurity() warns about existing pods that violate a stricter level", async (t) => {
  const pods = ["c", "a", "b"].map((name) => [podKind, pod(name)] as const);
  const plugin = pluginIn({}, undefined, pods);
  const { warnings } = await runPlugin(plugin, namespaceKind, namespace({ enforce: "baseline" }), {
    oldObject: namespace(),
  });
  t.strictSame(warnings, [
    'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
    "a (and 2 other pods): privileged",
  ]);
  const relaxed = { oldObject: namespace({ enforce: "restricted" }) };
  t.strictSame((await runPlugin(plugin, namespaceKind, namespace({ enforce: "baseline" }), relaxed)).warnings, []);
});

t.test("podSecurity() rejects an invalid configuration", async (t) => {
  const cases: readonly (readonly [object, string])[] = [
    [
      { kind: "PodSecurity" },
      'expected apiVersion: pod-security.admission.config.k8s.io/v1 and kind: PodSecurityConfiguration, found "pod-security.admission.config.k8s.io/v1" and "PodSecurity"',
    ],
    [
      { defaults: { enforce: "strict" } },
      "Cannot use file:defaults.enforce: defaults.enforce: must be one of privileged, baseline, restricted",
    ],
    [{ defaults: { "warn-version": "1.2" } }, 'defaults.warn-version: must be "latest" or "v1.x"'],
    [{ exemptions: { usernames: ["a", "a"] } }, 'exemptions.usernames[1]: "a" is a duplicate'],
    [{ exemptions: { namespaces: [""] } }, "exemptions.namespaces[0]: must be a name"],
    [{ exemption: {} }, "unknown field exemption"],
  ];
  for (const [value, text] of cases) {
    let said = "";
    try {
      pluginIn({}, configurationOf(value));
    } catch (error) {
      said = (error as Error).message;
    }
    t.ok(said.includes(text), `${JSON.stringify(value)}: ${said}`);
  }
});
