/** Descriptions by schema name, then by field name; the empty name is the description of the schema itself. */
export type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;
