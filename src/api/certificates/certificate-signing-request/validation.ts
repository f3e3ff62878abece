import { X509Certificate } from "node:crypto";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import { pemBlocks } from "../pem.ts";
import { requestProblem } from "./pkcs10.ts";
import { type CertificateSigningRequest, type CertificateSigningRequestCondition, keyUsages } from "./schema.ts";
import { validateSignerName } from "./signer-name.ts";

const LEGACY_SIGNER = "kubernetes.io/legacy-unknown";
const SECONDS_MIN = 600;
const CONDITIONS = "status.conditions";
const CERTIFICATE = "status.certificate";
const USAGES: readonly string[] = [...keyUsages].sort();

export function validateRequest({ spec }: CertificateSigningRequest): readonly FieldError[] {
  const { usages = [], signerName, expirationSeconds } = spec;
  const request: string | undefined = spec.request;
  const bytes = Buffer.from(request ?? "", "base64");
  const problem = requestProblem(bytes.toString("latin1"));
  const errors: FieldError[] =
    problem === undefined
      ? []
      : [
          invalidField(
            "spec.request",
            request ? bytes : unquoted(request === undefined ? "[]byte(nil)" : "[]byte{}"),
            problem,
          ),
        ];
  if (usages.length === 0) errors.push(requiredField("spec.usages"));
  const unknown = validateEach(usages, (usage, i) =>
    USAGES.includes(usage) ? [] : [notSupported(index("spec.usages", i), usage, USAGES)],
  );
  errors.push(...unknown);
  const repeated = validateEach(repeatedIndexes(usages), (i) => [duplicateField(index("spec.usages", i), usages[i])]);
  errors.push(...repeated);
  if (signerName === LEGACY_SIGNER) {
    const detail = "the legacy signerName is not allowed via this API version";
    errors.push(invalidField("spec.signerName", signerName, detail));
  } else errors.push(...validateSignerName(signerName, "spec.signerName"));
  if (expirationSeconds !== undefined && expirationSeconds < SECONDS_MIN) {
    const detail = "may not specify a duration less than 600 seconds (10 minutes)";
    errors.push(invalidField("spec.expirationSeconds", expirationSeconds, detail));
  }
  return errors;
}

type Conditions = readonly CertificateSigningRequestCondition[];

function conditionsOf({ status }: CertificateSigningRequest): Conditions {
  return status?.conditions ?? [];
}

/** What the subresource may change: the approval conditions, the certificate. */
export interface StatusUpdatePermissions {
  readonly mayApprove: boolean;
  readonly mayIssue: boolean;
}

export function validateStatus(
  next: CertificateSigningRequest,
  previous: CertificateSigningRequest,
  permissions: StatusUpdatePermissions,
): readonly FieldError[] {
  const [now, before] = [conditionsOf(next), conditionsOf(previous)];
  const [certificate = "", stored = ""] = [next.status?.certificate, previous.status?.certificate];
  return [
    ...validateConditions(now, before),
    ...(certificate === stored ? [] : validateCertificate(certificate)),
    ...validateDecisions(now, before, permissions),
    ...(certificate === stored ? [] : forbidCertificate(stored, permissions)),
  ];
}

/** Accepts contradictory conditions that the stored request has already. */
function validateConditions(now: Conditions, before: Conditions): readonly FieldError[] {
  const types = (list: Conditions): readonly string[] => list.map(({ type }) => type);
  const bothBefore = types(before).includes("Approved") && types(before).includes("Denied");
  const repeatedBefore = new Set(types(before)).size < before.length;
  const earlier = new Set<string>();
  return validateEach(now, ({ type, status }, i) => {
    const at = index(CONDITIONS, i);
    const other = type === "Approved" ? "Denied" : type === "Denied" ? "Approved" : undefined;
    const final = other !== undefined || type === "Failed";
    const allowed = final ? ["True"] : ["False", "True", "Unknown"];
    const errors: FieldError[] = type === "" ? [requiredField(child(at, "type"))] : [];
    if (status === "") errors.push(requiredField(child(at, "status")));
    else if (!allowed.includes(status)) errors.push(notSupported(child(at, "status"), status, allowed));
    if (!bothBefore && other !== undefined && earlier.has(other)) {
      const detail = "Approved and Denied conditions are mutually exclusive";
      errors.push(invalidField(child(at, "type"), type, detail));
    }
    if (!repeatedBefore && earlier.has(type)) errors.push(duplicateField(child(at, "type"), type));
    earlier.add(type);
    return errors;
  });
}

function validateCertificate(certificate: string): readonly FieldError[] {
  const problem = certificateProblem(Buffer.from(certificate, "base64").toString("latin1"));
  return problem === undefined ? [] : [invalidField(CERTIFICATE, "<certificate data>", problem)];
}

/** Whether the subresource may write the certificate. */
function forbidCertificate(stored: string, { mayIssue }: StatusUpdatePermissions): readonly FieldError[] {
  if (!mayIssue) return [forbiddenField(CERTIFICATE, "updates may not set certificate content")];
  return stored === "" ? [] : [forbiddenField(CERTIFICATE, "updates may not modify existing certificate content")];
}

function certificateProblem(pem: string): string | undefined {
  if (pem === "") return undefined;
  const blocks = pemBlocks(pem);
  for (const { label, headers, bytes } of blocks) {
    if (label !== "CERTIFICATE") return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(label)}`;
    if (headers) return "no PEM block headers are permitted";
    if (bytes.length === 0) return "found CERTIFICATE PEM block containing 0 certificates";
    try {
      new X509Certificate(bytes);
    } catch {
      return "x509: malformed certificate";
    }
  }
  return blocks.length === 0 ? "must contain at least one CERTIFICATE PEM block" : undefined;
}

function validateDecisions(
  now: Conditions,
  before: Conditions,
  { mayApprove }: StatusUpdatePermissions,
): readonly FieldError[] {
  const count = (list: Conditions, conditionType: string): number =>
    list.filter(({ type }) => type === conditionType).length;
  const removed = ["Approved", "Denied", "Failed"].filter((type) => count(now, type) < count(before, type));
  const added = ["Approved", "Denied"].filter((type) => !mayApprove && count(now, type) > count(before, type));
  return [
    ...removed.map((type) => forbiddenField(CONDITIONS, `updates may not remove a condition of type "${type}"`)),
    ...added.map((type) => forbiddenField(CONDITIONS, `updates may not add a condition of type "${type}"`)),
  ];
}
