import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { watchOom } from "./oom-watch.ts";

t.test("watchOom() records an event for each new out-of-memory kill of the system", async (t) => {
  const killed = (name: string) =>
    `3,90,70,-;Out of memory: Killed process 7 (${name}) total-vm:1kB, anon-rss:1kB, oom_score_adj:0\n`;
  const records = [killed("before")];
  const events: string[] = [];
  const clock = new FakeClock();
  const stop = new AbortController();
  let isClosed = false;
  const running = watchOom({
    recordEvent: (...event) => void events.push(event.join(" ")),
    clock,
    log: silentLogger,
    signal: stop.signal,
    open: async () => ({
      read: async () => records.shift(),
      [Symbol.asyncDispose]: async () => {
        isClosed = true;
      },
    }),
  });
  await clock.advance(0);
  records.push(
    "6,91,71,-;eth0: link becomes ready\n",
    "3,92,72,-;Memory cgroup out of memory: Killed process 8 (pod) total-vm:1kB\n",
    killed("greedy (thing"),
  );
  await clock.advance(5_000);
  t.same(events, ["Warning SystemOOM System OOM encountered, victim process: greedy (thing, pid: 7"]);
  stop.abort();
  await running;
  t.ok(isClosed);
  t.equal(clock.pending, 0);
});

t.test("watchOom() does nothing when the kernel's log cannot be read", async (t) => {
  const open = () => Promise.reject(new Error("EPERM"));
  const signal = new AbortController().signal;
  await watchOom({ recordEvent: () => t.fail(), clock: new FakeClock(), log: silentLogger, signal, open });
  t.pass("it ends");
});
