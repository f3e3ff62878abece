/** The effect of each flag of `svc apiserver` on a server in this process. */
import t from "tap";
import { apiserverFlags } from "../../../apiserver/flags/flags.ts";
import { apiserverGates } from "../../../flags/gate-tables/apiserver.ts";
import { apiserverEffects as effects } from "./effects.ts";
import { gateEffects } from "./gate-effects.ts";

t.test("every flag without an inert mark has a test", async (t) => {
  const marked = Object.entries(apiserverFlags).filter(([, row]) => row.inert === undefined);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

/** Locked gates have no other value. */
const withoutEffect = ["StructuredAuthorizationConfiguration"];

t.test("every gate that the server reads has a test", async (t) => {
  const read = Object.keys(apiserverGates).filter((name) => apiserverGates[name]?.effective);
  t.same([...Object.keys(gateEffects), ...withoutEffect].sort(), read.sort());
});

for (const [name, shows] of Object.entries(gateEffects)) t.test(`gate ${name} has an effect`, shows);

for (const [name, shows] of Object.entries(effects)) {
  t.test(`--${name} has an effect`, async (t) => {
    await shows(t);
  });
}
