import { EventEmitter } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { until } from "../../../testing/std/until.ts";
import { createLogind } from "./logind.ts";
import { createSignalNotices, SHUTDOWN_SIGNAL } from "./shutdown-notices.ts";

/** Programs that play systemd's: logind with a delay of 5 s, or what its configuration has once it was reloaded. */
async function playSystemd(t: Test) {
  const directory = t.testdir({ conf: {} });
  const at = (name: string): string => join(directory, name);
  const script = async (name: string, text: string): Promise<string> => {
    await writeFile(at(name), `#!/bin/sh\n${text}\n`);
    await chmod(at(name), 0o755);
    return at(name);
  };
  const conf = at("conf/99-svclet.conf");
  const busctl = await script(
    "busctl",
    `echo "$*" >> ${at("calls")}
case "$*" in
*get-property*) if [ -e ${at("reloaded")} ]; then echo "t 30000000"; else echo "t 5000000"; fi;;
*KillUnit*) [ -e ${at("stubborn")} ] || touch ${at("reloaded")};;
*monitor*)
  echo "Monitoring bus message stream." >&2
  echo '{"type":"signal","member":"NameAcquired","payload":{"type":"s","data":[":1.7"]}}'
  echo 'no JSON'
  echo '{"type":"signal","member":"PrepareForShutdown","payload":{"type":"b","data":[true]}}'
  echo '{"type":"signal","member":"PrepareForShutdown","payload":{"type":"b","data":[false]}}'
  [ -e ${at("lost")} ] || exec sleep 100;;
esac`,
  );
  const systemdInhibit = await script(
    "systemd-inhibit",
    `echo "$1 $2 $3 $4" >> ${at("calls")}; while [ "$1" != sh ]; do shift; done; "$@"; echo released >> ${at("calls")}`,
  );
  const logind = createLogind({ busctl, systemdInhibit }, at("conf"));
  const calls = (): string => (existsSync(at("calls")) ? readFileSync(at("calls"), "utf8") : "");
  const touch = (name: string) => script(name, "");
  return { logind, calls, conf, touch };
}

t.test("prepare() raises logind's delay, and rejects when that does not help", async (t) => {
  const { logind, calls, conf, touch } = await playSystemd(t);
  await logind.prepare(5_000);
  t.notOk(existsSync(conf), "long enough");
  await touch("stubborn");
  await t.rejects(logind.prepare(30_000), {
    message:
      "node shutdown manager was unable to update logind InhibitDelayMaxSec to 30s (ShutdownGracePeriod), current " +
      "value of InhibitDelayMaxSec (5s) is less than requested ShutdownGracePeriod",
  });
  t.match(readFileSync(conf, "utf8"), "[Login]\nInhibitDelayMaxSec=30\n");
  await touch("reloaded");
  await logind.prepare(30_000);
  t.match(calls(), "org.freedesktop.systemd1.Manager KillUnit ssi systemd-logind.service all 1");
});

t.test("watch() passes the notices of logind on, until the signal aborts", async (t) => {
  const { logind, calls, touch } = await playSystemd(t);
  const stop = new AbortController();
  const notices: (boolean | string)[] = [];
  const watching = logind.watch(
    { onNotice: (isShuttingDown) => notices.push(isShuttingDown), onWatching: () => notices.push("watching") },
    stop.signal,
  );
  await until("both notices", () => notices.length === 3);
  stop.abort();
  await watching;
  t.same(new Set(notices), new Set(["watching", true, false]));
  t.match(calls(), "sender='org.freedesktop.login1'");
  await touch("lost");
  await t.rejects(logind.watch({ onNotice() {}, onWatching() {} }, new AbortController().signal), {
    message: "the connection to logind ended",
  });
});

t.test("inhibit() holds a delay lock until it is released", async (t) => {
  const { logind, calls } = await playSystemd(t);
  const lock = await logind.inhibit();
  t.match(calls(), "--what=shutdown --mode=delay --who=kubelet --why=Kubelet needs time to handle node shutdown");
  t.notMatch(calls(), "released");
  await lock?.release();
  t.match(calls(), "released");
  const missing = createLogind(
    { busctl: "/nonexistent/busctl", systemdInhibit: "/nonexistent/inhibit" },
    "/nonexistent",
  );
  await t.rejects(missing.inhibit(), { code: "ENOENT" });
  await t.rejects(missing.prepare(1), { code: "ENOENT" });
});

t.test("without logind a signal announces the shutdown", async (t) => {
  const emitter = new EventEmitter();
  const notices = createSignalNotices(emitter as NodeJS.Process);
  const stop = new AbortController();
  const seen: boolean[] = [];
  const watching = notices.watch(
    { onNotice: (isShuttingDown) => seen.push(isShuttingDown), onWatching() {} },
    stop.signal,
  );
  await notices.prepare(1_000);
  t.equal(await notices.inhibit(), undefined);
  emitter.emit(SHUTDOWN_SIGNAL);
  stop.abort();
  await watching;
  t.same(seen, [true]);
  t.equal(emitter.listenerCount(SHUTDOWN_SIGNAL), 0);
});
