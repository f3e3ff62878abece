/** Flags whose value is a number. */
import { ValueError, type ValueType } from "../flag.ts";

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

const int32Bounds = { min: -(2 ** 31), max: 2 ** 31 - 1 };
const intBounds = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };

/** A whole number of Go's `int`, kept within what a double holds exactly. */
export function int(bounds: Bounds = {}): ValueType<number> {
  return whole("int", bounds, intBounds);
}

export function int32(bounds: Bounds = {}): ValueType<number> {
  return whole("int32", bounds, int32Bounds);
}

/** A TCP port to listen on; with `zero-disables`, 0 disables the listener. */
export function port(name: "int" | "int32", zero: "zero-disables" | "no-zero"): ValueType<number> {
  return { ...(name === "int" ? int : int32)({ min: zero === "no-zero" ? 1 : 0, max: 65_535 }), sample: "8443" };
}

export function float(bounds: Bounds = {}): ValueType<number> {
  const allowed = describe("a number", bounds);
  return {
    name: "float",
    allowed,
    sample: String(bounds.max ?? 2.5),
    wrong: "much",
    parse(value) {
      const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(value) ? Number(value) : Number.NaN;
      if (!isWithin(number, bounds)) throw new ValueError(`must be ${allowed}`);
      return number;
    },
    print: String,
    fromJson: (json) => inBounds(json, bounds, allowed),
  };
}

/** klog's `-v`. */
export const level: ValueType<number> = { ...whole("level", { min: 0 }, int32Bounds), sample: "4" };

function whole(name: string, bounds: Bounds, width: Required<Bounds>): ValueType<number> {
  const allowed = describe("a whole number", bounds);
  const limits = { ...width, ...bounds };
  return {
    name,
    allowed,
    sample: String(Math.min(Math.max(7, limits.min), limits.max)),
    wrong: "many",
    parse(value) {
      const number = /^[+-]?\d+$/.test(value) ? Number(value) : Number.NaN;
      if (!isWithin(number, limits)) throw new ValueError(`must be ${allowed}`);
      return number === 0 ? 0 : number;
    },
    print: String,
    fromJson: (json) => inBounds(json, limits, allowed),
  };
}

function inBounds(json: unknown, bounds: Bounds, allowed: string): number {
  if (typeof json !== "number" || !isWithin(json, bounds)) throw new ValueError(`must be ${allowed}`);
  return json;
}

function isWithin(number: number, { min = -Infinity, max = Infinity }: Bounds): boolean {
  return number >= min && number <= max;
}

function describe(what: string, { min, max }: Bounds): string {
  if (min !== undefined && max !== undefined) return `${what} between ${min} and ${max}`;
  if (min !== undefined) return `${what} not below ${min}`;
  return max === undefined ? what : `${what} not above ${max}`;
}
