/** Parses a manifest: Pods, and the ConfigMaps and Secrets that they use, as YAML or JSON, one or more per text. */
import { type ConfigMap, configMap } from "../../api/core/config-map/schema.ts";
import { type Pod, pod } from "../../api/core/pod/schema.ts";
import { type Secret, secret } from "../../api/core/secret/schema.ts";
import { decode } from "../../schema/decode/decode.ts";
import { parseJson } from "../../schema/json/parse.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { TooManyValuesError, valuesMax } from "../../schema/value/limits.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { countYamlValues } from "../../schema/yaml/count-values.ts";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import { runSteps, type Steps } from "../../std/async/steps.ts";

/** One file or URL of a source. */
export interface ManifestText {
  /** A path or a URL. */
  readonly name: string;
  readonly content: Uint8Array | { readonly problem: string };
}

/** An error in a manifest. */
export interface ManifestProblem {
  /** A path or a URL. */
  readonly source: string;
  /** From 1; undefined if the error is about the whole text. */
  readonly line: number | undefined;
  /** `spec.containers[0].image`; empty for the whole object. */
  readonly field: string;
  readonly message: string;
}

/** An object of a manifest, with a function that reports an error at its line. */
export interface ManifestItem<T> {
  readonly object: T;
  /** The parsed text, before decoding. */
  readonly raw: unknown;
  problem(field: string, message: string): ManifestProblem;
}

export interface Manifest {
  readonly pods: readonly ManifestItem<Pod>[];
  readonly configMaps: readonly ManifestItem<ConfigMap>[];
  readonly secrets: readonly ManifestItem<Secret>[];
  /** Objects that cannot be decoded are omitted; objects with unknown fields are not. */
  readonly problems: readonly ManifestProblem[];
  /** Values in the text, at most: what its objects take in memory follows from it. */
  readonly values: number;
  /** It has too many values beside those of the manifests before it. */
  readonly isLeftOut: boolean;
}

/** More than any list of pods needs; a wrong path must not exhaust the memory. It has at most `valuesMax` values. */
export const manifestBytesMax = 10 * 1024 * 1024;
/** Of all manifests of a source together, which are in memory while they are compared with those before. */
export const manifestsBytesMax = 32 * 1024 * 1024;
/** Of all manifests of a source together; a pod has about a hundred. */
export const manifestValuesMax = 500_000;
/** A text of another kind can have a problem in each line. */
const PROBLEMS_MAX = 100;

/** `source` is the name in error messages. Never throws. */
export function parseManifest(bytes: Uint8Array, source: string): Manifest {
  return runSteps(parseManifestInSteps(bytes, source));
}

/**
 * The same, for texts of which each step may take many milliseconds. `left` is how many values it may have beside those
 * of other manifests.
 */
export function* parseManifestInSteps(bytes: Uint8Array, source: string, left = manifestValuesMax): Steps<Manifest> {
  const draft: ManifestDraft = { pods: [], configMaps: [], secrets: [], problems: [], values: 0, isLeftOut: false };
  const documents = parseDocuments(bytes, { source, left }, draft);
  yield;
  for (const document of documents) yield* readObject(document.value, { document, source, prefix: "" }, draft);
  return { ...draft, problems: limitProblems(draft.problems, source) };
}

/** The first ones, and how many there are. */
export function limitProblems(problems: readonly ManifestProblem[], source: string): readonly ManifestProblem[] {
  if (problems.length <= PROBLEMS_MAX) return problems;
  const message = `has ${problems.length - PROBLEMS_MAX} further problems`;
  return [...problems.slice(0, PROBLEMS_MAX), { source, line: undefined, field: "", message }];
}

interface ManifestDraft {
  readonly pods: ManifestItem<Pod>[];
  readonly configMaps: ManifestItem<ConfigMap>[];
  readonly secrets: ManifestItem<Secret>[];
  readonly problems: ManifestProblem[];
  values: number;
  isLeftOut: boolean;
}

interface SourceLocation {
  readonly document: YamlDocument;
  readonly source: string;
  /** `items[3].` in a list. */
  readonly prefix: string;
}

function parseDocuments(
  bytes: Uint8Array,
  { source, left }: { readonly source: string; readonly left: number },
  draft: ManifestDraft,
): readonly YamlDocument[] {
  const { problems } = draft;
  const fail = (message: string, line?: number): readonly YamlDocument[] => {
    problems.push({ source, line, field: "", message });
    return [];
  };
  if (bytes.length > manifestBytesMax) return fail(`larger than ${manifestBytesMax} bytes`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return fail("not UTF-8 text");
  }
  // Of JSON, which is YAML too, the count is nearly twice as high.
  const count = countYamlValues(text, valuesMax);
  if (count > valuesMax && !isShortJson(bytes)) return fail(new TooManyValuesError(valuesMax).message);
  draft.values = Math.min(count, valuesMax);
  if (draft.values > left) {
    draft.isLeftOut = true;
    return fail(`has too many values beside those of the manifests before it`);
  }
  try {
    const found = parseYaml(text).filter(({ value }) => value !== null && value !== undefined);
    return found.length === 0 ? fail("holds no object") : found;
  } catch (error) {
    const { message } = error as Error;
    // JSON may be indented with tabs, which YAML forbids.
    const json = parseJsonDocument(text);
    return json === undefined ? fail(message, Number(/\bline (\d+)/.exec(message)?.[1]) || undefined) : [json];
  }
}

/** Whether it is JSON of at most `valuesMax` values. */
function isShortJson(bytes: Uint8Array): boolean {
  try {
    parseJson(bytes, valuesMax);
    return true;
  } catch {
    return false;
  }
}

function parseJsonDocument(text: string): YamlDocument | undefined {
  try {
    return { value: JSON.parse(text), line: () => undefined, column: () => undefined, duplicates: [] };
  } catch {
    return undefined;
  }
}

function* readObject(value: unknown, location: SourceLocation, draft: ManifestDraft): Steps<void> {
  const { problems } = draft;
  if (!isPlainObject(value)) {
    problems.push(makeProblem(location, "", "must be an object with apiVersion and kind"));
    return;
  }
  const { apiVersion, kind } = value;
  if (typeof kind === "string" && /List$/.test(kind) && Array.isArray(value.items)) {
    const itemKind = kind.slice(0, -"List".length);
    for (const [index, item] of value.items.entries()) {
      // Items of a typed list may omit apiVersion and kind.
      const full = isPlainObject(item) && itemKind !== "" ? { apiVersion, kind: itemKind, ...item } : item;
      yield* readObject(full, { ...location, prefix: `${location.prefix}items[${index}].` }, draft);
    }
    return;
  }
  if (apiVersion !== "v1") {
    problems.push(makeProblem(location, "apiVersion", `must be v1, not ${JSON.stringify(apiVersion ?? "")}`));
  } else if (kind === "Pod") decodeObject(pod, value, location, draft, draft.pods);
  else if (kind === "ConfigMap") decodeObject(configMap, value, location, draft, draft.configMaps);
  else if (kind === "Secret") decodeObject(secret, value, location, draft, draft.secrets);
  else
    problems.push(makeProblem(location, "kind", `must be Pod, ConfigMap or Secret, not ${JSON.stringify(kind ?? "")}`));
  yield;
}

function decodeObject<T>(
  schema: ObjectSchema,
  raw: Readonly<Record<string, unknown>>,
  location: SourceLocation,
  { problems }: ManifestDraft,
  into: ManifestItem<T>[],
): void {
  const { value, unknown, errors } = decode(schema, raw);
  for (const field of unknown) problems.push(makeProblem(location, field, "unknown field"));
  for (const field of location.document.duplicates) problems.push(makeProblem(location, field, "is set twice"));
  for (const { path, message } of errors) problems.push(makeProblem(location, path, message));
  if (errors.length > 0) return;
  into.push({ object: value as T, raw, problem: (field, message) => makeProblem(location, field, message) });
}

/** At the line of the field, or of the nearest enclosing field that has one. */
function makeProblem({ document, source, prefix }: SourceLocation, field: string, message: string): ManifestProblem {
  let line: number | undefined;
  for (let path = `${prefix}${field}`; path !== "" && line === undefined; path = path.replace(/(^|[.[])[^.[]*$/, "")) {
    line = document.line(path.replace(/\.$/, ""));
  }
  return { source, line: line ?? document.line("kind"), field, message };
}

/** `/etc/pods/web.yaml:7: spec.containers[0].image: Required value` */
export function formatProblem({ source, line, field, message }: ManifestProblem): string {
  return [line === undefined ? source : `${source}:${line}`, field, message].filter((part) => part !== "").join(": ");
}
