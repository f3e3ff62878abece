/** Reads a file with one of Kubernetes' configuration kinds: one document, no unknown fields and no duplicates. */
import { decode } from "../schema/decode/decode.ts";
import type { Infer, ObjectSchema } from "../schema/schema.ts";
import { type FieldError, renderFieldError } from "../schema/validation/field-error.ts";
import { parseYaml, type YamlDocument } from "../schema/yaml/yaml.ts";

export interface ConfigurationKind<S extends ObjectSchema, V> {
  readonly kind: string;
  /** Accepted versions, newest first. All aliases of the group are accepted. */
  readonly versions: readonly string[];
  readonly schema: S;
  /** Validates the value, or converts it. */
  readonly read: (value: Infer<S>) => { readonly errors: readonly FieldError[] } | { readonly value: V };
}

/** The project's group, Kubernetes' group, and what the project's group becomes where only the suffix is replaced. */
const GROUPS = ["apiserver.svc.io", "apiserver.config.k8s.io", "apiserver.k8s.io"];

/** Throws an error in one sentence that names the file, and the line of each mistake. */
export function readConfigurationFile<S extends ObjectSchema, V>(
  path: string,
  text: string,
  { kind, versions, schema, read }: ConfigurationKind<S, V>,
): V {
  const document = parseDocument(path, text);
  const at = (field: string): string => {
    const line = lineOf(document, field);
    return line === undefined ? path : `${path}:${line}`;
  };
  const members = document.value as { readonly apiVersion?: unknown; readonly kind?: unknown };
  const accepted = versions.flatMap((version) => GROUPS.map((group) => `${group}/${version}`));
  if (members.kind !== kind || !accepted.includes(String(members.apiVersion))) {
    const found = `${JSON.stringify(members.apiVersion ?? "")} and ${JSON.stringify(members.kind ?? "")}`;
    throw new Error(`Cannot load ${at("kind")}: expected apiVersion: ${accepted[0]} and kind: ${kind}, found ${found}`);
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

function parseDocument(path: string, text: string): YamlDocument {
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  } catch (cause) {
    throw new Error(`Cannot load ${path}: ${(cause as Error).message}`, { cause });
  }
  const [document, ...more] = documents;
  if (document === undefined) throw new Error(`Cannot load ${path}: the file is empty`);
  if (more.length > 0) throw new Error(`Cannot load ${path}: the file has more than one document`);
  if (typeof document.value !== "object" || Array.isArray(document.value)) {
    throw new Error(`Cannot load ${path}: it is not a mapping`);
  }
  return document;
}

/** The line of the field, or of its nearest ancestor. */
function lineOf(document: YamlDocument, field: string): number | undefined {
  if (field === "") return undefined;
  const outer = field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0));
  return document.line(field) ?? lineOf(document, outer);
}
