/** The effect of each flag and feature gate of `svc controller-manager`. */
import t from "tap";
import { controllerManagerFlags } from "../../controller-manager/flags.ts";
import type { Flag } from "../../flags/flag.ts";
import { controllerManagerGates } from "../../flags/gate-tables/controller-manager.ts";
import {
  controllerManagerEffects as effects,
  controllerManagerGateEffects as gateEffects,
} from "./controller-manager-effects.ts";

t.test("every flag without an inert mark has a test", async (t) => {
  const rows = Object.entries(controllerManagerFlags) as [string, Flag][];
  const marked = rows.filter(([, row]) => row.inert === undefined);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

for (const [name, shows] of Object.entries(effects)) {
  t.test(`--${name} has an effect`, async (t) => {
    await shows(t);
  });
}

t.test("every gate that the program reads has a test", async (t) => {
  const read = Object.keys(controllerManagerGates).filter((name) => controllerManagerGates[name]?.effective);
  t.same(Object.keys(gateEffects).sort(), read.sort());
});

for (const [name, shows] of Object.entries(gateEffects)) t.test(`gate ${name} has an effect`, shows);
