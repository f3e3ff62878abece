/** Flags with several values: comma separated, repeated, or both. */
import { ValueError, type ValueType } from "../flag.ts";
import { splitCsv } from "./csv.ts";

interface ListOptions {
  readonly name?: string;
  /** What one element must be, to end "each must be …". */
  readonly element?: string;
  readonly accepts?: (element: string) => boolean;
  readonly choices?: readonly string[];
  readonly sample?: string;
  readonly wrong?: string;
  readonly path?: "file" | "directory";
}

/** Comma separated, and the flag may be repeated: each occurrence adds, as Go's StringSlice does. */
export function strings(options: ListOptions = {}): ValueType<readonly string[]> {
  const { name = "strings", accepts, choices, path } = options;
  const element = options.element ?? (choices === undefined ? "text" : `one of ${choices.join(", ")}`);
  const accepted = accepts ?? (choices === undefined ? undefined : (value: string) => choices.includes(value));
  const check = (list: readonly string[]): readonly string[] => {
    const bad = list.find((value) => accepted !== undefined && !accepted(value));
    if (bad !== undefined) throw new ValueError(`${JSON.stringify(bad)} must be ${element}`);
    return list;
  };
  const wrong = options.wrong ?? (choices === undefined ? undefined : "no-such-choice");
  return {
    name,
    allowed: accepted === undefined ? "a comma-separated list" : `a comma-separated list, each ${element}`,
    sample: options.sample ?? (choices === undefined ? "one,two" : choices.slice(0, 2).join(",")),
    ...(wrong === undefined ? {} : { wrong }),
    ...(choices === undefined ? {} : { choices }),
    ...(path === undefined ? {} : { path }),
    parse: (value) => check(splitCsv(value)),
    print: (list) => list.join(","),
    add: (previous, next) => [...previous, ...next],
    fromJson: (json) => check(json as readonly string[]),
  };
}

/** One value an occurrence, commas kept. */
export function repeated(options: Omit<ListOptions, "choices"> = {}): ValueType<readonly string[]> {
  const { name = "string, repeatable", element = "text", accepts, sample = "one", wrong, path } = options;
  return {
    name,
    allowed: element,
    sample,
    ...(wrong === undefined ? {} : { wrong }),
    ...(path === undefined ? {} : { path }),
    parse(value) {
      if (accepts !== undefined && !accepts(value)) throw new ValueError(`must be ${element}`);
      return [value];
    },
    print: (list) => list.join(" "),
    add: (previous, next) => [...previous, ...next],
  };
}
