/** The configuration of credential provider plugins: one file, or all files of a directory. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { qualifiedName } from "../../api/meta/validation/names.ts";
import { decode } from "../../schema/decode/decode.ts";
import { boolean, duration, list, object, optional, pointer, required, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  renderFieldError,
  requiredField,
  unquoted,
} from "../../schema/validation/field-error.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseDuration } from "../../schema/value/time.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { findImagePatternProblem } from "../images/image-pattern.ts";

const execEnvVar = object("svclet.config.svc.io/v1.ExecEnvVar", {
  name: required(0, string),
  value: required(0, string),
});

const tokenAttributes = object("svclet.config.svc.io/v1.ServiceAccountTokenAttributes", {
  serviceAccountTokenAudience: required(0, string),
  requireServiceAccount: pointer(0, boolean),
  requiredServiceAccountAnnotationKeys: optional(0, list(string)),
  optionalServiceAccountAnnotationKeys: optional(0, list(string)),
});

const common = {
  name: required(0, string),
  matchImages: required(0, list(string)),
  defaultCacheDuration: pointer(0, duration),
  apiVersion: required(0, string),
  args: optional(0, list(string)),
  env: optional(0, list(execEnvVar)),
};
const providerV1 = object("svclet.config.svc.io/v1.CredentialProvider", {
  ...common,
  tokenAttributes: optional(0, tokenAttributes),
});
const config = object("svclet.config.svc.io/v1.CredentialProviderConfig", { providers: optional(0, list(providerV1)) });
const earlierConfig = object("svclet.config.svc.io/v1beta1.CredentialProviderConfig", {
  providers: optional(0, list(object("svclet.config.svc.io/v1beta1.CredentialProvider", common))),
});

export type TokenAttributes = Infer<typeof tokenAttributes>;
export type CredentialProvider = Infer<typeof providerV1>;

/** Invalid files, with one line for each problem. */
export class CredentialProvidersError extends Error {
  override readonly name = "CredentialProvidersError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`Cannot use credential providers: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

const groups = ["svclet.config.svc.io", "kubelet.config.k8s.io"];
const requestVersions = ["credentialprovider.svclet.svc.io", "credentialprovider.kubelet.k8s.io"].flatMap((group) =>
  ["v1", "v1alpha1", "v1beta1"].map((version) => `${group}/${version}`),
);
/** Larger than any such file. */
const BYTES_MAX = 3 * 1024 * 1024;

export interface CredentialProvidersOptions {
  /** Whether plugins may receive service account tokens. */
  readonly tokens: boolean;
}

/** Throws a `CredentialProvidersError` with all problems. */
export async function readCredentialProviders(
  path: string,
  options: CredentialProvidersOptions,
): Promise<readonly CredentialProvider[]> {
  const problems: string[] = [];
  const providers: CredentialProvider[] = [];
  for (const file of await listFiles(path)) {
    const found = await readProviders(file);
    problems.push(...found.problems.map((problem) => `${file}: ${problem}`));
    providers.push(...found.providers);
  }
  const errors = problems.length > 0 ? [] : validateProviders(providers, options);
  problems.push(...errors.map((error) => `${path}: ${error.field}: ${renderFieldError(error)}`));
  if (problems.length > 0) throw new CredentialProvidersError(problems);
  return providers;
}

/** The configuration files of a directory, sorted by name. */
async function listFiles(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => /\.(?:json|yaml|yml)$/.test(name)).sort();
    if (names.length > 0) return names.map((name) => join(path, name));
  } catch (error) {
    throw new CredentialProvidersError([`unable to access path ${JSON.stringify(path)}: ${(error as Error).message}`]);
  }
  throw new CredentialProvidersError([`no configuration files found in directory ${JSON.stringify(path)}`]);
}

interface ReadResult {
  readonly providers: readonly CredentialProvider[];
  readonly problems: readonly string[];
}

async function readProviders(file: string): Promise<ReadResult> {
  try {
    const bytes = await readFile(file);
    if (bytes.length > BYTES_MAX) throw new Error(`larger than ${BYTES_MAX} bytes`);
    return parseCredentialProviders(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    return { providers: [], problems: [`cannot be read: ${(error as Error).message}`] };
  }
}

/** Throws a `SyntaxError` for malformed YAML or JSON. Only v1 has tokenAttributes. */
export function parseCredentialProviders(text: string): ReadResult {
  const invalid = (problem: string): ReadResult => ({ providers: [], problems: [problem] });
  const documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  const [document] = documents;
  if (document === undefined || documents.length > 1)
    return invalid(`has ${documents.length} documents: one is expected`);
  if (!isPlainObject(document.value)) return invalid("not an object");
  const { apiVersion, kind, ...value } = document.value;
  if (kind !== "CredentialProviderConfig")
    return invalid(`failed to decode ${JSON.stringify(kind ?? "")} (wrong Kind)`);
  const [group = "", version = ""] = String(apiVersion).split("/");
  if (!groups.includes(group)) return invalid(`failed to decode CredentialProviderConfig, unexpected Group: ${group}`);
  if (!["v1", "v1beta1", "v1alpha1"].includes(version)) return invalid(`there is no version ${String(apiVersion)}`);
  const decoded = decode(version === "v1" ? config : earlierConfig, value);
  const problems = [
    ...document.duplicates.map((path) => `field ${path} is set twice`),
    ...decoded.unknown.map((path) => `unknown field ${path}`),
    ...decoded.errors.map(({ path, message }) => `field ${path} ${message}`),
  ];
  return problems.length > 0 ? { providers: [], problems } : { providers: decoded.value.providers ?? [], problems };
}

export function validateProviders(
  providers: readonly CredentialProvider[],
  { tokens }: CredentialProvidersOptions,
): readonly FieldError[] {
  if (providers.length === 0) return [requiredField("providers", "at least 1 item in plugins is required")];
  const names = new Set<string>();
  return providers.flatMap((provider, index) => {
    const path = `providers[${index}]`;
    const errors = [
      ...validateName(`${path}.name`, provider.name, names),
      ...validateVersion(`${path}.apiVersion`, provider.apiVersion),
      ...validateImages(`${path}.matchImages`, provider.matchImages),
      ...validateDuration(`${path}.defaultCacheDuration`, provider.defaultCacheDuration),
      ...(provider.tokenAttributes === undefined
        ? []
        : validateTokenAttributes(`${path}.tokenAttributes`, provider.tokenAttributes, provider.apiVersion, tokens)),
    ];
    names.add(provider.name);
    return errors;
  });
}

/** The name is that of a program in the plugins' directory, and must not be a path. */
function validateName(field: string, name: string, before: ReadonlySet<string>): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (name === "") errors.push(requiredField(field, "provider name is required"));
  if (name.includes("/")) errors.push(invalidField(field, name, "provider name cannot contain path separators"));
  if (name.includes(" ")) errors.push(invalidField(field, name, "provider name cannot contain spaces"));
  if (name === "." || name === "..") errors.push(invalidField(field, name, `provider name cannot be '${name}'`));
  if (before.has(name)) errors.push(duplicateField(field, name));
  return errors;
}

function validateVersion(field: string, version: string): readonly FieldError[] {
  if (version === "") return [requiredField(field, "apiVersion is required")];
  return requestVersions.includes(version) ? [] : [notSupported(field, version, requestVersions)];
}

function validateImages(field: string, patterns: readonly string[]): readonly FieldError[] {
  if (patterns.length === 0) return [requiredField(field, "at least 1 item in matchImages is required")];
  return patterns.flatMap((pattern) => {
    const problem = findImagePatternProblem(pattern);
    return problem === undefined ? [] : [invalidField(field, pattern, `match image is invalid: ${problem}`)];
  });
}

function validateDuration(field: string, text: string | undefined): readonly FieldError[] {
  if (text === undefined) return [requiredField(field, "defaultCacheDuration is required")];
  const isNegative = (parseDuration(text) ?? 0n) < 0n;
  return isNegative ? [invalidField(field, unquoted(text), "must be greater than or equal to 0")] : [];
}

function validateTokenAttributes(
  field: string,
  attributes: TokenAttributes,
  version: string,
  allowed: boolean,
): readonly FieldError[] {
  const { requiredServiceAccountAnnotationKeys: needed = [], optionalServiceAccountAnnotationKeys: more = [] } =
    attributes;
  const errors: FieldError[] = [];
  if (!allowed) {
    const gate = "SvcletServiceAccountTokenForCredentialProviders";
    errors.push(forbiddenField(field, `tokenAttributes is not supported when ${gate} feature gate is disabled`));
  }
  if (attributes.serviceAccountTokenAudience === "") {
    errors.push(requiredField(`${field}.serviceAccountTokenAudience`, "serviceAccountTokenAudience is required"));
  }
  if (attributes.requireServiceAccount === undefined) {
    errors.push(requiredField(`${field}.requireServiceAccount`, "requireServiceAccount is required"));
  }
  if (!version.endsWith("/v1")) {
    errors.push(forbiddenField(field, "tokenAttributes is only supported for version v1 of the plugins' API"));
  }
  const neededField = `${field}.requiredServiceAccountAnnotationKeys`;
  if (attributes.requireServiceAccount === false && needed.length > 0) {
    const reason = "requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set";
    errors.push(forbiddenField(neededField, reason));
  }
  errors.push(...validateKeys(neededField, needed));
  errors.push(...validateKeys(`${field}.optionalServiceAccountAnnotationKeys`, more));
  const both = needed.filter((key) => more.includes(key));
  if (both.length > 0) errors.push(invalidField(field, both, "annotation keys cannot be both required and optional"));
  return errors;
}

function validateKeys(field: string, keys: readonly string[]): readonly FieldError[] {
  return keys.flatMap((key, index) => [
    ...qualifiedName(key.toLowerCase()).map((problem) => invalidField(field, key, problem)),
    ...(keys.indexOf(key) < index ? [duplicateField(field, key)] : []),
  ]);
}
