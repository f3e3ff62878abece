/** Kubernetes quantities (`10Mi`, `500m`, `2e3`) as text, and the same as a count of bytes. */
import { ValueError, type ValueType } from "../flag.ts";

const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const decimal: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
};

/** The number a quantity stands for; undefined when `text` is not one. `K` is accepted beside `k` only by `bytes`. */
export function quantityNumber(text: string): number | undefined {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)$/.exec(text);
  if (match === null) return undefined;
  const [, digits = "", exponent, suffix = ""] = match;
  if (exponent !== undefined) return Number(`${digits}${exponent}`);
  return suffix.endsWith("i") ? Number(digits) * 1024 ** binary.indexOf(suffix) : Number(digits) * decimal[suffix]!;
}

export function isQuantity(text: string): boolean {
  return quantityNumber(text) !== undefined;
}

/** A whole number of bytes: `10Mi`, `2Ki`, `1K`, `4096`. */
export function bytes(name: "string" | "quantity", min = 0): ValueType<number> {
  const allowed = `a size in bytes such as 4096, 1K, 2Ki or 10Mi${min > 0 ? `, not below ${min}` : ""}`;
  const parse = (value: string): number => {
    const size = quantityNumber(value.replace(/K$/, "k"));
    if (size === undefined || !Number.isSafeInteger(size) || size < min) throw new ValueError(`must be ${allowed}`);
    return size;
  };
  return {
    name,
    allowed,
    sample: "3Mi",
    wrong: "3 MB",
    parse,
    print: printBytes,
    toJson: printBytes,
    fromJson: (json) => parse(String(json)),
  };
}

function printBytes(size: number): string {
  let power = 0;
  let rest = size;
  while (rest > 0 && rest % 1024 === 0 && power < binary.length - 1) {
    rest /= 1024;
    power += 1;
  }
  return `${rest}${binary[power]}`;
}
