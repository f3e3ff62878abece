/** Reads `PodSecurityConfiguration` of the admission configuration file. */
import { list, object, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { isLevel, LEVELS, type LevelVersion, type Mode, type Policy } from "./level.ts";
import { LATEST, parseVersion } from "./version.ts";

const IDENTITY: ConfigurationIdentity = {
  group: "pod-security.admission.config.k8s.io",
  versions: ["v1", "v1beta1", "v1alpha1"],
  kinds: ["PodSecurityConfiguration"],
};

const names = optional(0, list(string));

const podSecurityConfiguration = object("pod-security.admission.config.k8s.io/v1.PodSecurityConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  defaults: optional(
    0,
    object("pod-security.admission.config.k8s.io/v1.PodSecurityDefaults", {
      enforce: optional(0, string),
      "enforce-version": optional(0, string),
      audit: optional(0, string),
      "audit-version": optional(0, string),
      warn: optional(0, string),
      "warn-version": optional(0, string),
    }),
  ),
  exemptions: optional(
    0,
    object("pod-security.admission.config.k8s.io/v1.PodSecurityExemptions", {
      usernames: names,
      namespaces: names,
      runtimeClasses: names,
    }),
  ),
});
type PodSecurityConfiguration = Infer<typeof podSecurityConfiguration>;

export interface PodSecurityOptions {
  /** For namespaces without labels. */
  readonly defaults: Policy;
  readonly exempt: Readonly<Record<ExemptionDimension, ReadonlySet<string>>>;
}

type ExemptionDimension = keyof NonNullable<PodSecurityConfiguration["exemptions"]>;

/** Throws an `Error` that names the line, the mistake and valid values. */
export function readPodSecurityOptions(configuration: PluginConfiguration | undefined): PodSecurityOptions {
  const { defaults = {}, exemptions = {} } =
    configuration === undefined ? {} : decodeConfiguration(configuration, IDENTITY, podSecurityConfiguration);
  const fail = (path: string, reason: string): Error =>
    new Error(`Cannot use ${configuration?.locationOf(path)}: ${path}: ${reason}`);
  const level = (mode: Mode): LevelVersion => {
    const value = defaults[mode] || "privileged";
    if (!isLevel(value)) throw fail(`defaults.${mode}`, `must be one of ${LEVELS.join(", ")}`);
    const version = parseVersion(defaults[`${mode}-version`] || LATEST);
    if (version === undefined) throw fail(`defaults.${mode}-version`, 'must be "latest" or "v1.x"');
    return { level: value, version };
  };
  const exempt = (dimension: ExemptionDimension): ReadonlySet<string> => {
    const list = exemptions[dimension] ?? [];
    for (const [i, name] of list.entries()) {
      const path = `exemptions.${dimension}[${i}]`;
      if (name === "") throw fail(path, "must be a name");
      if (list.indexOf(name) !== i) throw fail(path, `${JSON.stringify(name)} is a duplicate`);
    }
    return new Set(list);
  };
  return {
    defaults: { enforce: level("enforce"), audit: level("audit"), warn: level("warn") },
    exempt: {
      usernames: exempt("usernames"),
      namespaces: exempt("namespaces"),
      runtimeClasses: exempt("runtimeClasses"),
    },
  };
}
