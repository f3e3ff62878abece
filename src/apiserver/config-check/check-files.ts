/** Checks configuration files as the programs would read them, without starting anything. */
import { readFile } from "node:fs/promises";
import { findNearest } from "../../flags/distance.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseYaml, type YamlDocument } from "../../schema/yaml/yaml.ts";
import { apiServerFileKinds, type FileKind } from "./file-kinds.ts";
import { problemsOf } from "./loader-errors.ts";
import { type Problem, problemAt, type Source } from "./problem.ts";
import { repairStructure } from "./repair.ts";
import { checkStructure } from "./structure.ts";
import { checkAbacFile, checkTokenFile, isAbacFile } from "./text-files.ts";

export interface CheckResult {
  /** `AuthenticationConfiguration`, `token file`; undefined when it is not known. */
  readonly kind: string | undefined;
  readonly problems: readonly Problem[];
}

/** Larger than any configuration file; bounds the memory for a wrong path. */
const BYTES_MAX = 10 * 1024 * 1024;

/** `more`: the kinds of files of other programs. Never rejects. */
export async function checkFile(file: string, more: readonly FileKind[] = []): Promise<CheckResult> {
  const failed = (message: string, fix = ""): CheckResult => ({
    kind: undefined,
    problems: [{ file, field: "", message, fix }],
  });
  let text: string;
  try {
    const bytes = await readFile(file);
    if (bytes.length > BYTES_MAX) return failed(`the file is larger than ${BYTES_MAX} bytes`);
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return failed("there is no such file");
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return failed("the file is not UTF-8 text");
    return failed(message);
  }
  if (text.trim() === "") return failed("the file is empty");
  if (isAbacFile(text)) return { kind: "ABAC policy file", problems: checkAbacFile(file, text) };
  return await checkDocuments(file, text, [...apiServerFileKinds, ...more]);
}

async function checkDocuments(file: string, text: string, kinds: readonly FileKind[]): Promise<CheckResult> {
  let documents: readonly YamlDocument[];
  try {
    documents = parseYaml(text).filter(({ value }) => value !== undefined && value !== null);
  } catch (error) {
    if (isTokenFile(text)) return { kind: "token file", problems: checkTokenFile(file, text) };
    const source: Source = { file, text, document: undefined };
    return { kind: undefined, problems: problemsOf(source, error) };
  }
  const mappings = documents.filter(({ value }) => isPlainObject(value));
  if (mappings.length === 0 && isTokenFile(text)) return { kind: "token file", problems: checkTokenFile(file, text) };
  const found: string[] = [];
  const problems: Problem[] = [];
  for (const document of documents) {
    const source: Source = { file, text, document };
    const kind = identify(source, kinds);
    if ("problem" in kind) {
      problems.push(kind.problem);
      continue;
    }
    found.push(kind.kind);
    if (documents.length > 1 && kind.schema !== undefined) {
      const message = `the file has ${documents.length} documents`;
      return { kind: kind.kind, problems: [problemAt(source, "kind", message, "expected one")] };
    }
    problems.push(...(await checkDocument(source, kind)));
    // The loader of manifests reads all documents at once.
    if (documents.length > 1) break;
  }
  return { kind: found[0], problems };
}

async function checkDocument(source: Source, kind: FileKind): Promise<readonly Problem[]> {
  const structure = kind.schema === undefined ? [] : checkStructure(source, kind.schema);
  if (kind.schema === undefined || structure.length === 0) return await checkByLoader(source, kind);
  // Most loaders end at mistakes of the structure.
  const loaded = await checkByLoader(repairStructure(source, kind.schema, structure), kind);
  const others = loaded
    .filter((problem) => !isStructural(problem, structure))
    .map((problem) => relocate(source, problem));
  return [...structure, ...others].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

/** The place of a problem of the repaired document in the file. */
function relocate(source: Source, { file, field, message, fix }: Problem): Problem {
  return field === "" ? { file, field, message, fix } : problemAt(source, field, message, fix);
}

async function checkByLoader(source: Source, kind: FileKind): Promise<readonly Problem[]> {
  try {
    await kind.load(source);
    return [];
  } catch (error) {
    return error instanceof AggregateError
      ? error.errors.flatMap((each) => problemsOf(source, each, kind.suggestions))
      : problemsOf(source, error, kind.suggestions);
  }
}

/** Whether the loader reports what the comparison with the schema has reported. */
function isStructural({ message, field }: Problem, structure: readonly Problem[]): boolean {
  if (/unknown field|set twice|already set|strict decoding/.test(message)) return true;
  return structure.some((known) => {
    const isBelow = known.field !== "" && (field.startsWith(`${known.field}.`) || field.startsWith(`${known.field}[`));
    return known.field === field || isBelow || message.includes(known.message);
  });
}

function isTokenFile(text: string): boolean {
  const [first = ""] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return first.includes(",") && !/^[\s{[-]/.test(first) && !/^\w+:\s/.test(first);
}

function identify(source: Source, kinds: readonly FileKind[]): FileKind | { readonly problem: Problem } {
  const value = source.document?.value;
  if (!isPlainObject(value)) {
    const fix = "expected a mapping with apiVersion and kind, static tokens, or ABAC policies";
    return { problem: problemAt(source, "", "the file is no configuration", fix) };
  }
  const { apiVersion = "", kind = "" } = value;
  const named = kinds.filter((each) => each.kind === kind);
  const known = named.find(({ apiVersions }) => apiVersions.includes(String(apiVersion)));
  // The identity of the first release of encryption.
  if (kind === "EncryptionConfig" && apiVersion === "v1")
    return kinds.find((each) => each.kind === "EncryptionConfiguration")!;
  if (known !== undefined) return known;
  if (named.length > 0) {
    const versions = named.flatMap(({ apiVersions }) => apiVersions);
    const message = apiVersion === "" ? "the field is missing" : `${JSON.stringify(apiVersion)} has no ${kind}`;
    return { problem: problemAt(source, "apiVersion", message, `expected ${listChoices(versions)}`) };
  }
  const names = [...new Set(kinds.map((each) => each.kind))];
  const nearest = findNearest(String(kind), names);
  const fix = nearest === undefined ? `expected one of ${names.sort().join(", ")}` : `did you mean ${nearest}?`;
  const message = kind === "" ? "the field is missing" : `${JSON.stringify(kind)} is no kind of a configuration file`;
  return { problem: problemAt(source, "kind", message, fix) };
}

const CHOICES_MAX = 4;

function listChoices(choices: readonly string[]): string {
  return `${choices.slice(0, CHOICES_MAX).join(" or ")}${choices.length > CHOICES_MAX ? " or another version" : ""}`;
}
