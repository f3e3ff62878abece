/** The type of an expression's variable, read from its schema. */
import type { Schema } from "../schema/schema.ts";
import type { Type } from "./types.ts";

export interface TypeOfOptions {
  /** The schema is that of a whole resource: `apiVersion`, `kind`, `metadata.name` and `.generateName` are there. */
  readonly resourceRoot?: boolean;
}

/** Undefined when expressions must not see the value: its fields are unknown. */
export declare function typeOf(schema: Schema, options?: TypeOfOptions): Type | undefined;
