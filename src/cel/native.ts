/** JSON values as values of expressions, converted when an expression reaches them. */
import type { Schema } from "../schema/schema.ts";
import type { Value } from "./value.ts";

/** A view of `value`: nothing is copied until it is read. A value that does not fit its schema fails when it is read. */
export declare function nativeOf(schema: Schema, value: unknown): Value;
