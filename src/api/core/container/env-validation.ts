/** Rules for environment variables. */
import { type FieldError, invalidField, requiredField, validateEach } from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { configMapKey, dns1123Subdomain, environmentName, validateName } from "../../meta/validation/names.ts";
import { ENV_FIELDS, validateFieldRef, validateResourceFieldRef } from "../references/field-ref-validation.ts";
import type { EnvFromSource, EnvVar, EnvVarSource } from "./schema.ts";

export function validateEnv(variables: readonly EnvVar[], path: string): readonly FieldError[] {
  return validateEach(variables, ({ name, value = "", valueFrom }, i) => {
    const at = index(path, i);
    return [
      ...(name === "" ? [requiredField(child(at, "name"))] : validateName(child(at, "name"), name, environmentName)),
      ...(valueFrom === undefined ? [] : validateValueFrom(valueFrom, value, child(at, "valueFrom"))),
    ];
  });
}

function validateValueFrom(source: EnvVarSource, value: string, path: string): readonly FieldError[] {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = source;
  const errors: FieldError[] = [];
  if (fieldRef !== undefined) errors.push(...validateFieldRef(fieldRef, child(path, "fieldRef"), ENV_FIELDS));
  if (resourceFieldRef !== undefined) {
    errors.push(...validateResourceFieldRef(resourceFieldRef, child(path, "resourceFieldRef"), false));
  }
  if (configMapKeyRef !== undefined) errors.push(...validateKeyRef(configMapKeyRef, child(path, "configMapKeyRef")));
  if (secretKeyRef !== undefined) errors.push(...validateKeyRef(secretKeyRef, child(path, "secretKeyRef")));
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef].filter((one) => one !== undefined).length;
  if (sources === 0) {
    const detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
    errors.push(invalidField(path, "", detail));
  } else if (value !== "") errors.push(invalidField(path, "", "may not be specified when `value` is not empty"));
  else if (sources > 1) errors.push(invalidField(path, "", "may not have more than one field specified at a time"));
  return errors;
}

interface KeyRef {
  readonly name?: string | undefined;
  readonly key: string;
}

function validateKeyRef({ name = "", key }: KeyRef, path: string): readonly FieldError[] {
  return [
    ...validateName(child(path, "name"), name, dns1123Subdomain),
    ...(key === "" ? [requiredField(child(path, "key"))] : validateName(child(path, "key"), key, configMapKey)),
  ];
}

/** Errors about a missing or a second source have the path of the list, as in Kubernetes. */
export function validateEnvFrom(sources: readonly EnvFromSource[], path: string): readonly FieldError[] {
  return validateEach(sources, ({ prefix = "", configMapRef, secretRef }, i) => {
    const at = index(path, i);
    const errors: FieldError[] = [];
    if (prefix !== "") errors.push(...validateName(child(at, "prefix"), prefix, environmentName));
    if (configMapRef !== undefined)
      errors.push(...validateObjectName(configMapRef.name, child(at, "configMapRef.name")));
    if (secretRef !== undefined) errors.push(...validateObjectName(secretRef.name, child(at, "secretRef.name")));
    if (configMapRef === undefined && secretRef === undefined) {
      errors.push(invalidField(path, "", "must specify one of: `configMapRef` or `secretRef`"));
    } else if (configMapRef !== undefined && secretRef !== undefined) {
      errors.push(invalidField(path, "", "may not have more than one field specified at a time"));
    }
    return errors;
  });
}

/** As in Kubernetes, a final hyphen is valid, as in the prefix of a generated name. */
function validateObjectName(name = "", path: string): readonly FieldError[] {
  if (name === "") return [requiredField(path)];
  const complete = name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name;
  return dns1123Subdomain(complete).map((problem) => invalidField(path, name, problem));
}
