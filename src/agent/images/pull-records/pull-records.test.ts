import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { ImageManager } from "../image-manager.ts";
import { formatIntent, formatPulledRecord, hashCredential, parseIntent, parsePulledRecord } from "./pull-record.ts";
import { PullRecords } from "./pull-records.ts";
import { findAllowlistProblem, type PullVerificationConfig } from "./verification-policy.ts";

const NAME = "r.test/team/app:1";
const never = new AbortController().signal;

interface TestSecret {
  uid: string;
  password: string;
}

/** An image manager whose registry serves `NAME`, and the records in a directory that survives `restart`. */
async function setUp(t: Test, config: Partial<PullVerificationConfig> = {}) {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  fake.present.clear();
  fake.pullable.set(NAME, { id: "sha256:app", repoTags: [NAME], size: 5n });
  const rootDir = t.testdir();
  const events: string[] = [];
  const secrets: Record<string, TestSecret> = {};
  const open = () =>
    PullRecords.open({
      config: { policy: "NeverVerifyPreloadedImages", allowlist: [], ...config },
      rootDir,
      images: fake.images,
      clock,
      log: silentLogger,
    });
  const createManager = async () => {
    const record = (reason: string, message: string) => void events.push(`${reason}: ${message}`);
    return new ImageManager({
      images: fake.images,
      clock,
      events: {
        recordPodEvent: (_pod, _type, reason, message) => record(reason, message),
        recordContainerEvent: (_pod, _container, _type, reason, message) => record(reason, message),
      },
      getSecret: async (namespace, name) => {
        const secret = secrets[`${namespace}/${name}`];
        const auths = { "r.test": { username: "u", password: secret?.password } };
        return secret && { ".dockerconfigjson": JSON.stringify({ auths }) };
      },
      getSecretUid: async (namespace, name) => secrets[`${namespace}/${name}`]?.uid ?? "",
      pullRecords: await open(),
      serialize: true,
      qps: 0,
      burst: 0,
    });
  };
  let manager = await createManager();
  const pulls = () => fake.calls.filter(({ method }) => method === "pullImage").length;
  /** Resolves with whether the image was pulled. */
  const use = async (namespace: string, secret = "", policy = "IfNotPresent", image = NAME): Promise<boolean> => {
    const before = pulls();
    const imagePullSecrets = secret === "" ? [] : [{ name: secret }];
    const pod: Pod = {
      metadata: { name: "p", namespace, uid: `${events.length}` },
      spec: { containers: [], imagePullSecrets },
    };
    await manager.ensureImage(pod, { name: "c", image, imagePullPolicy: policy as "Never" }, "containers", never);
    return pulls() > before;
  };
  const files = (kind: "pulled" | "pulling") => readdirSync(join(rootDir, "image_manager", kind));
  const readRecord = () => {
    const [name = ""] = files("pulled");
    return JSON.parse(readFileSync(join(rootDir, "image_manager/pulled", name), "utf8")) as Record<string, unknown>;
  };
  const restart = async () => {
    manager = await createManager();
  };
  return { clock, fake, rootDir, events, secrets, open, use, files, readRecord, restart };
}

t.test("a pod uses a present image only with a Secret that has pulled it", async (t) => {
  const { use, secrets, files, readRecord, restart, events } = await setUp(t);
  secrets["a/key"] = { uid: "1", password: "x" };
  secrets["b/key"] = { uid: "2", password: "y" };
  secrets["c/other"] = { uid: "3", password: "x" };
  t.equal(await use("a", "key"), true);
  t.same(files("pulling"), []);
  const credentialHash = hashCredential({ username: "u", password: "x" });
  const kubernetesSecrets = [{ uid: "1", namespace: "a", name: "key", credentialHash }];
  t.match(readRecord(), {
    kind: "ImagePulledRecord",
    apiVersion: "kubelet.config.k8s.io/v1alpha1",
    imageRef: "sha256:app",
    credentialMapping: { "r.test/team/app": { kubernetesSecrets } },
  });
  t.equal(await use("a", "key"), false);
  t.equal(events.at(-1), `Pulled: Container image "${NAME}" already present on machine and can be accessed by the pod`);
  await restart();
  t.equal(await use("a", "key"), false, "after a restart of the agent");
  t.equal(await use("c", "other"), false, "the same credential in another namespace");
  t.match(readRecord(), {
    credentialMapping: { "r.test/team/app": { kubernetesSecrets: [{ namespace: "a" }, { namespace: "c" }] } },
  });
  t.equal(await use("b", "key"), true, "another credential");
  t.equal(await use("b", "key"), false);
  t.equal(await use("b"), true, "none: the registry serves it without");
  t.match(readRecord(), { credentialMapping: { "r.test/team/app": { nodePodsAccessible: true } } });
  t.equal(await use("d"), false, "then all pods may use it");
});

t.test("a Secret remains trusted when its credential is rotated, a new one of its name does not", async (t) => {
  const { use, secrets } = await setUp(t);
  secrets["a/key"] = { uid: "1", password: "x" };
  await use("a", "key");
  secrets["a/key"] = { uid: "1", password: "rotated" };
  t.equal(await use("a", "key"), false);
  secrets["a/key"] = { uid: "9", password: "rotated" };
  t.equal(await use("a", "key"), false, "the rotated credential was recorded");
  secrets["a/key"] = { uid: "10", password: "unknown" };
  t.equal(await use("a", "key"), true);
});

t.test("the policy Never refuses a present image without its credentials", async (t) => {
  const { use, secrets, events } = await setUp(t);
  await t.rejects(use("a", "", "Never"), {
    message: `Container image "${NAME}" is not present with pull policy of Never`,
  });
  secrets["a/key"] = { uid: "1", password: "x" };
  await use("a", "key");
  t.equal(await use("a", "key", "Never"), false);
  const message = `Container image "${NAME}" is not present with pull policy of Never`;
  await t.rejects(use("b", "", "Never"), { name: "ImageError", message });
  t.equal(events.at(-1), `ErrImageNeverPull: ${message}`);
});

t.test("each policy verifies other images", async (t) => {
  const cases: readonly (readonly [Partial<PullVerificationConfig>, preloaded: boolean, pulled: boolean])[] = [
    [{ policy: "NeverVerify" }, false, false],
    [{ policy: "NeverVerifyPreloadedImages" }, false, true],
    [{ policy: "AlwaysVerify" }, true, true],
    [{ policy: "NeverVerifyAllowlistedImages", allowlist: ["r.test/team/*"] }, false, false],
    [{ policy: "NeverVerifyAllowlistedImages", allowlist: ["r.test/team/app"] }, false, false],
    [{ policy: "NeverVerifyAllowlistedImages", allowlist: ["r.test/tea/*", "r.test/team/ap"] }, true, true],
  ];
  for (const [config, preloaded, pulled] of cases) {
    const { use, fake } = await setUp(t, config);
    const [image] = fake.pullable.values();
    if (image !== undefined) fake.present.set(NAME, image);
    t.equal(await use("b"), preloaded, `preloaded: ${JSON.stringify(config)}`);
    const other = await setUp(t, config);
    other.secrets["a/key"] = { uid: "1", password: "x" };
    await other.use("a", "key");
    t.equal(await other.use("b"), pulled, `pulled by the agent: ${JSON.stringify(config)}`);
  }
});

t.test("an agent that ended during a pull counts the image as its own, whatever the pull's end", async (t) => {
  const { fake, use, files, open, restart, readRecord } = await setUp(t);
  const records = await open();
  await records.recordIntent(NAME);
  t.equal(files("pulling").length, 1);
  const [image] = fake.pullable.values();
  await restart();
  t.equal(files("pulling").length, 1, "the image is not there yet");
  if (image !== undefined) fake.present.set(NAME, image);
  t.equal(await records.mustPull(NAME, "sha256:app", []), true, "the intent is sufficient");
  fake.fail("listImages", new RuntimeError("UNAVAILABLE", "no runtime"));
  await restart();
  t.equal(files("pulling").length, 1, "stays while the runtime does not answer");
  await restart();
  t.same(files("pulling"), []);
  t.match(readRecord(), { imageRef: "sha256:app" });
  t.equal(readRecord().credentialMapping, undefined);
  t.equal(await use("b"), true);
});

t.test("a failed pull leaves no record; two pulls of an image share the intent", async (t) => {
  const { fake, use, files, open } = await setUp(t);
  fake.pullable.clear();
  await t.rejects(use("a"), { message: /NotFound/ });
  t.same([files("pulling"), files("pulled")], [[], []]);
  const records = await open();
  await Promise.all([records.recordIntent(NAME), records.recordIntent(NAME)]);
  await records.recordFailed(NAME);
  t.equal(files("pulling").length, 1);
  await records.recordPulled(NAME, "sha256:app", undefined);
  t.same([files("pulling").length, files("pulled").length], [0, 1]);
});

t.test("an image that a service account's credentials have pulled is pulled again for each pod", async (t) => {
  const { open, readRecord } = await setUp(t);
  const records = await open();
  await records.recordPulled(NAME, "sha256:app", { auth: { username: "u" }, source: { kind: "account" } });
  t.equal(readRecord().credentialMapping, undefined);
  t.equal(await records.mustPull(NAME, "sha256:app", []), true);
});

t.test("PullRecords.prune() removes the records of images that are gone, but no newer ones", async (t) => {
  const { clock, open, files } = await setUp(t);
  const records = await open();
  for (const ref of ["sha256:a", "sha256:b"]) await records.recordPulled("a:1", ref, undefined);
  await records.prune(new Set(), clock.now() - 1000);
  t.equal(files("pulled").length, 2);
  await clock.advance(5000);
  await records.prune(new Set(["sha256:b"]), clock.now());
  t.equal(files("pulled").length, 1);
  t.equal(await records.mustPull("a:1", "sha256:b", []), false);
});

t.test("a damaged record requires a pull, and a new record replaces it", async (t) => {
  const { use, rootDir, files } = await setUp(t);
  await use("a");
  const [name = ""] = files("pulled");
  const path = join(rootDir, "image_manager/pulled", name);
  for (const text of [
    "",
    "{",
    '{"kind":"ImagePulledRecord"}',
    readFileSync(path, "utf8").replace('"imageRef"', '"more":1,"imageRef"'),
  ]) {
    writeFileSync(path, text);
    t.equal(await use("a"), true, text);
    t.equal(await use("a"), false);
  }
});

t.test("records that kubelets wrote are read, and written records have their format", async (t) => {
  const secret = { uid: "testsecretuid", namespace: "default", name: "pull-secret", credentialHash: "testsecrethash" };
  const head = '"apiVersion":"kubelet.config.k8s.io/v1alpha1"';
  const stamp = '"lastUpdatedTime":"2024-10-21T12:26:40Z"';
  const mapping = (text: string) => `,"credentialMapping":{"docker.io/testing/test":${text}}`;
  const record = (ref: string, rest: string) =>
    `{"kind":"ImagePulledRecord",${head},${stamp},"imageRef":"${ref}"${rest}}`;
  const secretsOnly = record("testimageref", mapping(`{"kubernetesSecrets":[${JSON.stringify(secret)}]}`));
  const anonymous = record("testimage-anonpull", mapping('{"nodePodsAccessible":true}'));
  const bare = record("testemptycredmapping", "");
  t.same(parsePulledRecord(secretsOnly).credentials.get("docker.io/testing/test"), {
    secrets: [secret],
    isForAllPods: false,
  });
  t.equal(formatPulledRecord(parsePulledRecord(secretsOnly)), `${secretsOnly}\n`);
  t.equal(formatPulledRecord(parsePulledRecord(bare)), `${bare}\n`);
  const written = record("testimage-anonpull", mapping('{"kubernetesSecrets":null,"nodePodsAccessible":true}'));
  t.equal(formatPulledRecord(parsePulledRecord(anonymous)), `${written}\n`);
  const intent = `{"kind":"ImagePullIntent",${head},"image":"docker.io/testing/test:latest"}`;
  t.equal(formatIntent(parseIntent(intent)), `${intent}\n`);
  t.throws(() => parseIntent(intent.replace("v1alpha1", "v1")));
});

t.test("hashCredential() hashes the JSON of the members that are set, as Go writes it", async (t) => {
  // printf '{"username":"u","password":"a\\u003cb"}' | sha256sum
  const hash = "c505c9abf520e59fe86910368c927429147b2a18ab8a8581a5bac239a48988f0";
  t.equal(hashCredential({ username: "u", password: "a<b" }), hash);
  t.equal(hashCredential({ username: "u", password: "a<b", identityToken: "" }), hash);
});

t.test("the list of exempted images takes repositories and prefixes of whole path segments", async (t) => {
  const cases: readonly (readonly [string, RegExp | undefined])[] = [
    ["r.test/team/app", undefined],
    ["r.test/*", undefined],
    ["docker.io/library/busybox", undefined],
    [" r.test/a", /^leading\/trailing spaces/],
    ["", /^the supplied pattern is too short/],
    ["r.test/a*", /^not a valid wildcard pattern/],
    ["r.test/*/a", /^not a valid wildcard pattern/],
    ["/*", /^at least registry hostname is required/],
    ["r.test/A", /^failed to parse as an image name: /],
    ["busybox", /^neither tag nor digest is accepted/],
    ["r.test/a:1", /^neither tag nor digest is accepted/],
  ];
  for (const [pattern, problem] of cases) {
    const found = findAllowlistProblem([pattern]);
    if (problem === undefined) t.equal(found, undefined, pattern);
    else t.match(found, problem, pattern);
  }
});
