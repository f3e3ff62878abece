import t from "tap";
import { setPodSpecDefaults } from "./defaults.ts";
import type { PodSpec } from "./schema.ts";
import { validatePodSpec } from "./validation.ts";

const container = { name: "c", image: "i" };
const errors = (spec: Partial<PodSpec>) =>
  validatePodSpec(setPodSpecDefaults({ containers: [container], ...spec }), "spec", { isPod: true, name: "web" }).map(
    ({ field, detail }) => `${field}: ${detail}`,
  );

t.test("device claims have one source, unique names, and containers name them", async (t) => {
  const gpu = { name: "gpu", resourceClaimName: "shared" };
  const using = (...names: readonly string[]) => ({
    containers: [{ ...container, resources: { claims: names.map((name) => ({ name })) } }],
  });
  t.same(errors({ resourceClaims: [gpu], ...using("gpu") }), []);
  t.match(errors({ resourceClaims: [gpu, gpu] }), [/^spec.resourceClaims\[1\].name: $/]);
  t.match(errors({ resourceClaims: [{ name: "gpu" }] }), [/must specify one of/]);
  t.match(errors({ resourceClaims: [{ ...gpu, resourceClaimTemplateName: "t" }] }), [/at most one of/]);
  t.match(errors(using("gpu")), [/resources.claims\[0\]: must be one of the names in .* which is empty/]);
  t.match(errors({ resourceClaims: [gpu], ...using("gpu", "gpu", "x") }), [/claims\[1\]: $/, /resourceClaims: gpu/]);
});

t.test("a container uses a claim as a whole or by request, each once", async (t) => {
  type Claim = { readonly name: string; readonly request?: string };
  const gpu = { name: "gpu", resourceClaimName: "shared" };
  const [whole, a, b] = [{ name: "gpu" }, { name: "gpu", request: "a" }, { name: "gpu", request: "b" }];
  const cases: readonly (readonly [claims: readonly Claim[], errors: readonly string[]])[] = [
    [[a, b], []],
    [[a, a], ["[1]: "]],
    [[whole, a], ["[1]: "]],
    [
      [a, b, whole],
      ["[2]: ", "[2]: "],
    ],
    [[{ name: "" }], ["[0]: "]],
  ];
  const path = "spec.containers[0].resources.claims";
  for (const [claims, expected] of cases) {
    t.same(
      errors({ resourceClaims: [gpu], containers: [{ ...container, resources: { claims } }] }),
      expected.map((error) => `${path}${error}`),
    );
  }
  const containers = [{ ...container, resources: { claims: [{ name: "gpu", request: "A" }] } }];
  t.match(errors({ resourceClaims: [gpu], containers }), [/claims\[0\]\.request: a lowercase RFC 1123 label/]);
});

t.test("resources of a pod are CPU and memory", async (t) => {
  t.same(errors({ resources: { limits: { cpu: "1" }, requests: { cpu: "500m" } } }), []);
  t.match(errors({ resources: { limits: { "ephemeral-storage": "1" } } }), [/supported values: "cpu", "memory"/]);
  t.match(errors({ resources: { limits: { cpu: "1" }, requests: { cpu: "2" } } }), [/must be less than or equal to/]);
  t.match(errors({ resources: { claims: [{ name: "x" }] } }), [
    /claims cannot be set for Resources at pod-level/,
    /must be one of the names/,
  ]);
  const containers = [{ ...container, resources: { requests: { cpu: "1" }, limits: { cpu: "3" } } }];
  t.same(errors({ containers, resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "3" } } }), []);
  t.same(errors({ containers, resources: { requests: { cpu: "500m" }, limits: { cpu: "2" } } }), [
    "spec.resources.requests[cpu]: must be greater than or equal to aggregate container requests of 1",
    "spec.resources.containers[0][cpu].limits: must be less than or equal to pod limits of 2",
  ]);
});

t.test("stop signals need the name of the operating system", async (t) => {
  const containers = [{ ...container, lifecycle: { stopSignal: "SIGUSR1" as const } }];
  t.match(errors({ containers }), [/may not be set for containers with empty `spec.os.name`/]);
  t.same(errors({ containers, os: { name: "linux" } }), []);
  t.match(errors({ containers, os: { name: "windows" } }), [/supported values: "SIGKILL", "SIGTERM"/]);
});

t.test("image volumes get a pull policy", async (t) => {
  const volumes = ["i", "i:1"].map((reference, n) => ({ name: `v${n}`, image: { reference } }));
  const policies = setPodSpecDefaults({ containers: [], volumes }).volumes?.map(({ image }) => image?.pullPolicy);
  t.same(policies, ["Always", "IfNotPresent"]);
});
