/** The effect of each flag of `svc apiserver` on a server in this process. */
import t from "tap";
import { apiserverFlags } from "../../../apiserver/flags/flags.ts";
import { accessEffects } from "./access-effects.ts";
import { admissionEffects } from "./admission-effects.ts";
import { authenticationEffects } from "./authentication-effects.ts";
import { authorizationEffects } from "./authorization-effects.ts";
import { certificateEffects } from "./certificate-effects.ts";
import { lifecycleEffects } from "./lifecycle-effects.ts";
import { serviceAccountEffects } from "./service-account-effects.ts";
import { servingEffects } from "./serving-effects.ts";
import { storageEffects } from "./storage-effects.ts";
import { type Effect, file, type Name, startServer } from "./support.ts";

const effects: Partial<Record<Name, Effect>> = {
  ...servingEffects,
  ...lifecycleEffects,
  ...accessEffects,
  ...storageEffects,
  ...authenticationEffects(startServer),
  ...serviceAccountEffects(startServer),
  ...admissionEffects(startServer),
  ...authorizationEffects(startServer, file("tokens")),
  ...certificateEffects(startServer),
};

t.test("every flag without an inert mark has a test", async (t) => {
  const marked = Object.entries(apiserverFlags).filter(([, row]) => row.inert === undefined);
  t.same(Object.keys(effects).sort(), marked.map(([name]) => name).sort());
});

for (const [name, shows] of Object.entries(effects)) {
  t.test(`--${name} has an effect`, async (t) => {
    await shows(t);
  });
}
