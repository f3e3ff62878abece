import t from "tap";
import { setCronJobDefaults } from "./defaults.ts";
import type { CronJob } from "./schema.ts";
import { validateCronJob } from "./validation.ts";

const template = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } as const;

function errors(name: string, timeZone?: string): readonly string[] {
  const object: CronJob = setCronJobDefaults({
    metadata: { name },
    spec: { schedule: "@daily", jobTemplate: { spec: { template } }, ...(timeZone === undefined ? {} : { timeZone }) },
  });
  return validateCronJob(object, undefined).map(({ field, detail }) => `${field}: ${detail}`);
}

t.test("names of cron jobs leave eleven bytes for the timestamp of their jobs", async (t) => {
  const long = ["metadata.name: must be no more than 52 characters"];
  t.same(errors("a".repeat(52)), []);
  t.same(errors("a".repeat(53)), long);
  t.same(errors("\u00e9".repeat(26)), []);
  t.same(errors("\u00e9".repeat(27)), long);
});

t.test("the local time zone is rejected in any spelling", async (t) => {
  const local = "spec.timeZone: timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  t.same(errors("a", "Local"), [local]);
  t.same(errors("a", "LOCAL"), [local, "spec.timeZone: unknown time zone LOCAL"]);
  t.same(errors("a", "Etc/Nowhere"), ["spec.timeZone: unknown time zone Etc/Nowhere"]);
  t.same(errors("a", "Europe/Paris"), []);
});

t.test("a name of a time zone with two dots is no location, unless it has other characters", async (t) => {
  const [at, unknown] = ["spec.timeZone: ", "unknown time zone "];
  for (const zone of ["a..b", "a/b..", "a/..b/c"])
    t.same(errors("a", zone), [`${at}time: invalid location name`], zone);
  for (const zone of ["..", "a/../b", "a..b c", "/a..b", "-a..b", `${"a".repeat(13)}..`]) {
    t.same(errors("a", zone), [`${at}${unknown}${zone}`], zone);
  }
});
