import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { type Secret, secret } from "./schema.ts";
import { keyPairProblem } from "./tls-key-pair.ts";
import { secretType, validateSecret, validateSecretUpdate } from "./validation.ts";

function setSecretDefaults(object: Secret): Secret {
  const { stringData, ...rest } = object;
  const typed = { ...rest, type: object.type || "Opaque" };
  if (stringData === undefined) return typed;
  const encoded = Object.entries(stringData).map(
    ([name, text]) => [name, Buffer.from(text).toString("base64")] as const,
  );
  return { ...typed, data: { ...object.data, ...Object.fromEntries(encoded) } };
}

const secretStrategy: Strategy<Secret> = {
  setDefaults: setSecretDefaults,
  validate: validateSecret,
  validateUpdate: validateSecretUpdate,
  warnings: certificateWarnings,
};

function certificateWarnings(object: Secret): readonly string[] {
  if (secretType(object) !== "tls") return [];
  const textOf = (name: string): string => Buffer.from(object.data?.[name] ?? "", "base64").toString("utf8");
  const problem = keyPairProblem(textOf("tls.crt"), textOf("tls.key"));
  return problem === undefined ? [] : [problem];
}

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
  strategy: secretStrategy,
};
