/** Reads one configuration file strictly; every problem has its file and line. */
import { readFileSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { findNearest } from "../../flags/distance.ts";
import { decode } from "../../schema/decode/decode.ts";
import { membersOf } from "../../schema/members.ts";
import { splitPath } from "../../schema/value/field-path.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import { configApiVersion, configKind, fieldAliases, isConfigKind, renameKubeletFields } from "./kubelet-names.ts";
import { type Branch, emptyBranch, formatLocation, formatPath, type Source, type Steps, toOrigins } from "./origin.ts";
import { svcletConfiguration } from "./schema.ts";

export interface ConfigFile {
  /** The fields of the file, with their lines. */
  readonly origins: Branch;
  /** Fields that the file sets to null, which removes them from earlier files. */
  readonly removed: readonly Steps[];
  readonly problems: readonly string[];
}

/** Fields with file names, relative to the directory of the configuration file. */
const pathFields: readonly Steps[] = [
  ["staticPodPath"],
  ["podLogsDir"],
  ["tlsCertFile"],
  ["tlsPrivateKeyFile"],
  ["authentication", "x509", "clientCAFile"],
  ["resolvConf"],
  ["volumePluginDir"],
];

/** Larger than any configuration file; bounds the memory for a wrong path. */
const FILE_BYTES_MAX = 3 * 1024 * 1024;

export function readConfigFile(file: string, kind: "file" | "drop-in"): ConfigFile {
  let text: string;
  try {
    const bytes = readFileSync(file);
    if (bytes.length > FILE_BYTES_MAX) return withProblem(`${file}: larger than ${FILE_BYTES_MAX} bytes`);
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    return withProblem(`${file}: cannot be read: ${(error as Error).message}`);
  }
  return parseConfig(text, file, kind);
}

/** Like `readConfigFile`, for text; `file` is the name in messages. */
export function parseConfig(text: string, file: string, kind: "file" | "drop-in"): ConfigFile {
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  } catch (error) {
    return withProblem(`${file}: ${(error as Error).message}`);
  }
  const [document, second] = documents;
  if (document === undefined) return withProblem(`${file}: the file is empty: ${expectation}`);
  if (second !== undefined) return withProblem(`${file}: has ${documents.length} documents: one is expected`);
  if (!isPlainObject(document.value)) return withProblem(`${file}: not an object: ${expectation}`);
  return readDocument(document, document.value, file, kind);
}

const expectation = `it must begin with apiVersion: ${configApiVersion} and kind: ${configKind}`;

function readDocument(
  document: YamlDocument,
  raw: Readonly<Record<string, unknown>>,
  file: string,
  kind: "file" | "drop-in",
): ConfigFile {
  const lineOf = (steps: Steps): number | undefined => findLine(document, steps);
  const at = (steps: Steps): string => formatLocation(file, lineOf(steps));
  if (!isConfigKind(raw.apiVersion, raw.kind)) {
    const found = `apiVersion ${JSON.stringify(raw.apiVersion ?? "")} and kind ${JSON.stringify(raw.kind ?? "")}`;
    return withProblem(`${at(["kind"])}: ${found} are not those of an agent configuration: ${expectation}`);
  }
  const { apiVersion: _version, kind: _kind, ...value } = formatDurations(renameKubeletFields(raw));
  const decoded = decode(svcletConfiguration, value);
  const problems = [
    ...document.duplicates.map((path) => `${at(toSteps(path))}: field ${path} is set twice`),
    ...decoded.unknown.map((path) => `${at(toSteps(path))}: unknown field ${path}${suggestField(path)}`),
    ...decoded.errors.map(({ path, message }) => `${at(toSteps(path))}: field ${path} ${simplifyMessage(message)}`),
  ];
  const sourceOf = (steps: Steps): Source => ({ kind, file, line: lineOf(steps) });
  const origins = toOrigins(resolvePaths(decoded.value, dirname(file)), sourceOf);
  return { origins: origins as Branch, removed: findNulls(value), problems };
}

function withProblem(problem: string): ConfigFile {
  return { origins: emptyBranch, removed: [], problems: [problem] };
}

/** The line of a field, or of the nearest field around it. */
function findLine(document: YamlDocument, steps: Steps): number | undefined {
  for (let length = steps.length; length > 0; length -= 1) {
    const [first = "", ...rest] = steps.slice(0, length);
    for (const name of fieldAliases(first)) {
      const line = document.line(formatPath([name, ...rest]));
      if (line !== undefined) return line;
    }
  }
  return undefined;
}

function toSteps(path: string): Steps {
  return splitPath(path).filter((step): step is string => typeof step === "string");
}

/** Shortens messages of Go's decoders: `cannot unmarshal string into Go struct field X.maxPods of type int32`. */
function simplifyMessage(message: string): string {
  const match = /cannot unmarshal (.+) into Go .* of type (\S+)$/.exec(message);
  return match === null ? `cannot be read: ${message}` : `must be of type ${match[2]}, not ${match[1]}`;
}

function suggestField(path: string): string {
  const steps = toSteps(path);
  const last = steps.at(-1) ?? "";
  const guess =
    steps.length === 1
      ? findNearest(
          last,
          membersOf(svcletConfiguration).map(({ name }) => name),
        )
      : undefined;
  return guess === undefined ? "" : `: did you mean ${guess}?`;
}

/** `logging.flushFrequency` may also be a number of nanoseconds. */
function formatDurations(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { logging } = value;
  if (!isPlainObject(logging) || typeof logging.flushFrequency !== "number") return value;
  return { ...value, logging: { ...logging, flushFrequency: `${logging.flushFrequency}ns` } };
}

function findNulls(value: unknown, steps: Steps = []): Steps[] {
  if (value === null) return [steps];
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => findNulls(member, [...steps, name]));
}

function resolvePaths(value: unknown, directory: string): unknown {
  return pathFields.reduce((result, steps) => resolvePath(result, steps, directory), value);
}

function resolvePath(value: unknown, [step, ...rest]: Steps, directory: string): unknown {
  if (step === undefined) {
    return typeof value === "string" && value !== "" && !isAbsolute(value) ? resolve(directory, value) : value;
  }
  if (!isPlainObject(value) || value[step] === undefined) return value;
  return { ...value, [step]: resolvePath(value[step], rest, directory) };
}
