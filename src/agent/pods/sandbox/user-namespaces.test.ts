import { readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { readHostIdRange, UserNamespaces } from "./user-namespaces.ts";

const start = "can't set `spec.hostUsers: false`";

t.test("UserNamespaces.allocate() gives each pod its own range, which survives a restart of the agent", async (t) => {
  const directories = { rootDir: t.testdir(), podLogsDir: "/none" };
  const make = () =>
    new UserNamespaces({
      directories,
      idsPerPod: 65_536,
      readRange: async () => ({ first: 65_536, length: 2 * 65_536 }),
    });
  const first = make();
  const [a, again, b] = [await first.allocate("a"), await first.allocate("a"), await first.allocate("b")];
  t.same(a, again);
  t.match(a, { mode: "POD", uids: [{ hostId: 65_536, containerId: 0, length: 65_536 }] });
  t.equal(b.gids?.[0]?.hostId, 131_072);
  await t.rejects(first.allocate("c"), /could not find an empty slot/);
  const text = readFileSync(join(directories.rootDir, "pods/a/userns"), "utf8");
  const ids = '[{"hostId":65536,"containerId":0,"length":65536}]';
  t.equal(text, `{"uidMappings":${ids},"gidMappings":${ids}}`);
  const second = make();
  t.same(await second.allocate("b"), b);
  await second.release("a");
  t.equal((await second.allocate("c")).uids?.[0]?.hostId, 65_536);
});

t.test("readHostIdRange() returns the node's subordinate ids, and rejects if they are not usable", async (t) => {
  const range = (users: string | undefined, groups = users) =>
    readHostIdRange(65_536, 110, async (word) => (word === "-g" ? groups : users));
  t.same(await range(undefined), { first: 65_536, length: 65_536 * 110 });
  t.same(await range("0: svclet 131072 7208960\n"), { first: 131_072, length: 7_208_960 });
  const cases: readonly [string, RegExp, string?][] = [
    ["0: svclet 65536 7208960", /users and of groups differ/, "0: svclet 131072 7208960"],
    ["0: svclet 65536 7208960\n1: svclet 1 1", /more than one range/],
    ["nothing", /there is no range/],
    ["0: svclet 1 7208960", /begin at 65536/],
    ["0: svclet 65537 7208960", /whole multiples of 65536/],
    ["0: svclet 65536 65536", /110 pods need 7208960/],
  ];
  for (const [users, message, groups] of cases) await t.rejects(range(users, groups), message);
});

t.test("PodWorker runs a pod with hostUsers: false if the runtime supports user namespaces", async (t) => {
  await using harness = await podHarness();
  const directories = harness.services.settings.directories;
  const range = async () => ({ first: 65_536, length: 65_536 });
  const userNamespaces = new UserNamespaces({ directories, idsPerPod: 65_536, readRange: range });
  Object.assign(harness.services, { userNamespaces });
  harness.manager.put(testPod("web", { hostUsers: false }));
  await harness.run(2);
  const why = `${start}, runtime does not support user namespaces`;
  t.ok(harness.events.some(({ message }) => message.startsWith(`Failed to create pod sandbox: ${why}`)));
  const { status } = harness.fake.runtime;
  const runtimeHandlers = [{ name: "", features: { userNamespaces: true } }];
  Object.assign(harness.fake.runtime, { status: async () => ({ ...(await status({})), runtimeHandlers }) });
  await harness.run(10);
  t.equal(harness.status("web")?.phase, "Running");
  const uids = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
  const call = (method: string) => harness.fake.calls.find((each) => each.method === method)?.request;
  const usernsOptions = { mode: "POD", uids, gids: uids };
  t.match(call("runPodSandbox"), { config: { linux: { securityContext: { namespaceOptions: { usernsOptions } } } } });
  t.match(call("createContainer"), { config: { linux: { securityContext: { namespaceOptions: { usernsOptions } } } } });
  const { mounts } = (call("createContainer") as { config: { mounts: readonly object[] } }).config;
  for (const mount of mounts) t.match(mount, { uidMappings: uids, gidMappings: uids });
});

t.test(
  "PodWorker passes the stop signal to the runtime, and reports the runtime's signal and user in the status",
  async (t) => {
    await using harness = await podHarness();
    Object.assign(harness.services.settings, { stopSignals: true });
    const { containerStatus } = harness.fake.runtime;
    const user = { linux: { uid: 1000n, gid: 7n, supplementalGroups: [7n, 2000n] } };
    Object.assign(harness.fake.runtime, {
      containerStatus: async (request: { containerId?: string }) => {
        const { status } = await containerStatus(request);
        return { status: { ...status, user, stopSignal: "SIGRTMINPLUS3" } };
      },
    });
    const container = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" } as const;
    harness.manager.put(testPod("web", { containers: [{ ...container, lifecycle: { stopSignal: "SIGRTMIN+3" } }] }));
    await harness.run(5);
    t.match(harness.fake.calls.find(({ method }) => method === "createContainer")?.request, {
      config: { stopSignal: "SIGRTMINPLUS3" },
    });
    t.match(harness.status("web")?.containerStatuses?.[0], {
      stopSignal: "SIGRTMIN+3",
      user: { linux: { uid: 1000, gid: 7, supplementalGroups: [7, 2000] } },
    });
  },
);

for (const { handlers: runtimeHandlers, message } of [
  { handlers: [], message: "runtime does not support user namespaces" },
  {
    handlers: [{ name: "other", features: { userNamespaces: true } }],
    message: 'runtime does not support user namespaces: the handler "" is not known',
  },
  {
    handlers: [{ name: "", features: { userNamespaces: false } }],
    message: "runtime does not support user namespaces",
  },
  {
    handlers: [{ name: "", features: { userNamespaces: true } }],
    message: "the feature gate UserNamespacesSupport is off",
  },
]) {
  t.test(
    `PodWorker fails the sandbox of a pod with hostUsers: false, with ${runtimeHandlers.length} handlers: ${message}`,
    async (t) => {
      await using harness = await podHarness();
      const { status } = harness.fake.runtime;
      Object.assign(harness.fake.runtime, { status: async () => ({ ...(await status({})), runtimeHandlers }) });
      harness.manager.put(testPod("web", { hostUsers: false }));
      await harness.run(2);
      t.match(harness.events, [
        { reason: "FailedCreatePodSandBox", message: `Failed to create pod sandbox: ${start}, ${message}` },
      ]);
      const waiting = { reason: "ContainerCreating", message: undefined };
      t.match(harness.status("web")?.containerStatuses?.[0]?.state, { waiting });
      t.equal(harness.fake.sandboxes.size, 0);
    },
  );
}
