import { type FieldError, invalidField, requiredField } from "../../schema/field-error.ts";
import { key } from "../../schema/field-path.ts";
import { ageColumn, column, nameColumn } from "../columns.ts";
import { allVerbs, type Kind, type Strategy } from "../kind.ts";
import { decodedBytes, validateImmutable, validateKeys, validateSize } from "./data-validation.ts";
import { type Secret, secret } from "./secret.ts";

/** Keys that a secret of a type must hold. Types are known in both spellings: `kubernetes.io/tls`, `svc.io/tls`. */
const requiredKeys: Readonly<Record<string, readonly string[]>> = {
  dockercfg: [".dockercfg"],
  dockerconfigjson: [".dockerconfigjson"],
  tls: ["tls.crt", "tls.key"],
  "ssh-auth": ["ssh-privatekey"],
};
const TYPE = /^(?:kubernetes|svc)\.io\/(.+)$/;

function validateType(object: Secret): readonly FieldError[] {
  const type = TYPE.exec(object.type ?? "")?.[1] ?? "";
  if (type === "basic-auth") {
    const known = object.data?.username !== undefined || object.data?.password !== undefined;
    return known ? [] : [requiredField("data[%s].username"), requiredField("data[%s].password")];
  }
  if (type === "service-account-token") {
    const account = object.metadata?.annotations?.["kubernetes.io/service-account.name"];
    return account ? [] : [requiredField(key("metadata.annotations", "kubernetes.io/service-account.name"))];
  }
  const missing = (requiredKeys[type] ?? []).filter((name) => object.data?.[name] === undefined);
  return missing.map((name) => requiredField(key("data", name)));
}

function setDefaults(object: Secret): Secret {
  const { stringData, ...rest } = object;
  const typed = { ...rest, type: object.type || "Opaque" };
  if (stringData === undefined) return typed;
  const encoded = Object.entries(stringData).map(
    ([name, text]) => [name, Buffer.from(text).toString("base64")] as const,
  );
  return { ...typed, data: { ...object.data, ...Object.fromEntries(encoded) } };
}

const strategy: Strategy<Secret> = {
  setDefaults,
  validate: (object) => [
    ...validateKeys(object.data, "data"),
    ...validateSize(decodedBytes(object.data), "data"),
    ...validateType(object),
  ],
  validateUpdate: (next, previous) => [
    ...(next.type === previous.type ? [] : [invalidField("type", next.type, "field is immutable")]),
    ...validateImmutable(next, previous, ["data"]),
  ],
};

export const secretKind: Kind<Secret> = {
  group: "",
  version: "v1",
  kind: "Secret",
  listKind: "SecretList",
  plural: "secrets",
  singular: "secret",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "secrets",
  schema: secret,
  columns: [
    nameColumn,
    column("Type", (object) => object.type ?? ""),
    column("Data", (object) => Object.keys(object.data ?? {}).length, "How many keys it holds."),
    ageColumn,
  ],
  selectableFields: { type: (object) => object.type ?? "" },
  strategy,
};
