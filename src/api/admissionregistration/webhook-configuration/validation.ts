import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
  validateEachInSteps,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { dns1035Label, dns1123Subdomain } from "../../meta/validation/names.ts";
import { validateWebhookService, validateWebhookUrl } from "../../meta/validation/webhook-client.ts";
import { createAdmissionEnvironment } from "../expressions.ts";
import {
  FAILURE_POLICIES,
  MATCH_POLICIES,
  setRuleDefaults,
  validateChoice,
  validateMatchConditions,
  validateRuleWithOperations,
} from "../rules-validation.ts";
import type { MutatingWebhook, ValidatingWebhook, WebhookClientConfig } from "./schema.ts";

type Webhook = ValidatingWebhook | MutatingWebhook;

const HARMLESS = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS = ["None", "NoneOnDryRun", "Some", "Unknown"];
const REINVOCATION_POLICIES = ["IfNeeded", "Never"];
const VERSIONS = ["v1", "v1beta1"];
const SECONDS_MAX = 30;
const SECONDS = 10;
const SEGMENTS_MIN = 3;

export function setWebhookDefaults<T extends Webhook>(webhook: T): T {
  const { service } = webhook.clientConfig ?? {};
  return {
    ...webhook,
    failurePolicy: webhook.failurePolicy ?? "Fail",
    matchPolicy: webhook.matchPolicy ?? "Equivalent",
    namespaceSelector: webhook.namespaceSelector ?? {},
    objectSelector: webhook.objectSelector ?? {},
    timeoutSeconds: webhook.timeoutSeconds ?? SECONDS,
    ...(webhook.rules === undefined ? {} : { rules: webhook.rules.map(setRuleDefaults) }),
    ...(service === undefined
      ? {}
      : { clientConfig: { ...webhook.clientConfig, service: { ...service, port: service.port ?? 443 } } }),
  };
}

/** Exemptions for updates: errors that all stored webhooks have already. */
interface StoredExemptions {
  readonly sideEffects: boolean;
  readonly versions: boolean;
  readonly names: boolean;
  readonly conditions: boolean;
}

export function* validateWebhooks(
  webhooks: readonly Webhook[] = [],
  previous: readonly Webhook[] | undefined,
): Steps<readonly FieldError[]> {
  const exemptions = exemptionsFrom(previous, webhooks);
  const names = new Set<string>();
  return yield* validateEachInSteps(webhooks, function* (webhook, i) {
    const path = index("webhooks", i);
    const twice = webhook.name !== "" && names.has(webhook.name) && !exemptions.names;
    names.add(webhook.name);
    return [
      ...(yield* validateWebhook(webhook, exemptions, path)),
      ...validateVersions(webhook.admissionReviewVersions ?? [], exemptions, child(path, "admissionReviewVersions")),
      ...(twice ? [duplicateField(child(path, "name"), webhook.name)] : []),
    ];
  });
}

function exemptionsFrom(previous: readonly Webhook[] | undefined, next: readonly Webhook[]): StoredExemptions {
  if (previous === undefined) return { sideEffects: false, versions: false, names: false, conditions: false };
  const conditionsOf = (webhooks: readonly Webhook[]) => JSON.stringify(webhooks.map((hook) => hook.matchConditions));
  return {
    sideEffects: previous.some(({ sideEffects }) => sideEffects === undefined || !HARMLESS.includes(sideEffects)),
    versions: previous.some(
      ({ admissionReviewVersions: versions = [] }) => versions.length > 0 && !versions.some(isSupportedReviewVersion),
    ),
    names: new Set(previous.map(({ name }) => name)).size < previous.length,
    conditions: conditionsOf(previous) === conditionsOf(next),
  };
}

function isSupportedReviewVersion(version: string): boolean {
  return VERSIONS.includes(version);
}

function* validateWebhook(webhook: Webhook, exemptions: StoredExemptions, path: string): Steps<readonly FieldError[]> {
  const { sideEffects, timeoutSeconds } = webhook;
  const allowed = exemptions.sideEffects ? SIDE_EFFECTS : HARMLESS;
  const late = timeoutSeconds !== undefined && (timeoutSeconds < 1 || timeoutSeconds > SECONDS_MAX);
  const at = (member: string): string => child(path, member);
  const { matchConditions = [] } = webhook;
  const conditionErrors = exemptions.conditions
    ? []
    : yield* validateMatchConditions(matchConditions, createAdmissionEnvironment(), at("matchConditions"));
  return [
    ...validateName(webhook.name, at("name")),
    ...validateEach(webhook.rules ?? [], (rule, i) => validateRuleWithOperations(rule, index(at("rules"), i))),
    ...validateChoice(webhook.failurePolicy, FAILURE_POLICIES, at("failurePolicy")),
    ...validateChoice(webhook.matchPolicy, MATCH_POLICIES, at("matchPolicy")),
    ...(sideEffects === undefined
      ? [requiredField(at("sideEffects"), `must specify one of ${allowed.join(", ")}`)]
      : allowed.includes(sideEffects)
        ? []
        : [notSupported(at("sideEffects"), sideEffects, allowed)]),
    ...(late
      ? [
          invalidField(
            at("timeoutSeconds"),
            timeoutSeconds,
            `the timeout value must be between 1 and ${SECONDS_MAX} seconds`,
          ),
        ]
      : []),
    ...validateLabelSelector(webhook.namespaceSelector, at("namespaceSelector")),
    ...validateLabelSelector(webhook.objectSelector, at("objectSelector")),
    ...("reinvocationPolicy" in webhook
      ? validateChoice(webhook.reinvocationPolicy, REINVOCATION_POLICIES, at("reinvocationPolicy"))
      : []),
    ...validateClient(webhook.clientConfig ?? {}, at("clientConfig")),
    ...conditionErrors,
  ];
}

/** A name of at least three segments: `policy.example.com`. */
function validateName(name: string, path: string): readonly FieldError[] {
  if (name === "") return [requiredField(path)];
  const problems = dns1123Subdomain(name);
  if (problems.length > 0) return [invalidField(path, name, problems.join(","))];
  if (name.split(".").length >= SEGMENTS_MIN) return [];
  return [invalidField(path, name, "should be a domain with at least three segments separated by dots")];
}

function validateClient({ url, service }: Partial<WebhookClientConfig>, path: string): readonly FieldError[] {
  if ((url === undefined) === (service === undefined)) {
    return [requiredField(path, "exactly one of url or service is required")];
  }
  if (url !== undefined) return validateWebhookUrl(url, child(path, "url"));
  // Kubernetes swaps the messages for name and namespace.
  const { name, namespace } = service!;
  return validateWebhookService({ ...service!, name: namespace, namespace: name }, child(path, "service"));
}

function validateVersions(
  versions: readonly string[],
  exemptions: StoredExemptions,
  path: string,
): readonly FieldError[] {
  if (versions.length === 0) return [requiredField(path, `must specify one of ${VERSIONS.join(", ")}`)];
  const seen = new Set<string>();
  const errors = validateEach(versions, (version, i) => {
    if (seen.has(version)) return [invalidField(index(path, i), version, "duplicate version")];
    seen.add(version);
    return dns1035Label(version).map((problem) => invalidField(index(path, i), version, problem));
  });
  if (exemptions.versions || versions.some(isSupportedReviewVersion)) return errors;
  return [...errors, invalidField(path, versions, `must include at least one of ${VERSIONS.join(", ")}`)];
}
