/** A file with one of Kubernetes' configuration kinds: one document, nothing in it unknown, nothing said twice. */
import { decode } from "../schema/decode/decode.ts";
import { type FieldError, renderFieldError } from "../schema/validation/field-error.ts";
import type { Infer, ObjectSchema } from "../schema/schema.ts";
import { parseYaml, type YamlDocument } from "../schema/yaml/yaml.ts";

export interface ConfigDocumentKind<S extends ObjectSchema, V> {
  readonly kind: string;
  /** In the order in which they are offered; each is known under every spelling of the group. */
  readonly versions: readonly string[];
  readonly schema: S;
  /** What is wrong with it, or what it means. */
  readonly read: (value: Infer<S>) => { readonly errors: readonly FieldError[] } | { readonly value: V };
}

/** The project's spelling, Kubernetes', and what one becomes of the other where spellings are only exchanged. */
const GROUPS = ["apiserver.svc.io", "apiserver.config.k8s.io", "apiserver.k8s.io"];

/** Throws one sentence that names the file, and with every mistake its line. */
export function readConfigDocument<S extends ObjectSchema, V>(
  path: string,
  text: string,
  { kind, versions, schema, read }: ConfigDocumentKind<S, V>,
): V {
  const document = documentOf(path, text);
  const at = (field: string): string => {
    const line = lineOf(document, field);
    return line === undefined ? path : `${path}:${line}`;
  };
  const members = document.value as { readonly apiVersion?: unknown; readonly kind?: unknown };
  const known = versions.flatMap((version) => GROUPS.map((group) => `${group}/${version}`));
  if (members.kind !== kind || !known.includes(String(members.apiVersion))) {
    const found = `${JSON.stringify(members.apiVersion ?? "")} and ${JSON.stringify(members.kind ?? "")}`;
    throw new Error(`Cannot load ${at("kind")}: expected apiVersion: ${known[0]} and kind: ${kind}, found ${found}`);
  }
  const { value, unknown, errors } = decode(schema, document.value);
  const problems = [
    ...document.duplicates.map((field) => `${at(field)}: field ${field} is set twice`),
    ...unknown.map((field) => `${at(field)}: unknown field ${field}`),
    ...errors.map(({ path: field, message }) => `${at(field)}: field ${field}: ${message}`),
  ];
  if (problems.length === 0) {
    const found = read(value);
    if ("value" in found) return found.value;
    problems.push(...found.errors.map((error) => `${at(error.field)}: ${error.field}: ${renderFieldError(error)}`));
  }
  throw new Error(`Cannot load ${problems.join("; ")}`);
}

function documentOf(path: string, text: string): YamlDocument {
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  } catch (cause) {
    throw new Error(`Cannot load ${path}: ${(cause as Error).message}`, { cause });
  }
  const [document, ...more] = documents;
  if (document === undefined) throw new Error(`Cannot load ${path}: the file is empty`);
  if (more.length > 0) throw new Error(`Cannot load ${path}: the file holds more than one document`);
  if (typeof document.value !== "object" || Array.isArray(document.value)) {
    throw new Error(`Cannot load ${path}: it holds no mapping`);
  }
  return document;
}

/** Of the field, or of the nearest one around it. */
function lineOf(document: YamlDocument, field: string): number | undefined {
  if (field === "") return undefined;
  const outer = field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0));
  return document.line(field) ?? lineOf(document, outer);
}
