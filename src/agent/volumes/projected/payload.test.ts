import t from "tap";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { createDownwardPayload, type PayloadContext, readSecretPayload } from "./payload.ts";

t.test("readSecretPayload() has the named keys only", async (t) => {
  const secret = async () => ({ user: Buffer.from("eve"), password: Buffer.from("x") });
  const objects = { secret, configMap: async () => undefined };
  const node = { name: "n1", ips: [], allocatable: { cpuMillis: 1, memoryBytes: 1, storageBytes: 1 } };
  const context: PayloadContext = { pod: testPod("web", {}), node, podIps: [], objects, token: async () => "" };
  const read = (key: string, optional = false) =>
    readSecretPayload(context, { secretName: "s", optional, items: [{ key, path: "file", mode: 0o400 }] });
  t.same([...(await read("user"))], [["file", { data: Buffer.from("eve"), mode: 0o400 }]]);
  for (const key of ["none", "constructor"]) {
    await t.rejects(read(key), { message: `references non-existent secret key: ${key}` });
    t.equal((await read(key, true)).size, 0);
  }
});

t.test("createDownwardPayload() has equal texts in memory once", async (t) => {
  const plain = testPod("web", {});
  const pod = { ...plain, metadata: { ...plain.metadata, annotations: { a: "x".repeat(250_000) } } };
  const node = { name: "n1", ips: [], allocatable: { cpuMillis: 1, memoryBytes: 1, storageBytes: 1 } };
  const absent = async () => undefined;
  const objects = { secret: absent, configMap: absent };
  const context: PayloadContext = { pod, node, podIps: [], objects, token: async () => "" };
  const fieldRef = { fieldPath: "metadata.annotations" };
  const items = Array.from({ length: 4000 }, (_, index) => ({ path: `file${index}`, fieldRef }));
  const payload = createDownwardPayload(context, items, undefined);
  t.equal(payload.size, 4000);
  t.equal(new Set([...payload.values()].map(({ data }) => data)).size, 1);
});
