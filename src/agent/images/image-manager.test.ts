import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { type ImageError, ImageManager, type ImageManagerOptions } from "./image-manager.ts";
import { readNodeCredentials } from "./node-credentials.ts";
import { PullQueue } from "./pull-queue.ts";

const NAME = "r.test/team/app:1";
const pod: Pod = {
  metadata: { name: "p", namespace: "ns", uid: "u1" },
  spec: { containers: [], imagePullSecrets: [{ name: "first" }, { name: "second" }] },
};
const container = (imagePullPolicy: "Always" | "IfNotPresent" | "Never", image = NAME) => ({
  name: "c",
  image,
  imagePullPolicy,
});
const never = new AbortController().signal;
const auths = (username: string, location = "r.test") => ({ [location]: { username, password: "x" } });
const secret = (username: string, location?: string) => ({
  ".dockerconfigjson": JSON.stringify({ auths: auths(username, location) }),
});

function setUp(more: Partial<ImageManagerOptions> = {}) {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const events: string[] = [];
  const record = (type: string, reason: string, message: string): void =>
    void events.push(`${type} ${reason}: ${message}`);
  const manager = new ImageManager({
    images: fake.images,
    clock,
    events: {
      recordPodEvent: (_pod, type, reason, message) => record(type, reason, message),
      recordContainerEvent: (_pod, _container, type, reason, message) => record(type, reason, message),
    },
    getSecret: async (_namespace, name) => (name === "first" ? secret("one", "r.test/team") : secret("two")),
    serialize: true,
    qps: 0,
    burst: 0,
    ...more,
  });
  const pulls = () => fake.calls.filter(({ method }) => method === "pullImage").map(({ request }) => request);
  const ensure = (policy: "Always" | "IfNotPresent" = "Always") =>
    manager.ensureImage(pod, container(policy), "containers", never);
  return { clock, fake, events, manager, pulls, ensure };
}

t.test("requests for images name the runtime handler of the pod on request", async (t) => {
  for (const handler of ["runsc", ""]) {
    const { fake, ensure } = setUp({ getRuntimeHandler: async () => handler });
    fake.pullable.set(NAME, { id: "sha256:app" });
    await ensure("IfNotPresent");
    const images = fake.calls.flatMap(({ method, request }) =>
      method === "imageStatus" || method === "pullImage" ? [(request as { readonly image: object }).image] : [],
    );
    t.equal(images.length, 3);
    const expected = { image: NAME, annotations: {}, ...(handler === "" ? {} : { runtimeHandler: handler }) };
    for (const image of images) t.same(image, expected);
  }
});

t.test("ImageManager.ensureImage() tries the pod's credentials, then the node's, then those of plugins", async (t) => {
  const { fake, pulls, ensure } = setUp({
    nodeCredentials: async () => new Map(Object.entries(auths("node"))),
    providers: {
      getCredentials: async (_pod, repository) => {
        t.equal(repository, "r.test/team/app");
        return [{ auths: new Map(Object.entries(auths("plugin"))), isForAccount: false }];
      },
      forget: () => undefined,
    },
  });
  t.equal(await getReason(ensure()), "ErrImagePull");
  const tried = pulls().map((each) => (each as { auth?: { username?: string } }).auth?.username);
  t.same(tried, ["one", "two", "node", "plugin"]);
  fake.pullable.set(NAME, { id: "sha256:app", size: 5n });
  t.match(await createManager(fake).ensureImage(pod, container("Always"), "containers", never), { ref: "sha256:app" });
});

function getReason(work: Promise<unknown>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: ImageError) => error.reason,
  );
}

function createManager(fake: FakeRuntime): ImageManager {
  const { images } = fake;
  const events = { recordPodEvent: () => undefined, recordContainerEvent: () => undefined };
  const secret = async () => undefined;
  return new ImageManager({
    images,
    clock: new FakeClock(),
    events,
    getSecret: secret,
    serialize: true,
    qps: 0,
    burst: 0,
  });
}

t.test(
  "ImageManager.ensureImage() reports each different error of the registries once, without the code Unknown",
  async (t) => {
    const { fake, events, ensure } = setUp();
    fake.fail("pullImage", new RuntimeError("UNKNOWN", "denied"));
    fake.fail("pullImage", new RuntimeError("NOT_FOUND", "no such image"));
    await t.rejects(ensure(), { message: "[denied, rpc error: code = NotFound desc = no such image]" });
    t.match(events.at(-1), /^Warning Failed: Failed to pull image "r\.test\/team\/app:1": \[denied, /);
  },
);

t.test(
  "ImageManager.ensureImage() fails with ImageInspectError only if the policy depends on the present image",
  async (t) => {
    const { fake, ensure, events } = setUp();
    fake.fail("imageStatus", new RuntimeError("UNKNOWN", "broken"), 10);
    t.equal(await getReason(ensure("IfNotPresent")), "ImageInspectError");
    fake.pullable.set(NAME, { id: "sha256:app" });
    t.equal((await ensure("Always")).ref, "sha256:app", "the pulled image is present, although its size is unknown");
    t.match(events.at(-1), /Image size: 0 bytes/);
  },
);

t.test(
  "ImageManager.ensureImage() reports the runtime's RegistryUnavailable and SignatureValidationFailed as reasons",
  async (t) => {
    const cases = [
      ["RegistryUnavailable", `image pull failed for ${NAME} because the registry is unavailable: try later`],
      ["SignatureValidationFailed", `image pull failed for ${NAME} because the signature validation failed: try later`],
    ] as const;
    for (const [reason, message] of cases) {
      const { fake, ensure } = setUp({ getSecret: async () => undefined });
      fake.fail("pullImage", new RuntimeError("UNKNOWN", `${reason}: try later`));
      t.match(await ensure().catch((error) => error), { reason, message });
      const backOff = {
        reason: "ImagePullBackOff",
        message: `Back-off pulling image "${NAME}": ${reason}: ${message}`,
      };
      t.match(await ensure().catch((error) => error), backOff);
    }
  },
);

t.test(
  "ImageManager.ensureImage() doubles the back-off after each failure, and resets it after 10 minutes",
  async (t) => {
    const { clock, ensure } = setUp({ getSecret: async () => undefined });
    const pullAndWait = async (): Promise<number> => {
      t.equal(await getReason(ensure()), "ErrImagePull");
      const held = await ensure().catch((error: { retryMs: number }) => error.retryMs);
      await clock.advance(held as number);
      return held as number;
    };
    const seen: number[] = [];
    for (let time = 0; time < 7; time++) seen.push(await pullAndWait());
    t.same(seen, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
    await clock.advance(600_000);
    t.equal(await pullAndWait(), 10_000);
  },
);

t.test("ImageManager.checkSecrets() records an event with the missing and invalid pull secrets", async (t) => {
  const { manager, events } = setUp({
    getSecret: async (_namespace, name) => (name === "first" ? undefined : { ".dockerconfigjson": "{" }),
  });
  await manager.checkSecrets(pod);
  t.match(events, [/FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets \(first, second\); /]);
});

t.test("PullQueue.run() limits concurrent pulls, and removes a waiting one whose signal aborts", async (t) => {
  for (const [limits, atOnce] of [
    [{ serialize: true, parallel: 5 }, 1],
    [{ serialize: false, parallel: 2 }, 2],
    [{ serialize: false }, 4],
  ] as const) {
    const queue = new PullQueue({ ...limits, qps: 0, burst: 0 }, new FakeClock());
    const pulls = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const started: number[] = [];
    const stop = new AbortController();
    const runs = pulls.map(({ promise }, index) =>
      queue.run(
        async () => {
          started.push(index);
          await promise;
        },
        index === 2 ? stop.signal : never,
      ),
    );
    t.equal(started.length, atOnce);
    stop.abort(new Error("cancelled"));
    for (const { resolve } of pulls) resolve();
    await Promise.allSettled(runs);
    t.same(started, atOnce === 4 ? [0, 1, 2, 3] : [0, 1, 3], "the others run in the order of their requests");
  }
});

t.test("PullQueue.takeToken() throws when the rate is exceeded", async (t) => {
  const clock = new FakeClock();
  const queue = new PullQueue({ serialize: true, qps: 1, burst: 2 }, clock);
  queue.takeToken();
  queue.takeToken();
  t.throws(() => queue.takeToken(), /^pull QPS exceeded$/);
  await clock.advance(1000);
  t.doesNotThrow(() => queue.takeToken());
});

t.test("readNodeCredentials() reads the first valid file", async (t) => {
  const directory = t.testdir();
  const [rootDir, home] = [join(directory, "root"), join(directory, "home")];
  mkdirSync(join(home, ".docker"), { recursive: true });
  mkdirSync(rootDir);
  const read = async () => [...(await readNodeCredentials({ rootDir, home, log: silentLogger })).values()];
  writeFileSync(join(home, ".docker/config.json"), JSON.stringify({ auths: auths("home") }));
  t.match(await read(), [{ username: "home" }]);
  writeFileSync(join(rootDir, "config.json"), "{");
  t.match(await read(), [{ username: "home" }], "skips an invalid file");
  writeFileSync(join(rootDir, "config.json"), JSON.stringify({ auths: auths("root") }));
  t.match(await read(), [{ username: "root" }]);
});
