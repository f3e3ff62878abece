/**
 * Visits the members of an object in a fixed order by generated code. A loop with computed names is a megamorphic
 * property access; constant names in the program text let V8 use inline caches, which halves the encoding time.
 */

/** Handles one member, present or absent. */
export interface Visitor<Sink> {
  /** Undefined visits the whole object. */
  readonly name: string | undefined;
  visit(sink: Sink, value: unknown): void;
  absent?(sink: Sink): void;
}

export type VisitMembers<Sink> = (sink: Sink, object: Readonly<Record<string, unknown>>) => void;

/** Null counts as absent. Only the member names become program text, quoted as JSON. */
export function visitMembers<Sink>(visitors: readonly Visitor<Sink>[]): VisitMembers<Sink> {
  const lines = visitors.map(({ name, absent }, index) => {
    if (name === undefined) return `visit${index}(sink, object);`;
    const otherwise = absent === undefined ? "" : ` else absent${index}(sink);`;
    return `value = object[${JSON.stringify(name)}];
      if (value !== undefined && value !== null) visit${index}(sink, value);${otherwise}`;
  });
  const names = [...visitors.map((_, index) => `visit${index}`), ...visitors.map((_, index) => `absent${index}`)];
  const text = `"use strict"; return (sink, object) => { let value; ${lines.join("\n")} };`;
  // Safe: the text contains only indexes and JSON-quoted member names.
  const make = new Function(...names, text) as (...calls: readonly unknown[]) => VisitMembers<Sink>;
  return make(...visitors.map(({ visit }) => visit), ...visitors.map(({ absent }) => absent));
}
