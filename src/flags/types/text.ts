/** Flags whose value is text. */
import { ValueError, type ValueType } from "../flag.ts";

export const text: ValueType<string> = {
  name: "string",
  allowed: "text",
  sample: "example",
  parse: (value) => value,
  print: (value) => value,
};

/** The name of a file; "" is none. */
export const file: ValueType<string> = { ...text, allowed: "a file name", sample: "/etc/svc/example", path: "file" };

export const directory: ValueType<string> = {
  ...text,
  allowed: "a directory name",
  sample: "/var/lib/example",
  path: "directory",
};

/** A directory that the program needs. */
export const requiredDirectory: ValueType<string> = {
  ...directory,
  allowed: "a directory name, not empty",
  wrong: "",
  parse(value) {
    if (value === "") throw new ValueError("must be a directory name, not empty");
    return value;
  },
};

/** One of a closed set of words. */
export function oneOf<const V extends readonly [string, ...string[]]>(...choices: V): ValueType<V[number]> {
  return pattern<V[number]>(
    choicesText(choices),
    (value): value is V[number] => choices.includes(value),
    choices[choices.length - 1]!,
    { choices, wrong: "no-such-choice" },
  );
}

/** One of a closed set of words, or nothing. */
export function oneOfOrNone<const V extends readonly [string, ...string[]]>(...choices: V): ValueType<V[number] | ""> {
  return { ...oneOf("", ...choices), allowed: choicesText(choices), choices };
}

/** Text that `test` accepts. */
export function pattern<T extends string = string>(
  allowed: string,
  test: ((value: string) => value is T) | ((value: string) => boolean),
  sample: string,
  more: Partial<Pick<ValueType<T>, "choices" | "wrong" | "name">> = {},
): ValueType<T> {
  return {
    name: "string",
    wrong: "?!",
    ...more,
    allowed,
    sample,
    parse(value) {
      if (!test(value)) throw new ValueError(`must be ${allowed}`);
      return value as T;
    },
    print: (value) => value,
  };
}

export const bool: ValueType<boolean> = {
  name: "bool",
  allowed: "true or false",
  choices: ["true", "false"],
  bare: "true",
  sample: "true",
  wrong: "maybe",
  parse(value) {
    // Go's strconv.ParseBool.
    if (/^(1|t|T|TRUE|true|True)$/.test(value)) return true;
    if (/^(0|f|F|FALSE|false|False)$/.test(value)) return false;
    throw new ValueError("must be true or false");
  },
  print: String,
};

/** `--version` prints and exits; `--version=v1.33.4` makes the program report that version. */
export const version: ValueType<string> = {
  name: "version",
  allowed: "true, raw, false or a version such as v1.33.0",
  choices: ["true", "raw"],
  bare: "true",
  sample: "v1.33.4-custom.1",
  wrong: "1.33",
  parse(value) {
    if (!/^(true|false|raw)$/.test(value) && !/^v\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$/.test(value)) {
      throw new ValueError("must be true, raw, false or a version such as v1.33.0");
    }
    return value === "false" ? "" : value;
  },
  print: (value) => value,
};

/** `group/version` of a Kubernetes-style API. */
export const groupVersion: ValueType<string> = pattern(
  "a group and version such as audit.svc.io/v1",
  (value) => /^[a-z0-9.-]+\/v\d+((alpha|beta)\d+)?$/.test(value),
  "audit.svc.io/v1",
);

/** An absolute path of the key space of the store. */
export const keyPrefix: ValueType<string> = pattern(
  "a path that starts with / and does not end with it",
  (value) => /^(\/[^/\s]+)+$/.test(value),
  "/registry",
  { wrong: "registry/" },
);

/** `major.minor`, or nothing. */
export const minorVersion: ValueType<string> = pattern(
  "a version such as 1.32",
  (value) => /^(\d+\.\d+)?$/.test(value),
  "1.32",
);

function choicesText(choices: readonly string[]): string {
  return choices.length === 1 ? choices[0]! : `one of ${choices.join(", ")}`;
}
