/**
 * Reads the file of `--admission-control-config-file`: for each plugin its configuration, or the path of the file that
 * holds it. Errors name file and line.
 */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { svcGroup } from "../../api/scheme.ts";
import { findNearest } from "../../flags/distance.ts";
import { decode } from "../../schema/decode/decode.ts";
import { list, object, optional, rawExtension, required, string } from "../../schema/define.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import type { PluginConfiguration } from "./factory.ts";

export interface ConfigurationIdentity {
  /** As any alias of the group: `apiserver.config.k8s.io`. */
  readonly group: string;
  readonly versions: readonly string[];
  /** Accepted kinds; the first is the one that errors suggest. */
  readonly kinds: readonly string[];
}

const IDENTITY: ConfigurationIdentity = {
  group: "apiserver.config.k8s.io",
  versions: ["v1", "v1alpha1"],
  kinds: ["AdmissionConfiguration"],
};

export const admissionConfiguration = object("apiserver/v1.AdmissionConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  plugins: optional(
    0,
    list(
      object("apiserver/v1.AdmissionPluginConfiguration", {
        name: required(0, string),
        path: optional(0, string),
        configuration: optional(0, rawExtension),
      }),
    ),
  ),
});

/** Larger than any valid file; a wrong path must not fill the memory. */
const FILE_BYTES_MAX = 3 * 1024 * 1024;

/**
 * Reads the configurations by plugin name. Throws an error in one sentence. `text`: what the file contains; it is read
 * when absent.
 */
export function readAdmissionConfiguration(
  file: string,
  pluginNames: readonly string[],
  text?: string,
): ReadonlyMap<string, PluginConfiguration> {
  const document = readConfiguration(file, text);
  const { plugins = [] } = decodeConfiguration(document, IDENTITY, admissionConfiguration);
  const found = new Map<string, PluginConfiguration>();
  for (const [index, { name, path, configuration }] of plugins.entries()) {
    const member = `plugins[${index}]`;
    const fail = (field: string, reason: string): Error =>
      new Error(`Cannot use ${document.locationOf(`${member}.${field}`)}: ${member}.${field}: ${reason}`);
    if (name === "") throw fail("name", "it is missing");
    if (!pluginNames.includes(name)) {
      const guess = findNearest(name, pluginNames);
      throw fail("name", `plugin ${JSON.stringify(name)} is unknown${guess ? `: did you mean ${guess}?` : ""}`);
    }
    if (plugins.findIndex((other) => other.name === name) < index) throw fail("name", `${name} is listed twice`);
    const own =
      configuration === undefined ? fromFile(file, path) : partOf(document, `${member}.configuration`, configuration);
    if (own === null) throw fail("configuration", "it must be an object");
    if (own !== undefined) found.set(name, own);
  }
  return found;
}

function fromFile(file: string, path: string | undefined): PluginConfiguration | undefined {
  return path === undefined || path === "" ? undefined : readConfiguration(resolve(dirname(file), path));
}

/** Null if the value is not an object. */
function partOf(whole: PluginConfiguration, prefix: string, value: unknown): PluginConfiguration | null {
  if (!isPlainObject(value)) return null;
  const duplicates = whole.duplicates.filter((path) => path.startsWith(`${prefix}.`));
  return {
    value,
    locationOf: (path) => whole.locationOf(path === "" ? prefix : `${prefix}.${path}`),
    duplicates: duplicates.map((path) => path.slice(prefix.length + 1)),
  };
}

function readText(file: string): string {
  const bytes = readFileSync(file);
  if (bytes.length > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

function readConfiguration(file: string, text?: string): PluginConfiguration {
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text ?? readText(file)).filter(({ value }) => value !== undefined && value !== null);
  } catch (cause) {
    throw new Error(`Cannot use ${file}: ${(cause as Error).message}`, { cause });
  }
  const [document, ...more] = documents;
  if (document === undefined) throw new Error(`Cannot use ${file}: the file is empty`);
  if (more.length > 0) throw new Error(`Cannot use ${file}: it has ${documents.length} documents: one is expected`);
  const { value } = document;
  if (!isPlainObject(value)) throw new Error(`Cannot use ${file}: it is not an object`);
  const locationOf = (path: string): string => {
    const line = lineOf(document, path);
    return line === undefined ? file : `${file}:${line}`;
  };
  return { value, locationOf, duplicates: document.duplicates };
}

/** The line of the member, or of its nearest ancestor. */
function lineOf(document: YamlDocument, path: string): number | undefined {
  if (path === "") return undefined;
  const around = path.slice(0, Math.max(path.lastIndexOf("."), path.lastIndexOf("["), 0));
  return document.line(path) ?? lineOf(document, around);
}

/**
 * Decodes strictly. The error is one sentence that names every mistake with file and line. `identity` is undefined for
 * configurations without apiVersion and kind.
 */
export function decodeConfiguration<S extends ObjectSchema>(
  configuration: PluginConfiguration,
  identity: ConfigurationIdentity | undefined,
  schema: S,
): Infer<S> {
  if (identity !== undefined) checkIdentity(configuration, identity);
  const { value, unknown, errors } = decode(schema, configuration.value);
  const { locationOf, duplicates } = configuration;
  const problems = [
    ...duplicates.map((path) => `${locationOf(path)}: field ${path} is set twice`),
    ...unknown.map((path) => `${locationOf(path)}: unknown field ${path}`),
    ...errors.map(({ path, message }) => `${locationOf(path)}: field ${path}: ${message}`),
  ];
  if (problems.length > 0) throw new Error(`Cannot use ${problems.join("; ")}`);
  return value;
}

function checkIdentity(
  { value, locationOf }: PluginConfiguration,
  { group, versions, kinds }: ConfigurationIdentity,
): void {
  const { apiVersion, kind } = value;
  const [ownGroup = "", version = ""] = typeof apiVersion === "string" ? apiVersion.split("/") : [];
  const isKnown = svcGroup(ownGroup) === svcGroup(group) && versions.includes(version);
  if (isKnown && kinds.some((one) => one === kind)) return;
  const found = `${JSON.stringify(apiVersion ?? "")} and ${JSON.stringify(kind ?? "")}`;
  const expected = `apiVersion: ${group}/${versions[0]} and kind: ${kinds[0]}`;
  throw new Error(
    `Cannot use ${locationOf(kind === undefined ? "apiVersion" : "kind")}: expected ${expected}, found ${found}`,
  );
}
