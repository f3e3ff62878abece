/** Unsigned integers, and the order of numbers, strings and bytes. */

export class Uint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

export function isNumeric(value: unknown): value is bigint | number | Uint {
  return typeof value === "bigint" || typeof value === "number" || value instanceof Uint;
}

/** -1, 0 or 1; NaN when either is NaN. Integers are converted to double when compared with a double. */
export function compareNumbers(a: bigint | number | Uint, b: bigint | number | Uint): number {
  let left = a instanceof Uint ? a.value : a;
  let right = b instanceof Uint ? b.value : b;
  if (typeof left !== typeof right) {
    left = Number(left);
    right = Number(right);
  }
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : Number.NaN;
}

/** Compares code points, as Go does; JavaScript's `<` compares UTF-16 code units. */
export function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left === right) continue;
    const surrogates = isSurrogate(left) === isSurrogate(right);
    return (surrogates ? left < right : isSurrogate(right)) ? -1 : 1;
  }
  return a.length < b.length ? -1 : 1;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xe000;
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}
