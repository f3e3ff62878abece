/** Rules for secrets: the keys that each of Kubernetes' types requires. */
import { parseJson } from "../../../schema/json/parse.ts";
import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { key } from "../../../schema/value/field-path.ts";
import { decodedBytes, validateImmutable, validateKeys, validateSize } from "../config-map/data-validation.ts";
import type { Secret } from "./schema.ts";

/** Types exist under two prefixes: `kubernetes.io/tls`, `svc.io/tls`. */
const TYPE = /^(?:kubernetes|svc)\.io\/(.+)$/;
const ACCOUNT = "kubernetes.io/service-account.name";

export function secretType(secret: Secret): string {
  return TYPE.exec(secret.type ?? "")?.[1] ?? "";
}

export function validateSecret(secret: Secret): readonly FieldError[] {
  return [
    ...validateKeys(secret.data, "data"),
    ...validateSize(decodedBytes(secret.data), "data"),
    ...validateType(secret),
  ];
}

export function validateSecretUpdate(next: Secret, previous: Secret): readonly FieldError[] {
  return [
    ...(next.type === previous.type ? [] : [invalidField("type", next.type, "field is immutable")]),
    ...validateImmutable(next, previous, ["data"]),
  ];
}

function validateType(secret: Secret): readonly FieldError[] {
  const { data = {}, metadata } = secret;
  const need = (name: string): readonly FieldError[] =>
    data[name] === undefined ? [requiredField(key("data", name))] : [];
  switch (secretType(secret)) {
    case "basic-auth": {
      const hasEither = data.username !== undefined || data.password !== undefined;
      return hasEither ? [] : [requiredField(key("data", "username")), requiredField(key("data", "password"))];
    }
    case "dockercfg":
      return validateDocument(data, ".dockercfg");
    case "dockerconfigjson":
      return validateDocument(data, ".dockerconfigjson");
    case "service-account-token":
      return metadata?.annotations?.[ACCOUNT] ? [] : [requiredField(key("metadata.annotations", ACCOUNT))];
    case "ssh-auth":
      return data["ssh-privatekey"] ? [] : [requiredField(key("data", "ssh-privatekey"))];
    case "tls":
      return [...need("tls.crt"), ...need("tls.key")];
    default:
      return [];
  }
}

/** Errors do not contain the secret value. */
function validateDocument(data: Readonly<Record<string, string>>, name: string): readonly FieldError[] {
  const field = key("data", name);
  const text = data[name];
  if (text === undefined) return [requiredField(field)];
  const fail = (why: string): readonly FieldError[] => [invalidField(field, "<secret contents redacted>", why)];
  try {
    const { value } = parseJson(Buffer.from(text, "base64"));
    const isObject = value === null || (typeof value === "object" && !Array.isArray(value));
    return isObject ? [] : fail("json: cannot unmarshal value into Go value of type map[string]interface {}");
  } catch (error) {
    return fail(error instanceof Error ? error.message.replace(/ \(line \d+, column \d+\)$/, "") : String(error));
  }
}
