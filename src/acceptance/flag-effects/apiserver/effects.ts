/** The effect of each flag of `svc apiserver`. */
import { accessEffects } from "./access-effects.ts";
import { admissionEffects } from "./admission-effects.ts";
import { aggregationEffects } from "./aggregation-effects.ts";
import { auditEffects } from "./audit-effects.ts";
import { authenticationEffects } from "./authentication-effects.ts";
import { authorizationEffects } from "./authorization-effects.ts";
import { certificateEffects } from "./certificate-effects.ts";
import { egressEffects } from "./egress-effects.ts";
import { encryptionEffects } from "./encryption-effects.ts";
import { lifecycleEffects } from "./lifecycle-effects.ts";
import { peerEffects } from "./peer-effects.ts";
import { serviceAccountEffects } from "./service-account-effects.ts";
import { servingEffects } from "./serving-effects.ts";
import { storageEffects } from "./storage-effects.ts";
import { type Effect, file, type Name, startServer } from "./support.ts";
import { tracingEffects } from "./tracing-effects.ts";

export const apiserverEffects: Partial<Record<Name, Effect>> = {
  ...servingEffects,
  ...lifecycleEffects,
  ...accessEffects,
  ...storageEffects,
  ...authenticationEffects(startServer),
  ...serviceAccountEffects(startServer),
  ...admissionEffects(startServer),
  ...authorizationEffects(startServer, file("tokens")),
  ...certificateEffects(startServer),
  ...auditEffects(startServer),
  ...encryptionEffects(startServer),
  ...egressEffects(startServer),
  ...aggregationEffects(startServer),
  ...tracingEffects(startServer),
  ...peerEffects,
};
