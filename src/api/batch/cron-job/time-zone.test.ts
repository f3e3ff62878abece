import t from "tap";
import { isTimeZone } from "./time-zone.ts";

t.test("isTimeZone() accepts names of the IANA database in its spelling only", async (t) => {
  for (const name of ["UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Etc/GMT+1", "US/Pacific", "EST"]) {
    t.equal(isTimeZone(name), true, name);
  }
  for (const name of [
    "Mars/Base",
    "europe/paris",
    "+01:00",
    "+0100",
    "Europe//Paris",
    "../UTC",
    " x y ",
    "Europe/-1",
  ]) {
    t.equal(isTimeZone(name), false, name);
  }
});
