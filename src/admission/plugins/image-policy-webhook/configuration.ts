/** The configuration of ImagePolicyWebhook: the webhook's kubeconfig, and how long its responses are cached. */
import { boolean, int32, object, optional, required, string } from "../../../schema/define.ts";
import { decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";

export interface ImagePolicy {
  readonly kubeConfigFile: string;
  /** File and line of the setting, for errors. */
  readonly location: string;
  /** 0 if responses are not cached. */
  readonly allowTtlMs: number;
  readonly denyTtlMs: number;
  /** Delay before the first retry. */
  readonly retryMs: number;
  /** Whether pods are admitted when the webhook is unavailable. */
  readonly defaultAllow: boolean;
}

const schema = object("imagepolicy.AdmissionConfig", {
  imagePolicy: required(
    0,
    object("imagepolicy.ImagePolicyWebhookConfig", {
      kubeConfigFile: required(0, string),
      allowTTL: optional(0, int32),
      denyTTL: optional(0, int32),
      retryBackoff: optional(0, int32),
      defaultAllow: optional(0, boolean),
    }),
  ),
});

interface DurationSetting {
  readonly member: "allowTTL" | "denyTTL" | "retryBackoff";
  readonly unit: "seconds" | "milliseconds";
  readonly max: number;
  readonly defaultValue: number;
}

const ALLOW: DurationSetting = { member: "allowTTL", unit: "seconds", max: 1800, defaultValue: 300 };
const DENY: DurationSetting = { member: "denyTTL", unit: "seconds", max: 1800, defaultValue: 30 };
const RETRY: DurationSetting = { member: "retryBackoff", unit: "milliseconds", max: 300_000, defaultValue: 500 };
/** The value that disables the cache or the delay. */
const NONE = -1;

/** Throws an error in one sentence, for the operator. */
export function readImagePolicy(configuration: PluginConfiguration | undefined): ImagePolicy {
  if (configuration === undefined) {
    throw new Error(
      "Cannot use ImagePolicyWebhook: --admission-control-config-file must name a file with the webhook's kubeConfigFile",
    );
  }
  const { imagePolicy } = decodeConfiguration(configuration, undefined, schema);
  const fail = (member: string, reason: string): Error => {
    const path = `imagePolicy.${member}`;
    return new Error(`Cannot use ${configuration.locationOf(path)}: ${path}: ${reason}`);
  };
  const { kubeConfigFile, defaultAllow = false } = imagePolicy;
  if (kubeConfigFile === "") throw fail("kubeConfigFile", "it is missing");
  const read = ({ member, unit, max, defaultValue }: DurationSetting): number => {
    const value = imagePolicy[member] ?? 0;
    if (value === NONE) return 0;
    if (value < 0 || value > max) {
      throw fail(member, `it must be from 1 to ${max} ${unit}, or -1 for none, not ${value}`);
    }
    return (value === 0 ? defaultValue : value) * (unit === "seconds" ? 1000 : 1);
  };
  return {
    kubeConfigFile,
    location: configuration.locationOf("imagePolicy.kubeConfigFile"),
    allowTtlMs: read(ALLOW),
    denyTtlMs: read(DENY),
    retryMs: read(RETRY),
    defaultAllow,
  };
}
