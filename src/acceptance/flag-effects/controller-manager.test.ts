/** The effect of each flag of `svc controller-manager`. */
import t from "tap";
import { controllerManagerFlags } from "../../controller-manager/flags.ts";
import type { Flag } from "../../flags/flag.ts";
import { controllerManagerEffects as effects } from "./controller-manager-effects.ts";

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
