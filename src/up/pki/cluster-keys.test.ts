import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { parseFlags } from "../../flags/parse.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { upFlags } from "../flags.ts";
import { upOptions } from "../options.ts";
import { adminConfigFile, openClusterKeys, renewKeys } from "./cluster-keys.ts";

const NOW = Date.UTC(2027, 0, 1);
const DAY_MS = 86_400_000;

t.test("renewKeys() renews the certificates of servers and administrator at run time", async (t) => {
  const time = new FakeClock(NOW);
  let ahead = 0;
  const clock: Clock = {
    now: () => time.now() + ahead,
    monotonic: () => time.monotonic(),
    sleep: (ms, signal) => time.sleep(ms, signal),
    timer: (ms, callback) => time.timer(ms, callback),
  };
  const dataDir = join(t.testdir(), "svc");
  const eth0 = { address: "192.0.2.2", family: "IPv4", internal: false, netmask: "", mac: "", cidr: null } as const;
  const host = { hostname: "edge", interfaces: { eth0: [eth0] }, routes: undefined };
  const options = upOptions(parseFlags(upFlags, [`--data-dir=${dataDir}`]), host);
  const deps = { clock, log: silentLogger };
  const first = await openClusterKeys(options, deps);
  await using _keeping = renewKeys(options, deps);
  const serial = (path: string): string => new X509Certificate(readFileSync(path)).serialNumber;
  const before = serial(first.apiServer.certFile);
  await time.advance(60_000);
  t.equal(serial(first.apiServer.certFile), before, "there is time");
  ahead = 300 * DAY_MS;
  const shown = async () => await loadKubeconfig(adminConfigFile(options));
  const validTo = async () => new X509Certificate((await shown()).cert ?? "").validToDate.getTime();
  for (let tries = 0; tries < 1000 && (await validTo()) < clock.now() + 300 * DAY_MS; tries++) {
    await time.advance(60_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.not(serial(first.apiServer.certFile), before);
  t.ok((await validTo()) > clock.now() + 300 * DAY_MS);
  t.equal((await shown()).ca, first.ca);
  t.equal(statSync(adminConfigFile(options)).mode & 0o777, 0o600);
});
