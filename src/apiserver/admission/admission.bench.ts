/**
 * Run by `make bench`: prints one JSON line for each sample with the cost of the default admission plugins, and one for
 * each number of admission policies with the cost that each policy adds to a request that it matches.
 */

import type { AdmissionContext } from "../../admission/chain/chain.ts";
import { validatingAdmissionPolicyKind } from "../../api/admissionregistration/validating-admission-policy/kind.ts";
import { validatingAdmissionPolicyBindingKind } from "../../api/admissionregistration/validating-admission-policy-binding/kind.ts";
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
  const us = await admissionUs(sample, kind);
  process.stdout.write(`${JSON.stringify({ admitting: sample.title, us: round(us) })}\n`);
}

const scope = systemScope("", stopping.signal);
const rule = { operations: ["*" as const], apiGroups: [""], apiVersions: ["*"] };

const simple: readonly object[] = [{ expression: "object.metadata.name != 'bad' && size(object.metadata.name) < 64" }];

/** Creates policies for a resource. */
async function createPolicies(
  prefix: string,
  count: number,
  resource: string,
  rest: object = { validations: simple },
): Promise<void> {
  for (let index = 0; index < count; index++) {
    const name = `${prefix}-${index}`;
    await create(registries.of(validatingAdmissionPolicyKind), scope, {
      metadata: { name },
      spec: {
        matchConstraints: { resourceRules: [{ ...rule, resources: [resource] }] },
        ...rest,
      },
    });
    const spec = { policyName: name, validationActions: ["Deny" as const] };
    await create(registries.of(validatingAdmissionPolicyBindingKind), scope, { metadata: { name }, spec });
  }
}

const before = await admissionUs(configMap, configMapKind as Kind);
await createPolicies("config-map", 10, "configmaps");
for (const others of [0, 1000]) {
  await createPolicies("other", others, "secrets");
  const us = (await admissionUs(configMap, configMapKind as Kind)) - before;
  const title = `10 policies match${others === 0 ? "" : `, ${others} do not`}`;
  process.stdout.write(`${JSON.stringify({ policies: title, usPerMatch: round(us / 10) })}\n`);
}

const alone = await admissionUs(configMap, configMapKind as Kind);
await createPolicies("rich", 10, "configmaps", {
  variables: [{ name: "length", expression: "object.data.size()" }],
  validations: [
    { expression: "variables.length < 10", messageExpression: "'too many keys: ' + string(variables.length)" },
    { expression: "!object.metadata.name.startsWith('forbidden-') || request.userInfo.username == 'admin'" },
  ],
});
const richUs = ((await admissionUs(configMap, configMapKind as Kind)) - alone) / 10;
const rich = "10 policies with a variable, a message and two validations match";
process.stdout.write(`${JSON.stringify({ policies: rich, usPerMatch: round(richUs) })}\n`);

function round(us: number): number {
  return Number(us.toFixed(1));
}

async function admissionUs(sample: typeof pod, kind: Kind): Promise<number> {
  const { value } = decode(kind.schema, sample.create("web"));
  const object = applyDefaults({ registry: registries.of(kind) }, value as ApiObject);
  return await cpuUs(async () => {
    const about = aboutOf(kind);
    const admitted = await chain.mutate(about, "CREATE", object);
    await chain.validate(about, "CREATE", admitted);
  });
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
