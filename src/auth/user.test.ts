import t from "tap";
import { isInGroup } from "./user.ts";

t.test("isInGroup() finds groups among few and many, in a time that does not grow with both", async (t) => {
  for (const count of [0, 1, 16, 17, 8_000]) {
    const groups = Array.from({ length: count }, (_, index) => `g${index}`);
    for (const name of [groups[0], groups.at(-1)]) if (name !== undefined) t.ok(isInGroup({ groups }, name), name);
    for (const name of ["", "g", `g${count}`, "constructor"]) t.notOk(isInGroup({ groups }, name), `${count}: ${name}`);
  }
  const groups = Array.from({ length: 20_000 }, (_, index) => `team-${index}`);
  const began = process.cpuUsage();
  for (let index = 0; index < 20_000; index++) isInGroup({ groups }, `other-${index}`);
  const { user } = process.cpuUsage(began);
  // Each with each they take a second.
  t.ok(user < 200_000, `${user / 1000} ms`);
});
