/** The effect of the gates of fields: they are dropped while the gate is off, and some rules apply at one value. */
import { betaKinds } from "../../../api/beta-kinds.ts";
import { builtinKinds } from "../../../api/builtin.ts";
import { createDropDisabledFields } from "../../../api/gated-fields/drop-disabled-fields.ts";
import { createValidateGated } from "../../../api/gated-fields/gated-validation.ts";
import { disabledRules } from "../../../api/gated-fields/rules.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { previewKinds } from "../../../api/preview-kinds.ts";
import { apiserverGates } from "../../../flags/gate-tables/apiserver.ts";
import { configWith, type Gates } from "./gate-settings.ts";
import type { Effect } from "./support.ts";

const kinds: readonly Kind[] = [...builtinKinds, ...betaKinds, ...previewKinds];

/** Other gates of a field are on. */
function featuresWith(gates: Gates, others: readonly string[]) {
  const enabled = configWith(gates).observability.features.filter(({ enabled }) => enabled);
  const names = new Set([...enabled.map(({ name }) => name), ...others]);
  return { has: (name: string) => names.has(name) };
}

/** `a[].b` becomes `{ a: [{ b: value }] }`. */
function objectWith(path: string, value: unknown): ApiObject {
  const [first = "", ...rest] = path.split(".");
  const inner = rest.length === 0 ? value : objectWith(rest.join("."), value);
  return first.endsWith("[]") ? { [first.slice(0, -2)]: [inner] } : { [first]: inner };
}

/** Objects that rules without a path drop a part of. */
const samples: Readonly<Record<string, ApiObject>> = {
  ImageVolume: objectWith("spec.volumes[]", { name: "v", image: { reference: "i" } }),
  CrossNamespaceVolumeDataSource: objectWith("spec.dataSourceRef", { kind: "K", name: "n", namespace: "other" }),
};

function dropsField(gate: string): Effect {
  return async (t) => {
    const normal = apiserverGates[gate]?.default ?? false;
    for (const value of [true, false]) {
      const features = featuresWith(value === normal ? {} : { [gate]: value }, []);
      for (const kind of kinds.filter(({ conversion }) => conversion === undefined)) {
        const rules = disabledRules(kind.group, kind.plural, { has: (name) => name !== gate });
        for (const { rule, scope } of rules) {
          const others = rule.gates.filter((name) => name !== gate);
          const drop = createDropDisabledFields(kind, { has: (name) => others.includes(name) || features.has(name) });
          const [path] = rule.paths;
          const sample = path === undefined ? samples[gate] : objectWith(scope === "" ? path : `${scope}.${path}`, "v");
          if (sample === undefined || (path === undefined && kind.plural !== "pods" && scope !== "")) continue;
          const kept = (drop?.(sample, undefined) ?? sample) === sample;
          t.equal(kept, value, `${kind.plural} ${path} with ${gate}=${value}`);
        }
      }
    }
  };
}

const gatesOfFields = new Set(
  kinds.flatMap(({ group, plural }) =>
    disabledRules(group, plural, { has: () => false }).flatMap(({ rule }) => rule.gates),
  ),
);

const pod = (spec: object): ApiObject => ({ spec }) as ApiObject;

/** Objects that are invalid with one value of a gate. */
const invalidWith: Readonly<Record<string, { readonly value: boolean; readonly object: ApiObject }>> = {
  PodLifecycleSleepActionAllowZero: {
    value: false,
    object: pod({ containers: [{ lifecycle: { preStop: { sleep: { seconds: 0 } } } }] }),
  },
  RelaxedDNSSearchValidation: { value: false, object: pod({ dnsConfig: { searches: ["_a.example"] } }) },
  RelaxedEnvironmentVariableValidation: { value: false, object: pod({ containers: [{ env: [{ name: "1" }] }] }) },
  SELinuxMount: { value: false, object: pod({ securityContext: { seLinuxChangePolicy: "MountOption" } }) },
  StrictIPCIDRValidation: { value: true, object: pod({ hostAliases: [{ ip: "010.0.0.1" }] }) },
};

function validates(gate: string): Effect {
  const { value: rejecting, object } = invalidWith[gate]!;
  const podKind = kinds.find(({ plural }) => plural === "pods")!;
  const normal = apiserverGates[gate]?.default ?? false;
  return async (t) => {
    for (const value of [true, false]) {
      const features = featuresWith(value === normal ? {} : { [gate]: value }, []);
      const errors = createValidateGated(podKind, features)?.(object, undefined) ?? [];
      t.equal(errors.length > 0, value === rejecting, `${gate}=${value}`);
    }
  };
}

const read = (name: string): boolean => apiserverGates[name]?.effective === true;

export const fieldGateEffects: Readonly<Record<string, Effect>> = {
  ...Object.fromEntries([...gatesOfFields].filter(read).map((gate) => [gate, dropsField(gate)])),
  ...Object.fromEntries(Object.keys(invalidWith).map((gate) => [gate, validates(gate)])),
};
