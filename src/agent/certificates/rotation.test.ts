import { lstatSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import type { KeyPair } from "../../auth/pki/key-pair.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { rotateCertificate } from "./rotation.ts";

const START = Date.UTC(2026, 0, 1);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ca = await createCa("ca", 4000, START - 400 * DAY);
const certificate = (days: number, now: number): Promise<KeyPair> =>
  issueCertificate(ca, { commonName: "n", usages: ["client"], days }, now);

/** Runs a rotation against a CA whose clock is right, independent of the node's clock. */
async function rotation(t: Pick<Test, "teardown">, first: KeyPair | undefined, aheadMs = 0, away = false, days = 10) {
  const right = new FakeClock(START);
  let ahead = aheadMs;
  const clock: Clock = {
    now: () => right.now() + ahead,
    monotonic: () => right.monotonic(),
    sleep: (ms, signal) => right.sleep(ms, signal),
    timer: (ms, callback) => right.timer(ms, callback),
  };
  let failing = away;
  let busy = false;
  const got: KeyPair[] = [];
  let requests = 0;
  const stop = new AbortController();
  const running = rotateCertificate(
    {
      certificate: first,
      async request() {
        requests++;
        if (failing) throw new Error("away");
        busy = true;
        return await certificate(days, right.now());
      },
      async use(pair) {
        got.push(pair);
        busy = false;
      },
      description: "certificate",
      clock,
      random: { ...seededRandom(1), fraction: () => 0.5 },
      log: silentLogger,
    },
    stop.signal,
  );
  t.teardown(async () => {
    stop.abort();
    await running;
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 5 || busy; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    got,
    requests: () => requests,
    fail: (now: boolean) => {
      failing = now;
    },
    setClock: (to: number) => {
      ahead = to;
    },
    /** Time since the start of the node. */
    async pass(ms: number, step = HOUR) {
      for (let left = ms; left > 0; left -= step) {
        await right.advance(Math.min(step, left));
        await settle();
      }
    },
  };
}

t.test("rotateCertificate() requests a certificate when 80 % of the validity have passed", async (t) => {
  const node = await rotation(t, await certificate(10, START));
  await node.pass(7.5 * DAY);
  t.equal(node.got.length, 0);
  await node.pass(DAY);
  t.equal(node.got.length, 1);
  await node.pass(8.5 * DAY);
  t.equal(node.got.length, 2);
});

t.test("rotateCertificate() renews backdated certificates that are valid for a minute in time", async (t) => {
  const minute = 60_000 / DAY;
  const node = await rotation(t, undefined, 0, false, minute);
  await node.pass(40_000, 1000);
  t.equal(node.requests(), 1);
  await node.pass(18_000, 1000);
  t.equal(node.requests(), 2, "before the minute is over");
  await node.pass(100_000, 1000);
  t.ok(node.requests() <= 5, `${node.requests()} times`);
});

t.test("rotateCertificate() requests one at once when there is none, and retries with back-off", async (t) => {
  const node = await rotation(t, undefined, 0, true);
  await node.pass(10 * 60_000, 1_000);
  t.ok(node.requests() > 5 && node.requests() < 20, `${node.requests()} times in ten minutes`);
  node.fail(false);
  await node.pass(5 * 60_000, 1_000);
  t.equal(node.got.length, 1);
});

t.test("rotateCertificate() works with clocks that are wrong and then set", async (t) => {
  const unset = await rotation(t, await certificate(10, START), -START);
  await unset.pass(DAY);
  t.equal(unset.requests(), 0, "in 1970 nothing is due");
  unset.setClock(0);
  await unset.pass(8.5 * DAY);
  t.equal(unset.got.length, 1, "it continues when the clock is set");
  const ahead = await rotation(t, await certificate(10, START), 365 * DAY);
  await ahead.pass(5 * DAY);
  t.equal(ahead.requests(), 1, "one request shows that the clock is a year ahead");
  await ahead.pass(5 * DAY);
  t.equal(ahead.requests(), 2, "from then on the monotonic clock counts");
  ahead.setClock(0);
  await ahead.pass(8.5 * DAY);
  t.ok(ahead.requests() >= 3 && ahead.requests() <= 4);
  const back = await rotation(t, await certificate(10, START + 365 * DAY), 365 * DAY);
  await back.pass(HOUR);
  t.equal(back.requests(), 0);
  back.setClock(0);
  await back.pass(DAY);
  t.equal(back.requests(), 1, "a certificate from a clock that was ahead is renewed when the clock is set back");
  const born = await rotation(t, undefined, -START);
  await born.pass(7 * DAY);
  t.equal(born.requests(), 1);
  await born.pass(2 * DAY);
  t.equal(born.requests(), 2, "a node whose clock was never set renews all the same");
});

t.test("CertificateFiles keeps the latest two files with mode 0600, behind a symbolic link", async (t) => {
  const directory = join(t.testdir(), "pki");
  const files = new CertificateFiles(directory, "client");
  t.equal(await files.read(), undefined);
  for (let i = 0; i < 4; i++) await files.write(await certificate(10 + i, START), START + i * 1000);
  const names = readdirSync(directory).sort();
  t.same(names, [
    "svclet-client-2026-01-01-00-00-02.pem",
    "svclet-client-2026-01-01-00-00-03.pem",
    "svclet-client-current.pem",
  ]);
  t.ok(lstatSync(files.current).isSymbolicLink());
  t.equal(readlinkSync(files.current), names[1]);
  t.equal(statSync(files.current).mode & 0o777, 0o600);
  t.match((await files.read())?.key, /PRIVATE KEY/);
});
