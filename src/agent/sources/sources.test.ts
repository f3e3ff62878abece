import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import { createClient } from "../../client/api-client.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { podUid } from "../pods/pod-fields.ts";
import { startApiSource } from "./api-source.ts";
import { readManifestFiles } from "./file-source.ts";
import { formatProblem, parseManifest } from "./manifest.ts";
import { isMirror, MirrorPods } from "./mirror-pods.ts";
import { findNeededImages } from "./needed-images.ts";
import { StaticPods } from "./static-pods.ts";

const yaml = (name: string, image = "busybox:1") => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  containers:
  - name: c
    image: ${image}
`;
const text = (content: string, name = "/m/a.yaml") => ({ name, content: Buffer.from(content) });
const read = (content: string) => parseManifest(Buffer.from(content), "/m/a.yaml");
const problems = (content: string) => read(content).problems.map(formatProblem);

t.test("parseManifest() parses YAML and JSON, several documents, and lists", (t) => {
  const json = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "j" }, spec: { containers: [] } });
  const names = (content: string) => read(content).pods.map(({ object }) => object.metadata?.name);
  t.same(names(yaml("a")), ["a"]);
  t.same(names(json), ["j"]);
  t.same(names(JSON.stringify(JSON.parse(json), undefined, "\t")), ["j"], "JSON with tabs");
  t.same(names(`${yaml("a")}---\n${yaml("b")}`), ["a", "b"]);
  t.same(names(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"x"}},${json}]}`), ["x", "j"]);
  t.same(names(`{"apiVersion":"v1","kind":"List","items":[${json}]}`), ["j"]);
  const withConfigMap = read(`${yaml("a")}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {k: v}\n`);
  t.match(withConfigMap, { configMaps: [{ object: { data: { k: "v" } } }], problems: [] });
  t.end();
});

t.test("parseManifest() reports file, line and field of an error", (t) => {
  t.match(problems("a: [1\n"), [/^\/m\/a.yaml:\d+: /]);
  t.match(problems(""), ["/m/a.yaml: holds no object"]);
  t.match(problems("- 1\n"), [/must be an object/]);
  t.match(problems("apiVersion: apps/v1\nkind: Deployment\n"), [
    /^\/m\/a.yaml:1: apiVersion: must be v1, not "apps\/v1"/,
  ]);
  t.match(problems("apiVersion: v1\nkind: Service\n"), [/^\/m\/a.yaml:2: kind: must be Pod, ConfigMap or Secret/]);
  const goField = "json: cannot unmarshal number into Go struct field Container.spec.containers";
  t.same(problems(`${yaml("a")}    ports: 7\n`), [
    `/m/a.yaml:9: spec.containers[0].ports: ${goField}.ports of type []v1.ContainerPort`,
  ]);
  t.same(problems(`${yaml("a")}    imagePullPolicy: 7\n`), [
    `/m/a.yaml:9: spec.containers[0].imagePullPolicy: ${goField}.imagePullPolicy of type v1.PullPolicy`,
  ]);
  t.match(problems(`${yaml("a")}    prots: []\n`), [/^\/m\/a.yaml:9: spec.containers\[0\].prots: unknown field/]);
  t.match(parseManifest(Buffer.from([0xff, 0xfe]), "x").problems, [{ message: "not UTF-8 text" }]);
  t.end();
});

t.test("startApiSource() does not let a pod of the API server pass as a static pod", async (t) => {
  const api = new FakeApi();
  const clock = new FakeClock();
  const log = silentLogger;
  const client = createClient({ transport: api.transport });
  const annotations = { "kubernetes.io/config.source": "file" };
  api.put("/api/v1/namespaces/default/pods/forged", {
    metadata: { name: "forged", namespace: "default", annotations },
  });
  const put: Pod[] = [];
  const stop = new AbortController();
  await using informer = startApiSource({
    client,
    nodeName: "n1",
    clock,
    random: systemRandom,
    log,
    onPut: (pod) => put.push(pod),
    onDelete: () => undefined,
    signal: stop.signal,
  });
  await informer.synced;
  const seen = new Date(clock.now()).toISOString();
  const set = { "kubernetes.io/config.source": "api", "kubernetes.io/config.seen": seen };
  t.match(put, [{ metadata: { name: "forged", annotations: set } }]);
  await clock.advance(5_000);
  api.put("/api/v1/namespaces/default/pods/forged", {
    metadata: { name: "forged", namespace: "default", annotations: { a: "b" } },
  });
  await until("the change", () => put.length > 1);
  t.strictSame(put[1]?.metadata?.annotations, { a: "b", ...set }, "first seen");
  stop.abort();
});

/** StaticPods with a record of its callbacks. */
function createStaticPods(valuesMax = 100_000) {
  const calls: string[] = [];
  const statics = new StaticPods({
    nodeName: "n1",
    clock: new FakeClock(),
    log: silentLogger,
    valuesMax,
    onPut: (pod) => calls.push(`put ${pod.metadata?.name}`),
    onDelete: (pod) => calls.push(`delete ${pod.metadata?.name}`),
    onProblem: (problem) => calls.push(`problem ${problem}`),
  });
  return { statics, calls };
}

t.test("StaticPods leaves out manifests with too many values beside the others, until these are removed", async (t) => {
  const { statics, calls } = createStaticPods(5_000);
  const long = (name: string) => text(`${yaml(name)}x:\n${"- a\n".repeat(240)}`, `/m/${name}.yaml`);
  const many = Array.from({ length: 12 }, (_, index) => long(`p${index}`));
  const countLeftOut = () => statics.problems.filter((each) => each.includes("too many values beside")).length;
  await statics.update("file", many);
  t.equal(countLeftOut(), 2);
  t.equal(calls.filter((call) => call.startsWith("put")).length, 10);
  await statics.update("file", many.slice(3));
  t.equal(countLeftOut(), 0);
  t.equal(statics.pods.length, 9);
});

t.test("StaticPods sets the node's name, defaults and a stable uid", async (t) => {
  const { statics } = createStaticPods();
  await statics.update("file", [text(yaml("a"))]);
  const [pod] = statics.pods;
  t.match(pod, {
    metadata: {
      name: "a-n1",
      namespace: "default",
      annotations: { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": podUid(pod as Pod) },
    },
    spec: { nodeName: "n1", restartPolicy: "Always", tolerations: [{ operator: "Exists", effect: "NoExecute" }] },
  });
  t.match(podUid(pod as Pod), /^[0-9a-f]{32}$/);
  const uidOf = async (content: string, name?: string, kind: "file" | "http" = "file") => {
    const { statics: other } = createStaticPods();
    await other.update(kind, [text(content, name)]);
    return podUid(other.pods[0] as Pod);
  };
  t.equal(await uidOf(yaml("a")), podUid(pod as Pod), "stable across restarts");
  t.equal(await uidOf(`# comment\n${yaml("a")}`), podUid(pod as Pod), "independent of comments");
  t.not(await uidOf(yaml("a", "busybox:2")), podUid(pod as Pod));
  t.not(await uidOf(yaml("a"), "/m/b.yaml"), podUid(pod as Pod));
  t.not(await uidOf(yaml("a"), "/m/a.yaml", "http"), podUid(pod as Pod));
});

t.test("StaticPods reports changes, and each problem once", async (t) => {
  const { statics, calls } = createStaticPods();
  const takeCalls = () => calls.splice(0);
  await statics.update("file", [text(yaml("a")), text(yaml("b"), "/m/b.yaml")]);
  t.same(takeCalls(), ["put a-n1", "put b-n1"]);
  await statics.update("file", [text(yaml("a")), text(yaml("b"), "/m/b.yaml")]);
  t.same(takeCalls(), []);
  await statics.update("file", [text("{"), text(yaml("b"), "/m/b.yaml")]);
  t.match(takeCalls(), [/^problem \/m\/a.yaml/], "the earlier pod continues to run");
  await statics.update("file", [text("{"), text(yaml("b"), "/m/b.yaml")]);
  t.same(takeCalls(), []);
  t.equal(statics.problems.length, 1);
  await statics.update("file", [text(yaml("a", "busybox:2"))]);
  t.same(takeCalls().sort(), ["delete a-n1", "delete b-n1", "put a-n1"]);
  await statics.update("http", [text(yaml("a"), "http://u/")]);
  t.same(takeCalls(), ["problem http://u/: pod default/a-n1 is in /m/a.yaml already"]);
  await statics.update("file", []);
  t.same(takeCalls(), ["delete a-n1", "put a-n1"], "the pod of the other source replaces it");
  await statics.update("http", [{ name: "http://u/", content: { problem: "cannot be fetched" } }]);
  t.same(takeCalls(), ["problem http://u/: cannot be fetched"], "and it stays while the URL is unavailable");
  await statics.update("http", [text(yaml("a").replace("name: c", "name: C_"), "http://u/")]);
  t.match(takeCalls(), [/^problem http:\/\/u\/:7: spec.containers\[0\].name: Invalid value: "C_"/]);
  await statics.update("http", [text("", "http://u/")]);
  t.same(takeCalls(), ["problem http://u/: zero-length data received", "delete a-n1"], "as in Kubernetes");
});

t.test("readManifestFiles() reads a directory or a file, and ignores editors' temporary files", async (t) => {
  const directory = t.testdir();
  const names = async (path = directory) =>
    (await readManifestFiles(path)).map(({ name }) => name.slice(directory.length));
  for (const name of [
    ".hidden",
    "a.yaml~",
    ".a.yaml.swp",
    "a.yaml.swp",
    "#a.yaml#",
    "a.bak",
    "b.json",
    "a.yaml",
    "4913.tmp",
  ]) {
    writeFileSync(join(directory, name), "x");
  }
  mkdirSync(join(directory, "sub"));
  symlinkSync("nowhere", join(directory, "dangling"));
  t.same(await names(), ["/a.yaml", "/b.json", "/dangling"]);
  t.match((await readManifestFiles(directory))[2]?.content, { problem: /^cannot be read: ENOENT/ });
  t.same(await names(join(directory, "a.yaml")), ["/a.yaml"]);
  rmSync(directory, { recursive: true });
  t.same(await names(), []);
});

t.test("readManifestFiles() leaves out files that are too long beside the others", async (t) => {
  const large = t.testdir({});
  for (const name of ["a", "b", "c", "d"]) writeFileSync(join(large, name), Buffer.alloc(9 * 2 ** 20));
  const problem = { problem: "larger than 33554432 bytes with the manifests before it" };
  t.match(
    (await readManifestFiles(large)).map(({ content }) => content),
    [Uint8Array, Uint8Array, Uint8Array, problem],
  );
});

t.test("MirrorPods creates, recreates, replaces and deletes mirror pods, and sets their status", async (t) => {
  const api = new FakeApi();
  const clock = new FakeClock();
  const client = createClient({ transport: api.transport });
  const statuses: string[] = [];
  const status = {
    setStatus: (pod: Pod, { phase }: PodStatus) => void statuses.push(`${pod.metadata?.name} ${phase}`),
    onPodUpdate: () => undefined,
    onPodDelete: () => undefined,
    removePod: () => undefined,
  };
  await using mirrors = new MirrorPods({
    client,
    clock,
    random: systemRandom,
    log: silentLogger,
    nodeName: "n1",
    status,
  });
  api.put("/api/v1/nodes/n1", { metadata: { name: "n1", uid: "node-uid" } });
  const path = "/api/v1/namespaces/default/pods/a-n1";
  const mirror = () => api.objects.get(path) as Pod | undefined;
  const settle = async () => {
    for (let step = 0; step < 20; step++) await clock.advance(0);
  };
  const { statics } = createStaticPods();
  const podOf = async (content: string) => {
    await statics.update("file", [text(content)]);
    return statics.pods[0] as Pod;
  };
  const first = await podOf(yaml("a"));
  mirrors.put(first);
  mirrors.setStatus(first, { phase: "Running" });
  await settle();
  t.equal(mirror(), undefined, "not before the sources are ready");
  mirrors.setSourcesReady();
  await settle();
  const annotations = { "kubernetes.io/config.mirror": podUid(first), "kubernetes.io/config.hash": podUid(first) };
  const owner = { kind: "Node", name: "n1", uid: "node-uid", controller: true };
  t.match(mirror(), { metadata: { annotations, ownerReferences: [owner] }, spec: { nodeName: "n1" } });
  t.ok(isMirror(mirror() as Pod));
  t.same(statuses.splice(0), ["a-n1 Running"]);

  const deleted = mirror() as Pod;
  api.delete(path);
  mirrors.onMirrorDelete(deleted);
  await settle();
  t.ok(mirror(), "a deleted mirror is recreated");
  mirrors.onMirrorUpdate({
    ...mirror(),
    metadata: { ...mirror()?.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
  });
  await settle();
  t.notOk(mirror()?.metadata?.deletionTimestamp, "a terminating mirror is replaced");

  const second = await podOf(yaml("a", "busybox:2"));
  mirrors.put(second);
  mirrors.setStatus(first, { phase: "Failed" });
  await settle();
  t.equal(mirror()?.metadata?.annotations?.["kubernetes.io/config.mirror"], podUid(second));
  t.notOk(statuses.includes("a-n1 Failed"), "the status of a replaced pod is ignored");
  mirrors.delete(first);
  await settle();
  t.ok(mirror());
  mirrors.delete(second);
  await settle();
  t.equal(mirror(), undefined);
});

t.test("findNeededImages() returns the images of all containers and image volumes of pods", (t) => {
  const pod: Pod = {
    spec: {
      initContainers: [{ name: "i", image: "init:1" }],
      containers: [
        { name: "a", image: "app:1" },
        { name: "b", image: "app:1" },
      ],
      volumes: [
        { name: "v", image: { reference: "data:1" } },
        { name: "w", emptyDir: {} },
      ],
    },
  };
  t.same([...findNeededImages([pod, {}])].sort(), ["app:1", "data:1", "init:1"]);
  t.end();
});

t.test("StaticPods bounds the values and the problems of a manifest", async (t) => {
  const pod = (fields: object) => JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, ...fields });
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
  const environment = Array.from({ length: 20_000 }, (_, index) => ({ name: `E${index}`, value: "v" }));
  const spec = { containers: [{ name: "c", image: "i", env: environment }] };
  for (const content of [
    pod({ spec }),
    `[${"1,".repeat(2_000_000)}1]`,
    `apiVersion: v1\nkind: List\nitems:\n${"- 1\n".repeat(1_000_000)}`,
    "---\nkind: X\n".repeat(300_000),
  ]) {
    const { statics } = createStaticPods();
    await statics.update("file", [text(content)]);
    t.same(statics.problems, ["/m/a.yaml: more than 50000 values"]);
  }
  const { statics, calls } = createStaticPods();
  await statics.update("file", [text(pod({ ...many(40_000), spec: { containers: [{ name: "c", image: "i" }] } }))]);
  t.equal(statics.pods.length, 1);
  t.equal(calls.length, 1 + statics.problems.length);
  t.ok(statics.problems.length <= 101, `${statics.problems.length} problems of unknown fields`);
  const items = JSON.stringify({ apiVersion: "v1", kind: "List", items: Array.from({ length: 40_000 }, () => 1) });
  await statics.update("file", [text(items)]);
  t.equal(statics.problems.length, 101);
  t.equal(statics.problems.at(-1), "/m/a.yaml: has 39900 further problems");
  const invalid = Array.from({ length: 5000 }, (_, index) => ({ name: `C_${index}`, image: "i" }));
  const { statics: other } = createStaticPods();
  await other.update("file", [text(pod({ spec: { containers: invalid } }))]);
  t.ok(other.problems.length <= 101, `${other.problems.length} problems of fields`);
});
