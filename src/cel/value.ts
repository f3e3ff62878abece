/** Values of expressions. */

/**
 * | type | held as |
 * |---|---|
 * | int | `bigint`: exact in 64 bits, and no slower than numbers where expressions spend their time |
 * | uint | `Uint` |
 * | double | `number` |
 * | string, bool, null | as in JSON |
 * | bytes | `Uint8Array` |
 * | list, map, object | `List`, `MapValue`, both lazy over JSON |
 * | timestamp, duration, type, optional, and types of libraries | a class each |
 */
export type Value = bigint | number | string | boolean | null | Uint8Array | object;
