/** Profiles in the form that `go tool pprof` and its like read: github.com/google/pprof, `profile.proto`. */
import { ReverseWriter, wireBytes, wireVarint } from "../../../schema/protobuf/wire.ts";

export interface StackFrame {
  readonly functionName: string;
  readonly file: string;
  /** Of the function's beginning, counted from one; 0 where it is not known. */
  readonly startLine: number;
}

export interface StackSample {
  /** The innermost first. */
  readonly frames: readonly StackFrame[];
  /** One for each type. */
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
  /** What lies between two samples. */
  readonly period: SampleType & { readonly value: number };
  readonly startedMs: number;
  readonly durationMs: number;
}

/** Not yet compressed; what reads it wants gzip. */
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
  // Fields are written from the last to the first; texts are numbered as they are met and written at the front of all.
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
    // A place in the code for each function: V8 tells lines of a stack's top only.
    message(4, () => {
      message(4, () => {
        number(2, frame.startLine);
        number(1, id);
      });
      number(1, id);
    });
  }
  for (const [place, { values }] of profile.samples.entries()) {
    message(2, () => {
      numbers(2, values);
      numbers(1, stacks[place]!);
    });
  }
  for (const type of profile.types.toReversed()) valueType(1, type);
  for (const text of texts.all().toReversed()) {
    writer.string(text);
    writer.tag(6, wireBytes);
  }
  return writer.take();
}

/** Texts by number; 0 is the empty one. */
class StringTable {
  readonly #places = new Map<string, number>([["", 0]]);

  indexOf(text: string): number {
    let place = this.#places.get(text);
    if (place === undefined) {
      place = this.#places.size;
      this.#places.set(text, place);
    }
    return place;
  }

  all(): readonly string[] {
    return [...this.#places.keys()];
  }
}

class FunctionTable {
  readonly #known = new Map<string, { readonly id: number; readonly frame: StackFrame }>();

  idOf(frame: StackFrame): number {
    const key = `${frame.functionName}\0${frame.file}\0${frame.startLine}`;
    let known = this.#known.get(key);
    if (known === undefined) {
      known = { id: this.#known.size + 1, frame };
      this.#known.set(key, known);
    }
    return known.id;
  }

  all(): readonly { readonly id: number; readonly frame: StackFrame }[] {
    return [...this.#known.values()];
  }
}
