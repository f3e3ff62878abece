import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { textResponse } from "../../http/respond.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultAgentConfig } from "../options.ts";
import { openAccess } from "./access.ts";
import { type MakeNodeApi, Standalone } from "./standalone.ts";

async function temporary(t: { teardown(end: () => Promise<void>): void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-standalone-"));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

t.test("openAccess() keeps certificate, token and port, and creates new ones when the files are deleted", async (t) => {
  const directory = await temporary(t);
  const open = (now = 1e12) => openAccess({ directory, nodeName: "n1", now });
  const first = await open();
  t.equal(first.port, 0);
  await first.publish(4711);
  for (const name of ["svcconfig", "serving.key"]) t.equal((await stat(join(directory, name))).mode & 0o777, 0o600);
  t.match(await open(), { port: 4711, token: first.token, serving: first.serving });
  t.match(await open(0), { serving: first.serving }, "a host without a clock");
  t.match(await open(2e12), { serving: first.serving }, "a host whose clock is far ahead");
  await rm(join(directory, "serving.key"));
  const second = await open();
  t.equal(second.token, first.token);
  t.not(second.serving.key, first.serving.key);
  await writeFile(join(directory, "svcconfig"), "nonsense");
  t.not((await open()).token, first.token);
});

t.test("Standalone publishes pods, ConfigMaps, and Secrets without values", async (t) => {
  const rootDir = await temporary(t);
  const clock = new FakeClock();
  let passed: Parameters<MakeNodeApi>[0] | undefined;
  const makeApi: MakeNodeApi = (options) => {
    passed = options;
    const handler = async () => textResponse(200, "ok");
    return { agentHandler: handler, clientHandler: handler, [Symbol.asyncDispose]: async () => {} };
  };
  const base = defaultAgentConfig("n1");
  const config = { ...base, rootDir, sources: { ...base.sources, manifestPath: "/etc/pods" } };
  await using node = await Standalone.open({ config, makeApi, clock, random: systemRandom, log: silentLogger });
  await node.listen(async () => textResponse(200, ""));
  const { store, authenticate, readOnlyMessage = "" } = passed ?? {};
  t.match(readOnlyMessage, "change the manifests at /etc/pods instead");
  const file = await readFile(join(rootDir, "standalone/svcconfig"), "utf8");
  const token = /token: (\S+)/.exec(file)?.[1];
  t.match(file, /server: https:\/\/127\.0\.0\.1:\d+/);
  t.ok(authenticate?.(`Bearer ${token}`));
  for (const wrong of [undefined, "", "Bearer", `Bearer ${token}x`, `Basic ${token}`])
    t.notOk(authenticate?.(wrong), String(wrong));

  const of = (kind: unknown, namespace: string | undefined, name: string) => {
    const objects = new ObjectStore<ApiObject>({ store: store!, kind: kind as Kind, prefix: "/registry" });
    return objects.get(objects.key(namespace, name));
  };
  const settle = () => clock.advance(1000);
  const pod = (uid: string) => ({ metadata: { name: "web-n1", namespace: "shop", uid }, spec: { containers: [] } });
  node.putPod(pod("a"), { phase: "Pending" });
  node.putPod(pod("a"), { phase: "Running" });
  await settle();
  t.match(await of(podKind, "shop", "web-n1"), { metadata: { uid: "a" }, status: { phase: "Running" } });
  t.match(await of(namespaceKind, undefined, "shop"), { status: { phase: "Active" } });
  node.putPod(pod("b"), { phase: "Pending" });
  node.deletePod(pod("a"));
  await settle();
  t.match(await of(podKind, "shop", "web-n1"), { metadata: { uid: "b" } }, "the edited one is shown");
  node.deletePod(pod("b"));
  await settle();
  t.equal(await of(podKind, "shop", "web-n1"), undefined);

  const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "c2VzYW1l" };
  const secret = { metadata: { name: "s", annotations }, data: { a: "c2VzYW1l" }, stringData: { b: "sesame" } };
  node.putManifestObjects({ configMaps: [{ metadata: { name: "m" }, data: { k: "v" } }], secrets: [secret] });
  await settle();
  t.match(await of(configMapKind, "default", "m"), { data: { k: "v" } });
  const shown = await of(secretKind, "default", "s");
  t.match(shown, { data: { a: "", b: "" }, type: "Opaque" });
  t.notMatch(JSON.stringify(shown), /sesame|c2VzYW1l/);
  node.putManifestObjects({ configMaps: [], secrets: [secret] });
  await settle();
  t.equal(await of(configMapKind, "default", "m"), undefined);
  t.equal((await of(secretKind, "default", "s"))?.metadata?.resourceVersion, shown?.metadata?.resourceVersion);
});
