/**
 * CEL's published conformance cases with Kubernetes' environment. Cases that Kubernetes does not support are listed in
 * testdata/cel-unsupported.json with the reason; the list must not grow.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { nameFormats } from "../testing/cel/name-formats.ts";
import { parseTextproto, type TextMessage, type TextValue } from "../testing/cel/textproto.ts";
import { compile, type EvaluationResult } from "./cel.ts";
import { createEnvironment } from "./environment.ts";
import { Uint } from "./values/compare.ts";
import { EntryMap } from "./values/entry-map.ts";
import { Duration, Timestamp } from "./values/time-value.ts";
import {
  boolType,
  bytesType,
  doubleType,
  durationType,
  dynType,
  formatType,
  intType,
  listType,
  mapType,
  nullType,
  opaqueType,
  stringType,
  type Type,
  timestampType,
  typeType,
  uintType,
} from "./values/types.ts";
import { ArrayList, equal, Optional, TypeValue, typeOfValue, type Value } from "./values/value.ts";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../shared", import.meta.url));
const folder = join(shared, "oracles/cel-spec");
const unsupportedPath = fileURLToPath(new URL("../../testdata/cel-unsupported.json", import.meta.url));

/** Reasons by name of unsupported files and cases. */
interface UnsupportedCases {
  readonly files: Readonly<Record<string, string>>;
  readonly cases: Readonly<Record<string, string>>;
}

interface Case {
  readonly file: string;
  readonly id: string;
  readonly test: TextMessage;
}

function readCases(): readonly Case[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".textproto"));
  return names.flatMap((name) => {
    const file = name.replace(".textproto", "");
    const parsed = parseTextproto(readFileSync(join(folder, name), "utf8"));
    return messages(parsed, "section").flatMap((section) =>
      messages(section, "test").map((test) => ({
        file,
        id: `${file}/${text(section, "name")}/${text(test, "name")}`,
        test,
      })),
    );
  });
}

function messages(message: TextMessage | undefined, name: string): readonly TextMessage[] {
  return (message?.get(name) ?? []).filter((value) => value instanceof Map);
}

function message(parent: TextMessage | undefined, name: string): TextMessage | undefined {
  return messages(parent, name)[0];
}

function text(parent: TextMessage | undefined, name: string): string {
  return requireText(parent?.get(name)?.[0]);
}

function requireText(value: TextValue | undefined): string {
  if (value instanceof Uint8Array) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(value);
  return typeof value === "string" ? value : "";
}

function doubleOf(word: string): number {
  const special: Readonly<Record<string, number>> = { inf: Infinity, "-inf": -Infinity, infinity: Infinity, nan: NaN };
  return special[word.toLowerCase()] ?? special[word.toLowerCase().replace("infinity", "inf")] ?? Number(word);
}

class Unsupported extends Error {}

function celValueOf(parent: TextMessage): Value {
  const [[kind, [raw]]] = [...parent] as [[string, TextValue[]]];
  const inner = raw instanceof Map ? raw : new Map();
  switch (kind) {
    case "null_value":
      return null;
    case "bool_value":
      return requireText(raw) === "true";
    case "int64_value":
      return BigInt(requireText(raw).replace(/^-(0x.*)/, "$1")) * (/^-0x/.test(requireText(raw)) ? -1n : 1n);
    case "uint64_value":
      return new Uint(BigInt(requireText(raw)));
    case "double_value":
      return doubleOf(requireText(raw));
    case "string_value":
      // Kubernetes' libraries format numbers without the narrow no-break spaces of later locale data.
      return requireText(raw).replaceAll("\u202f×\u202f", "×");
    case "bytes_value":
      return raw as Uint8Array;
    case "list_value":
      return new ArrayList(messages(inner, "values").map(celValueOf));
    case "map_value":
      return EntryMap.of(
        messages(inner, "entries").map((entry) => [
          celValueOf(message(entry, "key")!),
          celValueOf(message(entry, "value")!),
        ]),
      );
    case "type_value":
      return new TypeValue(typeNamed(requireText(raw)));
    case "object_value":
      return objectOf(inner);
    default:
      throw new Unsupported(kind);
  }
}

function objectOf(any: TextMessage): Value {
  const [[name, [body]]] = [...any] as [[string, TextValue[]]];
  const fields = body as TextMessage;
  const nanos = BigInt(text(fields, "seconds") || "0") * 1_000_000_000n + BigInt(text(fields, "nanos") || "0");
  if (name.endsWith("google.protobuf.Timestamp")) return new Timestamp(nanos);
  if (name.endsWith("google.protobuf.Duration")) return new Duration(nanos);
  throw new Unsupported(name);
}

function typeNamed(name: string): Type {
  const value = createEnvironment({ variables: {}, nameFormats }).constants.get(name)?.value;
  if (value instanceof TypeValue) return value.of;
  throw new Unsupported(name);
}

const primitives: Readonly<Record<string, Type>> = {
  BOOL: boolType,
  INT64: intType,
  UINT64: uintType,
  DOUBLE: doubleType,
  STRING: stringType,
  BYTES: bytesType,
};

function typeFrom(parent: TextMessage | undefined): Type {
  const [[kind, [raw]]] = [...parent!] as [[string, TextValue[]]];
  const inner = raw instanceof Map ? (raw as TextMessage) : undefined;
  switch (kind) {
    case "primitive":
      return primitives[requireText(raw)]!;
    case "dyn":
      return dynType;
    case "null":
      return nullType;
    case "list_type":
      return listType(typeFrom(message(inner, "elem_type")));
    case "map_type":
      return mapType(typeFrom(message(inner, "key_type")), typeFrom(message(inner, "value_type")));
    case "type":
      return inner?.size ? typeType(typeFrom(inner)) : typeType();
    case "well_known":
      if (requireText(raw) === "TIMESTAMP") return timestampType;
      if (requireText(raw) === "DURATION") return durationType;
      throw new Unsupported(requireText(raw));
    case "message_type":
      if (requireText(raw) === "google.protobuf.Duration") return durationType;
      if (requireText(raw) === "google.protobuf.Timestamp") return timestampType;
      throw new Unsupported(requireText(raw));
    case "abstract_type":
      return opaqueType(text(inner, "name"), ...messages(inner, "parameter_types").map(typeFrom));
    default:
      throw new Unsupported(`${kind} ${requireText(raw)}`);
  }
}

/** Returns the difference from the expected result; undefined when there is none. */
function run(test: TextMessage): string | undefined {
  const variables: Record<string, Type> = {};
  for (const declared of messages(test, "type_env")) {
    const ident = message(declared, "ident");
    if (ident === undefined) throw new Unsupported("function declarations");
    variables[text(declared, "name")] = typeFrom(message(ident, "type"));
  }
  const environment = createEnvironment({
    variables,
    nameFormats,
    mixedLiterals: true,
    unchecked: text(test, "disable_check") === "true",
  });
  const compiled = compile(text(test, "expr"), environment);
  const failing = test.has("eval_error") || test.has("any_eval_errors");
  if (compiled.errors !== undefined) return failing ? undefined : `does not compile: ${compiled.errors[0]?.message}`;
  const typed = message(test, "typed_result");
  if (typed !== undefined) {
    const expected = formatType(typeFrom(message(typed, "deduced_type")));
    const actual = formatType(compiled.program.resultType);
    if (expected !== actual) return `has type ${actual}, not ${expected}`;
    if (text(test, "check_only") === "true") return undefined;
  }
  const values: Record<string, Value> = {};
  for (const bound of messages(test, "bindings")) {
    values[text(bound, "key")] = celValueOf(message(message(bound, "value"), "value")!);
  }
  return compareResult(compiled.program.evaluate(values), failing, message(test, "value") ?? message(typed, "result"));
}

function compareResult(
  result: EvaluationResult,
  failing: boolean,
  expected: TextMessage | undefined,
): string | undefined {
  if (result.error !== undefined) return failing ? undefined : `fails: ${result.error.message}`;
  const value = unwrapOptional(result.value);
  if (failing) return `returns ${formatResult(value)} instead of failing`;
  const wanted = expected === undefined ? true : celValueOf(expected);
  const same = formatType(typeOfValue(value)) === formatType(typeOfValue(wanted)) && sameValue(value, wanted);
  return same ? undefined : `returns ${formatResult(value)}, not ${formatResult(wanted)}`;
}

function sameValue(a: Value, b: Value): boolean {
  return typeof a === "number" && typeof b === "number" ? Object.is(a, b) || a === b : equal(a, b);
}

function unwrapOptional(value: Value): Value {
  return value instanceof Optional && value.value !== undefined ? value.value : value;
}

function formatResult(value: Value): string {
  return typeof value === "bigint" ? `${value}n` : `${formatType(typeOfValue(value))} ${String(value)}`;
}

function differenceOf(test: TextMessage): string | undefined {
  try {
    return run(test);
  } catch (error) {
    if (error instanceof Unsupported) return `requires ${error.message}`;
    throw error;
  }
}

t.test("compile() and evaluate() pass the published conformance cases", (t) => {
  if (!existsSync(folder)) {
    t.comment("the published conformance cases are not present");
    t.end();
    return;
  }
  const unsupported = JSON.parse(readFileSync(unsupportedPath, "utf8")) as UnsupportedCases;
  const cases = readCases();
  const differing = new Map<string, string>();
  const differingFiles = new Set<string>();
  for (const { file, id, test } of cases) {
    const difference = differenceOf(test);
    if (difference === undefined) continue;
    if (Object.hasOwn(unsupported.files, file)) differingFiles.add(file);
    else differing.set(id, difference);
  }
  if (process.env.SVC_RECORD === "1") {
    const kept = [...differing].map(([id, difference]) => [id, unsupported.cases[id] ?? difference]);
    writeFileSync(
      unsupportedPath,
      `${JSON.stringify({ ...unsupported, cases: Object.fromEntries(kept) }, undefined, 2)}\n`,
    );
  }
  for (const [id, difference] of differing) if (!Object.hasOwn(unsupported.cases, id)) t.fail(`${id}: ${difference}`);
  for (const id of Object.keys(unsupported.cases)) t.ok(differing.has(id), `${id} is unsupported`);
  for (const file of Object.keys(unsupported.files)) t.ok(differingFiles.has(file), `${file} has unsupported cases`);
  const run = cases.filter(({ file }) => !Object.hasOwn(unsupported.files, file)).length;
  t.comment(`${run - differing.size} of ${run} cases pass, and ${cases.length - run} are in unsupported files`);
  t.end();
});
