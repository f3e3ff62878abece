/** Parses and validates the query parameters of the verbs, as Kubernetes does. */

import type { DeleteOptions as SentDeleteOptions } from "../../api/meta/options.ts";
import { parseLabelSelector, splitFieldSelector } from "../../api/meta/selectors/selector.ts";
import { validateFieldManager } from "../../api/meta/validation/field-manager.ts";
import { badRequest, invalid } from "../../api/status.ts";
import type { DeleteOptions, PropagationPolicy } from "../../registry/delete.ts";
import { IGNORE_READ_ERROR } from "../../registry/delete-unreadable.ts";
import type { ListQuery } from "../../registry/list.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  renderFieldError,
  requiredField,
  unquoted,
} from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isTrue, type RequestInfo } from "../request/request-info.ts";

/** The group of options in errors. */
const OPTIONS_GROUP = "meta.k8s.io";

export type FieldValidation = "Ignore" | "Warn" | "Strict";

export interface WriteQuery {
  readonly dryRun: boolean;
  /** Empty where the client leaves it to the server. */
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
}

/** `kind` names the options in errors: `CreateOptions`. */
export function parseWriteQuery(
  kind: "CreateOptions" | "UpdateOptions" | "PatchOptions",
  query: URLSearchParams,
): WriteQuery {
  const errors: FieldError[] = [];
  if (kind === "PatchOptions" && query.has("force")) {
    errors.push(forbiddenField("force", "may not be specified for non-apply patch"));
  }
  return checkedWrite(kind, query, errors);
}

export interface ApplyQuery extends WriteQuery {
  readonly force: boolean;
}

export function parseApplyQuery(query: URLSearchParams): ApplyQuery {
  const missing = (query.get("fieldManager") ?? "") === "";
  const errors = missing ? [requiredField("fieldManager", "is required for apply patch")] : [];
  return { ...checkedWrite("PatchOptions", query, errors), force: isTrue(query.get("force")) };
}

function checkedWrite(kind: string, query: URLSearchParams, found: readonly FieldError[]): WriteQuery {
  const fieldValidation = query.get("fieldValidation") ?? "";
  const fieldManager = query.get("fieldManager") ?? "";
  const errors = [
    ...found,
    ...validateFieldManager(fieldManager, "fieldManager"),
    ...validateDryRun(query.getAll("dryRun")),
  ];
  if (!["", "Ignore", "Warn", "Strict"].includes(fieldValidation)) {
    errors.push(notSupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"]));
  }
  throwIfInvalid(kind, errors);
  return {
    fieldManager,
    dryRun: query.getAll("dryRun").length > 0,
    fieldValidation: (fieldValidation || "Warn") as FieldValidation,
  };
}

export function parseListQuery(query: URLSearchParams): ListQuery {
  const resourceVersion = query.get("resourceVersion") ?? undefined;
  const resourceVersionMatch = query.get("resourceVersionMatch") ?? undefined;
  const decoded = decodeListOptions(query);
  throwIfInvalid("ListOptions", validateList(query));
  return {
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    limit: decoded.limit,
    continue: query.get("continue") ?? undefined,
    resourceVersion,
    resourceVersionMatch,
  };
}

function validateList(query: URLSearchParams): readonly FieldError[] {
  const textOf = (name: string): string => query.get(name) ?? "";
  const errors = validateResourceVersionMatch(
    textOf("resourceVersionMatch"),
    textOf("resourceVersion"),
    textOf("continue"),
  );
  if (query.has("sendInitialEvents")) {
    errors.push(forbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  return errors;
}

export interface WatchOptions {
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean;
  /** Undefined when the client specifies none. */
  readonly timeoutSeconds: number | undefined;
}

/** The options of a deprecated path are validated as those of a list, as in Kubernetes. */
export function parseWatchQuery({ query, isLegacyWatch }: WatchInfo, watchList: boolean): WatchOptions {
  const { timeoutSeconds } = decodeListOptions(query);
  throwIfInvalid("ListOptions", isLegacyWatch === true ? validateList(query) : validateWatch(query, watchList));
  return {
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    resourceVersion: query.get("resourceVersion") ?? undefined,
    allowBookmarks: isTrue(query.get("allowWatchBookmarks")),
    sendInitialEvents: isTrue(query.get("sendInitialEvents")),
    timeoutSeconds,
  };
}

type WatchInfo = Pick<RequestInfo, "query" | "isLegacyWatch">;

function validateWatch(query: URLSearchParams, watchList: boolean): readonly FieldError[] {
  const match = query.get("resourceVersionMatch") ?? "";
  const initial = query.get("sendInitialEvents");
  const errors: FieldError[] = [];
  if (initial !== null && match !== "NotOlderThan") {
    const why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    errors.push(forbiddenField("resourceVersionMatch", why));
  }
  if (initial !== null && !watchList) {
    const why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    errors.push(forbiddenField("sendInitialEvents", why));
  }
  if (initial === null && match !== "") {
    const why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    errors.push(forbiddenField("resourceVersionMatch", why));
  }
  if (match !== "" && match !== "NotOlderThan") {
    errors.push(notSupported("resourceVersionMatch", match, ["NotOlderThan"]));
  }
  if (match !== "" && (query.get("continue") ?? "") !== "") {
    errors.push(forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
  }
  return errors;
}

/** A body takes precedence over the query. */
export function parseDeleteOptions(
  query: URLSearchParams,
  body: SentDeleteOptions | undefined,
  allowsUnreadable: boolean,
): DeleteOptions {
  const dryRun = body === undefined ? query.getAll("dryRun") : (body.dryRun ?? []);
  const grace = body === undefined ? parseInteger(query, "gracePeriodSeconds") : body.gracePeriodSeconds;
  const orphan = body === undefined ? parseOptionalBoolean(query.get("orphanDependents")) : body.orphanDependents;
  const policy = (body === undefined ? query.get("propagationPolicy") : body.propagationPolicy) ?? undefined;
  const errors = validateDryRun(dryRun);
  if (orphan !== undefined && policy !== undefined) {
    errors.push(
      invalidField("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"),
    );
  }
  if (policy !== undefined && !["Foreground", "Background", "Orphan"].includes(policy)) {
    errors.push(unsupportedValue("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"]));
  }
  const preconditions = preconditionsOf(query, body);
  const ignoresReadError = allowsUnreadable && readIgnoreReadError(query, body);
  if (ignoresReadError) {
    const others = {
      dryRun: dryRun[0],
      propagationPolicy: policy,
      orphanDependents: orphan,
      gracePeriodSeconds: grace,
    };
    const set = Object.entries({ ...others, ...preconditions }).filter(([, value]) => value !== undefined);
    for (const [name] of set)
      errors.push(invalidField(IGNORE_READ_ERROR, true, `cannot be set together with .${name}`));
  }
  throwIfInvalid("DeleteOptions", errors);
  const effectivePolicy = orphan === undefined ? policy : orphan ? "Orphan" : "Background";
  return {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: grace,
    orphanDependents: orphan,
    propagationPolicy: effectivePolicy as PropagationPolicy | undefined,
    ...preconditions,
    ...(ignoresReadError ? { ignoresReadError } : {}),
  };
}

function readIgnoreReadError(query: URLSearchParams, body: SentDeleteOptions | undefined): boolean {
  return (body === undefined ? parseOptionalBoolean(query.get(IGNORE_READ_ERROR)) : body[IGNORE_READ_ERROR]) === true;
}

/** Throws for the deletion of a collection, whose objects are read. */
export function requireReadable({ ignoresReadError }: DeleteOptions): void {
  if (ignoresReadError !== true) return;
  const why = "is not allowed with DELETECOLLECTION, try again after removing the option";
  throwIfInvalid("DeleteOptions", [invalidField(IGNORE_READ_ERROR, true, why)]);
}

/** Without a body, the query may contain preconditions. */
function preconditionsOf(
  query: URLSearchParams,
  body: SentDeleteOptions | undefined,
): Pick<DeleteOptions, "preconditions"> {
  if (body !== undefined) return body.preconditions === undefined ? {} : { preconditions: body.preconditions };
  const uid = query.get("uid") || undefined;
  const resourceVersion = query.get("resourceVersion") || undefined;
  return uid === undefined && resourceVersion === undefined ? {} : { preconditions: { uid, resourceVersion } };
}

function validateDryRun(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === "All")) return [];
  const list = `[]string{${values.map((value) => goQuote(value)).join(", ")}}`;
  return [{ ...notSupported("dryRun", "", ["All"]), badValue: unquoted(list) }];
}

function validateResourceVersionMatch(match: string, version: string, token: string): FieldError[] {
  if (match === "") return [];
  const errors: FieldError[] = [];
  if (version === "") {
    errors.push(
      forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
    );
  }
  if (token !== "") {
    errors.push(forbiddenField("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
  }
  if (match !== "Exact" && match !== "NotOlderThan") {
    errors.push(unsupportedValue("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]));
  }
  if (match === "Exact" && version === "0") {
    const why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
    errors.push(forbiddenField("resourceVersionMatch", why));
  }
  return errors;
}

interface ListNumbers {
  readonly timeoutSeconds: number | undefined;
  readonly limit: number | undefined;
}

/** Throws a 400 for what does not decode: numbers first, then selectors, before the options are validated. */
function decodeListOptions(query: URLSearchParams): ListNumbers {
  const timeoutSeconds = parseInteger(query, "timeoutSeconds");
  const limit = parseInteger(query, "limit");
  parseLabelSelector(query.get("labelSelector") ?? "");
  splitFieldSelector(query.get("fieldSelector") ?? "");
  return { timeoutSeconds, limit };
}

/** Throws a 400 with Go's message. */
function parseInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const isInteger = /^[-+]?\d+$/.test(text);
  if (isInteger && BigInt.asIntN(64, BigInt(text)) === BigInt(text)) return Number(text);
  throw badRequest(
    `strconv.ParseInt: parsing ${goQuote(text)}: ${isInteger ? "value out of range" : "invalid syntax"}`,
  );
}

/** An error with the supported values in Kubernetes' order. */
function unsupportedValue(field: string, value: string, supported: readonly string[]): FieldError {
  const detail = `supported values: ${supported.map((text) => goQuote(text)).join(", ")}`;
  return { ...notSupported(field, value, []), detail };
}

function parseOptionalBoolean(text: string | null): boolean | undefined {
  return text === null ? undefined : isTrue(text);
}

function throwIfInvalid(kind: string, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  throw invalid({ group: OPTIONS_GROUP, resource: kind, name: "" }, errors, renderFieldError);
}
