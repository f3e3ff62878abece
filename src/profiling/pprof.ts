/** Encodes profiles for `go tool pprof`: github.com/google/pprof, `profile.proto`. */
import { ReverseWriter, wireBytes, wireVarint } from "../schema/protobuf/wire.ts";

export interface StackFrame {
  readonly functionName: string;
  readonly file: string;
  /** The line of the function's start, from one; 0 when unknown. */
  readonly startLine: number;
}

export interface StackSample {
  /** Innermost frame first. */
  readonly frames: readonly StackFrame[];
  /** One value for each type. */
  readonly values: readonly number[];
}

export interface SampleType {
  /** `cpu`, `samples`, `inuse_space` */
  readonly type: string;
  /** `nanoseconds`, `count`, `bytes` */
  readonly unit: string;
}

export interface StackProfile {
  readonly types: readonly SampleType[];
  readonly samples: readonly StackSample[];
  /** The sampling interval. */
  readonly period: SampleType & { readonly value: number };
  readonly startedMs: number;
  readonly durationMs: number;
}

/** Without the gzip compression that readers expect. */
export function encodePprof(profile: StackProfile): Buffer {
  const texts = new StringTable();
  const functions = new FunctionTable();
  const stacks = profile.samples.map(({ frames }) => frames.map((frame) => functions.idOf(frame)));
  const writer = new ReverseWriter();
  const message = (field: number, write: () => void): void => {
    const before = writer.length;
    write();
    writer.uint32(writer.length - before);
    writer.tag(field, wireBytes);
  };
  const number = (field: number, value: number): void => {
    writer.int64(Math.round(value));
    writer.tag(field, wireVarint);
  };
  const numbers = (field: number, values: readonly number[]): void => {
    message(field, () => {
      for (const value of values.toReversed()) writer.int64(Math.round(value));
    });
  };
  const valueType = (field: number, { type, unit }: SampleType): void => {
    message(field, () => {
      number(2, texts.indexOf(unit));
      number(1, texts.indexOf(type));
    });
  };
  // Fields are written from last to first. Strings get their index on first use; the string table is written last.
  number(12, profile.period.value);
  valueType(11, profile.period);
  number(10, profile.durationMs * 1e6);
  writer.int64(BigInt(Math.round(profile.startedMs)) * 1_000_000n);
  writer.tag(9, wireVarint);
  for (const { id, frame } of functions.all().toReversed()) {
    message(5, () => {
      number(5, frame.startLine);
      number(4, texts.indexOf(frame.file));
      number(2, texts.indexOf(frame.functionName));
      number(1, id);
    });
    // One location for each function: V8 has line numbers of the top frame only.
    message(4, () => {
      message(4, () => {
        number(2, frame.startLine);
        number(1, id);
      });
      number(1, id);
    });
  }
  for (const [index, { values }] of profile.samples.entries()) {
    message(2, () => {
      numbers(2, values);
      numbers(1, stacks[index]!);
    });
  }
  for (const type of profile.types.toReversed()) valueType(1, type);
  for (const text of texts.all().toReversed()) {
    writer.string(text);
    writer.tag(6, wireBytes);
  }
  return writer.take();
}

/** The string table; index 0 is the empty string. */
class StringTable {
  readonly #indexes = new Map<string, number>([["", 0]]);

  indexOf(text: string): number {
    let index = this.#indexes.get(text);
    if (index === undefined) {
      index = this.#indexes.size;
      this.#indexes.set(text, index);
    }
    return index;
  }

  all(): readonly string[] {
    return [...this.#indexes.keys()];
  }
}

class FunctionTable {
  readonly #functions = new Map<string, { readonly id: number; readonly frame: StackFrame }>();

  idOf(frame: StackFrame): number {
    const key = `${frame.functionName}\0${frame.file}\0${frame.startLine}`;
    let entry = this.#functions.get(key);
    if (entry === undefined) {
      entry = { id: this.#functions.size + 1, frame };
      this.#functions.set(key, entry);
    }
    return entry.id;
  }

  all(): readonly { readonly id: number; readonly frame: StackFrame }[] {
    return [...this.#functions.values()];
  }
}
