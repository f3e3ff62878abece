import { spawn } from "node:child_process";
import { once } from "node:events";
import t from "tap";
import { Watchdog } from "./watchdog.ts";

/** Runs a program with a watchdog of 1 s; resolves with its signal or exit code. */
async function run(body: string): Promise<{ readonly end: unknown; readonly stderr: string }> {
  const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `
    const { Watchdog } = await import(${from("watchdog.ts")});
    const watchdog = new Watchdog({ seconds: 1 });
    await new Promise((resolve) => setTimeout(resolve, 500));
    ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const [code, signal] = await once(child, "exit");
  return { end: signal ?? code, stderr };
}

t.test("Watchdog ends a process whose event loop stands still", async (t) => {
  const { end, stderr } = await run("for (;;);");
  t.equal(end, "SIGKILL");
  t.match(stderr, "svc: no turn of the event loop for 1 s; exiting\n");
});

t.test("Watchdog leaves a process alone that turns, that was suspended, or that has disposed it", async (t) => {
  const outcomes = await Promise.all([
    run("setTimeout(() => process.exit(7), 4000)"),
    run("watchdog[Symbol.dispose](); const end = Date.now() + 4000; while (Date.now() < end);"),
    run(`const { spawn } = await import("node:child_process");
      spawn("sh", ["-c", "sleep 4; kill -CONT " + process.pid], { stdio: "ignore" });
      process.kill(process.pid, "SIGSTOP");
      setTimeout(() => process.exit(8), 500);`),
  ]);
  t.same(
    outcomes.map(({ end }) => end),
    [7, 0, 8],
  );
});

t.test("Watchdog does not keep a process from its end", async (t) => {
  t.equal((await run("")).end, 0);
});

t.test("Watchdog can be disposed before its thread has started", (t) => {
  const watchdog = new Watchdog({ seconds: 1 });
  watchdog[Symbol.dispose]();
  t.doesNotThrow(() => watchdog[Symbol.dispose]());
  t.end();
});
