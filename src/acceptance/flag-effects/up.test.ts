/** The effect of each flag of `svc up`. */
import t from "tap";
import { upFlags } from "../../up/flags.ts";
import { upEffects as effects } from "./up-effects.ts";

t.test("every flag without an inert mark has a test", async (t) => {
  const marked = Object.entries(upFlags).filter(([, row]) => row.inert === undefined);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

for (const [name, shows] of Object.entries(effects)) {
  t.test(`--${name} has an effect`, async (t) => {
    await shows(t);
  });
}
