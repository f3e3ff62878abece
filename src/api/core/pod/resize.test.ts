import t from "tap";
import type { Container } from "../container/schema.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import type { ResourceRequirements } from "../resources/schema.ts";
import { setPodDefaults } from "./defaults.ts";
import { podEphemeralContainersStrategy } from "./ephemeral-containers.ts";
import { qosClassOf } from "./qos.ts";
import { podResizeStrategy } from "./resize.ts";
import type { Pod } from "./schema.ts";

const resources: ResourceRequirements = { requests: { cpu: "1" }, limits: { cpu: "2", memory: "1Gi" } };
const container: Container = { name: "a", image: "web:1", resources };

function pod(spec: Partial<PodSpec>): Pod {
  const made = setPodDefaults({ metadata: { name: "web", generation: 1 }, spec: { containers: [container], ...spec } });
  return { ...made, status: { phase: "Running", qosClass: qosClassOf(made.spec!) } };
}

function resize(next: Pod, previous = pod({})): { readonly pod: Pod; readonly errors: readonly string[] } {
  const prepared = podResizeStrategy.prepareForUpdate(next, previous, "");
  const errors = podResizeStrategy.validateUpdate?.(prepared, previous) ?? [];
  return { pod: prepared, errors: errors.map(({ type, field }) => `${type} ${field}`) };
}

function withResources(changed: ResourceRequirements, more: Partial<Container> = {}): Pod {
  return pod({ containers: [{ ...container, ...more, resources: changed }] });
}

t.test("podResizeStrategy changes CPU and memory, and nothing else", async (t) => {
  const grown = resize(
    withResources({ requests: { cpu: "1500m" }, limits: { cpu: "3", memory: "2Gi" } }, { image: "web:2" }),
  );
  t.same(grown.errors, []);
  t.equal(grown.pod.spec?.containers[0]?.image, "web:1");
  t.equal(grown.pod.spec?.containers[0]?.resources?.limits?.cpu, "3");
  t.equal(grown.pod.metadata?.generation, 2);
  const at = "spec.containers[0].resources";
  t.same(resize(withResources({ requests: { cpu: "1" }, limits: { cpu: "2", memory: "512Mi" } })).errors, [
    `FieldValueForbidden ${at}.limits[memory]`,
  ]);
  const policy = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] };
  const smaller = { requests: { cpu: "1", memory: "512Mi" }, limits: { cpu: "2", memory: "512Mi" } };
  t.same(resize(withResources(smaller, policy), pod({ containers: [{ ...container, ...policy }] })).errors, []);
  t.same(resize(withResources({ limits: { cpu: "2" } })).errors, [
    `FieldValueForbidden ${at}.requests`,
    `FieldValueForbidden ${at}.limits`,
  ]);
  t.same(resize(withResources({ ...resources, limits: { ...resources.limits, "ephemeral-storage": "1Gi" } })).errors, [
    "FieldValueForbidden spec",
  ]);
});

t.test("podResizeStrategy rejects pods with resources of the pod as a whole", async (t) => {
  const whole = pod({ resources: { limits: { cpu: "3" }, requests: { cpu: "3" } } });
  t.same(resize(whole, whole).errors, ["FieldValueForbidden "]);
});

t.test("podResizeStrategy rejects changes of the QoS class and of the containers", async (t) => {
  const equal = { cpu: "2", memory: "1Gi" };
  t.same(resize(withResources({ requests: equal, limits: equal })).errors, ["FieldValueInvalid spec"]);
  t.same(resize(pod({ containers: [container, { name: "b", image: "x" }] })).errors, [
    "FieldValueForbidden spec.containers",
  ]);
});

t.test("podResizeStrategy resizes sidecars, and no other init containers", async (t) => {
  const sidecar: Container = { ...container, name: "s", restartPolicy: "Always" };
  const init: Container = { ...container, name: "i" };
  const previous = pod({ initContainers: [sidecar, init] });
  const details = (changed: readonly Container[]): readonly string[] => {
    const next = podResizeStrategy.prepareForUpdate(pod({ initContainers: changed }), previous, "");
    return (podResizeStrategy.validateUpdate?.(next, previous) ?? []).map(({ detail }) => detail);
  };
  const more: ResourceRequirements = { ...resources, limits: { cpu: "3", memory: "1Gi" } };
  const other: ResourceRequirements = { ...resources, limits: { ...resources.limits, "ephemeral-storage": "1Gi" } };
  t.same(details([{ ...sidecar, resources: more }, init]), []);
  t.same(details([sidecar, { ...init, resources: more }]), ["resources for non-sidecar init containers are immutable"]);
  t.same(details([{ ...sidecar, resources: other }, init]), [
    "only cpu and memory resources for sidecar containers are mutable",
  ]);
});

t.test("subresources of static pods report nothing else", async (t) => {
  const annotations = { "kubernetes.io/config.mirror": "x" };
  const invalid = { ...pod({ nodeName: "n", containers: [{ ...container, image: "" }] }), metadata: { annotations } };
  const errorsOf = (strategy: typeof podResizeStrategy) =>
    (strategy.validateUpdate?.(invalid, invalid) ?? []).map(({ detail }) => detail);
  t.same(errorsOf(podResizeStrategy), ["static pods cannot be resized"]);
  t.same(errorsOf(podEphemeralContainersStrategy), ["static pods do not support ephemeral containers"]);
});

t.test("podEphemeralContainersStrategy adds containers, and rejects changes of existing ones", async (t) => {
  const with_ = (...names: readonly string[]): Pod =>
    pod({ ephemeralContainers: names.map((name) => ({ name, image: "debug:1", targetContainerName: "a" })) });
  const apply = (next: Pod, previous: Pod): readonly string[] => {
    const prepared = podEphemeralContainersStrategy.prepareForUpdate(next, previous, "");
    return (podEphemeralContainersStrategy.validateUpdate?.(prepared, previous) ?? []).map(({ field }) => field);
  };
  t.same(apply(with_("d"), pod({})), []);
  t.same(apply(with_("d", "e"), with_("d")), []);
  t.same(apply(with_("e"), with_("d")), ["spec.ephemeralContainers"]);
  t.same(apply(with_("a"), pod({})), ["spec.ephemeralContainers[0].name"]);
  const [debug] = with_("d").spec?.ephemeralContainers ?? [];
  const changed = pod({ ephemeralContainers: [{ ...debug!, image: "debug:2" }] });
  const [error] = podEphemeralContainersStrategy.validateUpdate?.(changed, with_("d")) ?? [];
  t.match(error?.detail, /^existing ephemeral containers "d" may not be changed\n.*debug:2/s);
  const other = podEphemeralContainersStrategy.prepareForUpdate(pod({ hostname: "h" }), pod({}), "");
  t.equal(other.spec?.hostname, undefined);
});
