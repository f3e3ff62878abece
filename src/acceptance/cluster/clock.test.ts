/** A machine whose clock is wrong when svc starts and is set while svc runs. */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
const YEAR_MS = 366 * 86_400_000;

/** A module loaded before svc; the file has the offset of the clock in milliseconds. */
const shift = (file: string): string => `
import { readFileSync } from "node:fs";
const now = Date.now.bind(Date);
let ahead = 0;
const look = () => { ahead = Number(readFileSync(${JSON.stringify(file)}, "utf8")); };
look();
setInterval(look, 100).unref();
globalThis.Date = class extends Date {
  constructor(...parts) {
    if (parts.length === 0) super(now() + ahead);
    else super(...parts);
  }
  static now() {
    return now() + ahead;
  }
};
`;

t.setTimeout(300_000);

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test(
    "svc up starts with a clock in 1970 or a year ahead, and its node stays ready when the clock is set",
    async (t) => {
      const directory = mkdtempSync(join(tmpdir(), "svc-clock-"));
      t.teardown(() => rmSync(directory, { recursive: true }));
      const [file, preload] = [join(directory, "ahead"), join(directory, "shift.mjs")];
      const set = (ahead: number): void => writeFileSync(file, `${ahead}`);
      set(5000 - Date.now());
      writeFileSync(preload, shift(file));
      const [node = "", ...words] = programs.sources;
      await using cluster = await TestCluster.create({ program: [node, `--import=${preload}`, ...words] });
      await cluster.start();
      const authority = readFileSync(join(cluster.dataDir, "pki/ca.crt"), "utf8");
      const certificate = (): X509Certificate =>
        new X509Certificate(readFileSync(join(cluster.dataDir, "agent/pki/svclet-client-current.pem")));
      const heartbeat = async (): Promise<number> => {
        const path = "jsonpath={.spec.renewTime}";
        const { stdout } = await cluster.kubectl(["get", "lease", "e2e", "-n", "kube-node-lease", "-o", path]);
        return Date.parse(stdout);
      };
      t.match(certificate().validFrom, / 1969 /);
      const goesOn = async (): Promise<void> => {
        const pid = cluster.pid;
        set(0);
        await until("a heartbeat of the node with the right time", async () =>
          Math.abs((await heartbeat()) - Date.now()) < 60_000 ? true : undefined,
        );
        const { validFromDate, validToDate } = certificate();
        t.ok(validFromDate.getTime() <= Date.now() && Date.now() < validToDate.getTime());
        t.equal(cluster.pid, pid);
      };
      await goesOn();
      t.equal(await cluster.stop(), 0);
      set(YEAR_MS);
      await cluster.start();
      t.ok(certificate().validFromDate.getTime() > Date.now(), "issued by a clock that is a year ahead");
      await goesOn();
      t.equal(readFileSync(join(cluster.dataDir, "pki/ca.crt"), "utf8"), authority, "the CA is unchanged");
      t.equal(await cluster.stop(), 0);
    },
  );
}
