/** Reads an EncryptionConfiguration. Error messages are those of Kubernetes. */
import { decode } from "../../schema/decode/decode.ts";
import { duration, int32, list, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import { type FieldError, renderFieldError } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { describeDuplicateKeys, parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import { validateConfiguration } from "./validate-configuration.ts";

const keys = object("apiserver/v1.AESConfiguration", {
  keys: optional(0, list(object("apiserver/v1.Key", { name: optional(0, string), secret: optional(0, string) }))),
});
const kms = object("apiserver/v1.KMSConfiguration", {
  apiVersion: optional(0, string),
  name: optional(0, string),
  cachesize: pointer(0, int32),
  endpoint: optional(0, string),
  timeout: pointer(0, duration),
});
const encryptionConfiguration = object("apiserver/v1.EncryptionConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  resources: optional(
    0,
    list(
      object("apiserver/v1.ResourceConfiguration", {
        resources: optional(0, list(string)),
        providers: optional(
          0,
          list(
            object("apiserver/v1.ProviderConfiguration", {
              aesgcm: pointer(0, keys),
              aescbc: pointer(0, keys),
              secretbox: pointer(0, keys),
              identity: pointer(0, object("apiserver/v1.IdentityConfiguration", {})),
              kms: pointer(0, kms),
            }),
          ),
        ),
      }),
    ),
  ),
});
export type EncryptionConfiguration = Infer<typeof encryptionConfiguration>;
export type ResourceConfiguration = NonNullable<EncryptionConfiguration["resources"]>[number];
export type ProviderConfiguration = NonNullable<ResourceConfiguration["providers"]>[number];
export type KeysConfiguration = Infer<typeof keys>;
export type KmsConfiguration = Infer<typeof kms>;

const GROUPS = ["apiserver.svc.io", "apiserver.config.k8s.io"];
const SCHEME = "pkg/server/options/encryptionconfig/config.go:142";

/** Throws one sentence for a file that is no valid configuration. `path` is for messages. */
export function parseEncryptionConfiguration(path: string, text: string): EncryptionConfiguration {
  if (text === "") {
    throw new Error(
      `error while parsing file: error while loading file: encryption provider configuration file ${goQuote(path)} is empty`,
    );
  }
  let value: EncryptionConfiguration;
  try {
    value = decodeConfiguration(text);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(
      `error while parsing file: error decoding encryption provider configuration file ${goQuote(path)}: ${why}`,
      { cause },
    );
  }
  const errors = validateConfiguration(value);
  if (errors.length > 0) throw new Error(`error while parsing file: ${renderErrors(errors)}`);
  return value;
}

function decodeConfiguration(text: string): EncryptionConfiguration {
  const document = parseYaml(text).find(({ value }) => value !== undefined && value !== null);
  const value = document?.value ?? {};
  if (!isPlainObject(value)) throw new Error("the file must contain an object");
  checkIdentity(value);
  const { value: decoded, unknown, errors } = decode(encryptionConfiguration, value);
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  const strict = strictErrors(document, unknown);
  if (strict.length > 0) throw new Error(`strict decoding error: ${strict.join(", ")}`);
  return decoded;
}

function checkIdentity({
  apiVersion = "",
  kind = "",
}: {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
}): void {
  // The identity of the first release.
  if (apiVersion === "v1" && kind === "EncryptionConfig") return;
  if (GROUPS.some((group) => apiVersion === `${group}/v1`) && kind === "EncryptionConfiguration") return;
  if (kind === "") throw new Error("Object 'Kind' is missing");
  if (apiVersion === "") throw new Error("Object 'apiVersion' is missing");
  throw new Error(`no kind "${kind}" is registered for version "${apiVersion}" in scheme "${SCHEME}"`);
}

function strictErrors(document: YamlDocument | undefined, unknown: readonly string[]): readonly string[] {
  const duplicates = describeDuplicateKeys(document);
  const lines = duplicates.map((line) => `\n  ${line}`).join("");
  return [
    ...(duplicates.length === 0 ? [] : [`yaml: unmarshal errors:${lines}`]),
    ...unknown.map((field) => `unknown field ${goQuote(field)}`),
  ];
}

function renderErrors(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map((error) => `${error.field}: ${renderFieldError(error)}`))];
  return texts.length === 1 ? (texts[0] ?? "") : `[${texts.join(", ")}]`;
}
