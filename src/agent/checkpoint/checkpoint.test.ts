import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { createTestAgent, type TestAgent } from "../../testing/agent/flag-harness.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { startAgent } from "../agent.ts";
import { Checkpoint } from "./checkpoint.ts";

const open = (directory: string) => Checkpoint.open({ directory, clock: new FakeClock(), log: silentLogger });
const sealedFiles = (directory: string) => readdirSync(directory).filter((name) => name.endsWith(".sealed"));

t.test("Checkpoint restores values after a restart from encrypted files with mode 0600", async (t) => {
  const directory = t.testdir();
  const first = await open(directory);
  first.set("pod/1", { secret: "hunter2" });
  first.set("pod/2", { name: "b" });
  await first[Symbol.asyncDispose]();
  const [file = "", other = ""] = sealedFiles(directory);
  for (const name of [file, other, "key"]) t.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
  t.notMatch(readFileSync(join(directory, file), "latin1") + readFileSync(join(directory, other), "latin1"), /hunter2/);
  const second = await open(directory);
  t.same([...second.keys("pod/")].sort(), ["pod/1", "pod/2"]);
  t.same(await second.get("pod/1"), { secret: "hunter2" });
  second.delete("pod/1");
  t.same(second.keys("pod/"), ["pod/2"]);
  t.equal(await second.get("pod/3"), undefined);
  await second.flush();
  t.equal(sealedFiles(directory).length, 1);
});

t.test("Checkpoint writes nothing when nothing changed", async (t) => {
  const directory = t.testdir();
  const first = await open(directory);
  first.set("a", { x: 1, y: [2] });
  await first.flush();
  const before = sealedFiles(directory).map((name) => readFileSync(join(directory, name)));
  first.set("a", { y: [2], x: 1 });
  await first.flush();
  const second = await open(directory);
  second.set("a", { x: 1, y: [2] });
  await second.flush();
  t.same(
    sealedFiles(directory).map((name) => readFileSync(join(directory, name))),
    before,
  );
});

t.test("Checkpoint skips damaged and renamed files, with one log line", async (t) => {
  const directory = t.testdir();
  const lines: unknown[] = [];
  const log = { ...silentLogger, warn: (text: string, values: unknown) => void lines.push([text, values]) };
  const first = await open(directory);
  for (const key of ["a", "b", "c"]) first.set(key, key);
  await first.flush();
  const [one = "", two = "", three = ""] = sealedFiles(directory);
  writeFileSync(join(directory, one), readFileSync(join(directory, two)));
  writeFileSync(join(directory, three), "x");
  const second = await Checkpoint.open({ directory, clock: new FakeClock(), log });
  t.equal(second.keys("").length, 1);
  t.match(lines, [[/Failed to read some files of the checkpoint/, { directory, unreadable: 2, readable: 1 }]]);
  await second.removeUnreadable();
  t.equal(sealedFiles(directory).length, 1, "removes the unreadable files");
  writeFileSync(join(directory, "key"), "invalid");
  const third = await Checkpoint.open({ directory, clock: new FakeClock(), log });
  t.same(third.keys(""), []);
  t.match(lines, [[], [/Failed to read some/, { unreadable: 1, readable: 0 }]], "an invalid key");
  third.set("a", "new");
  await third.removeUnreadable();
  t.same((await open(directory)).keys(""), ["a"]);
});

/** Starts an agent on the same disk after a reboot, with no containers and no API server. */
async function reboot(t: Test, before: TestAgent, fake: FakeRuntime) {
  const { config, api, clock } = before;
  let isApiServerAway = true;
  const transport: typeof api.transport = (request) => {
    if (isApiServerAway) return Promise.reject(new Error("connect ECONNREFUSED"));
    return api.transport(request);
  };
  // Does not change the machine's iptables rules.
  const iptables = async (): Promise<void> => {};
  const agent = await startAgent(config, { clock, log: silentLogger, iptables, transport, runtime: fake });
  agent.ready().catch(() => undefined);
  t.teardown(async () => {
    let closed = false;
    const closing = agent.close().finally(() => {
      closed = true;
    });
    await before.until("the agent has stopped", () => closed);
    await closing;
  });
  return {
    reconnect: () => {
      isApiServerAway = false;
    },
  };
}

t.test(
  "PodSources starts pods from the checkpoint when the node reboots without an API server, and keeps them",
  async (t) => {
    await using before = await createTestAgent("flag", {});
    const settings = { metadata: { name: "c", namespace: "default" }, data: { A: "kept" } };
    before.api.put("/api/v1/namespaces/default/configmaps/c", settings);
    await before.start();
    const env = [{ name: "A", valueFrom: { configMapKeyRef: { name: "c", key: "A" } } }];
    before.createPod("web", { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", env }] });
    await before.untilRunning("web");
    await before.clock.advance(5000);
    await before.stop();
    const fake = new FakeRuntime(before.clock);
    const { reconnect } = await reboot(t, before, fake);
    const states = () => [...fake.containers.values()].map(({ status }) => status.state);
    await before.until("the container runs again", () => states().includes("CONTAINER_RUNNING"));
    const created = fake.calls.find(({ method }) => method === "createContainer")?.request;
    t.match(created, { config: { envs: [{ key: "A", value: "kept" }] } });
    reconnect();
    const restarts = before.clock.monotonic();
    await before.until("the API server is reachable for a minute", () => before.clock.monotonic() - restarts > 60_000);
    t.equal(
      fake.calls.filter(({ method }) => method === "createContainer").length,
      1,
      "the container continues to run",
    );
    t.equal(fake.calls.filter(({ method }) => method === "stopContainer").length, 0);
  },
);
