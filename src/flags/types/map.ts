/** Flags that are maps: `a=1,b=2`, repeatable. A repeated key replaces its value. */
import { ValueError, type ValueType } from "../flag.ts";
import { splitCsv } from "./csv.ts";
import { parseDuration } from "./duration.ts";
import { isQuantity } from "./quantity.ts";

export type Pairs = Readonly<Record<string, string>>;

interface PairOptions {
  readonly name?: string;
  readonly separator?: "=" | "<";
  /** What a pair is, to end "must be …". */
  readonly allowed?: string;
  readonly accepts?: (key: string, value: string) => boolean;
  readonly sample?: string;
  readonly wrong?: string;
}

export function pairs(options: PairOptions = {}): ValueType<Pairs> {
  const { name = "key=value pairs", separator = "=", accepts = () => true, sample = "a=1,b=2" } = options;
  const allowed = options.allowed ?? `comma-separated key${separator}value pairs`;
  const check = (key: string, value: string): void => {
    if (key === "" || !accepts(key, value)) throw new ValueError(`${key}${separator}${value} must be ${allowed}`);
  };
  return {
    name,
    allowed,
    sample,
    wrong: options.wrong ?? "nothing",
    parse(text) {
      const entries = splitCsv(text).map((pair): [string, string] => {
        const at = pair.indexOf(separator);
        if (at < 0) throw new ValueError(`${JSON.stringify(pair)} must be ${allowed}`);
        const entry: [string, string] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
        check(...entry);
        return entry;
      });
      return Object.fromEntries(entries);
    },
    print: (map) =>
      Object.keys(map)
        .sort()
        .map((key) => `${key}${separator}${map[key]}`)
        .join(","),
    add: (previous, next) => ({ ...previous, ...next }),
    fromJson(json) {
      for (const [key, value] of Object.entries(json as Pairs)) check(key, value);
      return json as Pairs;
    },
  };
}

/** `cpu=500m,memory=1Gi`: resources set apart. */
export function reserved(name: string): ValueType<Pairs> {
  const resources = ["cpu", "memory", "ephemeral-storage", "pid"];
  return pairs({
    name,
    allowed: `resource=quantity pairs of ${resources.join(", ")}, not negative`,
    accepts: (key, value) => resources.includes(key) && isQuantity(value) && !value.startsWith("-"),
    sample: "cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=100",
    wrong: "cpu=lots",
  });
}

/** `memory=50%` */
export const qosReserved: ValueType<Pairs> = pairs({
  name: "string",
  allowed: "memory=percentage, such as memory=50%",
  accepts: (key, value) => key === "memory" && isPercentage(value),
  sample: "memory=50%",
  wrong: "memory=50",
});

const evictionSignals: readonly string[] = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "allocatableMemory.available",
  "pid.available",
];

const signalsText = evictionSignals.join(", ");

/** `memory.available<100Mi,nodefs.available<10%`: eviction thresholds. */
export const thresholds: ValueType<Pairs> = pairs({
  name: "strings",
  separator: "<",
  allowed: `signal<quantity or signal<percentage pairs; signals are ${signalsText}`,
  accepts: (signal, value) =>
    evictionSignals.includes(signal) && (isPercentage(value) || (isAmount(value) && !isZero(value))),
  sample: "memory.available<200Mi,nodefs.available<15%",
  wrong: "memory.available<most",
});

/** `memory.available=500Mi` */
export const minimumReclaim: ValueType<Pairs> = pairs({
  name: "strings",
  allowed: `signal=quantity or signal=percentage pairs; signals are ${signalsText}`,
  accepts: (signal, value) =>
    evictionSignals.includes(signal) && (isPercentage(value) ? !isZero(value) : isAmount(value)),
  sample: "memory.available=0Mi,nodefs.available=500Mi",
  wrong: "disk=1Gi",
});

/** `memory.available=1m30s` */
export const gracePeriods: ValueType<Pairs> = pairs({
  name: "strings",
  allowed: `signal=duration pairs; signals are ${signalsText}`,
  accepts: (signal, value) => evictionSignals.includes(signal) && (parseDuration(value) ?? -1) >= 0,
  sample: "memory.available=1m30s",
  wrong: "memory.available=soon",
});

function isPercentage(value: string): boolean {
  return /^\d{1,3}(\.\d+)?%$/.test(value) && Number(value.slice(0, -1)) <= 100;
}

/** Of a quantity or percentage. */
function isZero(value: string): boolean {
  return !/^[^a-zA-Z]*[1-9]/.test(value);
}

function isAmount(value: string): boolean {
  return isQuantity(value) && !value.startsWith("-");
}
