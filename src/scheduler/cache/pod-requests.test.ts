import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { nonZeroRequests, podRequests } from "./pod-requests.ts";

const MIB = 1024 * 1024;

function container(name: string, requests: Readonly<Record<string, string>>, restartPolicy?: "Always") {
  return { name, image: "web:1", resources: { requests }, ...(restartPolicy && { restartPolicy }) };
}

t.test("the peak of init containers and the sum of the others, whichever is larger", async (t) => {
  const cases: readonly (readonly [string, NonNullable<Pod["spec"]>, number])[] = [
    ["containers are summed", { containers: [container("a", { cpu: "1" }), container("b", { cpu: "500m" })] }, 1500],
    [
      "init containers run one after the other",
      {
        containers: [container("a", { cpu: "1" })],
        initContainers: [container("i", { cpu: "2" }), container("j", { cpu: "1" })],
      },
      2000,
    ],
    [
      "a sidecar runs beside later init containers",
      {
        containers: [container("a", { cpu: "500m" })],
        initContainers: [container("s", { cpu: "1" }, "Always"), container("i", { cpu: "1500m" })],
      },
      2500,
    ],
    [
      "a sidecar runs beside the containers",
      { containers: [container("a", { cpu: "1" })], initContainers: [container("s", { cpu: "1" }, "Always")] },
      2000,
    ],
    ["overhead is added", { containers: [container("a", { cpu: "1" })], overhead: { cpu: "250m" } }, 1250],
    [
      "requests of the pod replace those of its containers",
      { containers: [container("a", { cpu: "1" })], resources: { requests: { cpu: "3" } } },
      3000,
    ],
  ];
  for (const [title, spec, milliCpu] of cases) t.equal(podRequests({ spec }).milliCpu, milliCpu, title);
});

t.test(
  "while a container is resized, the larger of its requests counts, unless the node rejects the resize",
  async (t) => {
    const spec = { containers: [container("a", { cpu: "2" })] };
    const containerStatuses = [
      {
        name: "a",
        ready: true,
        restartCount: 0,
        image: "",
        imageID: "",
        resources: { requests: { cpu: "1" } },
        allocatedResources: { cpu: "1500m" },
      },
    ];
    t.equal(podRequests({ spec, status: { containerStatuses } }).milliCpu, 2000);
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Infeasible" }];
    t.equal(podRequests({ spec, status: { containerStatuses, conditions } }).milliCpu, 1500);
  },
);

t.test("scores count defaults for containers without requests", async (t) => {
  const { milliCpu, memory } = nonZeroRequests({
    spec: { containers: [container("a", { cpu: "1" }), container("b", {})] },
  });
  t.same([milliCpu, memory], [1100, 400 * MIB]);
});

t.test("a default counts only where neither spec nor status has the resource", async (t) => {
  const status = (resources: Readonly<Record<string, string>>, allocated: Readonly<Record<string, string>> = {}) => ({
    name: "a",
    ready: true,
    restartCount: 0,
    image: "",
    imageID: "",
    resources: { requests: resources },
    allocatedResources: allocated,
  });
  const infeasible = [{ type: "PodResizePending", status: "True", reason: "Infeasible" }];
  const spec = { cpu: "50m" };
  const cases: readonly (readonly [string, Pod, readonly [number, number]])[] = [
    ["zero is a request", { spec: { containers: [container("a", { cpu: "0", memory: "0" })] } }, [0, 0]],
    [
      "the status of the container has a small request",
      { spec: { containers: [container("a", spec)] }, status: { containerStatuses: [status({ memory: "1Mi" })] } },
      [50, MIB],
    ],
    [
      "a small amount is allocated",
      { spec: { containers: [container("a", spec)] }, status: { containerStatuses: [status({}, { memory: "2Mi" })] } },
      [50, 2 * MIB],
    ],
    [
      "an infeasible resize leaves only the status",
      {
        spec: { containers: [container("a", spec)] },
        status: { containerStatuses: [status({ memory: "1Mi" })], conditions: infeasible },
      },
      [100, MIB],
    ],
    [
      "the status of an init container that ends does not count",
      {
        spec: { containers: [container("b", { cpu: "1m", memory: "1" })], initContainers: [container("a", spec)] },
        status: { initContainerStatuses: [status({ memory: "1Mi" })] },
      },
      [50, 200 * MIB],
    ],
    [
      "a request of the pod replaces defaults, also zero",
      { spec: { containers: [container("a", {})], resources: { requests: { cpu: "0" } } } },
      [0, 200 * MIB],
    ],
  ];
  for (const [title, pod, expected] of cases) {
    const { milliCpu, memory } = nonZeroRequests(pod);
    t.same([milliCpu, memory], expected, title);
  }
});
