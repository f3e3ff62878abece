/** A sentence for a schema under the empty name, and for its members under theirs; by the name of the schema. */
export type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;
