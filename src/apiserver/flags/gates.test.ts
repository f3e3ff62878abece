import t from "tap";
import { agentGates } from "../../flags/gate-tables/agent.ts";
import { allGates } from "../../flags/gate-tables/all.ts";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { controllerManagerGates } from "../../flags/gate-tables/controller-manager.ts";
import { schedulerGates } from "../../flags/gate-tables/scheduler.ts";
import { gatesWithoutEffect } from "../../flags/gate-tables/without-effect.ts";
import { findGateReads, programFolders } from "../../testing/flags/gate-reads.ts";

/** Read by the code of the flags, which all programs share. */
const shared = ["AllAlpha", "AllBeta"];
const tables = {
  apiserver: apiserverGates,
  agent: agentGates,
  controllerManager: controllerManagerGates,
  scheduler: schedulerGates,
} as const;
const programs = Object.keys(tables) as (keyof typeof tables)[];

const readBy = (program: keyof typeof tables) => [...shared, ...findGateReads(programFolders[program]).keys()];

for (const program of programs) {
  t.test(`the effective gates of ${program} are exactly those that its code reads`, async (t) => {
    const effective = Object.keys(tables[program]).filter((name) => tables[program][name]?.effective);
    t.same(effective.sort(), [...new Set(readBy(program))].sort());
  });
}

t.test("every gate is read, locked or without possible effect", async (t) => {
  const read = new Set(programs.flatMap(readBy));
  const unknown = [...gatesWithoutEffect.keys()].filter((name) => !Object.hasOwn(allGates, name));
  t.same(unknown, [], "those without effect are gates");
  for (const name of Object.keys(allGates)) {
    const rows = [agentGates[name], apiserverGates[name]].filter((row) => row !== undefined);
    const states = {
      read: read.has(name),
      locked: !read.has(name) && rows.some(({ locked }) => locked),
      withoutEffect: gatesWithoutEffect.has(name),
    };
    const found = Object.entries(states).flatMap(([state, holds]) => (holds ? [state] : []));
    t.equal(found.length, 1, `${name}: ${found.join(" and ")}`);
  }
});
