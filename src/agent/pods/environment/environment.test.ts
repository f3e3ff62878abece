import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { makeEnvironment } from "./environment.ts";

const node = { name: "n1", ips: ["192.0.2.1"], allocatable: { cpuMillis: 2000, memoryBytes: 1000, storageBytes: 5 } };

t.test("makeEnvironment() lets env override variables of services and refer to them", async (t) => {
  const service = {
    metadata: { name: "db", namespace: "default" },
    spec: { clusterIP: "10.96.0.9", ports: [{ port: 5432 }] },
  };
  const env = [
    { name: "DB_SERVICE_PORT", value: "overridden" },
    { name: "URL", value: "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)" },
  ];
  const container = { name: "c", env };
  const pod = testPod("web", { containers: [container] });
  const absent = async () => undefined;
  const sources = { configMap: absent, secret: absent, services: async () => [service] };
  const environment = await makeEnvironment({ pod, container, node, podIps: [], sources });
  t.equal(environment.get("DB_SERVICE_PORT"), "overridden");
  t.equal(environment.get("DB_SERVICE_HOST"), "10.96.0.9");
  t.equal(environment.get("URL"), "10.96.0.9:overridden");
});

t.test("makeEnvironment() reads every source in order", async (t) => {
  const maps: Record<string, Record<string, string>> = { m: { x: "1", y: "2" } };
  const sources = {
    configMap: async (_: string, name: string) => maps[name],
    services: async () => [],
    secret: async (_: string, name: string) => (name === "s" ? { k: "v" } : undefined),
  };
  const make = (fields: Partial<Container>) => {
    const container = { name: "c", ...fields };
    const pod = testPod("web", { containers: [container] });
    return makeEnvironment({ pod, container, node, podIps: ["10.0.0.2"], sources });
  };
  const env = await make({
    envFrom: [{ prefix: "P_", configMapRef: { name: "m" } }, { secretRef: { name: "none", optional: true } }],
    env: [
      { name: "FIRST", value: "$(P_x)" },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
      { name: "SECRET", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
      { name: "ABSENT", valueFrom: { secretKeyRef: { name: "s", key: "z", optional: true } } },
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
  await t.rejects(missing({ configMapKeyRef: { name: "m", key: "constructor" } }), /couldn't find key constructor/);
  const label = await missing({ fieldRef: { fieldPath: "metadata.labels['constructor']" } });
  t.equal(label.get("X"), "", "objects inherit a member of that name");
});

t.test("makeEnvironment() returns what the node can allocate in place of an absent limit or the limit 0", async (t) => {
  const absent = async () => undefined;
  const sources = { configMap: absent, secret: absent, services: async () => [] };
  const names = ["limits.cpu", "limits.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi", "requests.cpu"];
  const env = names.map((resource) => ({ name: resource, valueFrom: { resourceFieldRef: { resource } } }));
  for (const resources of [undefined, { limits: { cpu: "0", memory: "0" }, requests: { cpu: "0" } }]) {
    const container = { name: "c", env, ...(resources && { resources }) };
    const pod = testPod("web", { containers: [container] });
    const values = await makeEnvironment({ pod, container, node, podIps: [], sources });
    t.same(
      names.map((name) => values.get(name)),
      ["2", "1000", "5", "0", "0"],
    );
  }
});

t.test("makeEnvironment() bounds the values of every source together", async (t) => {
  const large = "x".repeat(1_000_000);
  const data = async () => ({ large });
  const sources = { configMap: data, secret: data, services: async () => [] };
  const node = { name: "n1", ips: [], allocatable: { cpuMillis: 1, memoryBytes: 1, storageBytes: 1 } };
  const names = Array.from({ length: 20 }, (_, index) => `E${index}`);
  const selector = { name: "m", key: "large" };
  const cases: Readonly<Record<string, Partial<Container>>> = {
    env: { env: names.map((name) => ({ name, value: large })) },
    references: { env: [{ name: "A", value: large }, ...names.map((name) => ({ name, value: "$(A)" }))] },
    doubled: {
      env: [
        { name: "E0", value: "x".repeat(100) },
        ...names.slice(1).map((name, index) => ({ name, value: `$(E${index})$(E${index})` })),
      ],
    },
    fields: { env: names.map((name) => ({ name, valueFrom: { fieldRef: { fieldPath: "metadata.annotations" } } })) },
    keys: { env: names.map((name) => ({ name, valueFrom: { configMapKeyRef: selector } })) },
    envFrom: { envFrom: names.map((prefix) => ({ prefix, secretRef: { name: "s" } })) },
  };
  for (const [what, fields] of Object.entries(cases)) {
    const container = { name: "c", ...fields };
    const plain = testPod("web", { containers: [container] });
    const pod = { ...plain, metadata: { ...plain.metadata, annotations: { large } } };
    await t.rejects(
      makeEnvironment({ pod, container, node, podIps: [], sources }),
      /the (environment|expanded text) has more than 16777216 characters/,
      what,
    );
  }
  const container = { name: "c", env: names.map(() => ({ name: "SAME", value: large })) };
  const pod = testPod("web", { containers: [container] });
  const environment = await makeEnvironment({ pod, container, node, podIps: [], sources });
  t.same([...environment.keys()], ["SAME"], "values that are replaced do not count");
});
