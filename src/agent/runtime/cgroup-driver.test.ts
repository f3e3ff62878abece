import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { readCgroupDriver } from "./cgroup-driver.ts";
import { type Runtime, RuntimeError } from "./runtime.ts";

type Response = Awaited<ReturnType<Runtime["runtimeConfig"]>>;

/** A runtime with a script of responses, of which the last one is repeated. */
function read(responses: readonly (Response | RuntimeError)[]) {
  const clock = new FakeClock();
  let calls = 0;
  const runtimeConfig = async (): Promise<Response> => {
    const response = responses[Math.min(calls++, responses.length - 1)]!;
    if (response instanceof RuntimeError) throw response;
    return response;
  };
  const { signal } = new AbortController();
  const driver = readCgroupDriver({ runtime: { runtimeConfig }, clock, log: silentLogger, signal });
  driver.catch(() => {});
  return { driver, clock, calls: () => calls };
}

t.test("the agent takes the cgroup driver that the runtime reports", async (t) => {
  t.equal(await read([{ linux: { cgroupDriver: "CGROUPFS" } }]).driver, "cgroupfs");
  t.equal(await read([{ linux: { cgroupDriver: "SYSTEMD" } }]).driver, "systemd");
  t.equal(await read([{ linux: {} }]).driver, "systemd", "the zero value");
  t.equal(await read([{}]).driver, undefined);
});

t.test("a runtime that reports no driver, or is not there, leaves the configured one", async (t) => {
  for (const code of ["UNIMPLEMENTED", "UNAVAILABLE"]) {
    const { driver, calls } = read([new RuntimeError(code, "no")]);
    t.equal(await driver, undefined, code);
    t.equal(calls(), 1);
  }
});

t.test("other errors end the start after three attempts", async (t) => {
  const failing = read([new RuntimeError("INTERNAL", "broken")]);
  await failing.clock.advance(2000);
  await failing.clock.advance(2000);
  await t.rejects(failing.driver, { message: "Cannot read the runtime's cgroup driver" });
  t.equal(failing.calls(), 3);
  const recovering = read([new RuntimeError("INTERNAL", "broken"), { linux: { cgroupDriver: "CGROUPFS" } }]);
  await recovering.clock.advance(2000);
  t.equal(await recovering.driver, "cgroupfs");
});
