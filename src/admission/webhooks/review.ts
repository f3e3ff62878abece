/** What a webhook is asked, and what its answer says: `AdmissionReview` of either version. */
import type { ApiObject } from "../../api/kind.ts";
import { type StatusDetails, StatusError } from "../../api/status.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { type EquivalentResource, encodeJson } from "../matching/versioned-object.ts";
import type { AdmissionRequest } from "../chain/plugin.ts";

type Json = Readonly<Record<string, unknown>>;

const GROUP = "admission.k8s.io";
const VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof VERSIONS)[number];

/** The first one that this server speaks. Throws an `Error` when there is none. */
export function reviewVersion(accepted: readonly string[]): ReviewVersion {
  const found = accepted.find((version): version is ReviewVersion => VERSIONS.some((known) => known === version));
  if (found === undefined) throw new Error("webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  return found;
}

/** The request without its uid and its objects: of these expressions may speak as well. */
export function describe(request: AdmissionRequest, form: EquivalentResource): Json {
  const { subresource, name, namespace, operation, user, options } = request;
  const part = subresource === "" ? {} : { subResource: subresource };
  const { objectKind, kind, group } = request;
  const sentKind = { group: objectKind.group, version: objectKind.version, kind: objectKind.kind };
  return {
    kind: { ...form.objects },
    resource: { group: form.group, version: form.version, resource: form.plural },
    ...part,
    requestKind: sentKind,
    requestResource: { group, version: kind.version, resource: kind.plural },
    ...(subresource === "" ? {} : { requestSubResource: subresource }),
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: {
      username: user.name,
      ...(user.uid === "" ? {} : { uid: user.uid }),
      ...(user.groups.length === 0 ? {} : { groups: user.groups }),
      ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    },
    dryRun: request.dryRun,
    options: options ?? null,
  };
}

export interface Objects {
  /** As JSON has them in the form of the webhook; null where there is none. */
  readonly object: Json | null;
  readonly oldObject: Json | null;
}

export function objectsIn(form: EquivalentResource, object: ApiObject | undefined, previous: ApiObject | undefined): Objects {
  return {
    object: object === undefined ? null : encodeJson(form, object),
    oldObject: previous === undefined ? null : encodeJson(form, previous),
  };
}

export function reviewText(
  version: ReviewVersion,
  uid: string,
  described: Json,
  { object, oldObject }: Objects,
): string {
  const { dryRun, options, ...first } = described;
  const request = { uid, ...first, object, oldObject, dryRun, options };
  return JSON.stringify({ kind: "AdmissionReview", apiVersion: `${GROUP}/${version}`, request });
}

export interface Review {
  readonly allowed: boolean;
  /** JSON of a JSON patch; empty where there is none. */
  readonly patch: Buffer;
  readonly status: Json | undefined;
  readonly auditAnnotations: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/** Throws an `Error` for an answer that is none. */
export function readReview(answer: unknown, version: ReviewVersion, uid: string, mutating: boolean): Review {
  if (!isPlainObject(answer)) throw new Error("webhook response was absent");
  const { apiVersion, kind, response } = answer;
  if (!isPlainObject(response)) throw new Error("webhook response was absent");
  // The older version never had to say what it answers.
  if (version === "v1") checkIdentity(response, apiVersion, kind, uid);
  const patch = textIn(response, "patch");
  const patchType = response.patchType ?? undefined;
  if (version === "v1") checkPatch(patch, patchType, mutating);
  const { allowed = false, status, auditAnnotations, warnings } = response;
  if (typeof allowed !== "boolean") throw new Error("response.allowed: expected true or false");
  if (status !== undefined && status !== null && !isPlainObject(status)) {
    throw new Error("response.status: expected an object");
  }
  return {
    allowed,
    patch: mutating ? Buffer.from(patch, "base64") : Buffer.alloc(0),
    status: status ?? undefined,
    auditAnnotations: textsIn(auditAnnotations),
    warnings: Array.isArray(warnings) ? warnings.filter((one) => typeof one === "string") : [],
  };
}

function checkIdentity(response: Json, apiVersion: unknown, kind: unknown, uid: string): void {
  if (response.uid !== uid) {
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response.uid ?? "")}`);
  }
  // Whoever uses this project's own spelling means the same.
  if (kind === "AdmissionReview" && (apiVersion === `${GROUP}/v1` || apiVersion === "admission.svc.io/v1")) return;
  const found = typeof apiVersion === "string" && apiVersion !== "" ? apiVersion : "/";
  const expected = `${GROUP}/v1, Kind=AdmissionReview`;
  throw new Error(`expected webhook response of ${expected}, got ${found}, Kind=${kind ?? ""}`);
}

function checkPatch(patch: string, patchType: unknown, mutating: boolean): void {
  if (!mutating) {
    if (patch !== "") throw new Error("validating webhook may not return response.patch");
    if (patchType !== undefined) throw new Error("validating webhook may not return response.patchType");
    return;
  }
  if (patch !== "" && patchType === undefined) {
    throw new Error("webhook returned response.patch but not response.patchType");
  }
  if (patchType === undefined) return;
  if (patch === "") throw new Error("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw new Error('webhook returned invalid response.patchType of ""');
  if (patchType !== "JSONPatch") throw new Error(`unsupported patch type ${JSON.stringify(patchType)}`);
}

function textIn(response: Json, name: string): string {
  const value = response[name] ?? "";
  if (typeof value !== "string") throw new Error(`response.${name}: expected text`);
  return value;
}

function textsIn(value: unknown): Readonly<Record<string, string>> {
  if (!isPlainObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

const BAD_REQUEST = 400;

/** What the client is told of a refusal: the webhook's own status, which never claims success. */
export function denial(webhook: string, status: Json = {}): StatusError {
  const { code, reason, message, details, metadata } = status;
  const denied = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const why = [message, reason].find((text) => typeof text === "string" && text !== "");
  return new StatusError(
    typeof code === "number" && code >= BAD_REQUEST ? code : BAD_REQUEST,
    typeof reason === "string" ? reason : "",
    why === undefined ? `${denied} without explanation` : `${denied}: ${why}`,
    {
      ...(isPlainObject(details) ? { details: details as StatusDetails } : {}),
      ...(isPlainObject(metadata) ? { metadata } : {}),
    },
  );
}
