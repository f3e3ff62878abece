import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t from "tap";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { runtimeConformance } from "../../testing/agent/runtime-conformance.ts";
import { fail, neverRespond, ScriptedCri } from "../../testing/agent/scripted-cri.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createCriClient } from "./cri-client.ts";

async function scripted(stack: AsyncDisposableStack) {
  const directory = await mkdtemp(join(tmpdir(), "svc-cri-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const cri = stack.use(new ScriptedCri(join(directory, "cri.sock"), fake));
  await cri.start();
  const client = stack.use(createCriClient({ endpoint: cri.endpoint, requestTimeoutMs: 2_000, clock }));
  return { clock, fake, cri, ...client };
}

t.test("ScriptedCri conforms to the Runtime interface over a socket", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { clock, fake, runtime, images } = await scripted(stack);
  fake.programs.set("failing", { exitAfterMs: 100, exitCode: 3 });
  await runtimeConformance(t, {
    runtime,
    images,
    image: "busybox:1",
    sleeper: { name: "sleeper", command: [] },
    failing: { name: "failing", command: [] },
    logDirectory: "/logs",
    advance: (milliseconds) => clock.advance(milliseconds),
  });
});

t.test("ScriptedCri.on() fails the specified call and no other", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { cri, runtime } = await scripted(stack);
  cri.on({ method: "Version", nth: 2, when: "before", action: fail("UNAVAILABLE", "away") });
  await runtime.version({});
  await t.rejects(runtime.version({}), { code: "UNAVAILABLE", detail: "away" });
  await runtime.version({});
});

t.test(
  "createCriClient(): a call whose response is lost rejects at its timeout, although the runtime completed it",
  async (t) => {
    await using stack = new AsyncDisposableStack();
    const { cri, fake, clock, runtime } = await scripted(stack);
    cri.on({ method: "RunPodSandbox", nth: 1, when: "after", action: neverRespond });
    const call = runtime.runPodSandbox({ config: { metadata: { name: "web" } } });
    const failed = t.rejects(call, { code: "DEADLINE_EXCEEDED", detail: "context deadline exceeded" });
    for (let turn = 0; turn < 1_000 && fake.sandboxes.size === 0; turn++) await clock.advance(0);
    await clock.advance(2_000);
    await failed;
    t.equal(fake.sandboxes.size, 1);
    t.equal(clock.pending, 0);
  },
);

t.test("createCriClient() reconnects to a runtime that restarted", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { cri, runtime } = await scripted(stack);
  await runtime.version({});
  cri.kill();
  await t.rejects(runtime.version({}), { code: "UNAVAILABLE", detail: /^(error reading|connection error)/ });
  await t.rejects(runtime.version({}), {
    code: "UNAVAILABLE",
    detail:
      /^connection error: desc = "transport: Error while dialing: dial unix \S+: connect: no such file or directory"$/,
  });
  await cri.start();
  let answer: unknown;
  for (let tries = 0; tries < 100 && answer === undefined; tries++) {
    // gRPC itself waits before it connects again.
    answer = await runtime.version({}).catch(() => setTimeout(20, undefined));
  }
  t.match(answer, { runtimeName: "fake" });
});
