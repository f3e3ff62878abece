/** The effect of each flag and feature gate of `svc scheduler`. */
import t from "tap";
import type { Flag } from "../../flags/flag.ts";
import { schedulerGates } from "../../flags/gate-tables/scheduler.ts";
import { schedulerFlags } from "../../scheduler/flags.ts";
import { schedulerEffects as effects, schedulerGateEffects as gateEffects } from "./scheduler-effects.ts";

t.test("every flag without an inert mark has a test", async (t) => {
  const rows = Object.entries(schedulerFlags) as [string, Flag][];
  const marked = rows.filter(([, row]) => row.inert === undefined);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

for (const [name, shows] of Object.entries(effects)) {
  t.test(`--${name} has an effect`, async (t) => {
    await shows(t);
  });
}

t.test("every gate that the program reads has a test", async (t) => {
  const read = Object.keys(schedulerGates).filter((name) => schedulerGates[name]?.effective);
  t.same(Object.keys(gateEffects).sort(), read.sort());
});

for (const [name, shows] of Object.entries(gateEffects)) t.test(`gate ${name} has an effect`, shows);
