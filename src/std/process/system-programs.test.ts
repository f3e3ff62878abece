import { existsSync } from "node:fs";
import t from "tap";
import { findSystemProgram } from "./system-programs.ts";

t.test("findSystemProgram() looks in the PATH and in the directories of system programs", async (t) => {
  t.ok(existsSync((await findSystemProgram("sh", { PATH: "/nowhere" })) ?? ""));
  t.equal(await findSystemProgram("no-such-program"), undefined);
});
