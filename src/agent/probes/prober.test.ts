import t from "tap";
import type { Timer } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { toObservedContainer } from "../runtime/observation.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { runExec } from "./actions.ts";
import { type ProbeKind, Prober } from "./prober.ts";

/** A machine's timers fire up to a millisecond early on the monotonic clock. */
class EarlyClock extends FakeClock {
  override monotonic(): number {
    return super.monotonic() + 0.123_456_789;
  }

  override timer(milliseconds: number, callback: () => void): Timer {
    return super.timer(milliseconds - 0.7, callback);
  }
}

for (const [kind, times] of [
  ["liveness", 10],
  // Immediately, and then in its period.
  ["readiness", 10],
] as const satisfies readonly (readonly [ProbeKind, number])[]) {
  t.test(`Prober runs once in each period, also if timers fire early: ${kind}`, async (t) => {
    const clock = new EarlyClock();
    const container = toObservedContainer({ id: "c1", startedAt: BigInt(clock.now()) * 1_000_000n }, "s1");
    const probeTimes: number[] = [];
    const runtime = {
      execSync: async () => {
        probeTimes.push(Math.round(clock.monotonic()));
        return { exitCode: 0 };
      },
    };
    const spec = { name: "c" };
    const probe = { exec: { command: ["true"] }, periodSeconds: 1 };
    using stack = new DisposableStack();
    const prober = new Prober(
      {
        pod: { metadata: { name: "p", namespace: "default", uid: "u" }, spec: { containers: [spec] } },
        spec,
        role: "containers",
        kind,
        probe,
        container,
        observation: { sandboxes: [], containers: [container] },
        began: clock.monotonic(),
      },
      {
        runtime: runtime as never,
        clock,
        events: { recordPodEvent: () => undefined, recordContainerEvent: () => undefined },
        userAgent: "test",
        mayProbe: () => true,
        onChange: () => undefined,
      },
    );
    stack.defer(() => prober.stop());
    await clock.advance(10_400);
    t.equal(probeTimes.length, times, probeTimes.join(" "));
    const gaps = probeTimes.slice(1).map((each, i) => each - probeTimes[i]!);
    t.ok(
      gaps.every((gap) => gap > 990),
      gaps.join(" "),
    );
  });
}

t.test("ExecProbeTimeout decides whether a command that is too slow has failed", async (t) => {
  const execSync = () => Promise.reject(new RuntimeError("DEADLINE_EXCEEDED", "too slow"));
  const { signal } = new AbortController();
  const run = (failsAtTimeout: boolean) =>
    runExec({
      runtime: { execSync } as never,
      containerId: "c1",
      command: ["sleep"],
      timeoutSeconds: 1,
      failsAtTimeout,
      signal,
    });
  t.match(await run(true), { outcome: "failure", output: /command timed out/ });
  t.match(await run(false), { outcome: "unknown" });
});

t.test("Prober expands references in a command with the values of the container's spec", async (t) => {
  const clock = new FakeClock();
  const container = toObservedContainer({ id: "c1", startedAt: BigInt(clock.now()) * 1_000_000n }, "s1");
  const commands: unknown[] = [];
  const runtime = { execSync: async ({ cmd }: { cmd: readonly string[] }) => ({ exitCode: commands.push(cmd) * 0 }) };
  const env = [
    { name: "A", value: "a" },
    { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
  ];
  const spec = { name: "c", env };
  const prober = new Prober(
    {
      pod: { metadata: { name: "p", namespace: "default", uid: "u" }, spec: { containers: [spec] } },
      spec,
      role: "containers",
      kind: "liveness",
      probe: { exec: { command: ["sh", "-c", "$(A)$(B) $$(A) $(C) $$ $HOME"] }, periodSeconds: 1 },
      container,
      observation: { sandboxes: [], containers: [container] },
      began: clock.monotonic(),
    },
    {
      runtime: runtime as never,
      clock,
      events: { recordPodEvent: () => undefined, recordContainerEvent: () => undefined },
      userAgent: "test",
      mayProbe: () => true,
      onChange: () => undefined,
    },
  );
  await clock.advance(1_400);
  prober.stop();
  t.same(commands[0], ["sh", "-c", "a $(A) $(C) $ $HOME"]);
});
