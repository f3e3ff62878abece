import t from "tap";
import type { Container } from "../container/schema.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { setPodDefaults } from "./defaults.ts";
import type { Pod } from "./schema.ts";
import { validatePodUpdate } from "./update-validation.ts";
import { validateNewPod } from "./validation.ts";

const container: Container = { name: "a", image: "web:1" };

function problems(spec: Partial<PodSpec>): readonly string[] {
  const pod = setPodDefaults({ spec: { containers: [container], ...spec } });
  return validateNewPod(pod).map((e) => `${e.type} ${e.field}`);
}

t.test("validateNewPod() accepts a minimal pod", async (t) => {
  t.same(problems({}), []);
  t.same(
    problems({
      volumes: [{ name: "data", emptyDir: {} }],
      containers: [{ ...container, volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      tolerations: [{ operator: "Exists" }],
    }),
    [],
  );
});

t.test("validateNewPod() reports each error with its field", async (t) => {
  const table: readonly (readonly [Partial<PodSpec>, readonly string[]])[] = [
    [{ containers: [] }, ["FieldValueRequired spec.containers"]],
    [{ containers: [container, container] }, ["FieldValueDuplicate spec.containers[1].name"]],
    [{ containers: [{ name: "A b", image: "x" }] }, ["FieldValueInvalid spec.containers[0].name"]],
    [{ containers: [{ name: "a" }] }, ["FieldValueRequired spec.containers[0].image"]],
    [{ initContainers: [container] }, ["FieldValueDuplicate spec.initContainers[0].name"]],
    [
      { containers: [{ ...container, restartPolicy: "Always" }] },
      ["FieldValueForbidden spec.containers[0].restartPolicy"],
    ],
    [
      { containers: [{ ...container, ports: [{ containerPort: 70000, protocol: "TCP" }] }] },
      ["FieldValueInvalid spec.containers[0].ports[0].containerPort"],
    ],
    [
      { containers: [{ ...container, env: [{ name: "A", valueFrom: {} }] }] },
      ["FieldValueInvalid spec.containers[0].env[0].valueFrom"],
    ],
    [{ containers: [{ ...container, envFrom: [{}] }] }, ["FieldValueInvalid spec.containers[0].envFrom"]],
    [
      { containers: [{ ...container, volumeMounts: [{ name: "no", mountPath: "/x", subPath: "../.." }] }] },
      [
        "FieldValueNotFound spec.containers[0].volumeMounts[0].name",
        "FieldValueInvalid spec.containers[0].volumeMounts.subPath",
      ],
    ],
    [{ containers: [{ ...container, livenessProbe: {} }] }, ["FieldValueRequired spec.containers[0].livenessProbe"]],
    [
      { containers: [{ ...container, resources: { limits: { memory: "1Gi" }, requests: { memory: "2Gi" } } }] },
      ["FieldValueInvalid spec.containers[0].resources.requests"],
    ],
    [
      { containers: [{ ...container, resources: { limits: { floppy: "1" }, requests: { floppy: "1" } } }] },
      [
        "FieldValueInvalid spec.containers[0].resources.limits[floppy]",
        "FieldValueInvalid spec.containers[0].resources.limits[floppy]",
        "FieldValueInvalid spec.containers[0].resources.requests[floppy]",
        "FieldValueInvalid spec.containers[0].resources.requests[floppy]",
      ],
    ],
    [
      { volumes: [{ name: "a", emptyDir: {}, hostPath: { path: "/" } }] },
      ["FieldValueForbidden spec.volumes[0].hostPath"],
    ],
    [
      { volumes: [{ name: "a", configMap: { name: "c", items: [{ key: "k", path: "../../etc/passwd" }] } }] },
      ["FieldValueInvalid spec.volumes[0].configMap.items[0].path"],
    ],
    [{ volumes: [{ name: "a", hostPath: { path: "/x/../y" } }] }, ["FieldValueInvalid spec.volumes[0].hostPath.path"]],
    [
      { tolerations: [{ key: "a", effect: "NoSchedule", tolerationSeconds: 1 }] },
      ["FieldValueInvalid spec.tolerations[0].effect"],
    ],
    [{ dnsPolicy: "None" }, ["FieldValueRequired spec.dnsConfig"]],
    [{ activeDeadlineSeconds: 0 }, ["FieldValueInvalid spec.activeDeadlineSeconds"]],
    [{ shareProcessNamespace: true, hostPID: true }, ["FieldValueInvalid spec.securityContext.shareProcessNamespace"]],
    [{ ephemeralContainers: [{ name: "d", image: "x" }] }, ["FieldValueForbidden spec.ephemeralContainers"]],
  ];
  for (const [spec, expected] of table) t.same(problems(spec), expected, expected.join(", "));
});

const pod: Pod = setPodDefaults({
  spec: { containers: [container], tolerations: [{ key: "a", operator: "Exists" }] },
});

function update(spec: Partial<PodSpec>): readonly string[] {
  const next: Pod = { spec: { containers: [container], tolerations: [{ key: "a", operator: "Exists" }], ...spec } };
  return validatePodUpdate(setPodDefaults(next), pod).map((e) => e.field);
}

t.test("validatePodUpdate() accepts changes of the mutable fields only", async (t) => {
  t.same(update({}), []);
  t.same(update({ containers: [{ ...container, image: "web:2" }] }), []);
  t.same(update({ activeDeadlineSeconds: 5 }), []);
  t.same(
    update({
      tolerations: [
        { key: "a", operator: "Exists" },
        { key: "b", operator: "Exists" },
      ],
    }),
    [],
  );
  t.same(update({ tolerations: [] }), ["spec.tolerations"]);
  t.same(update({ restartPolicy: "Never" }), ["spec"]);
  t.same(update({ nodeName: "n" }), ["spec"]);
  t.same(update({ containers: [{ ...container, command: ["x"] }] }), ["spec"]);
  t.same(update({ containers: [container, { name: "b", image: "x" }] }), ["spec.containers"]);
});

t.test("validateNewPod() reports missing names of init containers without calling them duplicates", async (t) => {
  const init = { ...container, name: "" };
  t.same(problems({ initContainers: [init, init] }), [
    "FieldValueRequired spec.initContainers[0].name",
    "FieldValueRequired spec.initContainers[1].name",
  ]);
});
