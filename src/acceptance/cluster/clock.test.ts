/** A machine whose clock is not set when svc starts, or is wrong, and is set while svc runs. */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { clusterLack, programs, TestCluster } from "./cluster.ts";

const lack = clusterLack();
const YEAR_MS = 366 * 86_400_000;

/** Loaded before svc: its clock is ahead by as many milliseconds as the file says. */
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

if (lack !== undefined) console.error(`Whole clusters are left out: ${lack}.`);
else {
  t.test("svc up starts in 1970, or a year ahead, and its node goes on when the clock is set", async (t) => {
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
      await until("the node to be heard of by the right clock", async () =>
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
    t.ok(certificate().validFromDate.getTime() > Date.now(), "made by a clock that is a year ahead");
    await goesOn();
    t.equal(readFileSync(join(cluster.dataDir, "pki/ca.crt"), "utf8"), authority, "whom all trust is who it was");
    t.equal(await cluster.stop(), 0);
  });
}
