/**
 * The file of `--admission-control-config-file`: for each plugin its configuration, or the path of a file that holds
 * it. Everything that is wrong is told with file and line.
 */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { svcGroup } from "../../api/scheme.ts";
import { nearest } from "../../flags/distance.ts";
import { decode } from "../../schema/decode/decode.ts";
import { list, object, optional, rawExtension, required, string } from "../../schema/define.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Infer, ObjectSchema } from "../../schema/schema.ts";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import type { PluginConfiguration } from "./factory.ts";

export interface ConfigurationIdentity {
  /** In any spelling: `apiserver.config.k8s.io`. */
  readonly group: string;
  readonly versions: readonly string[];
  /** The kinds that mean the same. */
  readonly kinds: readonly string[];
}

const IDENTITY: ConfigurationIdentity = {
  group: "apiserver.config.k8s.io",
  versions: ["v1", "v1alpha1"],
  kinds: ["AdmissionConfiguration"],
};

const admissionConfiguration = object("apiserver/v1.AdmissionConfiguration", {
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

/** Larger than any such file; a mistaken path must not fill the memory. */
const FILE_BYTES_MAX = 3 * 1024 * 1024;

/** By plugin. Throws one sentence. */
export function readControlFile(file: string, known: readonly string[]): ReadonlyMap<string, PluginConfiguration> {
  const whole = readConfiguration(file);
  const { plugins = [] } = decodeConfiguration(whole, IDENTITY, admissionConfiguration);
  const found = new Map<string, PluginConfiguration>();
  for (const [place, { name, path, configuration }] of plugins.entries()) {
    const at = `plugins[${place}]`;
    const fail = (member: string, why: string): Error =>
      new Error(`Cannot use ${whole.at(`${at}.${member}`)}: ${at}.${member}: ${why}`);
    if (name === "") throw fail("name", "it is missing");
    if (!known.includes(name)) {
      const guess = nearest(name, known);
      throw fail("name", `plugin ${JSON.stringify(name)} is unknown${guess ? `: did you mean ${guess}?` : ""}`);
    }
    if (plugins.findIndex((other) => other.name === name) < place) throw fail("name", `${name} is named twice`);
    const own =
      configuration === undefined ? fromFile(file, path) : partOf(whole, `${at}.configuration`, configuration);
    if (own === null) throw fail("configuration", "it must be an object");
    if (own !== undefined) found.set(name, own);
  }
  return found;
}

function fromFile(file: string, path: string | undefined): PluginConfiguration | undefined {
  return path === undefined || path === "" ? undefined : readConfiguration(resolve(dirname(file), path));
}

/** Null for what is no object. */
function partOf(whole: PluginConfiguration, prefix: string, value: unknown): PluginConfiguration | null {
  if (!isPlainObject(value)) return null;
  const duplicates = whole.duplicates.filter((path) => path.startsWith(`${prefix}.`));
  return {
    value,
    at: (path) => whole.at(path === "" ? prefix : `${prefix}.${path}`),
    duplicates: duplicates.map((path) => path.slice(prefix.length + 1)),
  };
}

function readConfiguration(file: string): PluginConfiguration {
  let documents: readonly YamlDocument[];
  try {
    const bytes = readFileSync(file);
    if (bytes.length > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`);
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  } catch (cause) {
    throw new Error(`Cannot use ${file}: ${(cause as Error).message}`, { cause });
  }
  const [document, ...more] = documents;
  if (document === undefined) throw new Error(`Cannot use ${file}: the file is empty`);
  if (more.length > 0) throw new Error(`Cannot use ${file}: it holds ${documents.length} documents: one is expected`);
  const { value } = document;
  if (!isPlainObject(value)) throw new Error(`Cannot use ${file}: it holds no object`);
  const at = (path: string): string => {
    const line = lineOf(document, path);
    return line === undefined ? file : `${file}:${line}`;
  };
  return { value, at, duplicates: document.duplicates };
}

/** Of the member, or of the nearest one around it. */
function lineOf(document: YamlDocument, path: string): number | undefined {
  if (path === "") return undefined;
  const around = path.slice(0, Math.max(path.lastIndexOf("."), path.lastIndexOf("["), 0));
  return document.line(path) ?? lineOf(document, around);
}

/**
 * Strictly. Throws one sentence that names every mistake with its file and line. There are configurations that do not
 * say what they are: these have no `identity`.
 */
export function decodeConfiguration<S extends ObjectSchema>(
  configuration: PluginConfiguration,
  identity: ConfigurationIdentity | undefined,
  schema: S,
): Infer<S> {
  if (identity !== undefined) checkIdentity(configuration, identity);
  const { value, unknown, errors } = decode(schema, configuration.value);
  const { at, duplicates } = configuration;
  const problems = [
    ...duplicates.map((path) => `${at(path)}: field ${path} is set twice`),
    ...unknown.map((path) => `${at(path)}: unknown field ${path}`),
    ...errors.map(({ path, message }) => `${at(path)}: field ${path}: ${message}`),
  ];
  if (problems.length > 0) throw new Error(`Cannot use ${problems.join("; ")}`);
  return value;
}

function checkIdentity({ value, at }: PluginConfiguration, { group, versions, kinds }: ConfigurationIdentity): void {
  const { apiVersion, kind } = value;
  const [ownGroup = "", version = ""] = typeof apiVersion === "string" ? apiVersion.split("/") : [];
  const isKnown = svcGroup(ownGroup) === svcGroup(group) && versions.includes(version);
  if (isKnown && kinds.some((one) => one === kind)) return;
  const found = `${JSON.stringify(apiVersion ?? "")} and ${JSON.stringify(kind ?? "")}`;
  const expected = `apiVersion: ${group}/${versions[0]} and kind: ${kinds[0]}`;
  throw new Error(`Cannot use ${at(kind === undefined ? "apiVersion" : "kind")}: expected ${expected}, found ${found}`);
}
