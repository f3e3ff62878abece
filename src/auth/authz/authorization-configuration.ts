/** The file of `--authorization-config`: the authorizers and their order. */
import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { dns1123Subdomain } from "../../api/meta/validation/names.ts";
import { parseDuration } from "../../flags/types/duration.ts";
import { duration, list, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { type FieldError, invalidField, requiredField } from "../../schema/validation/field-error.ts";
import { readConfigurationFile } from "../configuration-file.ts";
import { compileCondition } from "./webhook/match-conditions.ts";

const webhookConfiguration = object("apiserver/v1.WebhookConfiguration", {
  authorizedTTL: optional(0, duration),
  unauthorizedTTL: optional(0, duration),
  timeout: optional(0, duration),
  subjectAccessReviewVersion: optional(0, string),
  matchConditionSubjectAccessReviewVersion: optional(0, string),
  failurePolicy: optional(0, string),
  connectionInfo: optional(
    0,
    object("apiserver/v1.WebhookConnectionInfo", {
      type: optional(0, string),
      svcConfigFile: optional(0, string),
      kubeConfigFile: optional(0, string),
    }),
  ),
  matchConditions: optional(0, list(object("apiserver/v1.WebhookMatchCondition", { expression: optional(0, string) }))),
});
type WebhookConfiguration = Infer<typeof webhookConfiguration>;

export const authorizationConfiguration = object("apiserver/v1.AuthorizationConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  authorizers: optional(
    0,
    list(
      object("apiserver/v1.AuthorizerConfiguration", {
        type: optional(0, string),
        name: optional(0, string),
        webhook: pointer(0, webhookConfiguration),
      }),
    ),
  ),
});
type AuthorizerConfiguration = NonNullable<Infer<typeof authorizationConfiguration>["authorizers"]>[number];

/** One authorizer of the chain. */
export interface AuthorizerSettings {
  readonly type: string;
  /** The name in metrics. */
  readonly name: string;
  readonly webhook?: WebhookSettings;
}

export interface WebhookSettings {
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  readonly timeoutMs: number;
  readonly version: "v1" | "v1beta1";
  readonly failurePolicy: "NoOpinion" | "Deny";
  /** The path of a kubeconfig. */
  readonly file: string;
  readonly matchConditions: readonly string[];
}

const VERSIONS = ["v1beta1", "v1", "v1alpha1"];
const TYPES = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
/** In the project's and in Kubernetes' name. */
const FILE_TYPES = ["SvcConfigFile", "KubeConfigFile"];
const IN_CLUSTER = "InClusterConfig";
const AUTHORIZED_TTL_MS = 300_000;
const UNAUTHORIZED_TTL_MS = 30_000;
const TIMEOUT_MAX_MS = 30_000;
const CONDITIONS_MAX = 64;

/** Throws an error with file, line and field of each mistake. */
export function parseAuthorizationConfiguration(path: string, text: string): readonly AuthorizerSettings[] {
  return readConfigurationFile(path, text, {
    kind: "AuthorizationConfiguration",
    versions: VERSIONS,
    schema: authorizationConfiguration,
    read({ authorizers = [] }) {
      const errors = validate(authorizers);
      return errors.length > 0 ? { errors } : { value: authorizers.map(toSettings) };
    },
  });
}

function validate(authorizers: readonly AuthorizerConfiguration[]): readonly FieldError[] {
  if (authorizers.length === 0) {
    return [requiredField("authorizers", "at least one authorization mode must be defined")];
  }
  const types = new Set<string>();
  const names = new Set<string>();
  return authorizers.flatMap(({ type = "", name = "", webhook }, index) => {
    const at = `authorizers[${index}]`;
    const isDuplicate = types.has(type) && type !== "Webhook";
    const taken = names.has(name);
    types.add(type);
    names.add(name);
    return [
      ...oneOf(`${at}.type`, type, TYPES),
      ...(isDuplicate ? [duplicate(`${at}.type`, type)] : []),
      ...nameErrors(`${at}.name`, name, taken),
      ...webhookErrors(at, type, webhook),
    ];
  });
}

function oneOf(field: string, value: string, choices: readonly string[]): readonly FieldError[] {
  if (value === "") return [requiredField(field)];
  if (choices.includes(value)) return [];
  const detail = `supported values: ${choices.map((choice) => JSON.stringify(choice)).join(", ")}`;
  return [{ type: "FieldValueNotSupported", field, badValue: value, detail }];
}

function duplicate(field: string, badValue: string): FieldError {
  return { type: "FieldValueDuplicate", field, badValue, detail: "" };
}

function nameErrors(field: string, name: string, taken: boolean): readonly FieldError[] {
  if (name === "") return [requiredField(field)];
  if (taken) return [duplicate(field, name)];
  const [problem] = dns1123Subdomain(name);
  return problem === undefined ? [] : [invalidField(field, name, `authorizer name is invalid: ${problem}`)];
}

function webhookErrors(at: string, type: string, webhook: WebhookConfiguration | undefined): readonly FieldError[] {
  const field = `${at}.webhook`;
  if (type !== "Webhook") {
    if (webhook === undefined) return [];
    return [invalidField(field, "non-null", "may only be specified when type=Webhook")];
  }
  if (webhook === undefined) return [requiredField(field, "required when type=Webhook")];
  const conditions = webhook.matchConditions ?? [];
  const seen = webhook.matchConditionSubjectAccessReviewVersion ?? "";
  return [
    ...timeErrors(`${field}.timeout`, webhook.timeout, TIMEOUT_MAX_MS),
    ...(webhook.authorizedTTL === undefined ? [] : timeErrors(`${field}.authorizedTTL`, webhook.authorizedTTL)),
    ...(webhook.unauthorizedTTL === undefined ? [] : timeErrors(`${field}.unauthorizedTTL`, webhook.unauthorizedTTL)),
    ...oneOf(`${field}.subjectAccessReviewVersion`, webhook.subjectAccessReviewVersion ?? "", ["v1", "v1beta1"]),
    ...(seen === "" && conditions.length === 0
      ? []
      : oneOf(`${field}.matchConditionSubjectAccessReviewVersion`, seen, ["v1"])),
    ...oneOf(`${field}.failurePolicy`, webhook.failurePolicy ?? "", ["NoOpinion", "Deny"]),
    ...connectionErrors(`${field}.connectionInfo`, webhook.connectionInfo ?? {}),
    ...conditionErrors(`${field}.matchConditions`, conditions),
  ];
}

function timeErrors(field: string, text: string | undefined, maxMs?: number): readonly FieldError[] {
  if (text === undefined) return [requiredField(field)];
  const time = milliseconds(text, 0);
  if (time > 0 && (maxMs === undefined || time <= maxMs)) return [];
  const detail = maxMs === undefined ? "must be > 0s" : `must be > 0s and <= ${maxMs / 1000}s`;
  return [invalidField(field, text, detail)];
}

function connectionErrors(
  field: string,
  { type = "", svcConfigFile, kubeConfigFile }: NonNullable<WebhookConfiguration["connectionInfo"]>,
): readonly FieldError[] {
  const file = svcConfigFile ?? kubeConfigFile ?? "";
  const member = `${field}.${svcConfigFile === undefined && kubeConfigFile !== undefined ? "kube" : "svc"}ConfigFile`;
  if (type === IN_CLUSTER) return [invalidField(`${field}.type`, type, "the API server cannot be its own webhook")];
  const problems = oneOf(`${field}.type`, type, [...FILE_TYPES, IN_CLUSTER]);
  if (problems.length > 0) return problems;
  if (file === "") return [requiredField(member)];
  if (!isAbsolute(file)) return [invalidField(member, file, "must be an absolute path")];
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return [invalidField(member, file, "could not stat file: there is no such file")];
  return found.isFile() ? [] : [invalidField(member, file, "must be a regular file")];
}

function conditionErrors(
  field: string,
  conditions: NonNullable<WebhookConfiguration["matchConditions"]>,
): readonly FieldError[] {
  if (conditions.length > CONDITIONS_MAX) {
    const detail = `must have at most ${CONDITIONS_MAX} items`;
    return [{ type: "FieldValueTooMany", field, badValue: conditions.length, detail }];
  }
  const seen = new Set<string>();
  return conditions.flatMap(({ expression = "" }, index) => {
    const at = `${field}[${index}].expression`;
    if (expression.trim() === "") return [requiredField(at)];
    if (seen.has(expression)) return [duplicate(at, expression)];
    seen.add(expression);
    const compiled = compileCondition(expression);
    return "problem" in compiled ? [invalidField(at, expression, compiled.problem)] : [];
  });
}

function toSettings({ type = "", name = "", webhook }: AuthorizerConfiguration): AuthorizerSettings {
  if (webhook === undefined) return { type, name };
  const { connectionInfo, matchConditions = [] } = webhook;
  return {
    type,
    name,
    webhook: {
      authorizedTtlMs: milliseconds(webhook.authorizedTTL, AUTHORIZED_TTL_MS),
      unauthorizedTtlMs: milliseconds(webhook.unauthorizedTTL, UNAUTHORIZED_TTL_MS),
      timeoutMs: milliseconds(webhook.timeout, TIMEOUT_MAX_MS),
      version: webhook.subjectAccessReviewVersion === "v1" ? "v1" : "v1beta1",
      failurePolicy: webhook.failurePolicy === "Deny" ? "Deny" : "NoOpinion",
      file: connectionInfo?.svcConfigFile ?? connectionInfo?.kubeConfigFile ?? "",
      matchConditions: matchConditions.map(({ expression = "" }) => expression),
    },
  };
}

function milliseconds(text: string | undefined, defaultMs: number): number {
  return text === undefined ? defaultMs : (parseDuration(text) ?? 0);
}
