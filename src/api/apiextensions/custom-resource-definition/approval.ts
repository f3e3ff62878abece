/**
 * The API approval policy for groups of Kubernetes (`*.k8s.io`, `*.kubernetes.io`): an annotation links the approval.
 */
import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { key } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { CustomResourceDefinition } from "./schema.ts";

export const APPROVED_ANNOTATION = "api-approved.kubernetes.io";

const PROTECTED = /(?:^|\.)(?:k8s\.io|kubernetes\.io|svc\.io)$/;
const POLICY_URL = "see https://github.com/kubernetes/enhancements/pull/1111";

export type ApprovalState = "approved" | "bypassed" | "missing" | "invalid";

export interface Approval {
  readonly state: ApprovalState;
  readonly reason: string;
}

export function isProtected(group: string): boolean {
  return PROTECTED.test(group);
}

export function approvalOf(object: CustomResourceDefinition): Approval {
  const text = object.metadata?.annotations?.[APPROVED_ANNOTATION] ?? "";
  const annotation = goQuote(APPROVED_ANNOTATION);
  if (text === "") {
    return { state: "missing", reason: `protected groups must have approval annotation ${annotation}, ${POLICY_URL}` };
  }
  if (text.startsWith("unapproved")) return { state: "bypassed", reason: `not approved: ${goQuote(text)}` };
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+[^\s]*$/i.test(text))
    return { state: "approved", reason: `approved in ${text}` };
  const reason = `protected groups must have approval annotation ${annotation} with either a URL or a reason starting with "unapproved", ${POLICY_URL}`;
  return { state: "invalid", reason };
}

/** Skips updates that do not change the annotation's state. */
export function validateApproval(
  object: CustomResourceDefinition,
  previous: CustomResourceDefinition | undefined,
): readonly FieldError[] {
  if (!isProtected(object.spec.group)) return [];
  const { state, reason } = approvalOf(object);
  if (previous !== undefined && approvalOf(previous).state === state) return [];
  const field = key("metadata.annotations", APPROVED_ANNOTATION);
  if (state === "missing") return [requiredField(field, reason)];
  if (state !== "invalid") return [];
  return [invalidField(field, object.metadata?.annotations?.[APPROVED_ANNOTATION], reason)];
}
