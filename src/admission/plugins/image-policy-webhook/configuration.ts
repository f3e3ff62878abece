/** What an operator says of `ImagePolicyWebhook`: whom to ask, and for how long an answer is good. */
import { boolean, int32, object, optional, required, string } from "../../../schema/define.ts";
import { decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";

export interface ImagePolicy {
  readonly kubeConfigFile: string;
  /** The file and line that say so, for errors about the file. */
  readonly at: string;
  /** 0 where answers are not kept. */
  readonly allowTtlMs: number;
  readonly denyTtlMs: number;
  /** Before the second try. */
  readonly retryMs: number;
  /** Whether pods are let in when nobody answers. */
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

interface Duration {
  readonly member: "allowTTL" | "denyTTL" | "retryBackoff";
  readonly unit: "seconds" | "milliseconds";
  readonly most: number;
  readonly otherwise: number;
}

const ALLOW: Duration = { member: "allowTTL", unit: "seconds", most: 1800, otherwise: 300 };
const DENY: Duration = { member: "denyTTL", unit: "seconds", most: 1800, otherwise: 30 };
const RETRY: Duration = { member: "retryBackoff", unit: "milliseconds", most: 300_000, otherwise: 500 };
/** Of these durations: none at all. */
const NONE = -1;

/** Throws one sentence for an operator. */
export function readImagePolicy(configuration: PluginConfiguration | undefined): ImagePolicy {
  if (configuration === undefined) {
    throw new Error("Cannot use ImagePolicyWebhook: --admission-control-config-file has to say whom to ask");
  }
  const { imagePolicy } = decodeConfiguration(configuration, undefined, schema);
  const fail = (member: string, why: string): Error => {
    const path = `imagePolicy.${member}`;
    return new Error(`Cannot use ${configuration.locationOf(path)}: ${path}: ${why}`);
  };
  const { kubeConfigFile, defaultAllow = false } = imagePolicy;
  if (kubeConfigFile === "") throw fail("kubeConfigFile", "it is missing");
  const read = ({ member, unit, most, otherwise }: Duration): number => {
    const value = imagePolicy[member] ?? 0;
    if (value === NONE) return 0;
    if (value < 0 || value > most) {
      throw fail(member, `it must be from 1 to ${most} ${unit}, or -1 for none, not ${value}`);
    }
    return (value === 0 ? otherwise : value) * (unit === "seconds" ? 1000 : 1);
  };
  return {
    kubeConfigFile,
    at: configuration.locationOf("imagePolicy.kubeConfigFile"),
    allowTtlMs: read(ALLOW),
    denyTtlMs: read(DENY),
    retryMs: read(RETRY),
    defaultAllow,
  };
}
