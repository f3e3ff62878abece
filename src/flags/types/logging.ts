/** `--vmodule=pod-worker=4,image*=6` */
import { ValueError, type ValueType } from "../flag.ts";

/** The options of `src/std/log/logger.ts`. */
export interface VmodulePattern {
  readonly pattern: string;
  readonly level: number;
}

interface VmoduleItem {
  readonly filePattern: string;
  readonly verbosity: number;
}

const levelMax = 2 ** 31 - 1;

export const vmodule: ValueType<readonly VmodulePattern[]> = {
  name: "pattern=N,...",
  allowed: "comma-separated pattern=N settings, the pattern a module name with * and ?, N a whole number",
  sample: "pod-worker=4,image*=6",
  wrong: "pod-worker=loud",
  parse(text) {
    return (text === "" ? [] : text.split(",")).map((part) => {
      const match = /^([^=,\s]+)=(\d+)$/.exec(part.trim());
      if (match === null || Number(match[2]) > levelMax) {
        throw new ValueError(`${JSON.stringify(part)} must be pattern=N, the pattern a module name with * and ?`);
      }
      return { pattern: match[1]!, level: Number(match[2]) };
    });
  },
  print: (list) => list.map(({ pattern, level }) => `${pattern}=${level}`).join(","),
  add: (previous, next) => [...previous, ...next],
  toJson: (list): readonly VmoduleItem[] =>
    list.map(({ pattern, level }) => ({ filePattern: pattern, verbosity: level })),
  fromJson: (json) =>
    (json as readonly VmoduleItem[]).map(({ filePattern, verbosity }) => ({ pattern: filePattern, level: verbosity })),
};
