import type { Secret } from "./schema.ts";

export function setSecretDefaults(object: Secret): Secret {
  const { stringData, ...rest } = object;
  const typed = { ...rest, type: object.type || "Opaque" };
  if (stringData === undefined) return typed;
  const encoded = Object.entries(stringData).map(
    ([name, text]) => [name, Buffer.from(text).toString("base64")] as const,
  );
  return { ...typed, data: { ...object.data, ...Object.fromEntries(encoded) } };
}
