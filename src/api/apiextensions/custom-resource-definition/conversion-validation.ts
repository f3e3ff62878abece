/** Rules for conversion between versions: none, or through a webhook. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { dns1035Label } from "../../meta/validation/names.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import { validateCaBundle, validateWebhookService, validateWebhookUrl } from "../../meta/validation/webhook-client.ts";
import type { CustomResourceConversion, WebhookClientConfig } from "./schema.ts";

/** The versions of ConversionReview that Kubernetes supports. */
const reviewVersions = ["v1", "v1beta1"];

export interface ConversionValidationOptions {
  /** Requires a supported version of ConversionReview; true when absent. */
  readonly requireReviewVersion?: boolean;
  /**
   * Accepts an invalid CA bundle, for definitions that are not established: another component may inject the bundle
   * later.
   */
  readonly allowInvalidCaBundle?: boolean;
}

/** Errors have the paths of the internal type, in which the fields of `webhook` are directly in `conversion`. */
export function validateConversion(
  conversion: CustomResourceConversion | undefined,
  path: string,
  options: ConversionValidationOptions,
): readonly FieldError[] {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  const versions = webhook?.conversionReviewVersions ?? [];
  const client = webhook?.clientConfig;
  const clientField = child(path, "webhookClientConfig");
  const versionsField = child(path, "conversionReviewVersions");
  const errors = [...checkStrategy(strategy, child(path, "strategy"))];
  if (strategy === "Webhook") {
    if (client === undefined) errors.push(requiredField(clientField, "required when strategy is set to Webhook"));
    else errors.push(...checkClient(client, clientField, options));
    errors.push(...checkVersions(versions, versionsField, options));
    return errors;
  }
  const why = "should not be set when strategy is not set to Webhook";
  if (client !== undefined) errors.push(forbiddenField(clientField, why));
  if (versions.length > 0) errors.push(forbiddenField(versionsField, why));
  return errors;
}

function checkStrategy(strategy: string, field: string): readonly FieldError[] {
  if (strategy === "") return [requiredField(field)];
  return strategy === "None" || strategy === "Webhook" ? [] : [notSupported(field, strategy, ["None", "Webhook"])];
}

function checkClient(
  client: WebhookClientConfig,
  field: string,
  options: ConversionValidationOptions,
): readonly FieldError[] {
  const { url, service, caBundle = "" } = client;
  const errors: FieldError[] = [];
  if ((url === undefined) === (service === undefined)) {
    errors.push(requiredField(field, "exactly one of url or service is required"));
  } else if (url !== undefined) errors.push(...validateWebhookUrl(url, child(field, "url")));
  else if (service !== undefined) {
    // Kubernetes swaps name and namespace here.
    const { name: namespace, namespace: name } = service;
    errors.push(...validateWebhookService({ ...service, name, namespace }, child(field, "service")));
  }
  const checksCaBundle = caBundle !== "" && options.allowInvalidCaBundle !== true;
  return checksCaBundle ? [...errors, ...validateCaBundle(caBundle, child(field, "caBundle"))] : errors;
}

function checkVersions(
  versions: readonly string[],
  field: string,
  { requireReviewVersion = true }: ConversionValidationOptions,
): readonly FieldError[] {
  if (versions.length === 0) return [requiredField(field)];
  const repeated = repeatedIndexes(versions);
  const errors = validateEach(versions, (version, i) =>
    repeated.has(i)
      ? [invalidField(index(field, i), version, "duplicate version")]
      : dns1035Label(version).map((problem) => invalidField(index(field, i), version, problem)),
  );
  if (!requireReviewVersion || supportsReview(versions)) return errors;
  return [...errors, invalidField(field, versions, `must include at least one of ${reviewVersions.join(", ")}`)];
}

export function supportsReview(versions: readonly string[]): boolean {
  return versions.some((version) => reviewVersions.includes(version));
}
