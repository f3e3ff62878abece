import { join } from "node:path";
import t from "tap";
import { LoggedProcess } from "./logged-process.ts";
import { until } from "./until.ts";

t.test("LoggedProcess writes the output to a file and stops the process", async (t) => {
  const logFile = join(t.testdir(), "log");
  await using child = new LoggedProcess(["sh", "-c", "echo out; echo err >&2; sleep 60"], { logFile });
  await until("the output", () => child.log === "out\nerr\n");
  t.equal(child.isRunning, true);
  t.equal(await child.stop("SIGTERM"), "SIGTERM");
  t.equal(child.isRunning, false);
});

t.test("LoggedProcess.exited resolves with the exit code or the error of the start", async (t) => {
  const logFile = join(t.testdir(), "log");
  t.equal(await new LoggedProcess(["sh", "-c", "exit 3"], { logFile }).exited, 3);
  const missing = new LoggedProcess(["/nowhere"], { logFile });
  t.match(await missing.exited, /ENOENT/);
  t.equal(missing.pid, undefined);
});
