import { isPlainObject } from "./plain-object.ts";

/** The maximum length of a value in an error, in characters. */
export const GO_VALUE_MAX = 4096;

/** Formats as Go's `%v`: `map[$patch:frob a:[1 2]]`. Shortens long values. */
export function formatGoValue(value: unknown): string {
  const parts: string[] = [];
  let left = GO_VALUE_MAX;
  const write = (part: string): void => {
    if (left > 0) parts.push(part.slice(0, left));
    left -= part.length;
  };
  writeGoValue(value, write, () => left > 0);
  return left < 0 ? `${parts.join("")}...` : parts.join("");
}

function writeGoValue(value: unknown, write: (part: string) => void, hasSpace: () => boolean): void {
  if (Array.isArray(value)) {
    write("[");
    for (let index = 0; index < value.length && hasSpace(); index++) {
      if (index > 0) write(" ");
      writeGoValue(value[index], write, hasSpace);
    }
    write("]");
  } else if (isPlainObject(value)) {
    write("map[");
    for (const [index, name] of Object.keys(value).sort().entries()) {
      if (!hasSpace()) break;
      write(`${index > 0 ? " " : ""}${name}:`);
      writeGoValue(value[name], write, hasSpace);
    }
    write("]");
  } else if (typeof value === "symbol") write(value.description ?? "");
  else write(value === null ? "<nil>" : String(value));
}
