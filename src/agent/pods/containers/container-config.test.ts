import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { type ContainerConfigInput, makeContainerConfig } from "./container-config.ts";
import { containerHash } from "./container-hash.ts";

function input(container: Partial<Container>, spec: Partial<PodSpec> = {}, extra: Partial<ContainerConfigInput> = {}) {
  const full: Container = { name: "c", image: "busybox:1", ...container };
  return {
    pod: testPod("web", { containers: [full], ...spec }),
    container: full,
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

t.test("makeContainerConfig() bounds the expanded command and arguments together", async (t) => {
  const environment = new Map([["A", "x".repeat(1_000_000)]]);
  const words = (count: number) => Array.from({ length: count }, () => "$(A)");
  const make = (container: Partial<Container>) => makeContainerConfig(input(container, {}, { environment }));
  t.equal(make({ command: words(8), args: words(8) }).args?.length, 8);
  for (const container of [{ command: words(17) }, { args: words(17) }, { command: words(9), args: words(9) }]) {
    t.throws(() => make(container), { message: "the command with its arguments has more than 16777216 characters" });
  }
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
    const qos = { throttlingFactor: 0.5, allocatableBytes: 10 * 2 ** 20 };
    type Quantities = Readonly<Record<string, string>>;
    const protect = (requests: Quantities, limits: Quantities) => {
      const container = { name: "c", image: "i", resources: { requests, limits } };
      const settings = { ...input(container), cpu: { ...cpu, memoryQos: qos } };
      return makeContainerConfig(settings).linux?.resources?.unified;
    };
    const mib = (count: number): string => String(count * 2 ** 20);
    t.same(protect({ memory: "2Mi" }, { memory: "4Mi" }), { "memory.min": mib(2), "memory.high": mib(3) });
    t.same(protect({ memory: "2Mi" }, {}), { "memory.min": mib(2), "memory.high": mib(6) }, "allocatable as limit");
    t.same(protect({ memory: "2Mi" }, { memory: "2Mi" }), { "memory.min": mib(2) });
    t.equal(protect({}, {}), undefined);
    const withoutSwap = (limits: Readonly<Record<string, string>>) => {
      const container = { name: "c", image: "i", resources: { limits } };
      return makeContainerConfig({ ...input(container), cpu: { ...cpu, limitsSwap: true } }).linux?.resources;
    };
    t.same(withoutSwap({})?.unified, { "memory.swap.max": "0" }, "a container without a limit of memory");
    t.same(withoutSwap({ memory: "1Mi" })?.unified, { "memory.swap.max": "0" });
    t.equal(withoutSwap({ memory: "1Mi" })?.memorySwapLimitInBytes, undefined);
    t.equal(resources({ memory: "1Mi" })?.memorySwapLimitInBytes, 1_048_576n, "cgroup v1: of memory and swap");
    const withSwap = (requests: Readonly<Record<string, string>>, limits = {}, priority = 0) => {
      const swap = { ...cpu, limitsSwap: true, swapBytes: 2 ** 30 };
      const container = { name: "c", image: "i", resources: { requests, limits } };
      const { pod, memoryCapacityBytes, ...rest } = input(container);
      const own = { ...pod, spec: { ...pod.spec, containers: [container], priority } };
      const settings = { ...rest, pod: own, cpu: swap, memoryCapacityBytes };
      const limit = makeContainerConfig(settings).linux?.resources?.unified?.["memory.swap.max"];
      return Number(limit) / (2 ** 30 / memoryCapacityBytes);
    };
    t.equal(withSwap({ memory: "1Mi" }), 2 ** 20, "its share of the swap");
    t.equal(withSwap({ cpu: "1m" }), 0, "no request of memory");
    t.equal(withSwap({ cpu: "1m", memory: "1Mi" }, { memory: "1Mi" }), 0, "as much as its limit");
    t.equal(withSwap({ memory: "1Mi" }, {}, 2_000_000_000), 0, "a critical pod");
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

for (const [name, image, expected] of [
  ["no user", {}, { runAsUser: { value: 0n } }],
  ["a numeric user", { uid: { value: 7n } }, { runAsUser: { value: 7n } }],
  ["the name of a user", { username: "app" }, { runAsUsername: "app", runAsUser: undefined }],
] as const) {
  t.test(`makeContainerConfig() gives the runtime a user for an image with ${name}`, async (t) => {
    const { linux } = makeContainerConfig({ ...input({ securityContext: { runAsGroup: 3000 } }), image });
    t.match(linux?.securityContext, { ...expected, runAsGroup: { value: 3000n } });
  });
}

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
