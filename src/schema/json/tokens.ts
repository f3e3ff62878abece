/** Ends of strings and numbers in the bytes of a JSON text, which need not be valid. */
import type { Buffer } from "node:buffer";

/** The digits of the smallest integer that a double cannot hold. */
export const UNSAFE_DIGITS = 16;

/** `+-.Ee`. */
const NUMBER_SIGNS: ReadonlySet<number> = new Set([0x2b, 0x2d, 0x2e, 0x45, 0x65]);

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** The offset after the digits, signs, points and exponents that begin at `start`. */
export function numberEnd(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (isDigit(bytes[at]) || NUMBER_SIGNS.has(bytes[at]!)) at++;
  return at;
}

/** The offset of the quote that ends the string beginning at `start`; the end of the bytes when there is none. */
export function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== 0x22) at += bytes[at] === 0x5c ? 2 : 1;
  return at;
}
