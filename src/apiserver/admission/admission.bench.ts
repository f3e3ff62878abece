/** Run by `make bench`: prints one JSON line for each sample with the cost of the default admission plugins. */
import type { AdmissionContext } from "../../admission/chain/chain.ts";
import { builtinScheme } from "../../api/builtin.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { alwaysAllow } from "../../auth/authz/always.ts";
import { configMap, pod } from "../../bench/objects.ts";
import { create } from "../../registry/create.ts";
import { Registries } from "../../registry/registries.ts";
import { applyDefaults } from "../../registry/write/apply-defaults.ts";
import { decode } from "../../schema/decode/decode.ts";
import { systemRandom as random } from "../../std/crypto/random.ts";
import { silentLogger as log } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock as clock } from "../../std/time/clock.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { defaultConfig } from "../config/default-config.ts";
import { systemScope } from "../control-plane/ensure.ts";
import { objectKindOf } from "../handlers/admission.ts";
import { createAdmissionChain } from "./admission.ts";

const CALLS = 20_000;
const ROUNDS = 6;

const stopping = new AbortController();
await using registries = new Registries(builtinScheme(), {
  store: createMemoryStore({ clock }),
  prefix: "/registry",
  clock,
  random,
  log,
});
await create(registries.of(namespaceKind), systemScope("", stopping.signal), { metadata: { name: "default" } });
const account = { metadata: { name: "default", namespace: "default" } };
await create(registries.of(serviceAccountKind), systemScope("default", stopping.signal), account);
const metrics = new MetricRegistry();
const clientCertificate = () => undefined;
const deps = {
  registries,
  authorizer: alwaysAllow,
  clock,
  random,
  log,
  metrics,
  clientCertificate,
  stopping: stopping.signal,
};
const admission = { ...defaultConfig.admission, disabled: [] };
const chain = await createAdmissionChain({ ...defaultConfig, admission }, deps);

const samples = [
  [configMap, configMapKind as Kind],
  [pod, podKind as Kind],
] as const;
for (const [sample, kind] of samples) {
  const { value } = decode(kind.schema, sample.create("web"));
  const object = applyDefaults({ registry: registries.of(kind) }, value as ApiObject);
  const us = await cpuUs(async () => {
    const about = aboutOf(kind);
    const admitted = await chain.mutate(about, "CREATE", object);
    await chain.validate(about, "CREATE", admitted);
  });
  process.stdout.write(`${JSON.stringify({ admitting: sample.title, us: Number(us.toFixed(1)) })}\n`);
}

/** The context of a request, with a lazy signal. */
function aboutOf(kind: Kind): AdmissionContext {
  return {
    kind,
    group: kind.group,
    subresource: "",
    objectKind: objectKindOf({ kind, group: kind.group }),
    namespace: "default",
    name: "",
    dryRun: false,
    user: { name: "jo", uid: "", groups: [], extra: {} },
    get signal() {
      return new AbortController().signal;
    },
    warn() {},
    annotate() {},
    optionsFor: () => undefined,
  };
}

/** The best of the rounds, after one to warm up. */
async function cpuUs(work: () => Promise<void>): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await work();
    const { user, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (user + system) / CALLS);
  }
  return best;
}
