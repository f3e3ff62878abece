/**
 * Runs a fuzz target:
 *   1. mutate a sample, or a mutant that was read without an error;
 *   2. pass it to the reader, which may only throw its documented error;
 *   3. check that no prototype changed, globally or in the result;
 *   4. check the time against the size of the input, and that four times as many repetitions do not
 *      take sixteen times as long.
 * A failure prints the seed and the input; the same seed reproduces it.
 *
 *     node src/schema/json/json.fuzz.ts --seconds 60 --seed 1
 */
import { parseArgs } from "node:util";
import {
  base64,
  boolean,
  double,
  duration,
  int32,
  int64,
  intOrString,
  list,
  listMap,
  map,
  microTime,
  object,
  optional,
  pointer,
  quantity,
  rawExtension,
  required,
  string,
  time,
} from "../../schema/define.ts";
import type { ObjectSchema } from "../../schema/schema.ts";

export interface Target {
  readonly name: string;
  readonly samples: readonly Uint8Array[];
  /** Tokens of the input format. */
  readonly words: readonly (string | Uint8Array)[];
  /** Returns the value that was read; throws when a property does not hold. */
  read(input: Uint8Array): unknown;
  isRefusal(error: unknown): boolean;
}

const wrapper: ObjectSchema = object("fuzz/v1.Wrapper", { inner: pointer(1, (): ObjectSchema => everything) });

/** A schema with a member of each type, and a recursive one. */
export const everything: ObjectSchema = object("fuzz/v1.Everything", {
  kind: optional(0, string),
  apiVersion: optional(0, string),
  text: optional(1, string),
  count: optional(2, int32),
  long: pointer(3, int64),
  flag: pointer(4, boolean),
  ratio: optional(5, double),
  data: optional(6, map(base64)),
  labels: optional(7, map(string)),
  items: optional(
    8,
    listMap(object("fuzz/v1.Item", { name: required(1, string), port: optional(2, intOrString) }), "name"),
  ),
  words: optional(9, list(string)),
  at: optional(10, time),
  exactly: optional(11, microTime),
  lasts: pointer(12, duration),
  amounts: optional(13, map(quantity)),
  raw: pointer(14, rawExtension),
  self: pointer(15, (): ObjectSchema => everything),
  selves: optional(16, list(wrapper)),
});

export const sample = {
  text: "web",
  count: 3,
  long: 1234567890123,
  flag: true,
  ratio: 1.5,
  data: { key: "AQID" },
  labels: { app: "web", tier: "front" },
  items: [
    { name: "a", port: 80 },
    { name: "b", port: "http" },
  ],
  words: ["one", "", "dreiß"],
  at: "2026-01-02T03:04:05Z",
  exactly: "2026-01-02T03:04:05.000006Z",
  lasts: "1m30s",
  amounts: { cpu: "500m", memory: "128Mi" },
  raw: { any: ["thing", 1, null] },
  self: { text: "inner", self: { count: 1 } },
};

const MUTATIONS_MAX = 6;
const CORPUS_MAX = 500;
const INPUT_BYTES_MAX = 4096;
/** The CPU time allowed for one input: a constant and a part per KiB. */
const BUDGET_MS = 30;
const BUDGET_MS_PER_KIB = 3;
const SCALING_EVERY = 2000;
const SCALING_BYTES = 32 * 1024;

export function fuzz(target: Target): void {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "60" },
      seed: { type: "string", default: String(Date.now() % 2 ** 31) },
    },
  });
  const seed = Number(values.seed);
  console.log(`${target.name}: seed ${seed}`);
  const random = new Random(seed);
  const corpus = [...target.samples];
  const until = performance.now() + Number(values.seconds) * 1000;
  let inputs = 0;
  let refused = 0;
  for (; performance.now() < until; inputs++) {
    const input = mutate(target, corpus, random);
    if (attempt(target, input)) {
      if (corpus.length < CORPUS_MAX) corpus.push(input);
      else corpus[target.samples.length + random.below(CORPUS_MAX - target.samples.length)] = input;
    } else refused++;
    if (inputs % SCALING_EVERY === 0) scale(target, mutate(target, corpus, random));
  }
  console.log(`${target.name}: ${inputs} inputs, ${refused} refused, no failures`);
}

/** Returns whether the input was accepted; exits when anything but a refusal was thrown. */
function attempt(target: Target, input: Uint8Array): boolean {
  let spent = milliseconds(() => run(target, input));
  const budget = BUDGET_MS + (BUDGET_MS_PER_KIB * input.length) / 1024;
  // Retries, since a busy machine or a garbage collection can cause the delay.
  for (let again = 0; again < 3 && spent.ms > budget; again++) spent = milliseconds(() => run(target, input));
  if (spent.ms > budget) fail(target, input, `took ${spent.ms.toFixed(1)} ms for ${input.length} bytes`);
  return spent.result;
}

function run(target: Target, input: Uint8Array): boolean {
  let read = false;
  try {
    checkPrototypes(target.read(input), 0);
    read = true;
  } catch (error) {
    if (!target.isRefusal(error))
      fail(target, input, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  if (Object.keys(Object.prototype).length > 0 || Object.keys(Array.prototype).length > 0) {
    fail(target, input, "a prototype was changed");
  }
  return read;
}

function checkPrototypes(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
  const prototype = Object.getPrototypeOf(value);
  const known = prototype === Object.prototype || prototype === Array.prototype || prototype === null;
  if (!known) throw new Error(`a value has a changed prototype at depth ${depth}`);
  for (const name of Object.keys(value)) checkPrototypes((value as Readonly<Record<string, unknown>>)[name], depth + 1);
}

function milliseconds<T>(call: () => T): { readonly ms: number; readonly result: T } {
  const before = process.cpuUsage();
  const result = call();
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, result };
}

/** Compares the time for a repeated piece of an input at a size and at four times that size. */
function scale(target: Target, input: Uint8Array): void {
  if (input.length === 0) return;
  const repeated = (bytes: number) => Buffer.alloc(bytes, input.subarray(0, 64));
  const least = (bytes: number) =>
    Math.min(...[1, 2, 3].map(() => milliseconds(() => run(target, repeated(bytes))).ms));
  const [small, large] = [least(SCALING_BYTES), least(SCALING_BYTES * 4)];
  // Very short times cannot be compared.
  if (large > 40 && large > small * 16) {
    fail(
      target,
      input.subarray(0, 64),
      `repeated: ${small.toFixed(1)} ms, then ${large.toFixed(1)} ms for four times the size`,
    );
  }
}

function fail(target: Target, input: Uint8Array, what: string): never {
  console.error(`${target.name}: ${what}\n  hex: ${Buffer.from(input).toString("hex")}`);
  process.exit(1);
}

function mutate({ words, samples }: Target, corpus: readonly Uint8Array[], random: Random): Uint8Array {
  let bytes = Buffer.from(random.pick(corpus) ?? samples[0] ?? []);
  const times = 1 + random.below(MUTATIONS_MAX);
  for (let time = 0; time < times; time++) bytes = mutation(bytes, words, corpus, random);
  return bytes.subarray(0, INPUT_BYTES_MAX);
}

function mutation(
  bytes: Buffer,
  words: Target["words"],
  corpus: readonly Uint8Array[],
  random: Random,
): Buffer<ArrayBuffer> {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + random.below(32));
  const around = (middle: Uint8Array, behind = at) =>
    Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(behind)]);
  switch (random.below(8)) {
    case 0: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8));
      return copy;
    }
    case 1:
      return around(Buffer.from([random.below(256)]));
    case 2:
      return around(Buffer.alloc(0), end);
    case 3:
      return around(bytes.subarray(at, end));
    case 4:
      return around(Buffer.concat(Array.from({ length: 1 + random.below(40) }, () => bytes.subarray(at, end))));
    case 5:
      return around(random.pick(corpus) ?? Buffer.alloc(0), bytes.length);
    default: {
      const word = random.pick(words) ?? "";
      return around(typeof word === "string" ? Buffer.from(word) : word, random.below(2) === 0 ? at : end);
    }
  }
}

/** Mulberry32: small, fast, and the same for the same seed. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return limit === 0 ? 0 : ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  pick<T>(values: readonly T[]): T | undefined {
    return values[this.below(values.length)];
  }
}
