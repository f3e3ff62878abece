/** Runs a test of an effect against a mutant: it must fail. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Test, type TestOpts } from "tap";
import { type Mutant, withMutant } from "./mutant.ts";

export interface MutationTest extends Mutant {
  /** Where the flag is: `apiserver`, `agent`, `agent file`, `up`. */
  readonly program: string;
  readonly run: (t: Test) => Promise<void>;
}

/** Longer than what the slowest effect needs on a busy machine. */
const TIMEOUT_MS = 60_000;

class FailedAssertion extends Error {}

/** How long servers may take to close after a test. */
const CLOSING_MS = 1000;

export interface MutationResult {
  /** Why the test failed; undefined when it passed: the mutant survives. */
  readonly reason: string | undefined;
  /** Kinds of handles that the test left open, which keep the process from its end: `TCPServerWrap`. */
  readonly leftOpen: readonly string[];
}

export async function killMutant(test: MutationTest): Promise<MutationResult> {
  const before = countOpenHandles();
  const reason = await runMutant(test);
  const deadline = performance.now() + CLOSING_MS;
  const isMore = ([kind, count]: readonly [string, number]) => count > (before.get(kind) ?? 0);
  let more = [...countOpenHandles()].filter(isMore);
  while (more.length > 0 && performance.now() < deadline) {
    await setTimeout(10);
    more = [...countOpenHandles()].filter(isMore);
  }
  return { reason, leftOpen: more.map(([kind]) => kind) };
}

/** Servers, pipes and child processes, by kind. */
function countOpenHandles(): ReadonlyMap<string, number> {
  const kinds = process.getActiveResourcesInfo().filter((kind) => /(?:ServerWrap|PipeWrap|Process)$/.test(kind));
  return new Map(
    Map.groupBy(kinds, String)
      .entries()
      .map(([kind, { length }]) => [kind, length]),
  );
}

/** Resolves with the reason of the failure, or with undefined when the test passes. */
async function runMutant(test: MutationTest): Promise<string | undefined> {
  const cleanup: (() => unknown)[] = [];
  const stop = new AbortController();
  try {
    const late = setTimeout(TIMEOUT_MS, "late" as const, { signal: stop.signal }).catch(() => "late" as const);
    const passed = withMutant(test, () => test.run(failFast(cleanup))).then(() => "passed" as const);
    return (await Promise.race([passed, late])) === "late" ? "it did not end in time" : undefined;
  } catch (error) {
    return String(error);
  } finally {
    stop.abort();
    for (const each of cleanup.toReversed()) await each();
  }
}

/** A test that throws at its first failed assertion and reports nothing. */
function failFast(cleanup: (() => unknown)[]): Test {
  const inner: Test = new Test({ name: "mutant" } as TestOpts);
  let directory: string | undefined;
  const own: Readonly<Record<string, unknown>> = {
    teardown: (callback: () => unknown) => cleanup.push(callback),
    testdir: (content: object = {}) => {
      directory ??= makeDirectory(cleanup);
      writeTree(directory, content);
      return directory;
    },
    test: async (_title: string, ...rest: readonly unknown[]) => {
      await (rest.at(-1) as (t: Test) => Promise<void>)(proxy);
    },
  };
  const proxy: Test = new Proxy(inner, {
    get(target, name) {
      const replaced = own[String(name)];
      if (replaced !== undefined) return replaced;
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: readonly unknown[]) => {
        const result: unknown = member.apply(target, args);
        return result instanceof Promise ? result.then((value) => check(value, name)) : check(result, name);
      };
    },
  });
  return proxy;
}

function check(result: unknown, name: string | symbol): unknown {
  if (result === false) throw new FailedAssertion(`${String(name)}() failed`);
  return result;
}

function makeDirectory(cleanup: (() => unknown)[]): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-mutant-"));
  cleanup.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function writeTree(directory: string, content: object): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, value] of Object.entries(content)) {
    if (typeof value === "string" || Buffer.isBuffer(value)) writeFileSync(join(directory, name), value);
    else writeTree(join(directory, name), value);
  }
}
