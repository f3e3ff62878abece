/** Fuzzes the YAML parser: a parsed value that is written again parses to the same value. */

import { fuzz, sample } from "../../testing/schema/fuzz-harness.ts";
import { deepEqual } from "../value/equal.ts";
import { encodeYaml } from "./write-yaml.ts";
import { parseYaml } from "./yaml.ts";

fuzz({
  name: "yaml",
  samples: [
    Buffer.from(encodeYaml(sample)),
    Buffer.from("a: &x {b: [1, 0644, yes, ~]}\nc: *x\nd: {<<: *x, e: |\n  text\n  }\n---\n- !!str 1\n- >-\n  folded\n"),
  ],
  words: [
    "\n",
    "  ",
    "- ",
    ": ",
    "? ",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    ">\n",
    "'",
    '"',
    "{",
    "}",
    "[",
    "]",
    "---\n",
    "...\n",
    "!!int ",
    "!!binary ",
    "__proto__: ",
    "#",
    "\t",
    "\0",
    "%YAML 1.1\n",
    "0x",
    "1e999",
    "\u2028",
  ],
  read(input) {
    const documents = parseYaml(Buffer.from(input).toString("utf8"));
    for (const { value, line, duplicates } of documents) {
      for (const path of duplicates) line(path);
      const again = parseYaml(encodeYaml(value))[0]?.value ?? null;
      if (!deepEqual(again, value ?? null)) throw new Error("what was written reads otherwise");
    }
    return documents.map(({ value }) => value);
  },
  isRefusal: (error) => error instanceof SyntaxError,
});
