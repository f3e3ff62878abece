/** Reads an EncryptionConfiguration. Error messages are those of Kubernetes. */
import { decode } from "../../schema/decode/decode.ts";
import { readTypeMeta } from "../../schema/json/type-meta.ts";
import { renderFieldErrors } from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { describeDuplicateKeys, parseYamlOrJson, type YamlDocument } from "../../schema/yaml/yaml.ts";
import { type EncryptionConfiguration, encryptionConfiguration } from "./configuration-schema.ts";
import { validateConfiguration } from "./validate-configuration.ts";

const GROUPS = ["apiserver.svc.io", "apiserver.config.k8s.io"];
const SCHEME = "pkg/server/options/encryptionconfig/config.go:142";

/**
 * Throws one sentence for a file that is no valid configuration. `path` is for messages; `reload`: whether the file is
 * read again when it changes.
 */
export function parseEncryptionConfiguration(path: string, text: string, reload = false): EncryptionConfiguration {
  if (text === "") {
    const what = `encryption provider configuration file ${goQuote(path)} is empty`;
    throw new Error(`error while parsing file: error while loading file: ${what}`);
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
  const errors = validateConfiguration(value, reload);
  if (errors.length > 0) throw new Error(`error while parsing file: ${renderFieldErrors(errors)}`);
  return value;
}

function decodeConfiguration(text: string): EncryptionConfiguration {
  const document = parseYamlOrJson(text).find(({ value }) => value !== undefined && value !== null);
  const value = document?.value ?? {};
  checkIdentity(value, text);
  const { value: decoded, unknown, errors } = decode(encryptionConfiguration, value);
  if (errors[0] !== undefined) throw new Error(errors[0].message);
  const strict = strictErrors(document, unknown);
  if (strict.length > 0) throw new Error(`strict decoding error: ${strict.join(", ")}`);
  return decoded;
}

function checkIdentity(value: unknown, text: string): void {
  const { apiVersion, kind } = readTypeMeta(value);
  // The identity of the first release.
  if (apiVersion === "v1" && kind === "EncryptionConfig") return;
  if (GROUPS.some((group) => apiVersion === `${group}/v1`) && kind === "EncryptionConfiguration") return;
  if (kind === "") throw new Error(`Object 'Kind' is missing in '${text}'`);
  if (apiVersion === "") throw new Error(`Object 'apiVersion' is missing in '${text}'`);
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
