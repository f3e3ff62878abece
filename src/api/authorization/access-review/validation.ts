/** Rules for access reviews: a user, and either resource or non-resource attributes. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { index } from "../../../schema/value/field-path.ts";
import { type ObjectMeta, objectMeta } from "../../meta/object-meta.ts";
import { validateLabelRequirement } from "../../meta/validation/label-selector.ts";
import {
  type FieldSelectorAttributes,
  type LabelSelectorAttributes,
  type LocalSubjectAccessReview,
  nonResourceAttributes as nonResourceAttributesSchema,
  type ResourceAttributes,
  type SelfSubjectAccessReview,
  type SubjectAccessReview,
  type SubjectAccessReviewSpec,
} from "./schema.ts";

type AccessReviewAttributes = Pick<SubjectAccessReviewSpec, "resourceAttributes" | "nonResourceAttributes">;

export function validateSubjectAccess({ metadata, spec }: SubjectAccessReview): readonly FieldError[] {
  return [...validateSubject(spec), ...validateEmptyMetadata(metadata)];
}

export function validateSelfAccess({ metadata, spec }: SelfSubjectAccessReview): readonly FieldError[] {
  return [
    ...validateAttributes(spec),
    ...validateResource(spec?.resourceAttributes),
    ...validateEmptyMetadata(metadata),
  ];
}

export function validateLocalAccess({ metadata, spec }: LocalSubjectAccessReview): readonly FieldError[] {
  const { namespace = "", ...rest } = metadata ?? {};
  const requestedNamespace = spec?.resourceAttributes?.namespace ?? "";
  const isOtherNamespace = spec?.resourceAttributes !== undefined && requestedNamespace !== namespace;
  const path = spec?.nonResourceAttributes;
  return [
    ...validateSubject(spec),
    ...(isEmptyMetadata(rest)
      ? []
      : [invalidField("metadata", goStruct(objectMeta, metadata), "must be empty except for namespace")]),
    ...(isOtherNamespace
      ? [invalidField("spec.resourceAttributes.namespace", requestedNamespace, "must match metadata.namespace")]
      : []),
    ...(path === undefined
      ? []
      : [
          invalidField(
            "spec.nonResourceAttributes",
            goStruct(nonResourceAttributesSchema, path),
            "disallowed on this kind of request",
          ),
        ]),
  ];
}

function validateSubject(spec: SubjectAccessReviewSpec | undefined): readonly FieldError[] {
  const hasNoSubject = !spec?.user && (spec?.groups ?? []).length === 0;
  const detail = "at least one of user or group must be specified";
  return [
    ...validateAttributes(spec),
    ...(hasNoSubject ? [invalidField("spec.user", spec?.user ?? "", detail)] : []),
    ...validateResource(spec?.resourceAttributes),
  ];
}

function validateAttributes({
  resourceAttributes,
  nonResourceAttributes,
}: AccessReviewAttributes = {}): readonly FieldError[] {
  const both = "cannot be specified in combination with resourceAttributes";
  const neither = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined) {
    return [
      invalidField("spec.nonResourceAttributes", goStruct(nonResourceAttributesSchema, nonResourceAttributes), both),
    ];
  }
  const hasNeither = resourceAttributes === undefined && nonResourceAttributes === undefined;
  return hasNeither ? [invalidField("spec.resourceAttributes", "null", neither)] : [];
}

function validateResource({ fieldSelector, labelSelector }: ResourceAttributes = {}): readonly FieldError[] {
  const fields = "spec.resourceAttributes.fieldSelector";
  const labels = "spec.resourceAttributes.labelSelector";
  return [
    ...validateSelector(fieldSelector, fields, (requirement, path) => [
      ...(requirement.key === "" ? [requiredField(`${path}.key`, "must be specified")] : []),
      ...validateFieldValues(requirement.operator, requirement.values ?? [], `${path}.values`),
    ]),
    ...validateSelector(labelSelector, labels, (requirement, path) =>
      validateLabelRequirement(requirement, path, { allowUnknownOperators: true }),
    ),
  ];
}

type Selector = FieldSelectorAttributes | LabelSelectorAttributes;
type Requirement = NonNullable<Selector["requirements"]>[number];

function validateSelector(
  selector: Selector | undefined,
  path: string,
  validateRequirement: (requirement: Requirement, path: string) => readonly FieldError[],
): readonly FieldError[] {
  if (selector === undefined) return [];
  const { rawSelector = "", requirements = [] } = selector;
  const at = `${path}.requirements`;
  const errors: FieldError[] = [];
  if (rawSelector !== "" && requirements.length > 0) {
    const detail = "may not specified at the same time as requirements";
    errors.push(invalidField(`${path}.rawSelector`, rawSelector, detail));
  }
  if (rawSelector === "" && requirements.length === 0) {
    errors.push(requiredField(at, `when ${path} is specified, requirements or rawSelector is required`));
  }
  return [...errors, ...validateEach(requirements, (requirement, i) => validateRequirement(requirement, index(at, i)))];
}

/** Unknown operators are left to the authorizers. */
function validateFieldValues(operator: string, values: readonly string[], path: string): readonly FieldError[] {
  const needsValues = operator === "In" || operator === "NotIn";
  const forbidsValues = operator === "Exists" || operator === "DoesNotExist";
  if (needsValues && values.length === 0) {
    return [requiredField(path, "must be specified when `operator` is 'In' or 'NotIn'")];
  }
  if (forbidsValues && values.length > 0) {
    return [forbiddenField(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
  }
  return [];
}

function validateEmptyMetadata(metadata: ObjectMeta | undefined): readonly FieldError[] {
  return isEmptyMetadata(metadata) ? [] : [invalidField("metadata", goStruct(objectMeta, metadata), "must be empty")];
}

function isEmptyMetadata(metadata: ObjectMeta | undefined): boolean {
  const { managedFields: _, ...rest } = metadata ?? {};
  return Object.keys(rest).length === 0;
}
