import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { waitForRuntime } from "./runtime.ts";

t.test("waitForRuntime() gives up with a sentence when no runtime answers", async (t) => {
  const clock = new FakeClock();
  const endpoint = `unix://${join(t.testdir({}), "absent.sock")}`;
  let problem: unknown;
  const waiting = waitForRuntime(endpoint, { clock, log: silentLogger }).catch((error: unknown) => {
    problem = error;
  });
  for (let step = 0; step < 500 && problem === undefined; step++) {
    await clock.advance(1000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await waiting;
  t.match(problem, { message: /no container runtime answers at unix:.*absent\.sock.*start it, or leave the flag out/ });
});
