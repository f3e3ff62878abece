import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { silentLogger } from "../log/logger.ts";
import { createNotifier, watchdogIntervalMs } from "./sd-notify.ts";

const log = silentLogger;

t.test("createNotifier() does nothing without a socket or with an odd one", async (t) => {
  for (const env of [{}, { NOTIFY_SOCKET: "" }, { NOTIFY_SOCKET: "vsock:2:1" }]) {
    const sent: string[] = [];
    const send = async (lines: readonly string[]): Promise<void> => void sent.push(...lines);
    await using notifier = createNotifier({ env, clock: new FakeClock(), log, send });
    await notifier.ready("up");
    await notifier.status("x");
    await notifier.stopping();
    notifier.watchdog(async () => true);
    t.same(sent, []);
  }
});

t.test("Notifier sends its messages in order, and a status on one line", async (t) => {
  const sent: (readonly string[])[] = [];
  const send = async (lines: readonly string[]): Promise<void> => {
    if (sent.push(lines) === 1) throw new Error("socket closed");
  };
  await using notifier = createNotifier({ env: { NOTIFY_SOCKET: "/run/x" }, clock: new FakeClock(), log, send });
  void notifier.status("one\nREADY=1");
  void notifier.ready("all well");
  await notifier.stopping();
  t.same(sent, [["STATUS=one READY=1"], ["READY=1", "STATUS=all well"], ["STOPPING=1"]]);
});

t.test("Notifier.watchdog() beats at half the interval while healthy", async (t) => {
  const sent: (readonly string[])[] = [];
  const clock = new FakeClock();
  let healthy = true;
  const env = { NOTIFY_SOCKET: "@x", WATCHDOG_USEC: "2000000", WATCHDOG_PID: "7" };
  const send = async (lines: readonly string[]): Promise<void> => void sent.push(lines);
  const notifier = createNotifier({ env, clock, log, send, pid: 7 });
  notifier.watchdog(async () => healthy);
  await clock.advance(3000);
  t.equal(sent.length, 4, "at once and every second");
  healthy = false;
  await clock.advance(3000);
  t.equal(sent.length, 4);
  healthy = true;
  await clock.advance(1000);
  t.equal(sent.length, 5, "and again once it is well");
  await notifier[Symbol.asyncDispose]();
  t.equal(clock.pending, 0);
});

t.test("watchdogIntervalMs() is half of WATCHDOG_USEC, when WATCHDOG_PID is this process or absent", async (t) => {
  t.equal(watchdogIntervalMs({ WATCHDOG_USEC: "30000000" }, 1), 15_000);
  t.equal(watchdogIntervalMs({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "2" }, 1), undefined);
  for (const bad of [undefined, "", "0", "-5", "soon"])
    t.equal(watchdogIntervalMs({ WATCHDOG_USEC: bad }, 1), undefined);
});

t.test("createNotifier() sends to real datagram sockets, by path and abstract", async (t) => {
  if (spawnSync("socat", ["-V"]).status !== 0) {
    console.log("# socat is not present: 2 checks left out");
    return;
  }
  const directory = mkdtempSync(join(tmpdir(), "svc-notify-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const name = `svc-notify-test-${process.pid}`;
  for (const [socket, address] of [
    [join(directory, "socket"), `UNIX-RECV:${join(directory, "socket")}`],
    [`@${name}`, `ABSTRACT-RECV:${name}`],
  ] as const) {
    const receiver = spawn("socat", ["-u", "-d", "-d", address, "STDOUT"], { stdio: ["ignore", "pipe", "pipe"] });
    t.teardown(() => receiver.kill());
    await new Promise<void>((resolve) => {
      let text = "";
      receiver.stderr.on("data", (data) => {
        text += String(data);
        if (text.includes("starting data transfer")) resolve();
      });
    });
    const received = new Promise<string>((resolve) => receiver.stdout.once("data", (data) => resolve(String(data))));
    await using notifier = createNotifier({
      env: { PATH: process.env.PATH, NOTIFY_SOCKET: socket },
      clock: new FakeClock(),
      log,
    });
    await notifier.ready("up");
    t.match((await received).trim(), "READY=1\nSTATUS=up");
  }
});
