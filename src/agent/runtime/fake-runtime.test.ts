import t from "tap";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { runtimeConformance } from "../../testing/agent/runtime-conformance.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

t.test("FakeRuntime conforms to the Runtime interface", async (t) => {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  fake.programs.set("failing", { exitAfterMs: 100, exitCode: 3 });
  await runtimeConformance(t, {
    runtime: fake.runtime,
    images: fake.images,
    image: "busybox:1",
    sleeper: { name: "sleeper", command: [] },
    failing: { name: "failing", command: [] },
    logDirectory: "/logs",
    advance: (milliseconds) => clock.advance(milliseconds),
  });
});

t.test("FakeRuntime.fail() fails the given number of calls", async (t) => {
  const fake = new FakeRuntime(new FakeClock());
  fake.fail("status", new Error("away"), 2);
  await t.rejects(fake.runtime.status({}), { message: "away" });
  await t.rejects(fake.runtime.status({}), { message: "away" });
  await fake.runtime.status({});
});
