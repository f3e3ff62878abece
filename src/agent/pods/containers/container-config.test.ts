import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { makeEnvironment } from "../environment/environment.ts";
import { expand } from "../environment/expansion.ts";
import { podCgroupParent } from "../resources/cgroup-names.ts";
import { makeSandboxConfig } from "../sandbox/sandbox-config.ts";
import { type ContainerConfigInput, makeContainerConfig } from "./container-config.ts";
import { containerHash } from "./container-hash.ts";

const node = { name: "n1", ips: ["192.0.2.1"], allocatable: { cpuMillis: 2000, memoryBytes: 1000, storageBytes: 5 } };

function input(container: Partial<Container>, spec: Partial<PodSpec> = {}, extra: Partial<ContainerConfigInput> = {}) {
  const own: Container = { name: "c", image: "busybox:1", ...container };
  return {
    pod: testPod("web", { containers: [own], ...spec }),
    container: own,
    restartCount: 2,
    imageRef: "sha256:1",
    image: undefined,
    environment: new Map([["A", "1"]]),
    mounts: [],
    cpu: { cpuCfsQuota: true, cpuCfsQuotaPeriodMs: 100 },
    memoryCapacityBytes: 2 ** 30,
    seccompDefault: false,
    rootDir: "/root-dir",
    ...extra,
  };
}

t.test("makeContainerConfig() sets the labels and annotations that crictl reads", async (t) => {
  const config = makeContainerConfig(input({ args: ["$(A)", "$(B)"] }));
  t.same(config.labels, {
    "io.kubernetes.container.name": "c",
    "io.kubernetes.pod.name": "web",
    "io.kubernetes.pod.namespace": "default",
    "io.kubernetes.pod.uid": "uid-web",
  });
  t.match(config.annotations, {
    "io.kubernetes.container.hash": containerHash({ name: "c", image: "busybox:1" }),
    "io.kubernetes.container.restartCount": "2",
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": "File",
    "io.kubernetes.pod.terminationGracePeriod": "30",
  });
  t.equal(config.logPath, "c/2.log");
  t.same(config.args, ["1", "$(B)"]);
});

t.test(
  "makeContainerConfig() converts requests and limits to CPU shares and quota, memory limit and OOM score",
  async (t) => {
    const resources = (limits: Record<string, string>, requests: Record<string, string> = limits) =>
      makeContainerConfig(input({ resources: { limits, requests } })).linux?.resources;
    t.match(resources({ cpu: "400m", memory: "64Mi" }, { cpu: "100m", memory: "32Mi" }), {
      cpuShares: 102n,
      cpuQuota: 40_000n,
      cpuPeriod: 100_000n,
      memoryLimitInBytes: 67_108_864n,
    });
    t.match(resources({ cpu: "1m" }), { cpuShares: 2n, cpuQuota: 1000n });
    t.equal(resources({ cpu: "200m", memory: "48Mi" })?.oomScoreAdj, -997n);
    t.equal(makeContainerConfig(input({})).linux?.resources?.oomScoreAdj, 1000n);
    t.equal(resources({}, { memory: "512Mi" })?.oomScoreAdj, 500n);
    t.equal(resources({})?.unified, undefined);
    const { cpu } = input({});
    const asGroup = makeContainerConfig({ ...input({}), cpu: { ...cpu, oomGroup: true } }).linux?.resources;
    t.same(asGroup?.unified, { "memory.oom.group": "1" }, "all of its processes end together");
  },
);

t.test("makeContainerConfig() gives the container's security context precedence over the pod's", async (t) => {
  const securityContext = { runAsUser: 1000, runAsGroup: 1001, supplementalGroups: [4000], fsGroup: 5000 };
  const config = makeContainerConfig(input({ securityContext: { runAsUser: 2000 } }, { securityContext }));
  t.match(config.linux?.securityContext, {
    runAsUser: { value: 2000n },
    runAsGroup: { value: 1001n },
    supplementalGroups: [4000n, 5000n],
    seccomp: { profileType: "Unconfined" },
  });
  const profile = { seccompProfile: { type: "Localhost" as const, localhostProfile: "p.json" } };
  t.match(makeContainerConfig(input({ securityContext: profile })).linux?.securityContext?.seccomp, {
    localhostRef: "/root-dir/seccomp/p.json",
  });
});

t.test("makeContainerConfig() throws for a root user if the pod sets runAsNonRoot", async (t) => {
  const spec = { securityContext: { runAsNonRoot: true } };
  const where = '(pod: "web_default(uid-web)", container: c)';
  t.throws(() => makeContainerConfig(input({}, spec)), {
    message: `container has runAsNonRoot and image will run as root ${where}`,
  });
  t.throws(() => makeContainerConfig(input({ securityContext: { runAsUser: 0 } }, spec)), {
    message: `container's runAsUser breaks non-root policy ${where}`,
  });
  t.throws(() => makeContainerConfig(input({}, spec, { image: { username: "app" } })), /non-numeric user \(app\)/);
  t.doesNotThrow(() => makeContainerConfig(input({}, spec, { image: { uid: { value: 5n } } })));
});

t.test("makeContainerConfig() sets AppArmor profiles in both fields that runtimes read", async (t) => {
  const profiled = (own: object | undefined, shared: object | undefined) => {
    const context = (profile: object | undefined) =>
      profile === undefined ? {} : { securityContext: { appArmorProfile: profile } as Container["securityContext"] };
    const { apparmor, apparmorProfile } =
      makeContainerConfig(input(context(own) as Partial<Container>, context(shared) as Partial<PodSpec>)).linux
        ?.securityContext ?? {};
    return { apparmor, apparmorProfile };
  };
  const localhost = { type: "Localhost", localhostProfile: "web" };
  t.same(profiled(undefined, undefined), { apparmor: undefined, apparmorProfile: undefined });
  t.same(profiled(localhost, { type: "Unconfined" }), {
    apparmor: { profileType: "Localhost", localhostRef: "web" },
    apparmorProfile: "localhost/web",
  });
  t.same(profiled(undefined, { type: "RuntimeDefault" }), {
    apparmor: { profileType: "RuntimeDefault" },
    apparmorProfile: "runtime/default",
  });
  t.same(profiled({ type: "Unconfined" }, localhost), {
    apparmor: { profileType: "Unconfined" },
    apparmorProfile: "unconfined",
  });
});

t.test("makeContainerConfig() passes the policy Strict of supplemental groups to the runtime", async (t) => {
  const security = (supplementalGroupsPolicy: "Strict" | "Merge") =>
    makeContainerConfig(
      input({}, { securityContext: { supplementalGroups: [4000], fsGroup: 5000, supplementalGroupsPolicy } }),
    ).linux?.securityContext;
  t.match(security("Strict"), { supplementalGroups: [4000n, 5000n], supplementalGroupsPolicy: "Strict" });
  t.match(security("Merge"), { supplementalGroupsPolicy: "Merge" });
});

t.test("expand() resolves references and escapes, and keeps other text", async (t) => {
  const lookup = (name: string) => ({ A: "1", B: "$(A)" })[name];
  for (const [text, wanted] of [
    ["$(A)-$(B)", "1-$(A)"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$1"],
    ["$(NONE)", "$(NONE)"],
    ["$(A", "$(A"],
    ["$A $", "$A $"],
    ["", ""],
  ] as const) {
    t.equal(expand(text, lookup), wanted, text);
  }
});

t.test("makeEnvironment() lets env override variables of services and refer to them", async (t) => {
  const service = {
    metadata: { name: "db", namespace: "default" },
    spec: { clusterIP: "10.96.0.9", ports: [{ port: 5432 }] },
  };
  const env = [
    { name: "DB_SERVICE_PORT", value: "own" },
    { name: "URL", value: "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)" },
  ];
  const { pod, container } = input({ env });
  const nothing = async () => undefined;
  const sources = { configMap: nothing, secret: nothing, services: async () => [service] };
  const made = await makeEnvironment({ pod, container, node, podIps: [], sources });
  t.equal(made.get("DB_SERVICE_PORT"), "own");
  t.equal(made.get("DB_SERVICE_HOST"), "10.96.0.9");
  t.equal(made.get("URL"), "10.96.0.9:own");
});

t.test("makeEnvironment() reads every source in order", async (t) => {
  const maps: Record<string, Record<string, string>> = { m: { x: "1", y: "2" } };
  const sources = {
    configMap: async (_: string, name: string) => maps[name],
    services: async () => [],
    secret: async (_: string, name: string) => (name === "s" ? { k: "v" } : undefined),
  };
  const make = (container: Partial<Container>) => {
    const { pod, container: own } = input(container);
    return makeEnvironment({ pod, container: own, node, podIps: ["10.0.0.2"], sources });
  };
  const env = await make({
    envFrom: [{ prefix: "P_", configMapRef: { name: "m" } }, { secretRef: { name: "none", optional: true } }],
    env: [
      { name: "FIRST", value: "$(P_x)" },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
      { name: "SECRET", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
      { name: "GONE", valueFrom: { secretKeyRef: { name: "s", key: "z", optional: true } } },
    ],
  });
  t.same(
    [...env],
    [
      ["P_x", "1"],
      ["P_y", "2"],
      ["FIRST", "1"],
      ["IP", "10.0.0.2"],
      ["NODE", "n1"],
      ["CPU", "2"],
      ["SECRET", "v"],
    ],
  );
  const missing = (valueFrom: NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>) =>
    make({ env: [{ name: "X", valueFrom }] });
  await t.rejects(missing({ configMapKeyRef: { name: "m", key: "zz" } }), {
    message: "couldn't find key zz in ConfigMap default/m",
  });
  await t.rejects(missing({ secretKeyRef: { name: "none", key: "k" } }), { message: 'secret "none" not found' });
  await t.rejects(missing({ fieldRef: { fieldPath: "spec.nonsense" } }), /unsupported fieldPath/);
});

t.test("makeSandboxConfig() sets the cgroup parent of the pod's QoS class", async (t) => {
  const cgroups = { cgroupDriver: "cgroupfs" as const, cgroupRoot: "", cgroupsPerQos: true };
  const make = (spec: Partial<PodSpec>) =>
    makeSandboxConfig({
      pod: testPod("web", spec),
      attempt: 1,
      dns: {},
      clusterDomain: "",
      directories: { rootDir: "/r", podLogsDir: "/l" },
      cgroups,
    });
  const config = make({ hostNetwork: true, shareProcessNamespace: true });
  t.equal(config.linux?.cgroupParent, "/kubepods/besteffort/poduid-web");
  t.same(config.linux?.securityContext?.namespaceOptions, { network: "NODE", pid: "POD", ipc: "POD" });
  t.equal(config.hostname, undefined);
  t.equal(config.logDirectory, "/l/default_web_uid-web");
  const resources = { limits: { cpu: "1", memory: "1Gi" } };
  const guaranteed = testPod("web", { containers: [{ name: "c", resources }] });
  t.equal(podCgroupParent(guaranteed, cgroups), "/kubepods/poduid-web");
  const systemd = { ...cgroups, cgroupDriver: "systemd" as const };
  t.equal(podCgroupParent(testPod("web"), systemd), "kubepods-besteffort-poduid_web.slice");
});
