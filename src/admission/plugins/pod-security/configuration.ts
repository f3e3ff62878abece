/** What the operator says of pod security: `PodSecurityConfiguration` of the file with the plugins' configurations. */
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

export interface PodSecuritySettings {
  /** For namespaces whose labels say nothing. */
  readonly defaults: Policy;
  readonly exempt: Readonly<Record<Exemption, ReadonlySet<string>>>;
}

type Exemption = keyof NonNullable<PodSecurityConfiguration["exemptions"]>;

/** Throws an `Error` that says what is wrong in which line, and what would be right. */
export function podSecuritySettings(configuration: PluginConfiguration | undefined): PodSecuritySettings {
  const { defaults = {}, exemptions = {} } =
    configuration === undefined ? {} : decodeConfiguration(configuration, IDENTITY, podSecurityConfiguration);
  const fail = (path: string, why: string): Error =>
    new Error(`Cannot use ${configuration?.locationOf(path)}: ${path}: ${why}`);
  const level = (mode: Mode): LevelVersion => {
    const wanted = defaults[mode] || "privileged";
    if (!isLevel(wanted)) throw fail(`defaults.${mode}`, `must be one of ${LEVELS.join(", ")}`);
    const version = parseVersion(defaults[`${mode}-version`] || LATEST);
    if (version === undefined) throw fail(`defaults.${mode}-version`, 'must be "latest" or "v1.x"');
    return { level: wanted, version };
  };
  const exempt = (sort: Exemption): ReadonlySet<string> => {
    const named = exemptions[sort] ?? [];
    for (const [i, name] of named.entries()) {
      const path = `exemptions.${sort}[${i}]`;
      if (name === "") throw fail(path, "must be a name");
      if (named.indexOf(name) !== i) throw fail(path, `${JSON.stringify(name)} is in the list already`);
    }
    return new Set(named);
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
